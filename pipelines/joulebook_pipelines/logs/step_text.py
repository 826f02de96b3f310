"""Steps from lines of text, by the form that the lines have: their things, their numbers, their stamps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import damage, step_log, step_stamps, table
from joulebook_pipelines.logs.contract import Block, Log, Part
from joulebook_pipelines.logs.step_lines import Form

_RANK = r"^\[(?:rank)?(\d+)\]:"
"""What torchrun puts before the lines of each rank."""

_SAMPLES = 200


@dataclass
class _Passed:
    """What the lines so far said that those behind need: the heading and its line, and how many steps there were."""

    epoch: str | None = None
    heading_line: int = 0
    steps: int = 0


def parse(log: Log, form: Form) -> Iterator[Part]:
    """Yield the steps of a file whose lines have this form.

    Raises
    ------
    LogRefusedError
        The stamps cannot be known.
    """
    pattern = next((p for q, _, p in form.things if q == "end_utc"), "")
    lines = [line for line in log.head.lines if form.tells(line)][:_SAMPLES]
    told = [m[1] for line in lines if (m := re.search(pattern, line))] if pattern else []
    # A log that is timed in a stray line only is not timed.
    told = told if 2 * len(told) >= len(lines) else []
    rank = next((m[1] for line in lines if (m := re.search(_RANK, line))), "")
    known = step_stamps.Stamps(log, told) if told else None
    names = form.names if "step" in form.names else {**form.names, "step": ""}
    names = names if told else {q: n for q, n in names.items() if q != "end_utc"}
    collected, passed = step_log.Steps(log, names, known.form if known else None), _Passed()
    first_epoch = _first_epoch(form, lines)
    for block in log.blocks():
        raw, rejects = _split(block, form, rank, passed, first_epoch=first_epoch, timed=known is not None)
        raw = raw.with_columns(known.whole(raw["end_utc"])) if known is not None else raw
        yield Part(lines=block.count, rejects=pl.concat([rejects, collected.add(raw.select("line", *names))]))
    untimed = () if known else (step_log.without_times(log, "The log"),)
    yield collected.part(*untimed, *_of_numbers(log, form))


def _first_epoch(form: Form, lines: list[str]) -> int:
    """Return the number of the first epoch: a log that has an epoch 0 counts from there."""
    if form.first_epoch is not None or "epoch" not in dict(form.places):
        return form.first_epoch or 0
    found = [m[1] for line in lines if (m := re.search(dict(form.places)["epoch"], line))]
    # Lines of the frameworks count from 0; own loops do so or not.
    return 1 if form.framework.startswith("own") and found and all(int(e) for e in found) else 0


def _split(
    block: Block, form: Form, rank: str, passed: _Passed, *, first_epoch: int, timed: bool
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the things of each step as text, and rejects of lines that are cut; several ranks may print the same step."""
    lines = block.numbered()
    lines = lines.with_columns(seen="raw")
    lines = lines.with_columns(seen=pl.col("seen").str.replace_all(form.cut, "")) if form.cut else lines
    lines = _under_headings(lines, form, passed) if form.heading else lines
    seen = pl.col("seen")
    lines = lines.filter(seen.str.contains(form.line) & ~seen.str.contains(form.without))
    found = lines.with_columns(seen.str.extract(pattern).alias(q) for q, _, pattern in form.things)
    found = _numbered(found, form, passed, first_epoch)
    whole = pl.col("step").is_not_null() & (pl.col("line") != block.cut_line)
    whole = whole & pl.col("end_utc").is_not_null() if timed else whole
    # In numbers a comma stands between thousands; in the stamp before the fraction.
    plain = [pl.col(q).str.replace_all(",", "." if q == "end_utc" else "") for q in form.names]
    cut = damage.odd_lines(block, found.filter(~whole).select("line", "raw"), "not-a-step")
    good = found.filter(whole)
    again = (pl.col("raw").str.extract(_RANK).fill_null(rank) != rank) if rank else pl.lit(value=False)
    twice = table.whole_lines(good.filter(again).select("line", "raw"), "step-of-another-rank")
    good = good.filter(~again).with_columns(plain)
    return good, pl.concat([cut, twice])


def _under_headings(lines: pl.DataFrame, form: Form, passed: _Passed) -> pl.DataFrame:
    """Return the lines with the epoch and the line of the heading above them, which may be in an earlier block."""
    epoch = pl.col("seen").str.extract(form.heading)
    at = pl.when(epoch.is_not_null()).then("line")
    lines = lines.with_columns(epoch=epoch.forward_fill(), heading=at.forward_fill())
    lines = lines.with_columns(
        pl.col("epoch").fill_null(pl.lit(passed.epoch, pl.String)), pl.col("heading").fill_null(passed.heading_line)
    )
    if lines.height:
        passed.epoch, passed.heading_line = lines["epoch"][-1], lines["heading"][-1]
    return lines


def _numbered(found: pl.DataFrame, form: Form, passed: _Passed, first_epoch: int) -> pl.DataFrame:
    """Return the lines with the number of their step, those alone that end something where many lines tell of one."""
    if form.numbering == "step":
        return found
    if form.numbering == "order":
        numbers = pl.int_range(passed.steps + 1, passed.steps + 1 + pl.len()).cast(pl.String)
        passed.steps += found.height
        return found.with_columns(step=numbers)
    places = [pl.col("seen").str.extract(p).cast(pl.Int64, strict=False).alias(q) for q, p in form.places]
    found = found.with_columns(places)
    if form.numbering == "in-epoch":
        step = (pl.col("epoch") - first_epoch) * pl.col("of") + pl.col("at")
        return found.with_columns(step=step.cast(pl.String))
    found = found.filter(pl.col("at") == pl.col("of"))
    if form.numbering == "heading":
        # What is drawn at the end of an epoch is drawn again with its evaluation; both tell one loss.
        return found.unique("heading", keep="first", maintain_order=True).with_columns(step=pl.col("epoch"))
    again = pl.col("epoch").is_not_null() & (pl.col("epoch") == pl.col("epoch").shift(1))
    found = found.filter(~again.fill_null(value=False))
    numbers = pl.int_range(passed.steps + 1, passed.steps + 1 + pl.len())
    passed.steps += found.height
    return found.with_columns(step=pl.coalesce("epoch", numbers).cast(pl.String))


def _of_numbers(log: Log, form: Form) -> tuple[Finding, ...]:
    """Say that the numbers of the steps are the log's order alone, where they are."""
    if form.numbering != "order":
        return ()
    where = " trainer_state.json of the checkpoint has the numbers." if form.framework.startswith("Hugging") else ""
    return (Finding(
        "steps-numbered-by-line", Severity.NOTE, log.name,
        f"The lines tell no number of their step; they are numbered from 1 in the order of the file.{where}",
    ),)  # fmt: skip
