"""Tables behind the prefixes of collectors, tables whose stamps stand on lines of their own, and rows without titles."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import ingest
from joulebook_pipelines.logs.contract import LogRefusedError, Options

ROWS = [("10:00:00", 0, 200), ("10:00:00", 1, 310), ("10:00:01", 0, 220), ("10:00:01", 1, 330)]
TABLE = ["timestamp, index, power.draw [W]", *(f"2026/03/02 {t}.000, {g}, {p}.00 W" for t, g, p in ROWS)]


def _read(tmp_path: Path, text: str, **options: object) -> pl.DataFrame:
    path = tmp_path / "gpu.log"
    path.write_text(text, encoding="utf-8")
    said = Options(**{"timezone": "UTC", **options})  # type: ignore[arg-type]
    log, adapter = ingest.recognised(ingest.SourceFile(path, "gpu.log", "host", options=said))
    found = [p.readings for p in adapter.parse(log) if p.readings is not None and p.readings.height]
    return pl.concat(found, how="diagonal")


def _means(readings: pl.DataFrame) -> dict[str, float]:
    return dict(readings.group_by("device").agg(pl.col("power_w").mean()).iter_rows())


@pytest.mark.parametrize(
    "prefix",
    [
        "n1: ",
        "gpu-mon-1  | ",
        "[pod/gpu-mon-abc/smi] ",
        "2026-03-02T10:00:09.123456789Z ",
        "2026-03-02T10:00:09.123456789+01:00 stdout F ",
        "Mar  2 10:00:09 n1 gpulog[812]: ",
        "Mar 02 10:00:09 ",
        "0: ",
    ],
)
def test_a_prefix_on_every_line_is_passed_over(tmp_path: Path, prefix: str) -> None:
    readings = _read(tmp_path, "".join(f"{prefix}{line}\n" for line in TABLE))
    assert _means(readings) == {"gpu:0": 210.0, "gpu:1": 320.0}
    assert readings["line"].to_list() == [2, 3, 4, 5], "lines keep their numbers"
    assert readings["ts_utc"].dt.second().to_list() == [0, 0, 1, 1], "the rows' own time, not the collector's"


@pytest.mark.parametrize("prefix", ["{}: ", "{}  | ", "[pod/{}/smi] ", "Mar  2 10:00:09 {} gpulog[812]: "])
def test_machines_whose_lines_are_gathered_in_one_file_stay_apart(tmp_path: Path, prefix: str) -> None:
    other = [TABLE[0], *(row.replace("00 W", "50 W") for row in TABLE[1:])]
    pairs = ((prefix.format("n1") + a, prefix.format("n2") + b) for a, b in zip(TABLE, other, strict=True))
    readings = _read(tmp_path, "".join(f"{line}\n" for pair in pairs for line in pair))
    assert _means(readings) == {"gpu:0@n1": 210.0, "gpu:1@n1": 320.0, "gpu:0@n2": 210.5, "gpu:1@n2": 320.5}
    assert readings["line"].to_list() == list(range(3, 11)), "lines keep their numbers"


@pytest.mark.parametrize("stamp", ["2026-03-02 10:00:0{}", "Mon Mar  2 10:00:0{} UTC 2026", "177244560{}"])
def test_rows_take_the_time_of_the_line_before_them(tmp_path: Path, stamp: str) -> None:
    text = "".join(
        f"{stamp.format(i)}\nindex, power.draw [W]\n0, {200 + i}.00 W\n1, {300 + i}.00 W\n" for i in range(3)
    )
    readings = _read(tmp_path, text)
    assert _means(readings) == {"gpu:0": 201.0, "gpu:1": 301.0}
    assert readings.filter(device="gpu:1")["ts_utc"].dt.strftime("%FT%T").to_list() == [
        f"2026-03-02T10:00:0{i}" for i in range(3)
    ]


def test_a_time_at_the_beginning_is_not_that_of_all_rows(tmp_path: Path) -> None:
    text = "Mon Mar  2 10:00:00 UTC 2026\nindex, power.draw [W]\n" + "".join(f"0, {200 + i}.00 W\n" for i in range(9))
    with pytest.raises(LogRefusedError, match="no timestamp column"):
        _read(tmp_path, text)


def test_tasks_of_srun_stay_apart(tmp_path: Path) -> None:
    other = [TABLE[0], *(row.replace("00 W", "50 W") for row in TABLE[1:])]
    text = "".join(f" 9: {a}\n10: {b}\n" for a, b in zip(TABLE, other, strict=True))
    readings = _read(tmp_path, text)
    assert _means(readings) == {"gpu:0@9": 210.0, "gpu:1@9": 320.0, "gpu:0@10": 210.5, "gpu:1@10": 320.5}


def test_rows_take_the_time_in_front_of_them(tmp_path: Path) -> None:
    readings = _read(tmp_path, "".join(f"2026-03-02T10:00:0{i}+00:00 {100 + i}.5 W\n" for i in range(4)), scope="node")
    assert _means(readings) == {"node": 102.0}


def test_without_titles_the_only_cell_in_watts_is_the_power(tmp_path: Path) -> None:
    rows = "".join(f"2026/03/02 {t}.000, {g}, A100, {p}.00 W, 97 %, 41\n" for t, g, p in ROWS)
    assert _means(_read(tmp_path, rows)) == {"gpu:0": 210.0, "gpu:1": 320.0}


@pytest.mark.parametrize(
    "row",
    [
        "2026/03/02 {t}.000, {g}, {p}.00, 97",
        "2026/03/02 {t}.000, {g}, {p}.00 W, 400.00 W",
        "2026/03/02 {t}.000, {p}.00 W",
    ],
)
def test_without_titles_nothing_is_guessed(tmp_path: Path, row: str) -> None:
    with pytest.raises(LogRefusedError, match=r"columns = \{"):
        _read(tmp_path, "".join(row.format(t=t, g=g, p=p) + "\n" for t, g, p in ROWS))


def test_messages_of_topics_name_their_plugs(tmp_path: Path) -> None:
    """Half of the lines of ``mosquitto_sub -v`` speak of the bridge; a plug's own word for its unit is that of its manual."""
    lines = [
        '2026-03-02T10:00:00+0100 zigbee2mqtt/plug-a {"linkquality":100,"power":101.5,"state":"ON"}',
        '2026-03-02T10:00:00+0100 zigbee2mqtt/plug-b {"linkquality":87,"power":203,"state":"ON"}',
        "2026-03-02T10:00:05+0100 zigbee2mqtt/bridge/state online",
        '2026-03-02T10:00:10+0100 zigbee2mqtt/plug-a {"linkquality":100,"power":103.5,"state":"ON"}',
        '2026-03-02T10:00:10+0100 zigbee2mqtt/plug-a {"linkquality":100,"power":1',
    ]
    readings = _read(tmp_path, "\n".join(lines) + "\n")
    assert _means(readings) == {"plug-a": 102.5, "plug-b": 203.0}
    assert readings["ts_utc"].dt.strftime("%T").to_list() == ["09:00:00", "09:00:00", "09:00:10"]
    assert sorted(readings["line"].to_list()) == [1, 2, 4]


