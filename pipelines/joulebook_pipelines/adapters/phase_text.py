"""Text logs that say where phases begin and end: ``… Starting training …`` and ``… Training completed in 20.3 s``."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from joulebook_pipelines.logs import (
    damage,
    dialect,
    meter_columns,
    phase_pairs,
    stamps,
    table,
    training_forms,
    wall_clock,
)
from joulebook_pipelines.logs.contract import Adapter, Head, Log, LogRefusedError, Part

ORIGIN = "text log"

_STAMP = rf"({stamps.ISO}|{stamps.SLASHED})"
_NAME = r"([A-Za-z][\w/]*(?:[ -][\w/]+){0,3}?)"
_TAIL = r"(?:,? ?(?:in|after|took) [\d.:]+ ?\w*)?[\s.…!'\"\])]*$"
_BEGIN = re.compile(
    rf"(?i)(?:^|[\s\]:|'\"-])(?:starting|started|start|beginning|begin) (?:of )?(?:the )?{_NAME}[\s.…!'\"\])]*$"
)
_END = re.compile(
    rf"(?i)(?:^|[\s\]:|'\"-]){_NAME} (?:has |is |was )?(?:completed|complete|finished|done|ended|stopped){_TAIL}"
)
_END_BEFORE = re.compile(
    rf"(?i)(?:^|[\s\]:|'\"-])(?:finished|completed|ending|ended|stopping|stopped) (?:the )?{_NAME}{_TAIL}"
)
_VERB = re.compile(r"(?i)start|begin|complet|finish|done|ended|ending|stop")
_LEVEL = re.compile(r"\b(?:DEBUG|INFO|WARN(?:ING)?|ERROR|NOTICE|CRITICAL)\b:?")
_POWER = re.compile(r"\d\s?[mk]?W(?:atts?)?\b")


_KNOWN = re.compile(
    r"train|\bfit|eval|valid|\btest|infer|warm|data|load|process|checkpoint|saving|epoch|round|forward|backward|phase|stage|benchmark"
    r"|measur|generat|prefill|decod|download|token|compil|idle|baseline|communicat|aggregat|iteration|experiment|workload|monitor"
)
"""What phases of training, inference and measuring are called; services that start and stop in a log are none."""


def _event(line: str) -> tuple[str, str, bool] | None:
    """Return stamp and name of what a line says to begin or to end, and whether it begins."""
    if _VERB.search(line) is None or (stamp := re.search(_STAMP, line)) is None:
        return None
    said = _LEVEL.sub(" ", line[stamp.end() :])
    begin = _BEGIN.search(said)
    found = begin or _END_BEFORE.search(said) or _END.search(said)
    if found is None or not _KNOWN.search(found[1].casefold()):
        return None
    return stamp[1], _plain(found[1]), begin is not None


def _plain(name: str) -> str:
    """Return a name in small letters without the number that counts its turns."""
    return re.sub(r"[\s_-]*\d+$", "", " ".join(name.casefold().split())) or name.casefold()


def _pairs(head: Head) -> list[str]:
    """Return the stamps of the events at the beginning of a file, none where no phase both begins and ends."""
    found = [e for line in head.lines[:2_000] if (e := _event(line))]
    pairs = {n for _, n, begins in found if begins}
    ended = any(not begins and any(n == p or n.endswith(f" {p}") for p in pairs) for _, n, begins in found)
    return [stamp for stamp, _, _ in found] if ended else []


def _sniff(head: Head) -> bool:
    if head.text.lstrip()[:1] in {"{", "<"} or not _pairs(head) or training_forms.find(head) is not None:
        return False
    # Readings with a unit are read by those who know them.
    return not any(map(_POWER.search, head.lines[:300])) and dialect.find(head, meter_columns.knows) is None


def _parse(log: Log) -> Iterator[Part]:
    samples = _pairs(log.head)
    if not samples:
        raise LogRefusedError(f"{log.name}: no stamped lines say where a phase begins and where it ends")
    form = wall_clock.form(log, [s.replace(",", ".") for s in samples])
    clock, pairs = wall_clock.of(log, form), phase_pairs.Pairs()
    for block in log.blocks():
        events = [(n, line, *e) for n, line in enumerate(block.lines, block.first_line) if (e := _event(line))]
        cut = block.cut_line
        frame = pl.DataFrame(
            [e for e in events if e[0] != cut],
            schema={"line": pl.Int64, "raw": pl.String, "stamp": pl.String, "name": pl.String, "begins": pl.Boolean}, orient="row",
        )  # fmt: skip
        naive = frame.select(stamps.parse(pl.col("stamp").str.replace(",", "."), form).alias("at")).to_series()
        for line, raw, name, begins, at in (
            frame.with_columns(clock.to_utc(naive)).select("line", "raw", "name", "begins", "at").iter_rows()
        ):
            pairs.add(line, raw, (name if begins else pairs.begun(name), begins), at)  # events are few
        lost = pl.DataFrame(
            [e[:2] for e in events if e[0] == cut], schema={"line": pl.Int64, "raw": pl.String}, orient="row"
        )
        yield Part(lines=block.count, rejects=table.whole_lines(lost, damage.CUT))
    yield pairs.part(log, ORIGIN)


ADAPTER = Adapter(
    name="phase-text",
    title="text logs that say where phases begin and end (Starting training … Training completed)",
    yields="phases",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
    fallback=True,
)
