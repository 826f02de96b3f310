"""Dumps of management controllers with several hosts, glued stamps and sensors at their end; numbers worked out by hand."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import recognise
from joulebook_pipelines.logs import text
from joulebook_pipelines.logs.bmc_doubts import Doubts
from joulebook_pipelines.logs.contract import Log, LogRefusedError, Options
from joulebook_pipelines.logs.resolution import Levels


def read(folder: Path, told: str, **options: object) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    path = folder / "dump.txt"
    path.write_text(told)
    head = text.head(path, path.name)
    parts = list(recognise.adapter_for(head).parse(Log(path, head, Options(**options))))  # type: ignore[arg-type]
    frames = {n: [f for p in parts if (f := getattr(p, n)) is not None] for n in ("readings", "rejects")}
    codes = [f.code for p in parts for f in p.findings]
    return pl.concat(frames["readings"]), pl.concat(frames["rejects"]), codes


TWO_HOSTS = "".join(
    f"2026-03-02T10:00:{10 * i:02d}Z n{k}: Instantaneous power reading:     {w} Watts\n"
    for i in range(3)
    for k, w in ((1, 300), (2, 500 + i))
)


def test_lines_of_several_hosts_are_no_one_machine(tmp_path: Path) -> None:
    with pytest.raises(LogRefusedError, match=r"2 hosts \(n1, n2\).*host = \"n1\""):
        read(tmp_path, TWO_HOSTS)


def test_of_several_hosts_the_one_that_is_named_is_read(tmp_path: Path) -> None:
    readings, rejects, _ = read(tmp_path, TWO_HOSTS, host="n2")
    assert readings["power_w"].to_list() == [500.0, 501.0, 502.0]
    assert readings["line"].to_list() == [2, 4, 6]
    assert rejects.height == 0


def _glued(stamps: list[str]) -> str:
    return "".join(
        f"    Instantaneous power reading:                   {200 + i} Watts\n"
        f"    Average power reading over sample period:      150 Watts\n"
        f"    IPMI timestamp:                           {s}    Sampling period:                          00065530 Seconds.\n"
        "    Power reading state is:                   activated\n\n"
        for i, s in enumerate(stamps)
    )


def test_a_stamp_with_the_next_line_behind_it_is_read(tmp_path: Path) -> None:
    readings, rejects, _ = read(tmp_path, _glued(["10/25/26 13:29:17 CEST", "10/25/26 13:29:27 CEST"]))
    assert readings["power_w"].to_list() == [200.0, 201.0]
    assert [str(t) for t in readings["ts_utc"]] == ["2026-10-25 11:29:17+00:00", "2026-10-25 11:29:27+00:00"]
    assert rejects.height == 0


def test_a_stamp_whose_day_and_month_look_alike_asks(tmp_path: Path) -> None:
    with pytest.raises(LogRefusedError, match="day_first"):
        read(tmp_path, _glued(["10/12/26 13:29:17 CEST"]))
    readings, _, _ = read(tmp_path, _glued(["10/12/26 13:29:17 CEST"]), day_first=False)
    assert str(readings["ts_utc"][0]) == "2026-10-12 11:29:17+00:00"


def test_supplies_that_read_more_than_the_machine_contradict_it() -> None:
    seen = Doubts()
    rows = [("node", 185.0), ("psu:1", 900.0), ("psu:2", 900.0)]
    seen.count(pl.DataFrame(rows, schema=["device", "power_w"], orient="row"))
    assert [f.code for f in seen.findings("power.json")] == ["total-contradicts-supplies"]


@pytest.mark.parametrize(
    ("power_w", "code"),
    [
        ([402.0, 438.0, 510.0, 510.0, 510.0, 494.0, 466.0, 488.0], "sensor-at-its-end"),
        ([402.0, 438.0, 508.0, 508.0, 508.0, 494.0, 466.0, 488.0], None),
        ([402.3, 438.1, 510.0, 510.0, 510.0, 494.7, 466.2, 488.9], None),
    ],
    ids=["255 steps of 2 W", "254 steps", "no steps at all"],
)
def test_a_sensor_that_stays_at_the_end_of_eight_bits(power_w: list[float], code: str | None) -> None:
    levels = Levels()
    levels.add(pl.DataFrame({"device": ["node"] * len(power_w), "power_w": power_w}))
    assert (code in {f.code for f in levels.findings("sensors.csv")}) == (code is not None)
    assert "sensor-at-its-end" not in {f.code for f in levels.findings("sensors.csv")} or code is not None


def test_readings_without_a_common_step_are_not_coarse() -> None:
    levels = Levels()
    power_w = [402.3, 438.1, 510.0, 471.9, 494.7, 466.2, 488.9, 421.4]
    levels.add(pl.DataFrame({"device": ["node"] * 8, "power_w": power_w}))
    assert levels.findings("meter.csv") == []


def test_records_with_letters_in_their_numbers_and_words_behind_the_unit_are_read(tmp_path: Path) -> None:
    told = "".join(
        f"2026-03-02T10:00:{10 * i:02d}Z\n"
        "Power Supply 1   | 0Ch | ok  | 10.1 | Presence detected\n"
        f"Power Meter      | 2Ah | ok  |  7.6 | {300 + i} Watts, Device Enabled\n"
        for i in range(3)
    )
    readings, _, _ = read(tmp_path, told)
    assert readings["power_w"].to_list() == [300.0, 301.0, 302.0]
    assert readings["device"].unique().to_list() == ["node"]


def test_the_one_line_that_is_left_of_a_dump_is_the_machine_all_the_same(tmp_path: Path) -> None:
    told = "".join(f"2026-03-02T10:00:0{i}Z Current Power                        : {300 + i} Watts\n" for i in range(3))
    readings, rejects, _ = read(tmp_path, told)
    assert readings.select("device", "power_w").rows() == [("node", 300.0), ("node", 301.0), ("node", 302.0)]
    assert rejects.height == 0


def test_ipmiutil_says_the_same_in_other_words(tmp_path: Path) -> None:
    told = "".join(
        "ipmiutil dcmi ver 3.17\n-- BMC version 6.10, IPMI version 2.0 \nDCMI Power Management:          Supported\n"
        f"  Current Power:                   {300 + i} Watts\n  Min Power over sample duration:  6 Watts\n"
        f"  Avg Power over sample duration:  49 Watts\n  Timestamp:                       Mon Mar  2 10:00:0{i} 2026\n\n"
        "  Sampling period:                 1000 ms\n  Power reading state is:          active\n"
        for i in range(3)
    )
    readings, rejects, _ = read(tmp_path, told, timezone="UTC")
    assert readings["power_w"].to_list() == [300.0, 301.0, 302.0]
    assert [str(t)[11:19] for t in readings["ts_utc"]] == ["10:00:00", "10:00:01", "10:00:02"]
    assert rejects.height == 0
