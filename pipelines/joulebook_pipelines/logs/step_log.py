"""What training logs of any syntax share: steps from text, and the runs that steps make."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cached_property

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import (
    cells,
    clock_set,
    meter_titles,
    stamps,
    step_epochs,
    step_names,
    step_ranks,
    step_repeats,
    step_times,
    step_tokens,
    table,
    wall_clock,
)
from joulebook_pipelines.logs.contract import Channel, Log, Part
from joulebook_pipelines.logs.table import Field

ORIGIN = "training log"

_LONGEST_STEP_S = 1e7
"""Four months: no step takes longer, and the calendar is not left."""

_NUMBERS = ("step", "epoch", *step_names.VALUES, *step_names.REPORTED)

STEP_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "run_id": pl.String, "step": pl.Int64, "start_utc": pl.Datetime("us", "UTC"), "end_utc": pl.Datetime("us", "UTC"),
    "tokens": pl.Float64, "loss": pl.Float64, "batch_size": pl.Float64, "learning_rate": pl.Float64,
}  # fmt: skip


def run_of(log: Log) -> str:
    """Return the run of a log that names none: its file's name without endings."""
    return log.path.name.split(".")[0]


def without_times(log: Log, written_by: str) -> Finding:
    """Return the finding about steps that nobody timed."""
    return Finding(
        "steps-without-times", Severity.WARNING, log.name,
        f"{written_by} gives steps without wall-clock times, so no energy can be laid to them; loss, tokens and learning rate are read. "
        "Name the run in [[run]] with start and end, or log a time with each step.",
    )  # fmt: skip


def powers_left(log: Log, titles: Iterable[str], read: Container[str]) -> tuple[Finding, ...]:
    """Return the finding about powers and energies that stand beside the steps and are not read."""
    left = [
        t
        for t in dict.fromkeys(titles)
        if t not in read and meter_titles.meaning(t).quantity in {"power_w", "energy_j"}
    ]
    if not left:
        return ()
    return (Finding(
        "columns-not-read", Severity.WARNING, log.name,
        f"Not read: {', '.join(map(repr, left[:8]))}. Of a log of steps the mean power of the cards is read where its name says so with "
        "its unit (gpu_power_w); put other powers and energies into a table of their own, with a time in each line.", {"columns": left},
    ),)  # fmt: skip


