"""Tables of meters with clocks that were not set, ends of days, days of 23 hours and second headers; worked out by hand."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import ingest
from joulebook_pipelines.logs.contract import Options
from joulebook_pipelines.store import Store

BERLIN = Options(scope="node", timezone="Europe/Berlin")


def taken(
    store: Store, folder: Path, text: str, options: Options = BERLIN
) -> tuple[pl.DataFrame, pl.DataFrame, set[str]]:
    path = folder / "meter.csv"
    path.write_text(text)
    (outcome,) = ingest.ingest((ingest.SourceFile(path, path.name, "meter", options=options),), store)
    codes = {f.code for f in outcome.findings} | ({outcome.reason} if outcome.reason else set())
    return store.table("readings").sort("line"), store.table("rejects").sort("line"), codes


@pytest.mark.parametrize("start", ["1970-01-01T00:00", "2000-01-01T00:00"])
def test_rows_from_before_the_clock_was_set_are_set_aside(store: Store, tmp_path: Path, start: str) -> None:
    rows = [f"{start}:{10 * i:02d}Z,400" for i in range(2)] + [f"2026-03-02T10:00:{10 * i:02d}Z,410" for i in range(3)]
    readings, rejects, codes = taken(store, tmp_path, "timestamp,power_w\n" + "\n".join(rows) + "\n")
    assert readings["power_w"].to_list() == [410.0, 410.0, 410.0]
    assert rejects.filter(pl.col("rule") == "clock-not-set")["line"].to_list() == [2, 3]
    assert "clock-not-set" in codes


def test_a_log_that_is_of_old_times_as_a_whole_is_kept(store: Store, tmp_path: Path) -> None:
    rows = [f"2000-05-01T00:00:{10 * i:02d}Z,400" for i in range(3)]
    readings, rejects, _ = taken(store, tmp_path, "timestamp,power_w\n" + "\n".join(rows) + "\n")
    assert readings.height == 3
    assert rejects.height == 0


def test_the_end_of_a_day_is_the_beginning_of_the_next(store: Store, tmp_path: Path) -> None:
    text = "Datum;Uhrzeit;Leistung (W)\n02.03.2026;23:45;400\n02.03.2026;24:00;410\n03.03.2026;00:15;420\n"
    readings, rejects, _ = taken(store, tmp_path, text)
    assert [str(t) for t in readings["ts_utc"]] == [f"2026-03-02 {t}:00+00:00" for t in ("22:45", "23:00", "23:15")]
    assert rejects.height == 0


def test_hours_numbered_1_to_24_are_named_by_their_end(store: Store, tmp_path: Path) -> None:
    text = "Date,Hour,kWh\n" + "".join(f"2026-05-05,{h},{h / 10}\n" for h in range(1, 25))
    readings, _, codes = taken(store, tmp_path, text, Options(scope="node", timezone="UTC"))
    assert readings["energy_j"].sum() == pytest.approx(30 * 3.6e6)
    assert str(readings["ts_utc"][0]) == "2026-05-05 01:00:00+00:00"
    assert str(readings["ts_utc"][-1]) == "2026-05-06 00:00:00+00:00"
    assert "interval-label-assumed" not in codes


def test_a_day_of_23_hours_is_that_long(store: Store, tmp_path: Path) -> None:
    days = ("27", "28", "29", "30", "31")
    text = "Tag;Verbrauch (kWh)\n" + "".join(f"{d}.03.2026;{23 if d == '29' else 24},0\n" for d in days)
    readings, rejects, _ = taken(store, tmp_path, text)
    assert rejects.height == 0
    assert readings["span_s"].to_list() == [86400.0, 86400.0, 82800.0, 86400.0, 86400.0]
    assert (readings["energy_j"] / readings["span_s"]).to_list() == pytest.approx([1000.0] * 5)


def test_a_power_beside_the_end_of_an_interval_is_its_mean(store: Store, tmp_path: Path) -> None:
    text = "interval_end,avg_power_w\n" + "".join(
        f"2026-03-02T1{h}:00:00Z,{w}\n" for h, w in ((1, 900), (2, 1000), (3, 1100), (4, 900))
    )
    readings, _, _ = taken(store, tmp_path, text)
    assert readings["span_s"].to_list() == [3600.0] * 4
    assert (readings["power_w"] * readings["span_s"]).sum() == pytest.approx(3900 * 3600)


def test_rows_under_another_header_are_not_read_by_the_first(store: Store, tmp_path: Path) -> None:
    stamps = [f"2026-03-02T10:0{i}:00Z" for i in range(6)]
    text = (
        f"timestamp,power_w\n{stamps[0]},950\n{stamps[1]},998\ntimestamp,power_kw\n{stamps[2]},1.02\n{stamps[3]},0.99\n"
        f"timestamp,power_w\n{stamps[4]},960\n{stamps[5]},970\n"
    )
    readings, rejects, codes = taken(store, tmp_path, text)
    assert readings["power_w"].to_list() == [950.0, 998.0, 960.0, 970.0]
    assert rejects.select("line", "rule").rows() == [(5, "under-another-header"), (6, "under-another-header")]
    assert "another-header" in codes


def test_unix_time_may_change_its_unit(store: Store, tmp_path: Path) -> None:
    text = "time,power_w\n1772445600,400\n1772445660,410\n1772445720000,420\n1772445780000,430\n"
    readings, rejects, _ = taken(store, tmp_path, text)
    assert readings["ts_utc"].diff().drop_nulls().dt.total_seconds().to_list() == [60, 60, 60]
    assert rejects.height == 0


def test_seconds_that_start_again_are_refused_with_their_place(store: Store, tmp_path: Path) -> None:
    text = "time_s,power_w\n" + "".join(f"{i},400\n" for i in range(5)) + "".join(f"{i},500\n" for i in range(5))
    readings, _, codes = taken(store, tmp_path, text)
    assert readings.height == 0
    assert any("after 4 comes 0 (row 6)" in c for c in codes)


@pytest.mark.parametrize(
    ("counter", "before_kwh", "after_kwh"),
    [([5.1, 5.2, 5.3, 0.0, 0.1, 0.2], 0.2, 0.2), ([99999.5, 99999.7, 99999.9, 0.1, 0.3], 0.4, 0.2)],
    ids=["reset by an outage", "five digits wrapped"],
)
def test_a_register_that_starts_again_is_no_row_of_intervals(
    store: Store, tmp_path: Path, counter: list[float], before_kwh: float, after_kwh: float
) -> None:
    text = "timestamp,energy_kwh\n" + "".join(f"2026-03-02T1{i}:00:00Z,{w}\n" for i, w in enumerate(counter))
    readings, _, _ = taken(store, tmp_path, text)
    kwh = readings["energy_counter_j"] / 3.6e6
    assert kwh[2] - kwh[0] == pytest.approx(before_kwh)
    assert kwh[-1] - kwh[3] == pytest.approx(after_kwh)


def test_energies_that_fall_to_nothing_once_stay_intervals(store: Store, tmp_path: Path) -> None:
    text = "timestamp,energy_kwh\n" + "".join(
        f"2026-03-02T1{i}:00:00Z,{w}\n" for i, w in enumerate([0.4, 0.9, 1.6, 0.0, 0.3, 0.8])
    )
    readings, _, _ = taken(store, tmp_path, text)
    assert readings["energy_j"].sum() == pytest.approx(4.0 * 3.6e6)


def test_no_power_while_the_counter_goes_on_is_told(store: Store, tmp_path: Path) -> None:
    rows = [(600, 0), (600, 10), (0, 20), (0, 30), (600, 40), (600, 50)]
    text = "timestamp,power_w,energy_wh\n" + "".join(
        f"2026-03-02T10:0{i}:00Z,{w},{1000 + j}\n" for i, (w, j) in enumerate(rows)
    )
    assert "zero-power-counter-runs" in taken(store, tmp_path, text)[2]


def test_a_log_of_all_bits_set_is_no_power(store: Store, tmp_path: Path) -> None:
    text = "timestamp,power_w\n" + "".join(f"2026-03-02T10:00:{i:02d}Z,65.535\n" for i in range(12))
    assert "error-code-only" in taken(store, tmp_path, text)[2]


def test_a_counter_that_falls_beside_a_power_is_told(store: Store, tmp_path: Path) -> None:
    kwh = (12.2, 12.3, 12.4, 12.1, 12.2, 12.3)
    text = "timestamp,power_w,energy_kwh\n" + "".join(
        f"2026-03-02T10:{10 * i:02d}:00Z,600,{k}\n" for i, k in enumerate(kwh)
    )
    readings, _, codes = taken(store, tmp_path, text)
    assert readings["power_w"].sum() == 3600.0
    assert "counter-fell" in codes


def test_phases_of_a_shelly_lie_inside_its_total(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "em.jsonl"
    said = (
        '"a_act_power":100.0,"b_act_power":200.0,"c_act_power":300.0,"total_act_power":600.0,"total_aprt_power":700.0'
    )
    path.write_text("".join(f'{{"ts":{1772445600 + 60 * i},{said}}}\n' for i in range(3)))
    ingest.ingest((ingest.SourceFile(path, path.name, "meter", options=BERLIN),), store)
    scopes = dict(store.table("channels").select("device", "scope").rows())
    assert {d: scopes[d] for d in ("node", "phase:a", "phase:b", "phase:c")} == {
        "node": "node", "phase:a": "part", "phase:b": "part", "phase:c": "part",
    }  # fmt: skip
    total = store.table("readings").filter(pl.col("device") == "node")["power_w"]
    assert total.to_list() == [600.0] * 3


def test_a_row_of_the_year_2106_is_set_aside(store: Store, tmp_path: Path) -> None:
    stamps = [f"2026-03-02T10:00:{i}0Z" for i in range(3)] + ["2106-02-07T06:28:15Z", "2026-03-02T10:00:40Z"]
    readings, rejects, codes = taken(store, tmp_path, "timestamp,power_w\n" + "".join(f"{t},400\n" for t in stamps))
    assert readings.height == 4
    assert rejects.filter(pl.col("rule") == "clock-not-set")["line"].to_list() == [5]
    assert "clock-not-set" in codes


def test_a_log_of_1970_says_that_its_clock_was_never_set(store: Store, tmp_path: Path) -> None:
    text = "timestamp,power_w\n" + "".join(f"1970-01-01T00:0{i}:00Z,400\n" for i in range(4))
    readings, _, codes = taken(store, tmp_path, text)
    assert readings.height == 4
    assert "clock-never-set" in codes
    assert "clock-never-set" not in taken(store, tmp_path, "time_s,power_w\n0,400\n1,400\n2,400\n")[2]


@pytest.mark.parametrize(("shown", "kept"), [("1234", "energy_counter_j"), ("0.0001", "energy_j"), ("0.000", "")])
def test_an_energy_that_does_not_move_is_told_by_the_power_beside_it(
    store: Store, tmp_path: Path, shown: str, kept: str
) -> None:
    """At 360 W a second is 0.0001 kWh: 1234 kWh is a register, 0 may be either and costs no one the power."""
    rows = [f"2026-03-02T10:00:{s:02d}Z,{360 + s % 2},{shown}" for s in range(10)]
    readings, _, codes = taken(store, tmp_path, "time,power_w,energy_kwh\n" + "\n".join(rows) + "\n")
    assert readings["power_w"].to_list() == [360.0, 361.0] * 5
    told = [c for c in ("energy_counter_j", "energy_j") if readings[c].null_count() == 0]
    assert told == [kept] * bool(kept)
    assert ("energies-not-read" in codes) is (not kept)


def test_the_unit_may_stand_beside_each_power(store: Store, tmp_path: Path) -> None:
    text = "time,power,unit\n" + "".join(
        f"2026-03-13T10:00:0{i}Z,{p}\n" for i, p in enumerate(["0.4,kW", "410,W", "0.42,kW", "430000,mW"])
    )
    readings, rejects, _ = taken(store, tmp_path, text)
    assert readings["power_w"].to_list() == pytest.approx([400.0, 410.0, 420.0, 430.0])
    assert rejects.height == 0


def test_a_plug_of_tapo_answers_in_milliwatts_and_watt_hours(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "plug.jsonl"
    said = '{{"today_energy":{wh},"month_energy":5000,"local_time":"2026-03-13 10:0{i}:00","current_power":{mw}}}\n'
    path.write_text("".join(said.format(i=i, wh=500 + 5 * i, mw=300_000 + 1000 * i) for i in range(3)))
    ingest.ingest((ingest.SourceFile(path, path.name, "meter", options=BERLIN),), store)
    readings = store.table("readings").sort("ts_utc")
    assert readings.filter(pl.col("device") == "node")["power_w"].to_list() == [300.0, 301.0, 302.0]
    today = readings["energy_counter_j"]
    assert today.diff().drop_nulls().to_list() == [18_000.0, 18_000.0]
    assert set(readings["device"]) == {"node"}


def test_rows_of_separators_alone_hold_nothing(store: Store, tmp_path: Path) -> None:
    text = "Time;Power (W);;\n" + "".join(f"13/03/2026 10:0{i}:00;40{i},5;;\n" for i in range(4)) + ";;;\n;;;\n"
    readings, rejects, codes = taken(store, tmp_path, text)
    assert readings["power_w"].to_list() == [400.5, 401.5, 402.5, 403.5]
    assert rejects.height == 0
    assert "no-such-time" not in codes


def test_the_line_of_dashes_below_the_titles_is_no_row(store: Store, tmp_path: Path) -> None:
    text = "| time | power_w |\n|---|---|\n" + "".join(f"| 2026-03-13T10:00:0{i}Z | 40{i} |\n" for i in range(3))
    readings, rejects, _ = taken(store, tmp_path, text)
    assert readings["power_w"].to_list() == [400.0, 401.0, 402.0]
    assert rejects.height == 0


def test_rows_of_another_date_format_are_rejected_and_the_others_kept(store: Store, tmp_path: Path) -> None:
    text = "time,power_w\n" + "".join(f"2026-03-13 10:00:0{i},400\n" for i in range(3))
    text += "".join(f"13.03.2026 10:00:0{i},400\n" for i in range(3, 6))
    readings, rejects, codes = taken(store, tmp_path, text)
    assert readings["line"].to_list() == [2, 3, 4]
    assert set(rejects.filter(pl.col("rule") == "no-such-time")["raw"]) == {
        f"13.03.2026 10:00:0{i}" for i in range(3, 6)
    }
    assert "no-such-time" in codes


def test_stamps_that_a_spreadsheet_rounded_are_refused(store: Store, tmp_path: Path) -> None:
    text = "time;power_w\n" + "".join(f"1,77E+12;40{i}\n" for i in range(4))
    readings, _, codes = taken(store, tmp_path, text)
    assert readings.height == 0
    assert any("rounded by a spreadsheet" in c for c in codes)


@pytest.mark.parametrize(("other", "told"), [(500, True), (400, False)])
def test_two_logs_in_one_file_are_told(store: Store, tmp_path: Path, other: int, told: bool) -> None:
    rows = "".join(f"2026-03-13T10:00:0{i}Z,{{}}\n" for i in range(5))
    text = "time,power_w\n" + rows.format(*[400] * 5) + rows.format(*[other] * 5)
    path = tmp_path / "meter.csv"
    path.write_text(text)
    (outcome,) = ingest.ingest((ingest.SourceFile(path, path.name, "meter", options=BERLIN),), store)
    (found,) = (f.message for f in outcome.findings if f.code == "duplicate-readings")
    assert ("of two machines" in found) == told


def test_a_clock_that_was_set_back_is_not_taken_for_a_second_machine(store: Store, tmp_path: Path) -> None:
    shown = [f"10:{i // 60:02d}:{i % 60:02d}" for i in [*range(300), *range(294, 600)]]  # six seconds come twice
    path = tmp_path / "meter.csv"
    path.write_text("time,power_w\n" + "".join(f"2026-03-13T{at}Z,{400 + i % 9}\n" for i, at in enumerate(shown)))
    (outcome,) = ingest.ingest((ingest.SourceFile(path, path.name, "meter", options=BERLIN),), store)
    (found,) = (f.message for f in outcome.findings if f.code == "duplicate-readings")
    assert "6 readings" in found
    assert "the clock was set back there" in found


def test_a_register_of_coarse_steps_is_one_in_the_hour_that_comes_twice_as_well(store: Store, tmp_path: Path) -> None:
    # Two hours from 02:00:01 summer time, every 2 s: odd seconds first, the even ones between them an hour later.
    rows = []
    for i in range(3599):
        at = 2 * i + 1 + (i >= 1800)
        numbers = f"{400 + i % 7}.0;{52.117 + i * 800 // 3600 / 1000:.3f}".replace(".", ",")
        rows.append(f"25.10.2026 02:{at // 60 % 60:02d}:{at % 60:02d};{numbers}")
    text = "Zeit;Leistung [W];Energie [kWh]\n" + "\n".join(rows) + "\n"
    readings, rejects, codes = taken(store, tmp_path, text)
    assert rejects.height == 0
    assert readings["energy_counter_j"].null_count() == 0
    assert readings["power_w"].to_list()[:3] == [400.0, 401.0, 402.0]
    assert (readings["ts_utc"][-1] - readings["ts_utc"][0]).total_seconds() == 7197.0
    assert "interval-label-assumed" not in codes


def test_means_of_spans_whose_stamps_keep_no_step_are_refused_with_the_cure(store: Store, tmp_path: Path) -> None:
    options = Options(timezone="UTC", scope="node", kind="mean", interval_label="start")
    log = "time,power_w\n2026-04-05T09:00:40,10\n2026-04-05T09:00:10,10\n"
    (reason,) = taken(store, tmp_path, log, options)[2] - {"source-refused"}
    assert "keep no common step" in reason and "add period_s" in reason
