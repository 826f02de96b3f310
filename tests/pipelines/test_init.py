"""The first study.toml: loads as it stands, and once its marked places are filled."""

import re
import tomllib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from joulebook_pipelines import config, init
from joulebook_pipelines.init import Recognised

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
    text = init.draft(
        tmp_path, [Recognised("table.csv", "run-table", why), Recognised("b.csv", "meter-csv", "broken: no cure")]
    )
    assert f'# units = {{ power_w = "W" }}   # FILL IN: {why}' in text
    assert "# FILL IN: broken: no cure" in text
    filled = text.replace("# units", "units")
    assert tomllib.loads(filled)["source"][0]["units"] == {"power_w": "W"}


def test_no_zone_is_asked_for_without_need():
    assert "timezone" not in init.draft(Path("x"), [Recognised("a.json", "scaphandre-json")])


ANY = st.builds(
    Recognised, st.text(st.characters(), min_size=1), st.none() | st.just("x"), st.text(),
    needs_zone=st.booleans(), needs_scope=st.booleans(),
)  # fmt: skip


@given(st.lists(ANY, max_size=4))
def test_is_valid_whatever_the_names(records):
    data = tomllib.loads(init.draft(Path("x"), records))
    assert len(data.get("source", [])) == sum(r.adapter is not None for r in records)
