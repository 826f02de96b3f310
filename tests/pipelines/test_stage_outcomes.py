"""What the stages make of small studies whose numbers are known by hand."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from joulebook import align
from joulebook_pipelines import config, run
from joulebook_pipelines.stages import clocks, phases, runs
from joulebook_pipelines.stages.numbers import Numbers
from joulebook_pipelines.store import open_store

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"

ZONES = (
    "time_s,package-0_uj,core_uj,uncore_uj,dram_uj\n0,0,0,0,0\n30,900000000,600000000,60000000,90000000\n"
    "60,1800000000,1200000000,120000000,180000000\n"
)
CORE_ONLY = "time_s,core_energy_mj\n3,121300\n6,74200\n9,65100\n12,82400\n15,18446744073447458288\n18,99000\n"
PHASES = """Timestamp,Phase,Runtime (s),GPU-0 Energy (mJ),GPU-1 Energy (mJ),CPU Energy (J)
1772445600.0,model load,20.0,1000000,1200000,300
1772445620.0,inference,5.0,400000,420000,60
1772445625.0,inference,5.0,410000,430000,62
1772445630.0,save,10.0,500000,520000,100
"""


@pytest.fixture
def analysed(tmp_path):
    """Analyse files as a study and return its results and findings."""

    def work(files, source="", general='timezone = "UTC"', each=None):
        folder = tmp_path / "study"
        folder.mkdir()
        toml = f"[study]\n{general}\n"
        for name, text in files.items():
            (folder / name).write_text(text)
            toml += f"[[source]]\npath = {json.dumps(name)}\n{(each or {}).get(name, source)}\n"
        (folder / "study.toml").write_text(toml)
        result = run.analyse(config.load(folder), tmp_path / "out")
        assert all(o.status == "read" for o in result.outcomes), [o.reason for o in result.outcomes]
        with open_store(result.store) as store:
            return store.results(), store.findings()

    return work


def _values(results, metric, **where):
    rows = results.filter(pl.col("metric") == metric, *(pl.col(k) == v for k, v in where.items()))
    return dict(rows.select(where.get("key", "device"), "value").iter_rows()) if rows.height else {}


def test_parts_of_a_package_get_their_own_numbers_and_no_total(analysed):
    results, _ = analysed({"rapl.csv": ZONES})
    assert _values(results, "mean_power_w", scope="part") == pytest.approx({"cpu/core": 20.0, "cpu/uncore": 2.0})
    assert _values(results, "energy_j", scope="package")[""] == pytest.approx(1800.0)
    assert results.filter(pl.col("scope") == "part", pl.col("device") == "").is_empty()


def test_an_energy_that_was_not_told_is_not_bridged_in_a_part(analysed):
    results, _ = analysed({"rapl.csv": CORE_ONLY})
    row = results.filter(pl.col("scope") == "part", pl.col("metric") == "energy_j").row(0, named=True)
    assert row["value"] == pytest.approx(442.0)
    assert row["coverage_ratio"] == pytest.approx(15 / 18)


def test_readings_without_a_date_do_not_stretch_the_run_of_dated_ones(analysed):
    dated = "timestamp, index, power.draw [W]\n" + "".join(
        f"2026/03/03 09:00:{second:02}.000, 0, 100.00 W\n" for second in range(11)
    )
    results, findings = analysed({"gpu.csv": dated, "rapl.csv": ZONES})
    assert _values(results, "energy_j", scope="board")[""] == pytest.approx(1000.0)
    assert results.filter(pl.col("metric") == "duration_s")["value"].to_list() == [10.0]
    assert "relative-time" in findings["code"].to_list()


SHARED = """[[run]]
id = "a"
start = 2026-03-03T09:00:00Z
end = 2026-03-03T09:01:00Z
devices = ["gpu:0"]
[[run]]
id = "b"
start = 2026-03-03T09:00:00Z
end = 2026-03-03T09:01:00Z
devices = ["gpu:1"]
"""


def test_jobs_side_by_side_are_set_against_the_node_with_all_of_its_boards(analysed):
    seconds = [f"{at // 60:02}:{at % 60:02}.000" for at in range(61)]
    boards = "".join(f"2026/03/03 09:{at}, {card}, 100.00 W\n" for at in seconds for card in (0, 1))
    meter = "".join(f"2026-03-03T09:{at}Z,1000.0\n" for at in seconds)
    files = {"gpu.csv": f"timestamp, index, power.draw [W]\n{boards}", "meter.csv": f"timestamp,power_w\n{meter}"}
    results, findings = analysed(files, general=f'timezone = "UTC"\n{SHARED}', each={"meter.csv": 'scope = "node"'})
    found = findings.filter(code="residual-implausible")
    shares = [json.loads(e)["share_ratio"] for e in found["evidence"]]
    assert shares == pytest.approx([0.8, 0.8])
    rest = results.filter(metric="residual_power_w").sort("run_id")
    assert rest["value"].to_list() == [None, None]
    assert [reason.split()[0] for reason in rest["reason"]] == ["gpu:1", "gpu:0"]
    stalled = results.filter(metric="stall_s", scope="node").sort("run_id")["reason"]
    assert [reason.split()[0] for reason in stalled] == ["b", "a"]


def test_without_a_node_the_facility_has_the_sum_of_cards_processors_and_memory(analysed):
    watts = {"gpu": 400.0, "cpu": 120.0, "mem": 20.0}
    stamps = [f"2026-10-14T09:{s // 60:02d}:{s % 60:02d}Z" for s in range(601)]
    logs = {f"{n}.csv": "time,power_w\n" + "".join(f"{t},{w}\n" for t in stamps) for n, w in watts.items()}
    scopes = {"gpu": "board", "cpu": "package", "mem": "dram"}
    each = {f"{n}.csv": f'scope = "{s}"\ndevice = "{n}:0"\n' for n, s in scopes.items()}
    each["mem.csv"] += """[site]
