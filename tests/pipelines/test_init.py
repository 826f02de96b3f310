"""The first study.toml: loads as it stands, and once its marked places are filled."""

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulebook_pipelines import config, init, inspect, questions
from joulebook_pipelines.init import Recognised
from joulebook_pipelines.questions import Question

RECORDS = (
    Recognised("gpu.csv", "nvidia-smi-csv", needs_zone=True),
    Recognised("meter.csv", "meter-csv", needs_zone=True, needs_scope=True),
    Recognised("train.jsonl", "training-jsonl"),
    Recognised("notes.txt", None, reason="no adapter\nclaims it"),
)


def test_loads_as_it_stands(tmp_path):
    for record in RECORDS:
        (tmp_path / record.name).write_text("x")
    (tmp_path / "study.toml").write_text(init.draft(tmp_path, RECORDS))
    study = config.load(tmp_path)
    assert study.name == tmp_path.name
    assert [s.name for s in study.sources_resolved()] == ["gpu.csv", "meter.csv", "train.jsonl"]


def test_loads_with_the_marked_places_filled(tmp_path):
    for record in RECORDS:
        (tmp_path / record.name).write_text("x")
    text = (
        init.draft(tmp_path, RECORDS).replace("Area/City", "Asia/Shanghai").replace('adapter = "…"', 'adapter = "dmon"')
    )
    filled = re.sub(r"^# (?=\S+ = .*FILL IN)", "", text, flags=re.MULTILINE)
    filled = filled.replace('# [[source]]\n# path = "notes.txt"\n# ', '[[source]]\npath = "notes.txt"\n')
    filled = filled.replace('# clock = "meter"', 'clock = "meter"')
    (tmp_path / "study.toml").write_text(filled)
    study = config.load(tmp_path)
    assert study.general.timezone == "Asia/Shanghai"
    assert [(s.name, s.clock, s.options.scope, s.adapter) for s in study.sources_resolved()] == [
        ("gpu.csv", "node", None, None), ("meter.csv", "meter", "node", None), ("train.jsonl", "node", None, None),
        ("notes.txt", "node", None, "dmon"),
    ]  # fmt: skip


def test_what_stands_in_comments_loads_too(tmp_path):
    (tmp_path / "a.csv").write_text("x")
    text = init.draft(tmp_path, [Recognised("a.csv", "x")])
    filled = re.sub(r"^# (?=\[|\w+ = )", "", text, flags=re.MULTILINE)
    (tmp_path / "study.toml").write_text(filled)
    study = config.load(tmp_path)
    assert study.site.pue == 1.3
    assert study.runs[0].id == "run-1"


def test_says_why_a_file_is_not_read():
    text = init.draft(Path("x"), RECORDS)
    assert '# not read: no adapter claims it\n# [[source]]\n# path = "notes.txt"\n' in text


def test_what_a_refused_file_lacks_is_a_line_to_take_the_mark_from(tmp_path):
    (tmp_path / "table.csv").write_text("x")
    why = "table.csv:1: nothing says the unit of 'draw'; add units = { power_w = \"W\" } to this [[source]]"
    asked = Recognised("table.csv", "run-table", questions=((Question("units", '{ power_w = "W" }'), why),))
    text = init.draft(tmp_path, [asked, Recognised("b.csv", "meter-csv", "broken: no cure")])
    assert f'# units = {{ power_w = "W" }}   # FILL IN: {why}' in text
    assert '# not read: broken: no cure\n# [[source]]\n# path = "b.csv"\n\n' in text
    filled = text.replace("# units", "units")
    assert tomllib.loads(filled)["source"][0]["units"] == {"power_w": "W"}


LACKING = {
    "a plug's table": ("plug.csv", "date;time;power\n03/04/2026;10:00:00;5,5\n03/04/2026;10:00:01;6,5\n", "units day_first"),
    "no times": ("gpu.csv", "power.draw [W]\n71.20 W\n72.10 W\n", "period_s"),
    "runs": ("runs.csv", "run_id,total_energy,total_time\na,50,10\nb,60,11\n", "units"),
    "a time of day": ("gadget.csv", "System Time,RDTSC,Elapsed Time (sec),Processor Power_0(Watt)\n10:00:00:100,1,0.1,12.5\n", "date"),
}  # fmt: skip


@pytest.mark.parametrize("about", LACKING)
def test_all_that_a_file_lacks_is_asked_at_once(tmp_path, about):
    name, text, keys = LACKING[about]
    (tmp_path / name).write_text(text)
    drafted = inspect.draft(config.default(tmp_path))
    lines = [line for line in drafted.splitlines() if "   # FILL IN: " in line]
    known = {"timezone": '"UTC"', "scope": '"node"', "period_s": "2.0", "date": "2026-03-02", "day_first": "true"}
    asked = [line.removeprefix("# ").partition(" = ")[0] for line in lines]
    assert set(keys.split()) <= set(asked)
    for line, key in zip(lines, asked, strict=True):
        value = line.partition(" = ")[2].partition("   # FILL IN")[0]
        drafted = drafted.replace(line, f"{key} = {known.get(key, value)}")
    (tmp_path / "study.toml").write_text(drafted)
    (outcome,) = inspect.check(config.load(tmp_path)).outcomes
    assert (outcome.status, outcome.readings) == ("read", 1 if about == "a time of day" else 2)


def test_what_columns_without_names_hold_is_not_guessed_but_shown(tmp_path):
    """Load, power and memory beside a time at the end: the time grows, the power has a point."""
    rows = [(12, 71.5, 4096, 0.5), (97, 180.25, 8192, 1.0), (95, 179.0, 8192, 1.5)]
    (tmp_path / "log.csv").write_text("".join(",".join(map(str, r)) + "\n" for r in rows))
    line = next(x for x in inspect.draft(config.default(tmp_path)).splitlines() if "# columns" in x)
    assert line.startswith("# columns = …   # FILL IN: ")
    assert 'e.g. columns = { time = "4", power_w = "2" } and units' in line


def test_two_units_of_one_file_are_one_line():
    first = questions.joined((), questions.asked('add units = { power_w = "W" } to this'), "one")
    both = questions.joined(first, questions.asked('add units = { energy_j = "J" } to this'), "two")
    assert both == ((Question("units", '{ power_w = "W", energy_j = "J" }'), "one; two"),)


def test_no_zone_is_asked_for_without_need():
    assert "timezone" not in init.draft(Path("x"), [Recognised("a.json", "scaphandre-json")])


ANY = st.builds(
    Recognised, st.text(st.characters(), min_size=1), st.none() | st.just("x"), st.text(),
    needs_zone=st.booleans(), needs_scope=st.booleans(),
)  # fmt: skip


@given(st.lists(ANY, max_size=4))
def test_is_valid_whatever_the_names(records):
    data = tomllib.loads(init.draft(Path("x"), records))
    assert len(data.get("source", [])) == sum(r.adapter is not None and not r.reason for r in records)
