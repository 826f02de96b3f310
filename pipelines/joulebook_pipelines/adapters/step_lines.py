"""Text logs of training frameworks with a line a step: torchtitan, DeepSpeed, NeMo, fairseq, nanoGPT, llm.c, own loops."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from joulebook_pipelines.logs import step_lines, table, work
from joulebook_pipelines.logs.contract import Adapter, Block, Log, LogRefusedError, Part
from joulebook_pipelines.logs.step_lines import Form

_RANK = r"^\[(?:rank)?(\d+)\]:"
"""What torchrun puts before the lines of each rank."""


def _parse(log: Log) -> Iterator[Part]:
    form = step_lines.find(log.head)
    if form is None:
        raise LogRefusedError(
            f"{log.name}: has no line about a step as torchtitan, DeepSpeed, NeMo, fairseq or an own loop write it"
        )
    pattern = next(p for q, _, p in form.things if q == "end_utc")
    plain = (re.sub(step_lines.COLOURS, "", line) for line in log.head.lines)
    lines = [line for line in plain if re.search(form.line, line) and not re.search(form.without, line)][:200]
    told = [m[1].replace(",", ".") for line in lines if (m := re.search(pattern, line))]
    rank = next((m[1] for line in lines if (m := re.search(_RANK, line))), "")
    stamps_ = work.stamp_form(log, told) if told else None
    collected = work.Steps(log, form.names, stamps_)
    for block in log.blocks():
        raw, rejects = _split(block, form, rank, timed=stamps_ is not None)
        yield Part(lines=block.count, rejects=pl.concat([rejects, collected.add(raw)]))
    untimed = () if stamps_ else (work.without_times(log, "The log"),)
    yield collected.part(*untimed)


def _split(block: Block, form: Form, rank: str, *, timed: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the things of each step as text, and rejects of lines that are cut; several ranks may print the same step."""
    numbers = pl.int_range(block.first_line, block.first_line + block.count, eager=True, dtype=pl.Int64).alias("line")
    lines = pl.DataFrame({"line": numbers, "raw": block.lines})
    lines = lines.with_columns(pl.col("raw").str.replace_all(step_lines.COLOURS, ""))
    lines = lines.filter(pl.col("raw").str.contains(form.line) & ~pl.col("raw").str.contains(form.without))
    found = lines.with_columns(pl.col("raw").str.extract(pattern).alias(q) for q, _, pattern in form.things)
    last = block.first_line + block.count - 1 if not block.terminated else -1
    whole = pl.col("step").is_not_null() & (pl.col("line") != last)
    whole = whole & pl.col("end_utc").is_not_null() if timed else whole
    # In numbers a comma stands between thousands; in the stamp before the fraction.
    plain = [pl.col(q).str.replace_all(",", "." if q == "end_utc" else "") for q in form.names]
    rule = pl.when(pl.col("line") == last).then(pl.lit("last-line-cut")).otherwise(pl.lit("not-a-step"))
    cut = table.whole_lines(found.filter(~whole).select("line", "raw"), rule)
    good = found.filter(whole)
    again = (pl.col("raw").str.extract(_RANK).fill_null(rank) != rank) if rank else pl.lit(value=False)
    twice = table.whole_lines(good.filter(again).select("line", "raw"), "step-of-another-rank")
    good = good.filter(~again).with_columns(plain)
    return good.select("line", *form.names), pl.concat([cut, twice])


ADAPTER = Adapter(
    name="step-lines",
    title="text logs of torchtitan, DeepSpeed, NeMo, fairseq, nanoGPT, llm.c and own loops (lines of steps)",
    yields="runs, steps with time, loss, batch size and learning rate",
    sniff=lambda head: step_lines.find(head) is not None,
    parse=_parse,
    needs_zone=True,
)
