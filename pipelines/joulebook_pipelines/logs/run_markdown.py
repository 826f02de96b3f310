"""Tables of runs in Markdown, as people paste them into notes: a line of titles, a line of dashes, a line a run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import polars as pl

from joulebook_pipelines.logs import decimals, run_titles, table
from joulebook_pipelines.logs.contract import Head

_RULE = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$")
_GROUPED = r"^([+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?)$"


def looks(head: Head) -> bool:
    """Tell whether a file holds a Markdown table of runs.

    Examples
    --------
    >>> looks(Head("a.md", "| run | energy (kJ) | time (s) | duration (s) |" + chr(10) + "|---|---|---|---|", "utf-8", True))
    True
    """
    return "|" in head.text and "--" in head.text and next(_headers(head.lines), None) is not None


def _headers(lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield place (from 0) and titles of the tables of runs."""
    for at, line in enumerate(lines[1:]):
        if "-" in line and _RULE.match(line) and "|" in lines[at]:
            titles = _cells(lines[at])
            if run_titles.is_run_table(titles):
                yield at, titles


def read(text: str) -> tuple[list[str], pl.DataFrame, pl.DataFrame]:
    """Return titles, rows of text cells ``line, c0, c1 …``, and rejects of rows with another number of cells.

    Tables below the first that have its titles go on with it.
    """
    lines = text.split("\n")
    headers = list(_headers(lines))
    titles = headers[0][1]
    rows: list[tuple[int, list[str]]] = []
    for at, mine in headers:
        for number in range(at + 2, len(lines)) if mine == titles else ():
            if "|" not in lines[number]:
                break
            rows.append((number + 1, _cells(lines[number])))
    schema = {"line": pl.Int64, **{f"c{i}": pl.String for i in range(len(titles))}}
    good = [(n, *cells) for n, cells in rows if len(cells) == len(titles)]
    odd = [(n, lines[n - 1]) for n, cells in rows if len(cells) != len(titles)]
    frame = pl.DataFrame(good, schema=schema, orient="row")
    lost = pl.DataFrame(odd, schema={"line": pl.Int64, "raw": pl.String}, orient="row")
    return titles, _plain_numbers(frame), table.whole_lines(lost, "wrong-number-of-fields")


def _cells(line: str) -> list[str]:
    inner = re.sub(r"^\s*\|", "", re.sub(r"(?<!\\)\|\s*$", "", line))
    return [re.sub(r"^[*_`\s]+|[*_`\s]+$", "", c.replace(r"\|", "|")) for c in re.split(r"(?<!\\)\|", inner)]


def _plain_numbers(raw: pl.DataFrame) -> pl.DataFrame:
    """Return the cells without commas between thousands, where the table as a whole tells that commas are such."""
    columns = [c for c in raw.columns if c != "line"]
    evidence = sum((decimals.evidence(raw[c]) for c in columns), decimals.Evidence())
    if raw.is_empty() or decimals.decide(evidence, point_is_usual=True) != ".,":
        return raw
    text = pl.col(*columns)
    return raw.with_columns(
        pl.when(text.str.contains(_GROUPED)).then(text.str.replace_all(",", "", literal=True)).otherwise(text)
    )
