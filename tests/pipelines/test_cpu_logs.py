"""Energies of CPU counters, benchmark meters and node logs, from files in their own formats to rows of ``results``."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import config, open_store, run
from joulebook_pipelines.logs import mllog, rapl, rows
from joulebook_pipelines.logs.contract import Block

T_MS = 1_775_570_400_000
"""2026-04-07 14:00:00 UTC."""


pytestmark = pytest.mark.usefixtures("energy_stages")


def analysed(tmp_path: Path, study: str, **files: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return results and findings of a study made of files (``__`` in a name stands for a dot)."""
    folder = tmp_path / "study"
    folder.mkdir()
    for name, text in files.items():
        path = folder / name.replace("__", ".").replace("--", "/")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "study.toml").write_text(study, encoding="utf-8")
    result = run.analyse(config.load(folder), tmp_path / "out")
    with open_store(result.store) as store:
        return store.results(), store.findings()


def number(results: pl.DataFrame, metric: str, scope: str, device: str = "") -> float:
    row = results.filter(
        (pl.col("metric") == metric)
        & (pl.col("scope") == scope)
        & (pl.col("device") == device)
        & (pl.col("phase") == "")
    )
    assert row.height == 1, row
    return float(row["value"][0])


def test_nested_domains_are_never_added(tmp_path):
    text = "time_s,package-0_uj,core_uj,uncore_uj,dram_uj,psys_uj\n0,0,0,0,0,0\n60,1800000000,1200000000,120000000,180000000,2400000000\n"
    results, findings = analysed(tmp_path, '[[source]]\npath = "poll.csv"\n', poll__csv=text)
    energies = results.filter((pl.col("metric") == "energy_j") & (pl.col("device") == ""))
    assert dict(energies.select("scope", "value").iter_rows()) == pytest.approx(
        {"package": 1800.0, "dram": 180.0, "dc": 2400.0}
    )
    assert number(results, "mean_power_w", "package") == pytest.approx(30.0)
    assert number(results, "mean_power_w", "dc") == pytest.approx(40.0)
    assert "relative-time" in findings["code"].to_list()


def wrapping(range_column: bool) -> str:
    """Return a poll at 100 W whose counter of 1000 J wraps once."""
    counts = [(i * 100_000_000 + 750_000_000) % 1_000_000_000 for i in range(8)]
    head = "timestamp,package-0_uj" + (",package-0_max_energy_range_uj" if range_column else "")
    lines = [f"{T_MS / 1000 + i},{c}" + (",1000000000" if range_column else "") for i, c in enumerate(counts)]
    return "\n".join([head, *lines]) + "\n"


@pytest.mark.parametrize(("text", "study"), [
    (wrapping(range_column=True), '[[source]]\npath = "poll.csv"\n'),
    (wrapping(range_column=False), '[[source]]\npath = "poll.csv"\nrange_j = 1000.0\n'),
])  # fmt: skip
def test_a_wrap_is_corrected_by_the_range_of_the_file_or_of_the_study(tmp_path, text, study):
    results, findings = analysed(tmp_path, study, poll__csv=text)
    assert number(results, "energy_j", "package") == pytest.approx(700.0)
    assert findings.filter(pl.col("code").str.contains("wrap")).height == 1


def test_a_wrap_of_unknown_range_is_not_guessed(tmp_path):
    results, _ = analysed(tmp_path, '[[source]]\npath = "poll.csv"\n', poll__csv=wrapping(range_column=False))
    row = results.filter((pl.col("metric") == "energy_j") & (pl.col("device") == "") & (pl.col("scope") == "package"))
    assert row["value"][0] == pytest.approx(600.0), "the energy of the covered time"
    assert row["hi"][0] >= 700.0


def test_power_gadget_goes_on_over_midnight_and_covers_the_time_before_its_first_line(tmp_path):
    rows_ = [
        ("23:59:58:900", 1, 20, 20),
        ("23:59:59:900", 2, 21, 41),
        ("00:00:00:900", 3, 20, 61),
        ("00:00:01:900", 4, 19, 80),
    ]
    head = (
        '"System Time","RDTSC","Elapsed Time (sec)","Processor Power_0(Watt)","Cumulative Processor Energy_0(Joules)"\n'
    )
    body = "".join(f'"{t}","{e}000000","   {e}.000","  {w}.000","  {j}.000"\n' for t, e, w, j in rows_)
    study = '[[source]]\npath = "gadget.csv"\ndate = 2026-04-07\ntimezone = "UTC"\n'
    results, _ = analysed(tmp_path, study, gadget__csv=head + body + '\n"Total Elapsed Time (sec) = 4.000000"\n')
    assert number(results, "energy_j", "package") == pytest.approx(80.0)
    assert number(results, "duration_s", "package") == pytest.approx(4.0)
    assert number(results, "mean_power_w", "package") == pytest.approx(20.0)


