"""Damage to a rendered log, with an account of every damaged line, for tests of what a reader makes of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

KEPT, DROPPED, DUPLICATED, GARBLED = "kept", "dropped", "duplicated", "garbled"

GARBAGE = ("#&!", "12..7", "--", "N0TANUMBER", "1e", "\ufffd\ufffd")
"""Texts that are neither a number, nor a stamp, nor a known mark for a missing value."""


@dataclass(frozen=True)
class Damaged:
    """A damaged log and what was done to it.

    Parameters
    ----------
    text
        The damaged log.
    account
        One row a line of the damaged log and one a dropped line: ``original_line`` (from 1), ``line`` (in the damaged
        log, null where dropped), ``kind`` (``kept``, ``dropped``, ``duplicated`` for the second of the two,
        ``garbled``), ``column`` (number of the garbled cell from 0, else null), ``raw`` (what stands in the garbled
        cell, else null).
    """

    text: str
    account: pl.DataFrame


def apply(
    text: str,
    *,
    seed: int,
    drop: int = 0,
    duplicate: int = 0,
    garble: int = 0,
    delimiter: str = ",",
    head_lines: int = 1,
    columns: tuple[int, ...] = (),
) -> Damaged:
    r"""Return the log with lines dropped, lines doubled and cells garbled, no line hit twice.

    Parameters
    ----------
    text
        The log, every line ended by a line feed.
    seed
        Seed of which lines and cells are hit.
    drop, duplicate, garble
        How many lines are left out, are written twice, and have one cell replaced by garbage.
    delimiter
        Between cells.
    head_lines
        Lines at the start that stay as they are.
    columns
        Numbers of the cells that may be garbled, from 0; default every cell.

    Returns
    -------
    Damaged
        Text and account.

    Raises
    ------
    ValueError
        There are fewer lines than shall be hit.

    Examples
    --------
    >>> damaged = apply("t,p\n1,2\n2,3\n3,4\n", seed=1, drop=1)
    >>> damaged.text.count("\n"), damaged.account.filter(pl.col("kind") == "dropped").height
    (3, 1)
    """
    original = text.split("\n")[:-1] if text.endswith("\n") else text.split("\n")
    body = np.arange(head_lines, len(original))
    if drop + duplicate + garble > body.size:
        raise ValueError(f"{drop + duplicate + garble} lines shall be hit, but only {max(body.size, 0)} may be")
    rng = np.random.Generator(np.random.PCG64([seed, 16]))
    hit = rng.permutation(body)
    dropped, duplicated, garbled = np.split(hit[: drop + duplicate + garble], [drop, drop + duplicate])
    column, raw, new = _garbage(original, garbled, delimiter=delimiter, columns=columns, rng=rng)
    lines = pl.DataFrame({"original_line": np.arange(1, len(original) + 1), "text": original})
    kind = np.full(len(original), KEPT, dtype=object)
    kind[dropped], kind[garbled] = DROPPED, GARBLED
    changed = pl.DataFrame(
        {"original_line": garbled + 1, "column": column, "raw": raw, "new": new},
        schema={"original_line": pl.Int64, "column": pl.Int64, "raw": pl.String, "new": pl.String},
    )
    first = lines.with_columns(pl.Series("kind", kind.astype(str))).join(changed, on="original_line", how="left")
    second = first[duplicated].with_columns(kind=pl.lit(DUPLICATED))
    every = pl.concat([first, second]).sort("original_line", maintain_order=True)
    written = pl.col("kind") != DROPPED
    every = every.with_columns(
        pl.when(written).then(written.cum_sum()).cast(pl.Int64).alias("line"), pl.coalesce("new", "text").alias("text")
    )
    out = "".join(line + "\n" for line in every.filter(written)["text"])
    return Damaged(out, every.select("original_line", "line", "kind", "column", "raw"))


def cut(text: str, *, characters: int) -> str:
    r"""Return the log without its last characters, as a killed logger leaves it.

    Raises
    ------
    ValueError
        The number of characters is negative or more than there are.

    Examples
    --------
    >>> cut("1,215.30\n", characters=4)
    '1,215'
    """
    if not 0 <= characters <= len(text):
        raise ValueError(f"characters is {characters}; it must lie between 0 and {len(text)}")
    return text[: len(text) - characters]


def _garbage(
    original: list[str],
    garbled: npt.NDArray[np.int64],
    *,
    delimiter: str,
    columns: tuple[int, ...],
    rng: np.random.Generator,
) -> tuple[list[int], list[str], list[str]]:
    """Return which cell of each line is hit, what stands there now, and the whole line."""
    column, raw, new = [], [], []
    for line in garbled:
        cells = original[int(line)].split(delimiter)
        at = int(rng.choice(columns)) if columns else int(rng.integers(len(cells)))
        text = GARBAGE[int(rng.integers(len(GARBAGE)))]
        # The blank after the delimiter belongs to the format, not to the cell.
        kept = cells[at][: len(cells[at]) - len(cells[at].lstrip())]
        cells[at] = kept + text
        column.append(at)
        raw.append(text)
        new.append(delimiter.join(cells))
    return column, raw, new