pue = 1.5
carbon_kg_per_kwh = 0.5
[[run]]
id = "r"
start = 2026-10-14T09:00:00Z
end = 2026-10-14T09:10:00Z
"""
    results, findings = analysed(logs, each=each)
    rows = {r["metric"]: r for r in results.filter(scope="facility").iter_rows(named=True)}
    assert rows["facility_energy_j"]["value"] == pytest.approx(540.0 * 600 * 1.5, rel=1e-6)
    assert rows["carbon_kg"]["value"] == pytest.approx(540.0 * 600 * 1.5 / 3.6e6 * 0.5, rel=1e-6)
    assert rows["facility_energy_j"]["method"] == "board + package + dram energy × PUE 1.5"
    (told,) = findings.filter(code="facility-from-part")["message"].to_list()
    assert told.startswith("Measured is board + package + dram, not the node")


def test_power_above_the_nameplate_is_told(analysed):
    log = "time,power_w\n" + "".join(f"2026-10-14T09:{s // 60:02d}:{s % 60:02d}Z,{720.0}\n" for s in range(601))
    more = """scope = "board"
device = "gpu:0"
[devices]
tdp_w = 700
[[run]]
id = "r"
start = 2026-10-14T09:00:00Z
end = 2026-10-14T09:10:00Z
"""
    results, findings = analysed({"gpu.csv": log}, each={"gpu.csv": more})
    row = results.filter(metric="tdp_ratio").row(0, named=True)
    assert row["value"] == pytest.approx(720 / 700)
    assert row["method"] == "mean power / (1 × 700 W)"
    (told,) = findings.filter(code="power-at-tdp").select("run_id", "subject").rows()
    assert told == ("r", "r at board")


def test_phases_of_a_table_have_the_energies_that_it_gives(analysed):
    results, _ = analysed({"phases.csv": PHASES})
    board = results.filter(pl.col("scope") == "board", pl.col("phase") != "")
    energy = dict(board.filter(pl.col("metric") == "phase_energy_j").select("phase", "value").iter_rows())
    assert energy == pytest.approx({"model load": 2200.0, "inference": 1660.0, "save": 1020.0, "other": 0.0})
    shares = board.filter(pl.col("metric") == "phase_share_ratio")["value"]
    assert shares.sum() == pytest.approx(1.0, abs=1e-9)
    assert set(board.filter(pl.col("phase") != "other")["method"]) == {"given"}
    package = results.filter(pl.col("scope") == "package", pl.col("metric") == "phase_power_w")
    assert dict(package.select("phase", "value").iter_rows())["inference"] == pytest.approx(12.2)


def test_a_single_moment_is_no_run(analysed):
    results, findings = analysed(
        {"gpu.csv": "timestamp, index, power.draw [W]\n2026/03/03 09:00:00.000, 0, 100.00 W\n"}
    )
    assert results.is_empty()
    assert findings["code"].to_list() == ["no-run"]


def test_a_phase_with_an_energy_that_is_missing_is_refused_and_the_others_stay(analysed):
    results, _ = analysed({"phases.csv": PHASES.replace("410000,", ",")})
    rows = results.filter(pl.col("scope") == "board", pl.col("metric") == "phase_energy_j")
    told = {r["phase"]: r for r in rows.iter_rows(named=True)}
    assert told["inference"]["value"] is None
    assert "1 of its 2" in told["inference"]["reason"]
    assert told["save"]["value"] == pytest.approx(1020.0)


def test_a_run_in_a_file_and_its_backup_is_named(analysed):
    text = (FIXTURES / "codecarbon" / "no_gpu.csv").read_text()
    _, found = analysed({"emissions.csv": text, "emissions.csv_1.bak": text})
    twice = found.filter(pl.col("code") == "duplicate-run")
    assert twice.height >= 1
    assert set(twice["stage"]) == {"runs"}
    assert set(twice["subject"]) == {"emissions.csv_1.bak"}
    assert all("emissions.csv" in m for m in twice["message"])


@pytest.mark.parametrize(("known", "tokens"), [(False, 900.0), (True, 1000.0)])
def test_a_run_has_the_tokens_of_its_own_time(known, tokens):
    ends = [datetime(2026, 3, 2, tzinfo=UTC) + timedelta(seconds=i) for i in range(1, 11)]
    starts = pl.Series([e - timedelta(seconds=1) if known else None for e in ends], dtype=pl.Datetime("us", "UTC"))
    end_utc = pl.Series(ends).cast(pl.Datetime("us", "UTC"))
    steps = pl.DataFrame({"run_id": "a", "start_utc": starts, "end_utc": end_utc, "tokens": 100.0})
    begin = (starts if known else end_utc)[0]
    logged = pl.DataFrame({"run_id": ["a"], "start_utc": [begin], "tokens": [1000.0], "samples": [20.0]}).with_columns(
        pl.col("start_utc").cast(pl.Datetime("us", "UTC"))
    )
    of_runs, late = runs._without_first_steps(logged, steps)
    assert of_runs["tokens"].to_list() == [tokens]
    assert of_runs["samples"].to_list() == [tokens / 50]
    assert late == ([] if known else ["a"])


def test_a_phase_that_two_logs_tell_is_one():
    moment = pl.datetime_range(
        pl.datetime(2026, 3, 2), pl.datetime(2026, 3, 2, 0, 0, 3), "1s", time_zone="UTC", eager=True
    )
    marks = pl.DataFrame({
        "phase": ["ranging", "testing", "ranging", "testing"], "source_id": [1, 1, 2, 2],
        "start_utc": [moment[0], moment[2], moment[1], moment[3]], "end_utc": [moment[2], moment[3], moment[2], moment[3]],
    })  # fmt: skip
    once = phases._told_once(marks)
    assert once["phase"].to_list() == ["ranging", "testing"]
    assert once["start_utc"].to_list() == [moment[0], moment[2]]
    steps = marks.with_columns(source_id=pl.lit(1), phase=pl.lit("step"))
    assert phases._told_once(steps).height == 4


def test_phases_of_a_real_table_are_those_of_its_counters(analysed, shared):
    file = shared / "real/paired/wilkins_energy_inference/falcon-40b_swing_3gpu/falcon-40b-argonne-swing-3.csv"
    results, _ = analysed({"phases.csv": file.read_text()})
    told = results.filter(
        pl.col("scope") == "board", pl.col("metric") == "phase_energy_j", pl.col("phase") == "model load"
    )
    assert told["value"].item() == pytest.approx((15448921 + 15050843 + 14819002) / 1e3, rel=0.005)


def test_time_and_energy_of_stalls_are_those_that_a_log_tells(analysed):
    rng = np.random.default_rng(2)
    begin = datetime(2026, 11, 2, 1, tzinfo=UTC)
    at, marks, waits = 0.0, ["run,phase,start,end"], np.zeros(900)
    while at < 830.0:
        work, wait = at + rng.uniform(35.0, 60.0), 3.5
        for phase, start, end in (("forward", at, work), ("data_wait", work, work + wait)):
            marks.append(
                f"r,{phase},{(begin + timedelta(seconds=start)).isoformat()},{(begin + timedelta(seconds=end)).isoformat()}"
            )
        # each reading is the mean of the second before it
        waits += np.clip(np.minimum(np.arange(900.0), work + wait) - np.maximum(np.arange(900.0) - 1.0, work), 0.0, 1.0)
        at = work + wait
    watts = 400.0 - 240.0 * waits + rng.normal(0.0, 3.0, 900)
    lines = ["timestamp, index, name, power.draw [W]"]
    lines += [
        f"2026/11/02 01:{s // 60:02d}:{s % 60:02d}.000, 0, NVIDIA H100 80GB HBM3, {w:.2f} W"
        for s, w in enumerate(watts)
    ]
    told = f'[[run]]\nid = "r"\nstart = {begin.isoformat()}\nend = {(begin + timedelta(seconds=at)).isoformat()}\n'
    results, _ = analysed({"gpu.csv": "\n".join(lines), "phases.csv": "\n".join(marks)}, each={"phases.csv": told})
    n = len(marks) // 2
    assert _values(results, "stall_s", scope="board")[""] == pytest.approx(3.5 * n)
    assert _values(results, "stall_energy_j", scope="board")[""] == pytest.approx(3.5 * n * 160.0, rel=0.03)
    assert _values(results, "stall_lost_energy_j", scope="board")[""] == pytest.approx(3.5 * n * 400.0, rel=0.01)


def test_a_clock_that_cannot_be_aligned_is_told_once():
    numbers = Numbers()
    clocks._row(align.refused("flat power", subject="meter"), "meter", "node", numbers)
    assert [f.code for _, f in numbers.findings] == ["clock-not-aligned"]
    assert "as they are stamped" in numbers.findings[0][1].message


@pytest.mark.parametrize(
    ("said", "right"), [("", {"mfu_ratio": 0.42}), ("full", {"mfu_ratio": 0.42, "hfu_ratio": 0.56})]
)
def test_what_is_recomputed_is_work_of_the_hardware_and_not_of_the_model(tmp_path, said, right):
    # 10 000 tokens a second at 6 FLOP for each of 7e9 parameters are 4.2e14 of 1e15 FLOP/s; full recomputation does four of three.
    (tmp_path / "runs.csv").write_text(
        "run_id,start_utc,duration_s,gpu0_energy_kj,tokens\na,2026-03-03T09:00:00Z,100,30,1000000\n"
    )
    again = f'recomputation = "{said}"\n' if said else ""
    (tmp_path / "study.toml").write_text(
        f'[model]\nparameters = 7e9\npeak_flops_per_device = 1e15\n{again}[[source]]\npath = "runs.csv"\n'
    )
    with open_store(run.analyse(config.load(tmp_path), tmp_path / "out").store) as store:
        rows = store.results().filter(pl.col("metric").is_in(["mfu_ratio", "hfu_ratio"]))
    assert dict(rows.select("metric", "value").iter_rows()) == pytest.approx(right)


@pytest.mark.parametrize("name", ["r", "train"])
def test_steps_of_a_run_that_study_toml_names_otherwise_are_told(analysed, name):
    seconds = [f"{at // 60:02}:{at % 60:02}" for at in range(61)]
    gpu = "timestamp, index, power.draw [W]\n" + "".join(f"2026/03/03 09:{at}.000, 0, 100.00 W\n" for at in seconds)
    log = "".join(
        f'{{"time": "2026-03-03T09:{at}Z", "step": {k}, "tokens": 10}}\n' for k, at in enumerate(seconds[6::6])
    )
    named = f'timezone = "UTC"\n[[run]]\nid = "{name}"\nstart = 2026-03-03T09:00:00Z\nend = 2026-03-03T09:01:00Z\n'
    results, findings = analysed({"gpu.csv": gpu, "train.jsonl": log}, general=named)
    told = findings.filter(code="steps-of-no-run")["message"].to_list()
    per_joule = results.filter(metric="tokens_per_j", device="")["value"].to_list()
    if name == "train":
        assert told == []
        assert per_joule == pytest.approx([100 / 6000])
    else:
        assert 'id = "train"' in told[0]
        assert "'train.jsonl'" in told[0]
        assert per_joule in ([], [None])
