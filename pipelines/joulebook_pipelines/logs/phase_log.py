"""What logs of phases share: names of their members, words that profilers use for phases, phases from text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import polars as pl

from joulebook import schema
from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import cells, stamps, table, wall_clock
from joulebook_pipelines.logs.contract import Log, LogRefusedError
from joulebook_pipelines.logs.table import Field

NAMES = {
    "phase": ("phase", "name", "stage", "section", "phase_name", "label", "activity"),
    "start": (
        "start", "start_time", "begin", "start_utc", "t_start", "start_ts", "start_timestamp", "start_unix", "start_s", "start_ms",
        "start_us", "start_ns", "start_time_s", "start_time_ms", "start_time_us", "start_time_ns", "time_start", "begin_time", "started",
        "started_at", "from",
    ),
    "end": (
        "end", "end_time", "stop", "end_utc", "t_end", "end_ts", "end_timestamp", "end_unix", "end_s", "end_ms", "end_us", "end_ns",
        "end_time_s", "end_time_ms", "end_time_us", "end_time_ns", "time_end", "stop_time", "ended", "ended_at", "finish", "finished",
        "finished_at", "finish_time", "to",
    ),
    "duration": ("duration_s", "duration", "seconds"),
    "run": ("run", "run_id", "run_name"),
}  # fmt: skip
"""Names of a phase's members, the usual one first; compared without regard to case."""

PHASE_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "run_id": pl.String, "phase": pl.String, "start_utc": schema.UTC, "end_utc": schema.UTC, "origin": pl.String,
}  # fmt: skip

