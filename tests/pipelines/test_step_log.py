"""Steps and runs of training logs: tokens of each step whatever the log counts, and names that never guess."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulebook_pipelines import recognise
from joulebook_pipelines.logs import phase_log, step_names, text
from joulebook_pipelines.logs.contract import Log, LogRefusedError, Options


def _read(path, adapter="training-jsonl", **options):
    parts = list(recognise.named(adapter).parse(Log(path, text.head(path, path.name), Options(**options))))
    return parts[-1]


def _log(path, rows):
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


@settings(max_examples=20, deadline=None)
@given(tokens=st.lists(st.integers(1, 10**7), min_size=2, max_size=20))
def test_tokens_seen_and_tokens_of_a_step_say_the_same(tmp_path_factory, tokens):
    folder = tmp_path_factory.getbasetemp()
    at = [{"time": 1_793_696_400 + i, "step": i, "loss": 1.0} for i in range(1, len(tokens) + 1)]
    plain = _read(_log(folder / "a.jsonl", [r | {"step_tokens": t} for r, t in zip(at, tokens, strict=True)]))
    seen = _read(_log(folder / "b.jsonl", [r | {"tokens_seen": sum(tokens[: i + 1])} for i, r in enumerate(at)]))
    assert seen.steps["tokens"].to_list() == [float(t) for t in tokens]
    assert seen.runs["tokens"].to_list() == [float(sum(tokens))]
    if len(set(tokens)) > 1:
        assert plain.runs["tokens"].to_list() == seen.runs["tokens"].to_list()


def test_equal_tokens_a_step_are_not_a_count(tmp_path):
    rows = [{"time": 1_793_696_400 + i, "step": i, "tokens": 4096, "loss": 1.0} for i in range(1, 11)]
    assert _read(_log(tmp_path / "a.jsonl", rows)).runs["tokens"].to_list() == [40960.0]


def test_a_run_begins_with_its_first_step(tmp_path):
    rows = [{"time": 1_793_696_400 + 2 * i, "step": i, "loss": 1.0, "step_time_s": 2.0} for i in range(1, 4)]
    part = _read(_log(tmp_path / "a.jsonl", rows))
    assert (part.runs["end_utc"] - part.runs["start_utc"]).dt.total_seconds().to_list() == [6]
    assert part.steps["end_utc"].to_list()[:-1] == part.steps["start_utc"].to_list()[1:]


@pytest.mark.parametrize("stamp", ["2026-11-02T09:00:00", "2026-11-02 09:00:00.5"])
def test_a_zone_is_never_guessed(tmp_path, stamp):
    path = _log(tmp_path / "a.jsonl", [{"time": stamp, "step": 1, "loss": 1.0}])
    with pytest.raises(LogRefusedError, match="timezone"):
        _read(path)
    assert _read(path, timezone="Asia/Shanghai").runs["end_utc"][0].hour == 1


def test_names_that_make_a_training_log():
    assert step_names.tells_of_steps({"step": "s", "loss": "l"})
    assert step_names.tells_of_steps({"step": "s", "end_utc": "t", "tokens": "n"})
    assert not step_names.tells_of_steps({"step": "s", "end_utc": "t"})
    assert not step_names.tells_of_steps({"end_utc": "t", "loss": "l"})
    assert not step_names.tells_of_steps({"step": "s", "tokens": "n"})


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "data_wait"),
        ("Optimizer.step#SGD.step", "optimizer"),
        ("DistributedDataParallel.forward", "forward"),
        ("## backward ##", "backward"),
        ("Grad-Sync", "grad_sync"),
        ("Optimizer.zero_grad#SGD.zero_grad", "Optimizer.zero_grad#SGD.zero_grad"),
        ("#", "#"),
    ],
)
def test_words_of_profilers(name, word):
    assert phase_log.word(name) == word


@pytest.mark.parametrize("document", [False, True], ids=["lines", "list"])
def test_powers_beside_the_steps_are_told_as_not_read(tmp_path, document):
    rows = [
        {"time": 1_793_696_400 + 2 * i, "step": i, "loss": 1.0, "power_avg": 450.1, "power_max": 470.0, "gpu_power_w": 300.0}
        for i in range(1, 5)
    ]  # fmt: skip
    path = tmp_path / "log.json"
    path.write_text(json.dumps(rows) if document else "".join(json.dumps(r) + "\n" for r in rows))
    (told,) = (f for f in _read(path).findings if f.code == "columns-not-read")
    assert told.message.startswith("Not read: 'power_avg'. ")
