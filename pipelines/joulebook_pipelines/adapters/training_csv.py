"""Training logs as CSV: a row a step (own loops, the CSV logger of Lightning, a downloaded W&B history)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import polars as pl

from joulebook_pipelines.logs import damage, dialect, step_log, step_names, table, wall_clock, wandb_system
from joulebook_pipelines.logs.contract import Adapter, Block, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.dialect import Dialect

_METERED = ("watt", "power", "energy", "_w", "joule", "kwh", "voltage")
"""A table with such titles and without a loss is a log of readings, whatever else it says."""


_MINUTES = re.compile(r"^(\d{1,3}):(\d\d)$")
"""How fastai writes what an epoch took: minutes and seconds."""


def _knows(titles: Sequence[str]) -> bool:
    known = _names(titles)
    return ("loss" in known or not _metered(titles)) and step_names.tells_of_steps(known)


def _metered(titles: Sequence[str]) -> bool:
    return any(m in t if m != "_w" else t.endswith("_w") for t in (t.lower() for t in titles) for m in _METERED)


def _names(titles: Sequence[str]) -> dict[str, str]:
    """Return what the titles name; where steps have no number, those of the epochs stand for them (Keras)."""
    return step_names.known_names(titles) if _metered(titles) else step_names.known_of_epochs(titles)


def _header(head: Head) -> Dialect | None:
    first = Head(head.name, "\n".join(head.lines[:60]), head.encoding, complete=head.complete and len(head.lines) <= 60)
    found = dialect.find(first, _knows)
    return found if found is not None and found.header_line <= 3 else None


def _parse(log: Log) -> Iterator[Part]:
    found = _header(log.head)
    if found is None:
        raise LogRefusedError(
            f"{log.name}:1: needs a header with step and loss, or with time, step and tokens or batch size"
        )
    names = _names(found.titles)
    columns = {q: found.names[found.titles.index(n)] for q, n in names.items()}
    form, minutes = None, False
    if "end_utc" in names:
        at = found.titles.index(names["end_utc"])
        rows = [dialect.split_line(line, found.separator) for line in log.head.lines[found.first_line - 1 :][:200]]
        samples = [r[at] for r in rows if len(r) == len(found.titles) and r[at]]
        minutes = bool(samples) and all(_MINUTES.match(s.strip()) for s in samples)
        if (minutes or wall_clock.are_durations(samples)) and "step_time_s" not in names:
            names["step_time_s"], columns["step_time_s"] = names.pop("end_utc"), columns.pop("end_utc")
        else:
            form = wall_clock.form(log, samples)
    collected, cards = step_log.Steps(log, names, form), wandb_system.System(log, found.titles, form)
    columns |= {n: found.names[found.titles.index(n)] for n in cards.known}
    for block in log.blocks():
        raw, rejects = _split(block, found)
        told = raw.select("line", **{q: pl.col(c).str.strip_chars(' \t"') for q, c in columns.items()})
        told = told.with_columns(_in_seconds(pl.col("step_time_s"))) if minutes else told
        readings, bad, fresh = cards.read(told, collected.add(told.drop(cards.known)))
        yield Part(block.count, readings, pl.concat([rejects, bad]), channels=fresh)
    untimed = () if form else (step_log.without_times(log, "The log"),)
    yield collected.part(*untimed, *step_log.powers_left(log, found.titles, {*names.values(), *cards.known}))


def _in_seconds(text: pl.Expr) -> pl.Expr:
    """Return minutes and seconds as seconds, as text; what is neither stays."""
    whole, rest = text.str.extract(_MINUTES.pattern, 1), text.str.extract(_MINUTES.pattern, 2)
    seconds = whole.cast(pl.Int64) * 60 + rest.cast(pl.Int64)
    return pl.coalesce(seconds.cast(pl.String), text)


def _split(block: Block, found: Dialect) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the cells of the rows, and rejects of lines that have another number of them."""
    raw = table.split(block, found.names, found.separator, quoted=b'"' in block.data)
    frame = raw.frame.filter(pl.col("line") >= found.first_line)
    odd = raw.odd.filter(pl.col("line") >= found.first_line)
    return frame, damage.odd_lines(block, odd, "wrong-number-of-fields")


ADAPTER = Adapter(
    name="training-csv",
    title="training logs as CSV: own loops, Lightning metrics.csv, Keras CSVLogger, W&B history",
    yields="runs, steps with tokens, loss, batch size and learning rate; cards as W&B samples them",
    sniff=lambda head: _header(head) is not None,
    parse=_parse,
)