_WORDS = {
    "enumerate(dataloader)": "data_wait", "dataloader": "data_wait", "data_loading": "data_wait", "data": "data_wait",
    "get_batch": "data_wait", "next_batch": "data_wait", "fwd": "forward", "forward_pass": "forward",
    "distributeddataparallel.forward": "forward", "bwd": "backward", "backward_pass": "backward",
    "optimizer_step": "optimizer", "optimizer.step": "optimizer", "opt_step": "optimizer", "allreduce": "grad_sync",
    "all_reduce": "grad_sync", "gradient_sync": "grad_sync", "save_checkpoint": "checkpoint", "checkpointing": "checkpoint",
    "eval": "evaluation", "validation": "evaluation", "validate": "evaluation", "val": "evaluation", "init": "startup",
    "warm_up": "warmup",
}  # fmt: skip
"""Names that frameworks and people give to the phases of :data:`joulebook.schema.PHASES`."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST_NS, _LATEST_NS = 946_684_800 * 10**9, 4_102_444_800 * 10**9


def known(names: Sequence[str]) -> dict[str, str]:
    """Return which of a log's names stands for which member of a phase.

    Examples
    --------
    >>> known(["Run", "phase", "start", "end"])
    {'phase': 'phase', 'start': 'start', 'end': 'end', 'run': 'Run'}
    """
    folded = {n.strip().strip('"').lower(): n for n in reversed(names)}
    found = {q: next((folded[c] for c in choices if c in folded), None) for q, choices in NAMES.items()}
    return {q: n for q, n in found.items() if n is not None}


def is_whole(names: Mapping[str, str]) -> bool:
    """Tell whether these names make a log of phases."""
    return {"phase", "start", "end"} <= set(names) or (
        {"phase", "start", "duration"} <= set(names) and ("run" in names or "phase" in names["phase"].lower())
    )


def word(name: str) -> str:
    """Return the phase that a profiler's annotation stands for; names that are no known phase stay as they are.

    Examples
    --------
    >>> word("Optimizer.step#AdamW.step"), word("## forward ##"), word("my_layer")
    ('optimizer', 'forward', 'my_layer')
    """
    plain = re.sub(r"[\s-]+", "_", name.split("#", maxsplit=1)[0].strip("# ").lower()) if name.strip("# ") else ""
    plain = plain or re.sub(r"[\s-]+", "_", name.strip("# ").lower())
    return plain if plain in schema.PHASES else _WORDS.get(plain, name.strip())


def moment(ns: int) -> datetime | None:
    """Return the UTC stamp of Unix time in nanoseconds, ``None`` where no log can be from."""
    if not _EARLIEST_NS <= ns < _LATEST_NS:
        return None
    return _EPOCH + timedelta(microseconds=ns // 1000)


def frame(rows: Iterable[tuple[str, str, datetime, datetime]], origin: str) -> pl.DataFrame:
    """Return phases of ``run, phase, start, end``, in order of time."""
    told = [(*row, origin) for row in rows]
    return pl.DataFrame(told, schema=PHASE_SCHEMA, orient="row").sort("start_utc", "end_utc", "phase")


def without_run(log: Log) -> Finding:
    """Return the finding about phases that name no run."""
    return Finding(
        "phases-without-run", Severity.NOTE, log.name,
        "The phase log names no run; its phases belong to every run that they fall into.",
    )  # fmt: skip


class Phases:
    """Turns text of phases into rows of ``phases``.

    Parameters
    ----------
    log
        The file.
    names
        The names in the file of the members of a phase.
    samples
        Some stamps of starts.
    utc
        The log says elsewhere that its stamps are UTC.
    """

    def __init__(self, log: Log, names: Mapping[str, str], samples: Sequence[str], *, utc: bool = False) -> None:
        if utc:
            log = replace(log, options=replace(log.options, timezone="UTC", utc_offset_s=None))
        self._fields = {q: Field(q, n.strip(), q) for q, n in names.items()}
        bare = "end" not in names and not names["duration"].strip().lower().endswith("_s")
        if bare and log.options.units.get("span_s") is None:
            raise LogRefusedError(
                f'{log.name}: nothing says the unit of {names["duration"]!r}; add units = {{ span_s = "s" }} to this [[source]]'
            )
        self._scale = cells.factor("span_s", log.options.units.get("span_s", "s")) or 1.0
        self._form = wall_clock.form(log, samples)
        self._clock = wall_clock.of(log, self._form)

    def read(self, raw: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return phases and rejects.

        Parameters
        ----------
        raw
            ``line`` and one text column per member that the log has.
        """
        raw = raw.with_columns(device=pl.lit(None, pl.String))
        frame_ = raw.with_columns(start_utc=self._utc(raw, "start"), end_utc=self._end(raw))
        rejects: list[pl.DataFrame] = []
        for quantity in ("start", "end"):
            lost = frame_.filter(pl.col(f"{quantity}_utc").is_null())
            if lost.height:
                stamp = self._fields.get(quantity, self._fields.get("duration", self._fields["start"]))
                others = [f for q, f in self._fields.items() if f is not stamp]
                rejects.append(table.without_time(lost, others, stamp, "no-such-time"))
                frame_ = frame_.filter(pl.col(f"{quantity}_utc").is_not_null())
        wrong = pl.col("end_utc") <= pl.col("start_utc")
        nameless = pl.col("phase").fill_null("").str.strip_chars() == ""
        for bad, rule in ((wrong, "ends-before-it-starts"), (nameless, "phase-without-name")):
            if frame_.select(bad.any()).item():
                text = frame_.filter(bad).select(
                    "line", raw=pl.concat_str(list(self._fields), separator=",", ignore_nulls=True)
                )
                rejects.append(table.whole_lines(text, rule))
                frame_ = frame_.filter(~bad)
        run = pl.col("run").fill_null("") if "run" in self._fields else pl.lit("")
        phases = frame_.select(
            run_id=run.str.strip_chars(), phase=pl.col("phase").str.strip_chars(), start_utc="start_utc", end_utc="end_utc",
            origin=pl.lit("phase log"),
        )  # fmt: skip
        return phases, pl.concat(rejects) if rejects else table.no_rejects()

    def _utc(self, raw: pl.DataFrame, quantity: str) -> pl.Series:
        text = pl.col(quantity).fill_null("").str.strip_chars()
        return self._clock.to_utc(raw.select(stamps.parse(text, self._form).alias(f"{quantity}_utc")).to_series())

    def _end(self, raw: pl.DataFrame) -> pl.Series:
        if "end" in self._fields:
            return self._utc(raw, "end")
        seconds = cells.plain_number(pl.col("duration").fill_null("")) * self._scale
        us = pl.when(seconds.is_between(0, 1e9)).then((seconds * 1e6).round().cast(pl.Int64, strict=False))
        start = self._utc(raw, "start")
        return raw.select((pl.lit(start) + pl.duration(microseconds=us)).alias("end_utc")).to_series()
