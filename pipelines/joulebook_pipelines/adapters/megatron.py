"""Text lines of Megatron-LM and its descendants: ``[2026-11-02 09:00:10] iteration 10/ 100 | consumed samples: … |``."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import step_log, step_names, table, wall_clock
from joulebook_pipelines.logs.contract import Adapter, Block, Head, Log, LogRefusedError, Part

_LINE = r"iteration\s+(\d+)\s*/\s*\d+\s*\|"
_STAMP = r"\[\s*(\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?)\s*\]\s*iteration"
_FIELDS = {
    "elapsed_ms": ("elapsed time per iteration (ms)", r"elapsed time per iteration \(ms\):\s*([^|\s]+)"),
    "loss": ("lm loss", r"\|\s*lm loss:\s*([^|\s]+)"),
    "learning_rate": ("learning rate", r"\|\s*learning rate:\s*([^|\s]+)"),
    "batch_size": ("global batch size", r"\|\s*global batch size:\s*([^|\s]+)"),
    "tokens_seen": ("consumed tokens", r"\|\s*consumed tokens:\s*([^|\s]+)"),
    "samples_seen": ("consumed samples", r"\|\s*consumed samples:\s*([^|\s]+)"),
}
_NAMES = {"end_utc": "time", "step": "iteration"} | {q: n for q, (n, _) in _FIELDS.items() if q in step_names.VALUES}


def _sniff(head: Head) -> bool:
    return "iteration" in head.text and "elapsed time per iteration (ms)" in head.text


def _parse(log: Log) -> Iterator[Part]:
    lines = [li for li in log.head.lines if "elapsed time per iteration" in li][:200]
    sample = pl.DataFrame({"raw": lines}, schema={"raw": pl.String})
    told = sample.select(pl.col("raw").str.extract(_STAMP)).to_series().drop_nulls().to_list()
    if sample.is_empty():
        raise LogRefusedError(f"{log.name}: has no line with an iteration and its elapsed time")
    form = wall_clock.form(log, told) if told else None
    names = {**_NAMES, "step_time_s": "elapsed time per iteration (ms)"}
    collected = step_log.Steps(log, names, form)
    consumed: list[float] = []
    for block in log.blocks():
        raw, rejects = _split(block, timed=form is not None)
        consumed += raw["samples_seen"].cast(pl.Float64, strict=False).drop_nulls().to_list()
        yield Part(lines=block.count, rejects=pl.concat([rejects, collected.add(raw.drop("samples_seen"))]))
    steps, runs = collected.steps(), collected.runs()
    if consumed and runs.height and steps["batch_size"].drop_nulls().len():
        # From the start of the first iteration that is told, which is one batch before its count.
        first = float(steps["batch_size"].drop_nulls()[0])
        runs = runs.with_columns(samples=pl.lit(max(consumed) - min(consumed) + first))
    doubts = _doubts(log, steps)
    yield Part(
        runs=runs,
        steps=steps,
        findings=(*(() if form else (step_log.without_times(log, "The log"),)), *doubts, *collected.findings()),
    )


def _split(block: Block, *, timed: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the things of each iteration as text, and rejects of iteration lines that are cut."""
    lines = block.numbered()
    lines = lines.filter(
        pl.col("raw").str.contains(r"\biteration\s+\d+\s*/") & ~pl.col("raw").str.contains("validation loss")
    )
    found = lines.with_columns(
        step=pl.col("raw").str.extract(_LINE), end_utc=pl.col("raw").str.extract(_STAMP),
        **{q: pl.col("raw").str.extract(pattern) for q, (_, pattern) in _FIELDS.items()},
    )  # fmt: skip
    whole = pl.col("step").is_not_null() & pl.col("elapsed_ms").is_not_null()
    whole = whole & pl.col("end_utc").is_not_null() if timed else whole
    ms = pl.col("elapsed_ms").cast(pl.Float64, strict=False)
    # The line is printed at the end of an iteration; its elapsed time is the mean since the last line.
    seconds = pl.coalesce((ms / 1e3).cast(pl.String), "elapsed_ms")
    good = found.filter(whole).with_columns(step_time_s=seconds)
    names = ("end_utc", "step", "step_time_s", "tokens_seen", "samples_seen", "loss", "batch_size", "learning_rate")
    return good.select("line", *names), table.whole_lines(
        found.filter(~whole).select("line", "raw"), "not-an-iteration"
    )


def _doubts(log: Log, steps: pl.DataFrame) -> tuple[Finding, ...]:
    """Say that lines cover several iterations where they do."""
    rise = steps["step"].diff().drop_nulls()
    if rise.is_empty() or rise.max() == 1:
        return ()
    every = round(float(str(rise.median() or 1)))
    return (
        Finding(
            "steps-in-between", Severity.NOTE, log.name,
            f"A line is written every {every} iterations; steps in between are not in the log. Times per iteration are means since "
            "the line before.",
            {"every": every},
        ),
    )  # fmt: skip


ADAPTER = Adapter(
    name="megatron",
    title="text log of Megatron-LM (iteration lines)",
    yields="runs, steps with time, loss, batch size and learning rate",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
)
