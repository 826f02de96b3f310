"""One card logged by several tools: which of them a number is made from, and what becomes of the others."""

import json
from datetime import datetime, timedelta

import polars as pl
import pytest

from joulebook_pipelines import config, run
from joulebook_pipelines.store import open_store

START = datetime(2026, 3, 3, 9, 0, 0)

pytestmark = pytest.mark.usefixtures("energy_stages")


def _csv(seconds, watts=300.25, cards=1, step_s=1):
    rows = "".join(
        f"{START + timedelta(seconds=s):%Y/%m/%d %H:%M:%S}.000, {card}, {watts + 0.01 * (s % 3):.2f} W\n"
        for s in seconds[::step_s]
        for card in range(cards)
    )
    return f"timestamp, index, power.draw [W]\n{rows}"


def _dmon(seconds, watts=300, cards=1):
    rows = "".join(
        f" {START + timedelta(seconds=s):%Y%m%d   %H:%M:%S}      {card}    {watts}     60      -     99     40\n"
        for s in seconds
        for card in range(cards)
    )
    return (
        "#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem\n"
        f"#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %\n{rows}"
    )


@pytest.fixture
def analysed(tmp_path):
    def work(files, length_s=100, each=None):
        folder = tmp_path / "study"
        folder.mkdir()
        toml = '[study]\ntimezone = "UTC"\n'
        for name, text in files.items():
            (folder / name).write_text(text)
            toml += f"[[source]]\npath = {json.dumps(name)}\n{(each or {}).get(name, '')}\n"
        toml += f'[[run]]\nid = "r"\nstart = {START:%Y-%m-%dT%H:%M:%SZ}\nend = {START + timedelta(seconds=length_s):%Y-%m-%dT%H:%M:%SZ}\n'
        (folder / "study.toml").write_text(toml)
        result = run.analyse(config.load(folder), tmp_path / "out")
        assert all(o.status == "read" for o in result.outcomes), [o.reason for o in result.outcomes]
        work.store = result.store
        with open_store(result.store) as store:
            energy = store.results().filter(metric="energy_j", scope="board", device="").row(0, named=True)
            used = store.table("instruments").join(store.table("sources").select("source_id", "path"), on="source_id")
            return energy, used, store.findings()

    return work


@pytest.mark.parametrize("names", [("a.csv", "b.txt"), ("b.csv", "a.txt")])
def test_the_finer_of_two_logs_of_one_pace_is_used(analysed, names):
    whole = range(-5, 106)
    energy, used, _ = analysed({names[0]: _csv(whole), names[1]: _dmon(whole)})
    assert used.filter("chosen")["path"].to_list() == [names[0]]
    assert energy["value"] == pytest.approx(100 * 300.26, rel=1e-4)
    assert used.filter(~pl.col("chosen"))["reason"].to_list() == [
        "a second witness of the scope; nvidia-smi-csv is used: its values are in steps of 0.01 W, here 1.0 W"
    ]


def _card(used):
    return dict(used.filter(scope="board").select("path", "chosen").iter_rows())


HALVES = [
    (range(-5, 51), range(51, 106)),  # one after the other
    (range(-5, 61), range(40, 106)),  # over a fifth of the run both
]


@pytest.mark.parametrize("halves", HALVES)
@pytest.mark.parametrize("clocks", [{}, {"b.txt": 'clock = "other"'}])
def test_a_run_of_which_two_tools_saw_a_part_each_is_the_sum_of_both(analysed, halves, clocks):
    energy, used, findings = analysed({"a.csv": _csv(halves[0], 400.0), "b.txt": _dmon(halves[1], 200)}, each=clocks)
    joint_s = halves[0][-1] + 0.5 if halves[0][-1] < halves[1][0] else halves[0][-1]
    assert _card(used) == {"a.csv": True, "b.txt": True}
    assert energy["coverage_ratio"] == pytest.approx(1.0)
    assert energy["value"] == pytest.approx(400.01 * joint_s + 200 * (100 - joint_s), abs=150)
    assert energy["lo"] <= energy["value"] <= energy["hi"] < 1.1 * energy["value"]
    (told,) = findings.filter(code="sources-joined").iter_rows(named=True)
    assert "gpu:0 is taken from" in told["message"]


def test_a_card_that_two_tools_saw_is_one_card_and_each_line_stands_behind_one_number(analysed):
    analysed({"a.csv": _csv(range(-5, 61)), "b.txt": _dmon(range(40, 106))})
    with open_store(analysed.store) as store:
        assert store.hardware()["hardware"].to_list() == ["1 × card"]
        lines = dict(store.lines_behind("r").select("path", "readings").iter_rows())
    # Of the run's seconds 0 to 100 the finer one has those to 60, the other one those from 61.
    assert lines == {"a.csv": 61, "b.txt": 40}


def test_the_part_that_a_log_under_another_host_holds_is_named_and_not_added(analysed):
    files = {"a.csv": _csv(range(-5, 51)), "b.csv": _csv(range(51, 106))}
    energy, _, findings = analysed(files, each={"a.csv": 'host = "node"', "b.csv": 'host = "later"'})
    assert energy["coverage_ratio"] == pytest.approx(0.5, abs=0.02)
    (told,) = findings.filter(code="missing-part-elsewhere").iter_rows(named=True)
    assert "b.csv has gpu:0 over 49" in told["message"].replace("50 %", "49")
    assert "same host" in told["message"]


def test_two_tools_that_saw_all_of_a_run_are_not_joined(analysed):
    whole = range(-5, 106)
    _, used, findings = analysed({"a.csv": _csv(whole), "b.txt": _dmon(whole)})
    assert used["chosen"].sum() == 1
    assert not findings["code"].is_in(["sources-joined", "missing-part-elsewhere"]).any()


def test_the_digits_of_each_tool_are_in_the_interval_of_the_sum(analysed):
    """A steady load: whole watts may be wrong by half a watt for all of their 50 s, hundredths by nothing to speak of."""
    energy, _, _ = analysed({"a.csv": _csv(range(-5, 51), 300.0), "b.txt": _dmon(range(51, 106), 300)})
    half_j = (energy["hi"] - energy["lo"]) / 2
    assert half_j == pytest.approx(0.5 * 49.5, rel=0.1)


def _table(seconds, watts):
    rows = "".join(f"{START + timedelta(seconds=s):%Y-%m-%d %H:%M:%S},{watts}\n" for s in seconds)
    return f"timestamp,gpu 0 power [W]\n{rows}"


@pytest.mark.parametrize(("said", "used_path"), [("", "a.csv"), ('scope = "board"', "z.csv")])
def test_a_table_of_a_card_is_no_meter_in_its_supply_unless_study_toml_says_so(analysed, said, used_path):
    whole = range(-5, 106)
    _, used, _ = analysed({"a.csv": _csv(whole), "z.csv": _table(whole, 301)}, each={"z.csv": said})
    assert used.filter("chosen")["path"].to_list() == [used_path]


@pytest.mark.parametrize(("first_step_s", "second_step_s"), [(10, 1), (1, 10)])
def test_parts_of_different_paces_are_joined_without_a_hole(analysed, first_step_s, second_step_s):
    first, second = range(-10, 201)[::first_step_s], range(201, 411)[::second_step_s]
    energy, _, _ = analysed({"a.csv": _csv(first, 400.0), "b.txt": _dmon(second, 400)}, length_s=400)
    assert energy["coverage_ratio"] == pytest.approx(1.0)
    assert energy["value"] == pytest.approx(400 * 400.0, rel=1e-3)
    assert energy["hi"] - energy["lo"] < 0.01 * 400 * 400.0
