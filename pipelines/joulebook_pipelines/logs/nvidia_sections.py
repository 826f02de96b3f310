"""Where another header comes in force inside an ``nvidia-smi --query-gpu`` table: another call was appended to the file."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import nvidia_query
from joulebook_pipelines.logs.contract import Block, LogRefusedError
from joulebook_pipelines.logs.nvidia_query import Layout

_TITLE = re.compile(r"\"?timestamp\"?\s*,", re.IGNORECASE)
"""How a header of the tool begins, on a line of its own or behind a row that was cut."""

SPOILT_WORDS = 1
"""A header that differs in no more words than this from the one in force, and in no known one, is the same one damaged."""


def behind(blocks: Iterator[Block], skip: int) -> Iterator[Block]:
    """Yield the blocks without the first ``skip`` lines."""
    for block in blocks:
        if skip and block.first_line == 1:
            at = 0
            for _ in range(skip):
                at = block.data.find(b"\n", at) + 1
            if at < len(block.data):
                yield Block(skip + 1, block.data[at:], block.terminated)
        else:
            yield block


def pieces(block: Block, layout: Layout, name: str) -> Iterator[tuple[Layout, Block]]:
    """Yield the lines of a block under each header, beginning with those under the header in force.

    Parameters
    ----------
    block
        Lines of the table.
    layout
        The header in force.
    name
        The file.
    """
    # One letter is looked for ten times as fast as a word, and rows of numbers seldom hold it.
    if b"m" not in block.data or b"imestamp" not in block.data:
        yield layout, block
        return
    lines = block.lines
    begins, layouts = [0], [layout]
    for at in pl.Series(lines, dtype=pl.String).str.contains(_TITLE.pattern).arg_true():  # headers only
        made = _another(lines[at], layouts[-1], lines[at + 1] if at + 1 < len(lines) else "", name)
        if made is not None:
            begins.append(at)
            layouts.append(made)
    for i, under in enumerate(layouts):
        end = begins[i + 1] if i + 1 < len(begins) else len(lines)
        if end > begins[i]:
            data = "".join(f"{line}\n" for line in lines[begins[i] : end]).encode()
            yield under, Block(block.first_line + begins[i], data, block.terminated or end < len(lines))


def _another(line: str, current: Layout, row: str, name: str) -> Layout | None:
    """Return the columns of a header line that replaces the one in force; ``None`` where it is that one, whole or damaged."""
    found = _TITLE.search(line)
    if found is None or not nvidia_query.is_header(line[found.start() :]):
        return None
    try:
        made = nvidia_query.from_header(line[found.start() :], name)
    except LogRefusedError:
        return None
    if made.headers == current.headers:
        return None
    if len(made.headers) == len(current.headers):
        pairs = zip(made.headers, current.headers, strict=True)
        differing = [a.split(" [")[0].lower() for a, b in pairs if a != b]
        return made if len(differing) > SPOILT_WORDS or all(d in nvidia_query.QUANTITIES for d in differing) else None
    return made if not row or row.count(",") + 1 == len(made.headers) else None


def changed(name: str, line: int, before: Layout, now: Layout) -> Finding:
    """Say that the table has other columns from a line on."""
    return Finding(
        "columns-changed", Severity.NOTE, name,
        f"From line {line} on the table has other columns ({', '.join(now.headers)}): the logger was started again with another "
        "query. Each part is read under its own header.",
        {"line": line, "before": list(before.headers), "after": list(now.headers)},
    )  # fmt: skip
