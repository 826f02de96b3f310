"""Steps that begin anew in each epoch, and those that are done again after a restart."""

import json

import polars as pl
import pytest

from joulebook_pipelines import cli, ingest
from joulebook_pipelines.logs import step_epochs
from joulebook_pipelines.logs.contract import Options
from joulebook_pipelines.store import open_store

EPOCHS = [(e, s) for e in (0, 1, 2) for s in (1, 2, 3, 4)]


def _csv(rows):
    lines = (f"2026-03-13T10:00:{3 * i:02d}Z,{e},{s},2.5,1000\n" for i, (e, s) in enumerate(rows))
    return "timestamp,epoch,step,loss,tokens\n" + "".join(lines)


def _json(rows):
    return "".join(
        json.dumps({"time": f"2026-03-13T10:00:{3 * i:02d}Z", "epoch": e, "step": s, "loss": 2.5, "tokens": 1000})
        + "\n"
        for i, (e, s) in enumerate(rows)
    )


def _text(rows):
    return "".join(
        f"2026-03-13 10:00:{3 * i:02d},000 INFO epoch {e} step {s} loss 2.5\n" for i, (e, s) in enumerate(rows)
    )


def _taken(tmp_path, text, name="train.log"):
    path = tmp_path / name
    path.write_text(text)
    source = ingest.SourceFile(path, path.name, "node", options=Options(timezone="UTC"))
    with open_store(tmp_path / "s.duckdb", read_only=False) as store:
        (outcome,) = ingest.ingest((source,), store)
        runs = store.table("logged_runs")
        return store.table("steps").sort("end_utc"), runs, {f.code for f in outcome.findings}


@pytest.mark.parametrize("written", [_csv, _json, _text])
def test_steps_are_numbered_through_all_epochs(tmp_path, written):
    steps, _, codes = _taken(tmp_path, written(EPOCHS))
    assert steps["step"].to_list() == list(range(1, 13))
    assert "steps-begin-anew" in codes


def test_tokens_of_every_epoch_count(tmp_path):
    _, runs, _ = _taken(tmp_path, _csv(EPOCHS))
    assert runs["tokens"].to_list() == [12_000.0]


def test_an_epoch_that_is_begun_again_after_a_restart_is_done_twice(tmp_path):
    # The second epoch fails in its third step, and begins again.
    rows = [*EPOCHS[:7], *EPOCHS[4:]]
    steps, runs, _ = _taken(tmp_path, _csv(rows))
    assert steps["step"].to_list() == [1, 2, 3, 4, 5, 6, 7, 5, 6, 7, 8, 9, 10, 11, 12]
    assert runs["tokens"].to_list() == [12_000.0]


def test_batches_number_the_steps_where_epochs_stand_beside_them(tmp_path):
    text = _csv([(e, s - 1) for e, s in EPOCHS]).replace("step", "batch")
    steps, runs, codes = _taken(tmp_path, text)
    assert steps["step"].to_list() == list(range(12))
    assert runs["tokens"].to_list() == [12_000.0]
    assert "steps-begin-anew" in codes


def test_a_run_that_two_ranks_tell_loses_its_first_step_once(study_folder, tmp_path):
    rows = "".join(
        json.dumps({"time": f"2026-03-13T10:00:{5 * i:02d}Z", "run": "x", "step": i, "loss": 2.5, "tokens": 1000})
        + "\n"
        for i in range(6)
    )
    watts = "".join(f"2026-03-13T10:00:{i:02d}Z,{400 + i % 2}\n" for i in range(40))
    folder = study_folder(
        {"rank0.jsonl": rows, "rank1.jsonl": rows, "plug.csv": f"timestamp,power_w\n{watts}"},
        '[[source]]\npath = "plug.csv"\nscope = "node"\n[[source]]\npath = "rank*.jsonl"\n',
    )
    cli.run_command(["run", str(folder), "-o", str(tmp_path / "out"), "--no-report", "-q"])
    with open_store(tmp_path / "out" / "study.duckdb") as store:
        assert store.table("runs").select("run_id", "tokens").rows() == [("x", 5000.0)]
        assert {"rework"} & set(store.findings()["code"]) == set()


@pytest.mark.parametrize(
    "rows",
    [
        [(0, 1), (0, 2), (1, 3), (1, 4), (1, 3), (1, 4), (2, 5)],
        [(0.1, 10), (0.2, 20), (1.1, 110), (0.9, 90), (1.0, 100)],
        [(0, 1), (0, 2), (0, 1), (0, 2)],
    ],
    ids=["restart within an epoch", "parts of epochs", "restart in the first"],
)
def test_steps_that_count_from_the_start_keep_their_numbers(tmp_path, rows):
    steps, _, codes = _taken(tmp_path, _csv(rows))
    assert steps["step"].to_list() == [s for _, s in rows]
    assert "steps-begin-anew" not in codes


def test_steps_may_count_from_0():
    lines = pl.DataFrame({"run_id": "r", "epoch": [1.0, 1.0, 2.0, 2.0], "step": [0.0, 1.0, 0.0, 1.0]})
    assert step_epochs.numbered(lines)[0]["step"].to_list() == [0.0, 1.0, 2.0, 3.0]


def test_later_epochs_are_no_work_that_was_done_again(study_folder, gpu_log, tmp_path):
    log = gpu_log([(s, 0, f"{200 + s % 3}.00 W") for s in range(60)]).replace("2026/03/02", "2026/03/13")
    folder = study_folder({"gpu.csv": log, "train.csv": _csv(EPOCHS)})
    cli.run_command(["run", str(folder), "-o", str(tmp_path / "out"), "--no-report", "-q"])
    with open_store(tmp_path / "out" / "study.duckdb") as store:
        assert "rework" not in set(store.findings()["code"])
