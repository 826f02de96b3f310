"""``trainer_state.json`` of the Hugging Face Trainer: steps with loss and learning rate, without wall-clock times."""

from __future__ import annotations

import json
from collections.abc import Iterator

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import json_text, step_log, table
from joulebook_pipelines.logs.contract import Adapter, Head, Log, LogRefusedError, Part

_NAMES = {"step": "step", "loss": "loss", "learning_rate": "learning_rate", "tokens_seen": "num_input_tokens_seen"}


def _sniff(head: Head) -> bool:
    # The history may be longer than the head; then at least its name and two of its members are there.
    plain = head.text.lstrip().startswith("{")
    return plain and '"log_history"' in head.text and ('"global_step"' in head.text or '"learning_rate"' in head.text)


def _parse(log: Log) -> Iterator[Part]:
    text = log.whole_text()
    state = json_text.document(log, text, cure="copy the checkpoint's file again")
    history = state.get("log_history") if isinstance(state, dict) else None
    if not isinstance(history, list):
        raise LogRefusedError(f"{log.name}: has no log_history; it is in trainer_state.json of each checkpoint")
    # train_batch_size is per device and before accumulation: it is not the global batch size, so it is not read.
    rows = [(1, *_told(entry)) for entry in history if isinstance(entry, dict) and "loss" in entry]
    frame = pl.DataFrame(rows, schema={"line": pl.Int64, **dict.fromkeys(_NAMES, pl.String)}, orient="row")
    collected = step_log.Steps(log, _NAMES, None)
    rejects = collected.add(frame)
    odd = [(1, json.dumps(e)) for e in history if not isinstance(e, dict)]
    bad = table.whole_lines(
        pl.DataFrame(odd, schema={"line": pl.Int64, "raw": pl.String}, orient="row"), "not-a-json-object"
    )
    yield Part(
        lines=text.count("\n") + (not text.endswith("\n")), runs=_runs(collected, history), steps=collected.steps(),
        rejects=pl.concat([rejects, bad]),
        findings=(step_log.without_times(log, "trainer_state.json"), *collected.findings(), *_evaluations(log, history)),
    )  # fmt: skip


def _told(entry: dict[str, object]) -> tuple[str | None, ...]:
    """Return a step's things as text, as every log's are."""
    values = (entry.get(name) for name in _NAMES.values())
    return tuple(None if v is None else str(v) for v in values)


def _runs(collected: step_log.Steps, history: list[object]) -> pl.DataFrame:
    """Return the run with what the last entry of a finished training says of its length."""
    runs = collected.runs()
    last = next((e for e in reversed(history) if isinstance(e, dict) and "train_runtime" in e), None)
    if last is None or runs.is_empty():
        return runs
    runtime = last["train_runtime"]
    said = {"train_runtime_s": runtime} if isinstance(runtime, int | float) else {}
    return runs.with_columns(labels=pl.lit(json.dumps(said)))


def _evaluations(log: Log, history: list[object]) -> tuple[Finding, ...]:
    others = sum(1 for e in history if isinstance(e, dict) and "loss" not in e)
    if not others:
        return ()
    return (
        Finding(
            "entries-not-read", Severity.NOTE, log.name,
            f"{others} entries of the history are evaluations or summaries, not training steps, and were not read.", {"entries": others},
        ),
    )  # fmt: skip


ADAPTER = Adapter(
    name="hf-trainer-state",
    title="trainer_state.json of the Hugging Face Trainer",
    yields="steps with loss, learning rate and tokens; without times",
    sniff=_sniff,
    parse=_parse,
)