def test_a_message_with_its_own_time_keeps_it(tmp_path: Path) -> None:
    text = "".join(
        f'tele/plug7/SENSOR {{"Time":"2026-03-02T10:00:0{i}","ENERGY":{{"Power":10{i},"Voltage":230}}}}\n'
        for i in range(3)
    )
    readings = _read(tmp_path, text)
    assert _means(readings) == {"plug7": 101.0}
    assert readings["ts_utc"].dt.second().to_list() == [0, 1, 2]


def test_the_console_of_a_plug_is_read_and_its_states_are_no_missing_readings(tmp_path: Path) -> None:
    text = "".join(
        f'10:00:0{i}.123 MQT: tele/plug7/STATE = {{"Time":"2026-03-02T10:00:0{i}","Uptime":"1T00:00:00"}}\n'
        f'10:00:0{i}.130 MQT: tele/plug7/SENSOR = {{"Time":"2026-03-02T10:00:0{i}","ENERGY":{{"Power":10{i},"Voltage":230}}}}\n'
        for i in range(3)
    )
    readings = _read(tmp_path, text)
    assert _means(readings) == {"plug7": 101.0}
    assert readings["line"].to_list() == [2, 4, 6]
    log, adapter = ingest.recognised(
        ingest.SourceFile(tmp_path / "gpu.log", "gpu.log", "host", options=Options(timezone="UTC"))
    )
    parts = list(adapter.parse(log))
    rejects = pl.concat([p.rejects for p in parts if p.rejects is not None])
    assert rejects.select("line", "rule").rows() == [(i, "no-known-member") for i in (1, 3, 5)]