def ptd(second: float, watts: float) -> str:
    return (
        f"Time,03-02-2026 {11 + int(second) // 3600:02d}:{int(second) // 60 % 60:02d}:{second % 60:06.3f},Watts,{watts:.6f},"
        "Volts,230.100000,Amps,2.000000,PF,0.950000,Mark,2026-03-02_10-00-00_testing\n"
    )


WINDOW = '[[run]]\nid = "r"\nstart = 2026-03-02T10:00:00Z\nend = 2026-03-02T10:00:04Z\n'


def test_a_window_in_utc_meets_a_log_in_local_time(tmp_path):
    text = "".join(ptd(s, 400.0 if s <= 4 else 100.0) for s in range(9))
    source = '[[source]]\npath = "spl.txt"\nscope = "node"\nutc_offset_s = {}\n'
    results, _ = analysed(tmp_path, WINDOW + source.format(3600), spl__txt=text)
    assert number(results, "energy_j", "node") == pytest.approx(1600.0)
    assert number(results, "mean_power_w", "node") == pytest.approx(400.0)


def test_a_wrong_zone_gives_no_energy_and_says_how_far_the_readings_are(tmp_path):
    text = "".join(ptd(s, 400.0) for s in range(5))
    source = '[[source]]\npath = "spl.txt"\nscope = "node"\ntimezone = "UTC"\n'
    results, findings = analysed(tmp_path, WINDOW + source, spl__txt=text)
    assert results.filter(pl.col("metric") == "energy_j").is_empty()
    told = findings.filter(pl.col("code") == "no-readings-in-run")["message"]
    assert len(told) == 1 and "time" in told[0] and "after" in told[0]


def test_many_nodes_are_summed_within_the_window_of_the_benchmarks_own_log(tmp_path):
    def event(t_s: float, key: str, value: object, **metadata: object) -> str:
        line = {"namespace": "", "time_ms": T_MS + round(t_s * 1000), "event_type": "POINT_IN_TIME", "key": key, "value": value,
                "metadata": metadata or ""}  # fmt: skip
        return f":::MLLOG {json.dumps(line)}\n"

    files = {
        f"node_{n}__txt": event(0, "power_measurement_start", None)
        + "".join(event(t + 0.1 * n, "power_reading", 1000 * n) for t in range(0, 61, 2))
        for n in (1, 2, 3)
    }
    log = (
        event(0, "global_batch_size", 8) + event(10, "run_start", None) + event(50, "run_stop", None, samples_count=480)
    )
    study = '[[source]]\npath = "node_*.txt"\nscope = "node"\n[[source]]\npath = "result_0.txt"\n'
    results, _ = analysed(tmp_path, study, result_0__txt=log, **files)
    assert number(results, "energy_j", "node") == pytest.approx(40 * 6000.0)
    assert number(results, "energy_j", "node", "node_3") == pytest.approx(40 * 3000.0)


def test_one_process_beside_the_machine_is_not_added(tmp_path):
    stamps = [f"2026-04-07 14:00:{s:02d}" for s in range(1, 21)]
    whole = "Date,CPU Utilization,Total Power,CPU Power,GPU Power\n" + "".join(
        f"{t},0.5,30.0,30.0,0.0\n" for t in stamps
    )
    own = "Date,CPU Utilization,CPU Power\n" + "".join(f"{t},0.4,24.0\n" for t in stamps)
    study = '[study]\ntimezone = "UTC"\n[[source]]\npath = "pj.csv*"\n'
    results, _ = analysed(tmp_path, study, **{"pj__csv": whole, "pj__csv-4711__csv": own})
    assert number(results, "energy_j", "package") == pytest.approx(600.0)


