"""Which sign is the decimal one, decided over many cells: ``1,234`` alone says nothing, ``0,998`` beside it does."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

_NUMBER = r"^\s*[+-]?([\d.,]*\d[\d.,]*)([eE][+-]?\d+)?"
_COMMA = r"^(\d{1,3}(\.\d{3})+,\d*|\d{1,3}(\.\d{3}){2,}|\d+,\d{1,2}|\d+,\d{4,}|0\d*,\d+|\d{4,},\d+)$"
_POINT = r"^(\d{1,3}(,\d{3})+\.\d*|\d{1,3}(,\d{3}){2,}|\d+\.\d{1,2}|\d+\.\d{4,}|0\d*\.\d+|\d{4,}\.\d+)$"
_EITHER_COMMA = r"^[1-9]\d{0,2},\d{3}$"
_EITHER_POINT = r"^[1-9]\d{0,2}\.\d{3}$"
_GROUPED = r"^\d{1,3}(,\d{3})+(\.\d*)?$"

_WITH_COMMA = r"^[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+(?:[eE][+-]?\d+)?$"

STRAY_SHARE = 0.05
"""Share of cells that may say the opposite: damaged lines do not turn a file."""


@dataclass(frozen=True)
class Evidence:
    """How many cells say which sign is the decimal one."""

    comma: int = 0
    point: int = 0
    either_comma: int = 0
    either_point: int = 0
    grouped: int = 0

    def __add__(self, other: Evidence) -> Evidence:
        return Evidence(
            self.comma + other.comma, self.point + other.point, self.either_comma + other.either_comma,
            self.either_point + other.either_point, self.grouped + other.grouped,
        )  # fmt: skip


def evidence(column: pl.Series) -> Evidence:
    """Count what the cells of a column say.

    Examples
    --------
    >>> evidence(pl.Series(["1,234", "0,998"]))
    Evidence(comma=1, point=0, either_comma=1, either_point=0, grouped=2)
    """
    parts = column.cast(pl.String).str.extract_groups(_NUMBER)
    number, exponent = parts.struct[0], parts.struct[1]
    scientific = exponent.is_not_null() & number.is_not_null()

    def count(pattern: str) -> int:
        return int((number.str.contains(pattern) & ~scientific).sum() or 0)

    return Evidence(
        count(_COMMA) + int((scientific & number.str.contains(",", literal=True)).sum() or 0),
        count(_POINT) + int((scientific & number.str.contains(".", literal=True)).sum() or 0),
        count(_EITHER_COMMA), count(_EITHER_POINT), count(_GROUPED),
    )  # fmt: skip


def decide(found: Evidence, *, point_is_usual: bool) -> str | None:
    """Return ``"."``, ``","``, or ``".,"`` (a point, with commas between thousands); ``None`` where nothing decides.

    Parameters
    ----------
    point_is_usual
        The file is separated in a way that only programs write, so that ``12.345`` is not twelve thousand.

    Examples
    --------
    >>> decide(Evidence(comma=1, either_comma=2), point_is_usual=False)
    ','
    """
    if found.comma and found.point:
        few, many = sorted((found.comma, found.point))
        if few > STRAY_SHARE * many:
            return None
    if found.comma > found.point:
        return ","
    if found.point:
        return ".," if found.grouped else "."
    if found.either_comma or (found.either_point and not point_is_usual):
        return None
    return "."


def with_points(cells: pl.DataFrame, *, comma_separates: bool) -> pl.DataFrame:
    """Return a table of text (``line`` and cells) whose decimal sign is a comma with points in its numbers.

    Parameters
    ----------
    comma_separates
        A comma stands between the cells, so that it is no decimal sign.
    """
    columns = [c for c in cells.columns if c != "line"]
    found = sum((evidence(cells[c]) for c in columns), Evidence())
    if comma_separates or decide(found, point_is_usual=True) != ",":
        return cells
    text = pl.col(*columns)
    point = text.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    return cells.with_columns(pl.when(text.str.contains(_WITH_COMMA)).then(point).otherwise(text))