class Steps:
    """Collects the steps of one log, block by block, and tells the runs that they make.

    Parameters
    ----------
    log
        The file; its name without endings is the run where the log names none.
    names
        The names in the file of the things of a step; ``""`` for a number that the file does not hold.
    form
        Form of the stamps, ``None`` where the log has none.
    """

    def __init__(self, log: Log, names: Mapping[str, str], form: stamps.StampForm | None) -> None:
        self._log, self._names, self._form = log, dict(names), form
        self._clock = wall_clock.of(log, form) if form else None
        self._told: list[pl.DataFrame] = []
        self._cumulative = False
        self._processes = 1
        self._in_epoch = 0
        self._extra = self._stray = pl.DataFrame()

    def add(self, raw: pl.DataFrame) -> pl.DataFrame:
        """Take in a block and return its rejects.

        Parameters
        ----------
        raw
            ``line`` and one text column per thing of a step that the log knows.
        """
        if raw.is_empty():
            return table.no_rejects()
        raw = raw.with_columns(device=pl.lit(None, pl.String))
        fields = [Field(q, self._names[q], q) for q in _NUMBERS if q in self._names]
        raw, rejects = self._timed(raw, fields)
        numbers = raw.select("line", **{f.quantity: cells.plain_number(pl.col(f.column).fill_null("")) for f in fields})
        if "step" in numbers.columns:
            numbers = numbers.with_columns(pl.when(pl.col("step").abs() < 2**53).then("step"))
        for field in (f for f in fields if f.header and f.quantity != "epoch"):
            bad = numbers[field.quantity].is_null() & (raw[field.column].fill_null("").str.strip_chars() != "")
            if bad.any():
                why = cells.why_null(pl.col(field.column))
                rejects.append(table.cell_rejects(raw.filter(bad), field, why))
        kept, bare = self._with_values(raw, numbers)
        if bare.height:
            # A line whose only value is damaged is accounted for by that value.
            told = pl.concat([table.no_rejects(), *rejects])["line"].implode()
            rejects.append(bare.filter(~pl.col("line").is_in(told)))
        self._told.append(kept)
        return pl.concat(rejects) if rejects else table.no_rejects()

    def _timed(self, raw: pl.DataFrame, fields: Sequence[Field]) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
        """Return the rows whose stamp can be read, with ``at``, and rejects of the others."""
        if self._form is None or self._clock is None:
            return raw.with_columns(at=pl.lit(None, pl.Datetime("us", "UTC"))), []
        naive = raw.select(stamps.parse(pl.col("end_utc").fill_null(""), self._form).alias("at")).to_series()
        raw = raw.with_columns(self._clock.to_utc(naive))
        lost = raw.filter(pl.col("at").is_null())
        stamp = Field("end_utc", self._names["end_utc"], "end_utc")
        return raw.filter(pl.col("at").is_not_null()), [
            table.without_time(lost, [f for f in fields if f.header], stamp)
        ] if lost.height else []

    def _with_values(self, raw: pl.DataFrame, numbers: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the rows that say something of a step, and rejects of lines about something else (evaluation, system)."""
        stem = run_of(self._log)
        run = pl.col("run_id").fill_null(stem) if "run_id" in raw.columns else pl.lit(stem)
        told = raw.select("line", "at", run_id=run).hstack(numbers.drop("line"))
        told = told.with_columns(pl.lit(None, pl.Float64).alias(q) for q in _NUMBERS if q not in told.columns)
        says = pl.any_horizontal([pl.col(q).is_not_null() for q in (*step_names.VALUES, *step_names.REPORTED)])
        valued = told.filter(says)
        bare = told.filter(~says & pl.col("step").is_not_null())
        if self._form is not None:  # a step with nothing but its time is an end of a step, unless another line has more
            bare = bare.join(valued.select("run_id", "step").unique(), on=["run_id", "step"], how="semi")
        if bare.is_empty():
            return told, table.no_rejects()
        column = pl.col("step").cast(pl.String)
        text = raw.join(bare.select("line"), on="line", how="semi", maintain_order="left").select("line", raw=column)
        return told.join(bare, on="line", how="anti"), table.whole_lines(text, "not-a-training-step")

    @cached_property
    def _all(self) -> pl.DataFrame:
        """Everything that was told by the end of the log, with the tokens of each step where the log counts from the start."""
        if not self._told:
            return pl.DataFrame()
        told = pl.concat(self._told)
        if self._form is None:
            told = _joined(told)
        else:
            told, self._stray = clock_set.split(told, "at")
            told, self._in_epoch = step_epochs.numbered(told)
            told, self._extra, self._processes = step_ranks.once(told)
            told = step_times.of_steps(told)
        told, self._cumulative = step_tokens.of_steps(told)
        return told

    def steps(self) -> pl.DataFrame:
        """Return the rows of ``steps``."""
        told = self._all
        if told.is_empty():
            return pl.DataFrame(schema=STEP_SCHEMA)
        start = pl.col("at") - pl.duration(
            microseconds=(pl.col("step_time_s") * 1e6).round().cast(pl.Int64, strict=False)
        )
        frame = told.filter(pl.col("step").is_not_null()).select(
            "run_id", pl.col("step").cast(pl.Int64), start_utc=pl.when(pl.col("step_time_s").is_between(0, _LONGEST_STEP_S)).then(start),
            end_utc="at", tokens="tokens", loss="loss", batch_size="batch_size", learning_rate="learning_rate",
        )  # fmt: skip
        return frame.select(*STEP_SCHEMA)

    def readings(self) -> tuple[pl.DataFrame | None, pl.DataFrame, tuple[Channel, ...]]:
        """Return the mean power and utilisation that the log prints, over the time since the line before; and rejects.

        How many boards a mean is over is not said, so it is a ``part`` unless study.toml gives the scope.
        """
        told = self._all
        named = [q for q in ("utilization_ratio", "power_w") if q in self._names]
        if told.is_empty() or not named or self._form is None:
            return None, table.no_rejects(), ()
        device, scope = self._log.options.device or "gpu", self._log.options.scope or "part"
        percent = "utilization_ratio" in named and not self._names["utilization_ratio"].lower().endswith("ratio")
        says = pl.any_horizontal([pl.col(q).is_not_null() for q in named])
        raw = told.filter(says).select("line", *named, device=pl.lit(device), ts_utc="at", span_s="since_s")
        rejects = [
            table.cell_rejects(bad, Field(q, self._names[q], q), pl.lit("mean-of-unknown-span"))
            for q in named if (bad := raw.filter(pl.col("span_s").is_null() & pl.col(q).is_not_null())).height
        ]  # fmt: skip
        raw = raw.filter(pl.col("span_s").is_not_null())
        values = raw.with_columns(pl.col("utilization_ratio") * 0.01) if percent else raw
        good, judged = table.judge(values, raw, [Field(q, self._names[q], q) for q in named], _limits_of(scope))
        return table.kept(good), pl.concat([*rejects, judged]), (Channel(device, scope, kind="mean"),)

    def runs(self) -> pl.DataFrame:
        """Return the runs that the steps make: from the start of the first step to the end of the last."""
        told = self._all
        if told.is_empty():
            return pl.DataFrame()
        first = self.steps().group_by("run_id").agg(first=pl.coalesce("start_utc", "end_utc").min())

        batch = pl.col("batch_size").drop_nulls()
        runs = told.group_by("run_id", maintain_order=True).agg(
            start_utc=pl.col("at").min(), end_utc=pl.col("at").max(),
            batch_size=pl.when(batch.n_unique() == 1).then(batch.first()),
        )  # fmt: skip
        made = step_repeats.totals(told, ("tokens", "samples"))
        runs = runs.join(first, on="run_id", how="left", maintain_order="left").join(
            made, on="run_id", how="left", maintain_order="left"
        )
        return runs.select(
            "run_id", host=pl.lit(self._log.options.host), start_utc=pl.min_horizontal("first", "start_utc"), end_utc="end_utc",
            origin=pl.lit(ORIGIN), tokens="tokens", samples="samples", batch_size="batch_size", labels=pl.lit("{}"),
        )  # fmt: skip

    def part(self, *doubts: Finding) -> Part:
        """Return everything that is known at the end of the log."""
        readings, rejects, channels = self.readings()
        for lines, rule in ((self._extra, "step-of-another-rank"), (self._stray, clock_set.RULE)):
            if lines.height:
                raw = pl.col("step").cast(pl.Int64).cast(pl.String)
                rejects = pl.concat([rejects, table.whole_lines(lines.select("line", raw=raw), rule)])
        return Part(
            readings=readings, rejects=rejects, channels=channels, runs=self.runs(), steps=self.steps(),
            findings=(*doubts, *self.findings()),
        )  # fmt: skip

    def findings(self) -> tuple[Finding, ...]:
        """Return doubts about the log as a whole."""
        if not self._told:
            return ()
        found = []
        if "run_id" not in self._names:
            found.append(Finding(
                "run-named-after-file", Severity.NOTE, self._log.name,
                f"The log names no run; its steps belong to the run {run_of(self._log)!r}, after the file's name.",
            ))  # fmt: skip
        if self._stray.height:
            found.append(clock_set.finding(self._log.name, self._stray, "step", "at"))
        if self._in_epoch:
            found.append(step_epochs.finding(self._log.name, self._in_epoch))
        if self._processes > 1:
            found.append(step_ranks.told(self._log.name, self._processes))
        if self._cumulative:
            found.append(Finding(
                "tokens-count-from-start", Severity.NOTE, self._log.name,
                "The tokens rise with every step, by about as much as they begin with: they were taken for a count from the start, and "
                "each step has its rise.",
            ))  # fmt: skip
        return tuple(found)


def _limits_of(scope: str) -> str:
    """Return the boundary whose limits hold: a mean over boards is no more than a board."""
    return "board" if scope == "part" else scope


def _joined(told: pl.DataFrame) -> pl.DataFrame:
    """Join neighbouring lines of one step, as loggers that write a line per metric leave them."""
    same = pl.struct("run_id", "step").rle_id().alias("group")
    values = [pl.col(c).drop_nulls().first() for c in told.columns if c not in {"run_id", "step"}]
    return told.group_by(same, "run_id", "step", maintain_order=True).agg(values).select(told.columns)