@pytest.mark.parametrize(("name", "socket", "device", "scope"), [
    ("package-1", None, "cpu:1", "package"), ("energy-pkg", 0, "cpu:0", "package"), ("power/energy-ram/", None, "dram", "dram"),
    ("PkgWatt", None, "cpu", "package"), ("RAMWatt", 1, "dram:1", "dram"), ("core", 0, "cpu:0/core", "part"),
    ("uncore", 0, "cpu:0/uncore", "part"), ("psys", 0, "platform", "dc"), ("IA", 0, "cpu:0/core", "part"),
    ("PP0", 0, "cpu:0/core", "part"),
])  # fmt: skip
def test_domains_have_one_place_whatever_the_tool_calls_them(name, socket, device, scope):
    assert rapl.domain(name, socket) == rapl.Domain(device, scope)


@pytest.mark.parametrize("name", ["User", "Sys", "Idle", "Time", "gpu", "total", ""])
def test_other_words_are_no_domains(name):
    assert rapl.domain(name) is None


@pytest.mark.parametrize(("titles", "poll"), [
    (["time_s", "package-0_uj", "core_uj"], True), (["timestamp", "/sys/class/powercap/intel-rapl:0/energy_uj"], True),
    (["time", "package-0_uj", "package-0_max_energy_range_uj"], True), (["run", "package-0_uj"], False),
    (["Timestamp", "Phase", "Runtime (s)", "CPU Energy (J)"], False), (["time", "power_w"], False), (["time"], False),
])  # fmt: skip
def test_a_poll_is_a_time_and_counters_and_nothing_else(titles, poll):
    assert rapl.is_poll(titles) is poll


def test_devices_are_taken_in_turn_so_that_lines_stay_in_order():
    frames = [pl.DataFrame({"line": [1, 2], "device": [d, d], "power_w": [p, p + 1], "span_s": [None, None]},
                           schema_overrides={"span_s": pl.Float64}) for d, p in (("a", 1.0), ("b", 5.0))]  # fmt: skip
    joined = rows.together(frames)
    assert joined["line"].to_list() == [1, 1, 2, 2]
    assert joined["device"].to_list() == ["a", "b", "a", "b"]
    assert joined["power_w"].to_list() == [1.0, 5.0, 2.0, 6.0]
    assert joined["span_s"].null_count() == 4
    uneven = rows.together([frames[0], frames[1].head(1)])
    assert uneven.select("line", "device").rows() == [(1, "a"), (1, "b"), (2, "a")]
    holed = [f.with_columns(power_w=pl.when(pl.col("line") > 1).then("power_w")) for f in frames]
    assert rows.together(holed)["power_w"].to_list() == [None, None, 2.0, 6.0]


def test_lines_below_a_header_keep_their_numbers():
    blocks = iter([Block(1, b"h\na\n"), Block(3, b"b\nc\n", terminated=False)])
    assert [(b.first_line, b.data) for b in rows.below(blocks, 1)] == [(2, b"a\n"), (3, b"b\nc\n")]
    blocks = iter([Block(1, b"h\nh\n"), Block(3, b"b\n")])
    assert [(b.first_line, b.data) for b in rows.below(blocks, 2)] == [(3, b"b\n")]


def test_events_are_read_behind_any_prefix_and_echoed_commands_are_none():
    line = ':::MLLOG {"namespace": "", "time_ms": 1775570400000, "key": "run_start", "value": null, "metadata": {"step": 4}}'
    block = Block(1, f"+ echo ':::MLLOG {{'\n 3: {line}\nnothing\n{line[:40]}\n".encode())
    found, odd = mllog.events(block)
    assert found["line"].to_list() == [2] and found["key"].to_list() == ["run_start"]
    assert odd["line"].to_list() == [4]
    assert found.select(mllog.told(pl.col("metadata"), "step")).item() == "4"


def test_scaphandre_without_rights_reads_no_zero_watts(tmp_path):
    def report(second: int, microwatts: float) -> str:
        at = T_MS / 1000 + second
        return json.dumps({
            "host": {"consumption": microwatts, "timestamp": at}, "consumers": [],
            "sockets": [{"id": 0, "consumption": microwatts, "domains": [], "timestamp": at}],
        })  # fmt: skip

    dead = "[" + ",".join(report(2 * i, 0.0) for i in range(4)) + "]"
    results, findings = analysed(tmp_path, "[study]\n", power__json=dead)
    assert results.filter(pl.col("metric") == "energy_j").height == 0
    assert "device-without-power" in set(findings["code"])
