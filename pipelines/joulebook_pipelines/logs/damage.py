"""What damage leaves of the lines of a table: NUL bytes, a last line that was cut, lines that are no rows."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from joulebook_pipelines.logs import table
from joulebook_pipelines.logs.block import Block

CUT = "last-line-cut"
"""Rule of a last line without end."""


def without_nul(block: Block) -> tuple[Block, pl.DataFrame]:
    """Take runs of NUL bytes out of the lines and report each line that held one."""
    if b"\x00" not in block.data:
        return block, table.no_rejects()
    found = block.numbered().filter(pl.col("raw").str.contains("\x00", literal=True))
    told = pl.format("{} NUL bytes", pl.col("raw").str.count_matches("\x00", literal=True))
    rejects = table.whole_lines(found.with_columns(raw=told), "nul-bytes")
    return Block(block.first_line, block.data.replace(b"\x00", b""), block.terminated), rejects


def odd_lines(block: Block, odd: pl.DataFrame, otherwise: pl.Expr | str) -> pl.DataFrame:
    """Return rejects of lines of a block (``line, raw``) that are no rows: the last one was cut, the others break a rule."""
    other = pl.lit(otherwise) if isinstance(otherwise, str) else otherwise
    return table.whole_lines(odd, pl.when(pl.col("line") == block.cut_line).then(pl.lit(CUT)).otherwise(other))


def cut_last(
    block: Block, frame: pl.DataFrame, names: Sequence[str], separator: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Take out a last line without end whose last cell is shorter than any other: a stump, not a value.

    Parameters
    ----------
    block, frame
        The lines, and those that are rows (``line`` and their cells).
    names, separator
        Columns of the cells, and what stands between them in the file.
    """
    last = frame.tail(1)
    if frame.is_empty() or last["line"][0] != block.cut_line:
        return frame, table.no_rejects()
    lengths = frame.head(frame.height - 1)[names[-1]].fill_null("").str.strip_chars().str.len_chars()
    stump = len((last[names[-1]][0] or "").strip())
    if lengths.is_empty() or stump >= int(str(lengths.min() or 0)):
        return frame, table.no_rejects()
    text = pl.concat_str([pl.col(n).fill_null("") for n in names], separator=separator)
    return frame.head(frame.height - 1), table.whole_lines(last.select("line", raw=text), CUT)
