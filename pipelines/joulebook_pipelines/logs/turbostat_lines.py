"""Tables of turbostat with a collector's stamp before each line, and tables of nothing but watts, which say of no line whose it is."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import polars as pl

from joulebook_pipelines.logs import prefixes, stamp_lines
from joulebook_pipelines.logs.contract import Block, Head, Log
from joulebook_pipelines.logs.text import head as head_of

TIME = "Time_Of_Day_Seconds"
WATTS = ("PkgWatt", "CorWatt", "GFXWatt", "RAMWatt", "SysWatt")
JOULES = {"Pkg_J": "PkgWatt", "Cor_J": "CorWatt", "GFX_J": "GFXWatt", "RAM_J": "RAMWatt", "Sys_J": "SysWatt"}
"""With ``--Joules`` each interval gives its energy."""

TITLES = r"Watt|(?:Pkg|Cor|GFX|RAM|Sys)_J"
LINES, LEAST_SHARE = 200, 0.9
"""Lines that are looked at, and the share of them that must begin with a stamp."""

FEWEST_ROUNDS = 2
"""Rounds from which a first line that is the sum of the others is no chance."""

_BESIDE = re.compile(
    r"(?:Pkg|Pk|CPU|SYS|GFX|SAM|Core|Cor|Die|Mod|RAM|Sys|C\d|POLL|LLC|UMHz)\S*|IRQ|NMI|SMI|IPC|Busy%|\S*_?MHz"
)
"""Titles that ``--show`` leaves beside watts where lines are not to be numbered."""

_STAMPS = tuple(re.compile(f"{stamp_lines.LEAD}({form}){stamp_lines.TAIL}") for form in stamp_lines.FORMS.values())
_NO_TOOL = re.compile(r"(?!)")
ROUNDED = 0.01
"""What turbostat prints is rounded to this."""


def titles_of(line: str) -> list[str]:
    """Return the cells of a line as turbostat separates them."""
    return [c.strip() for c in (line.split("\t") if "\t" in line else line.split(",") if "," in line else line.split())]


def only_watts(titles: Sequence[str]) -> bool:
    """Tell whether titles are those of a table of watts (or joules) and what turbostat counts beside them, and no others."""
    return all(map(_BESIDE.fullmatch, titles)) and not set(titles).isdisjoint({*WATTS, *JOULES})


def packages_below(head: Head, titles: Sequence[str]) -> bool:
    r"""Tell whether each line of titles stands over a line of the whole machine and one of each package, which no cell says.

    Without ``--Summary`` turbostat writes the titles before each round, also where ``--show`` leaves no column of the CPU.

    Examples
    --------
    >>> packages_below(Head("t", "PkgWatt\n30.00\n20.00\n10.00\nPkgWatt\n31.00\n20.50\n10.50\n", "utf-8", True), ["PkgWatt"])
    True
    """
    measured = next((i for i, t in enumerate(titles) if t in WATTS or t in JOULES), None)
    if measured is None or not {"CPU", "Package"}.isdisjoint(titles):
        return False
    rounds: list[list[float]] = []
    for line in head.lines:
        cells = titles_of(line)
        if cells == list(titles):
            rounds.append([])
        elif rounds and len(cells) == len(titles) and re.fullmatch(r"[\d.]+", cells[measured]):
            rounds[-1].append(float(cells[measured]))
    whole = [r for r in (rounds if len(rounds) < FEWEST_ROUNDS + 1 else rounds[:-1]) if r]
    sums = sum(len(r) > 1 and abs(r[0] - sum(r[1:])) <= ROUNDED * len(r) for r in whole)
    return len(whole) >= FEWEST_ROUNDS and sums >= LEAST_SHARE * len(whole)


def _behind(line: str) -> str | None:
    """Return what stands behind the stamp that a line begins with; ``None`` where it begins with none."""
    return next((m[2] for form in _STAMPS if (m := form.match(line))), None)


def without_stamps(head: Head) -> Head | None:
    """Return the head of a table without the stamps before its lines; ``None`` where the lines have none."""
    lines = [line for line in head.lines[:LINES] if line.strip()]
    rests = [r for line in lines if (r := _behind(line)) is not None and r.strip()]
    if len(rests) < 2 or len(rests) < LEAST_SHARE * len(lines) or not any(re.search(TITLES, r) for r in rests):
        return None
    plain = ((line, _behind(line)) for line in head.lines)
    return replace(head, text="\n".join(line if rest is None else rest for line, rest in plain))


@contextmanager
def timed(log: Log) -> Generator[Log]:
    """Give the file with the stamps before its lines as turbostat's own column of the time, as a copy that is deleted afterwards.

    Raises
    ------
    LogRefusedError
        The stamps carry no zone or no year and study.toml names none.
    """
    found = stamp_lines.find(log, _NO_TOOL)
    if found is None:
        yield log
        return

    def rows(block: Block) -> list[bytes]:
        stamp, rest, _ = found.split(pl.col("raw"))
        told = pl.DataFrame({"raw": block.lines}).with_columns(stamp=stamp, rest=rest.str.strip_chars())
        us = found.utc(told, pl.col("stamp")).dt.timestamp("us").alias("us")
        seconds = pl.format("{}.{}", us // 1_000_000, (us % 1_000_000).cast(pl.String).str.zfill(6))
        first = (
            pl.when(pl.col("rest").str.contains(TITLES))
            .then(pl.lit(TIME))
            .otherwise(pl.coalesce("seconds", pl.lit("?")))
        )
        sign = pl.when(pl.col("rest").str.contains("\t", literal=True)).then(pl.lit("\t")).otherwise(pl.lit(" "))
        told = told.with_columns(seconds=seconds)
        line = pl.when(pl.col("rest") == "").then(pl.lit("")).otherwise(pl.concat_str(first, sign, "rest"))
        return [text.encode() for text in told.select(line.alias("line"))["line"].to_list()]

    with prefixes.copied(log, rows, log.head) as copy:
        yield replace(copy, head=head_of(copy.path, log.name))


class Below:
    """Which package a line is about, from its place below the titles: the first line is of the whole machine."""

    COLUMN = "place"
    """Name of the column that says it."""

    def __init__(self) -> None:
        self._passed = 0

    def numbered(self, lines: pl.DataFrame, titles: pl.Expr) -> pl.DataFrame:
        """Return lines with their package, ``-`` for the whole machine; places go on over the ends of blocks."""
        rounds = lines.with_columns(titles=titles).with_columns(round=pl.col("titles").cum_sum())
        place = pl.int_range(pl.len()).over("round") + pl.when(pl.col("round") == 0).then(self._passed).otherwise(-1)
        rounds = rounds.with_columns(at=place)
        self._passed = int(rounds["at"][-1]) + 1 if rounds.height else self._passed
        package = pl.when(pl.col("at") == 0).then(pl.lit("-")).otherwise((pl.col("at") - 1).cast(pl.String))
        return rounds.with_columns(package.alias(self.COLUMN)).drop("titles", "round", "at")
