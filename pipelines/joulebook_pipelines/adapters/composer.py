"""What Composer (LLM Foundry) and OLMo print while they train: under a line with the batch or step, a line for each of its values."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from joulebook_pipelines.logs import damage, sections, stamps, step_log, table, wall_clock
from joulebook_pipelines.logs.contract import Adapter, Head, Log, Part

_STAMP = rf"({stamps.ISO})"
_BATCH = rf"^(?:\W?{_STAMP}\W.*?)?\[(?:batch|step)=(\d+)/\d+(?:,epoch=[\d/]+)?\]:?\s*$"
_VALUE = r"(?:\bTrain |^\s+)([A-Za-z][\w./-]*(?: \w+)?(?: \(group 0\))?)(?::\s+|=)(\S.*?)\s*$"
_NAMES = {"step": "batch", "loss": "loss/train/total", "tokens_seen": "time/token", "learning_rate": "lr"}
_KEYS = {
    "loss/train/total": "loss", "time/token": "tokens_seen", "time/batch": "done",
    "train/CrossEntropyLoss": "loss", "train/CE loss": "loss",
    "throughput/total_tokens": "tokens_seen", "throughput/total tokens": "tokens_seen",
}  # fmt: skip
_RATE = r"^lr-[\w.-]+/group0$|^optim/(?:learning_rate_group0|LR \(group 0\))$"


def _sniff(head: Head) -> bool:
    if not re.search(r"\[(?:batch|step)=", head.text):
        return False
    return any(re.match(_BATCH, line) for line in head.lines) and any(re.search(_VALUE, line) for line in head.lines)


def _parse(log: Log) -> Iterator[Part]:
    frames, cut = [], [table.no_rejects()]
    for block in log.blocks():
        lines = sections.lines_of(block)
        if not block.terminated and lines.height > 1:
            cut.append(table.whole_lines(lines.tail(1), damage.CUT))
            lines = lines.head(lines.height - 1)
        frames.append(lines.filter(pl.col("raw").str.contains(_BATCH) | pl.col("raw").str.contains(_VALUE)))
        yield Part(lines=block.count)
    batches = _batches(pl.concat(frames))
    stamps_ = [s for s in batches["end_utc"].drop_nulls().head(200).to_list() if s]
    form = wall_clock.form(log, stamps_) if stamps_ else None
    names = {**({"end_utc": "time"} if form else {}), **_NAMES}
    collected = step_log.Steps(log, names, form)
    rejects = collected.add(batches.select("line", *names))
    yield Part(rejects=pl.concat([*cut, rejects]))
    yield collected.part(*(() if form else (step_log.without_times(log, "The log"),)))


def _batches(lines: pl.DataFrame) -> pl.DataFrame:
    """Return one row a batch, with the text of what stands below it."""
    batch = pl.col("raw").str.extract(_BATCH, 2)
    key, value = (pl.col("raw").str.extract(_VALUE, i) for i in (1, 2))
    known = key.replace_strict(_KEYS, default=None, return_dtype=pl.String)
    told = lines.with_columns(
        step=batch, end_utc=pl.col("raw").str.extract(_BATCH, 1).str.replace(",", "."),
        thing=pl.when(key.str.contains(_RATE)).then(pl.lit("learning_rate")).otherwise(known), value=value,
    )  # fmt: skip
    told = told.with_columns(number=pl.col("step").is_not_null().cum_sum()).filter(pl.col("number") > 0)
    values = {
        t: pl.col("value").filter(pl.col("thing") == t).first()
        for t in ("loss", "tokens_seen", "learning_rate", "done")
    }
    rows = told.group_by("number", maintain_order=True).agg(pl.col("line", "step", "end_utc").first(), **values)
    rows = rows.with_columns(pl.col("tokens_seen").str.replace_all(",", ""))
    # The counts are those before the batch: what it added stands below the next one.
    before = pl.col("done").cast(pl.Int64, strict=False) < pl.col("step").cast(pl.Int64, strict=False)
    counted = pl.when(before).then(pl.col("tokens_seen").shift(-1)).otherwise("tokens_seen")
    return rows.with_columns(counted.alias("tokens_seen"))


ADAPTER = Adapter(
    name="composer",
    title="what Composer (LLM Foundry) and OLMo print while they train",
    yields="runs, steps with tokens, loss and learning rate; with times where a collector stamped the lines",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
)
