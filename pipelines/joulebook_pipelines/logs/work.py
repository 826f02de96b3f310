"""What training logs of any syntax share: the names that tools use for the things of a step, and runs from steps."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from joulebook.findings import Finding, Severity

from joulebook_pipelines.logs import cells, stamps, table
from joulebook_pipelines.logs.contract import Log, LogRefusedError
from joulebook_pipelines.logs.table import Field

ORIGIN = "training log"

NAMES = {
    "end_utc": ("time", "timestamp", "ts", "_timestamp", "datetime", "wall_time", "date", "created_at"),
    "run_id": ("run", "run_id", "run_name", "experiment", "job", "job_id"),
    "step": ("step", "global_step", "iteration", "iter", "_step", "train/global_step", "trainer/global_step"),
    "step_time_s": ("step_time_s", "step_time", "iteration_time_s", "time_per_step_s", "elapsed_s"),
    "tokens": ("tokens", "step_tokens", "num_tokens", "tokens_per_step"),
    "samples": ("samples", "num_samples", "examples"),
    "loss": ("loss", "train_loss", "train/loss", "lm_loss", "training_loss"),
    "batch_size": ("batch_size", "global_batch_size", "train_batch_size"),
    "learning_rate": ("learning_rate", "lr", "train/learning_rate"),
}
"""Names of a step's things, the usual one first; compared without regard to case."""

_NUMBERS = ("step", "step_time_s", "tokens", "samples", "loss", "batch_size", "learning_rate")

STEP_SCHEMA = {
    "run_id": pl.String, "step": pl.Int64, "start_utc": pl.Datetime("us", "UTC"), "end_utc": pl.Datetime("us", "UTC"),
    "tokens": pl.Float64, "loss": pl.Float64, "batch_size": pl.Float64, "learning_rate": pl.Float64,
}  # fmt: skip


def known_names(names: Sequence[str]) -> dict[str, str]:
    """Return which of a log's names stands for which thing of a step.

    Examples
    --------
    >>> known_names(["Time", "step", "train_loss", "grad_norm"])
    {'end_utc': 'Time', 'step': 'step', 'loss': 'train_loss'}
    """
    by_folded = {n.strip().lower(): n for n in reversed(names)}
    found = {}
    for quantity, choices in NAMES.items():
        name = next((by_folded[c] for c in choices if c in by_folded), None)
        if name is not None:
            found[quantity] = name
    return found


def stamp_form(log: Log, samples: Sequence[str]) -> stamps.StampForm:
    """Return the form of a log's stamps.

    Raises
    ------
    LogRefusedError
        There are none, or their form or zone is not known.
    """
    try:
        form = stamps.detect(samples, day_first=log.options.day_first)
    except stamps.StampError as error:
        raise LogRefusedError(f"{log.name}: {error}") from None
    if form.pattern == "relative":
        raise LogRefusedError(f"{log.name}: the times ({samples[0]!r}) are seconds since an unknown start; log wall-clock time")
    if not form.aware and log.options.timezone is None:
        raise LogRefusedError(
            f'{log.name}: the stamps ({samples[0]!r}) carry no zone; add timezone = "Area/City" to [study] or to this [[source]]'
        )
    return form


class Steps:
    """Collects the steps of one log, block by block, and tells the runs that they make.

    Parameters
    ----------
    log
        The file; its name without endings is the run where the log names none.
    clock
        Turns its stamps into UTC.
    """

    def __init__(self, log: Log, clock: stamps.Localiser) -> None:
        self._log = log
        self._clock = clock
        self._told: list[pl.DataFrame] = []
        self._names_run = True

    def add(
        self, raw: pl.DataFrame, names: dict[str, str], form: stamps.StampForm
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return rows of ``steps`` and the rejects of a block.

        Parameters
        ----------
        raw
            ``line`` and one text column per thing of a step that the log knows.
        names
            Their names in the file.
        form
            Form of the stamps.
        """
        if raw.is_empty():
            return pl.DataFrame(schema=STEP_SCHEMA), table.no_rejects()
        raw = raw.with_columns(device=pl.lit(None, pl.String))
        naive = raw.select(stamps.parse(pl.col("end_utc").fill_null(""), form).alias("at")).to_series()
        raw = raw.with_columns(self._clock.to_utc(naive))
        fields = [Field(q, names[q], q, required=False) for q in _NUMBERS if q in names]
        lost = raw.filter(pl.col("at").is_null())
        rejects = [table.without_time(lost, fields, Field("end_utc", names["end_utc"], "end_utc"))] if lost.height else []
        raw = raw.filter(pl.col("at").is_not_null())
        numbers = raw.select("line", **{f.quantity: cells.plain_number(pl.col(f.column)) for f in fields})
        for field in fields:
            bad = numbers[field.quantity].is_null() & (raw[field.column].fill_null("").str.strip_chars() != "")
            if bad.any():
                rejects.append(table.cell_rejects(raw.filter(bad), field, cells.why_null(pl.col(field.column))))
        return self._steps(raw, numbers), pl.concat(rejects) if rejects else table.no_rejects()

    def _steps(self, raw: pl.DataFrame, numbers: pl.DataFrame) -> pl.DataFrame:
        self._names_run = "run_id" in raw.columns
        stem = self._log.path.name.split(".")[0]
        run = pl.col("run_id").fill_null(stem) if self._names_run else pl.lit(stem)
        at = raw.select("line", "at", run_id=run).hstack(numbers.drop("line"))
        absent = [pl.lit(None, pl.Float64).alias(q) for q in _NUMBERS if q not in at.columns]
        at = at.with_columns(absent)
        start = pl.col("at") - pl.duration(microseconds=(pl.col("step_time_s") * 1e6).round().cast(pl.Int64))
        steps = at.select(
            "run_id", pl.col("step").cast(pl.Int64), start_utc=start, end_utc="at", tokens="tokens", loss="loss",
            batch_size="batch_size", learning_rate="learning_rate", samples="samples",
        )  # fmt: skip
        self._told.append(steps)
        return steps.filter(pl.col("step").is_not_null()).select(*STEP_SCHEMA)

    def runs(self) -> pl.DataFrame:
        """Return the runs that the steps make: from the start of the first step to the end of the last."""
        if not self._told:
            return pl.DataFrame()
        steps = pl.concat(self._told)

        def total(name: str) -> pl.Expr:
            return pl.when(pl.col(name).is_not_null().any()).then(pl.col(name).sum())

        return steps.group_by("run_id", maintain_order=True).agg(
            host=pl.lit(self._log.options.host), start_utc=pl.coalesce("start_utc", "end_utc").min(), end_utc=pl.col("end_utc").max(),
            origin=pl.lit(ORIGIN), tokens=total("tokens"), samples=total("samples"),
            batch_size=pl.when(pl.col("batch_size").drop_nulls().n_unique() == 1).then(pl.col("batch_size").drop_nulls().first()),
            labels=pl.lit("{}"),
        )  # fmt: skip

    def findings(self) -> tuple[Finding, ...]:
        """Return doubts about the log as a whole."""
        if self._names_run or not self._told:
            return ()
        stem = self._log.path.name.split(".")[0]
        return (
            Finding(
                "run-named-after-file", Severity.NOTE, self._log.name,
                f"The log names no run; its steps belong to the run {stem!r}, after the file's name.",
            ),
        )  # fmt: skip
