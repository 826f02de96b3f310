"""Rows of CodeCarbon's emissions.csv as text cells under their column names, whatever the version that wrote them.

A row whose number of cells differs from its header is never read by position: it is aligned by cells that can belong to
one column only (stamp, identifiers, versions, country code), or set aside whole.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import table
from joulebook_pipelines.logs.contract import Block, Log, LogRefusedError

NEEDED = frozenset({"timestamp", "duration", "emissions", "energy_consumed"})
"""Columns that every version writes."""

COLUMNS = (
    "task_name", "timestamp", "project_name", "run_id", "experiment_id", "duration", "emissions", "emissions_rate",
    "cpu_power", "gpu_power", "ram_power", "cpu_energy", "gpu_energy", "ram_energy", "energy_consumed",
    "water_consumed", "country_name", "country_iso_code", "region", "cloud_provider", "cloud_region", "os",
    "python_version", "codecarbon_version", "cpu_count", "cpu_model", "gpu_count", "gpu_model", "longitude", "latitude",
    "ram_total_size", "tracking_mode", "cpu_utilization_percent", "gpu_utilization_percent", "ram_utilization_percent", "ram_used_gb",
    "on_cloud", "pue", "wue",
)  # fmt: skip
"""Every column that a version from 0.0.9 to 3.3.2 writes."""

_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|nan|NaN|None"
_WORDS = r"(?![+-]?[\d.]+([eE][+-]?\d+)?$)(?!\d{4}-\d\d-\d\dT).*[A-Za-z].*"
_SHAPES = {
    "timestamp": r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d.*",
    "run_id": r"[0-9a-fA-F]{8}-[0-9a-fA-F-]{20,}",
    "experiment_id": r"\S+",
    "country_iso_code": r"[A-Z]{3}",
    "python_version": r"\d+\.\d+\.\d+\S*",
    "codecarbon_version": r"\d+\.\d+\.\d+\S*",
    "tracking_mode": r"machine|process",
    "on_cloud": r"[YN]",
    "os": r"(Linux|Windows|macOS|Darwin)\S*",
    "gpu_model": r"(\d+ x )?\S.*",
    **dict.fromkeys(("project_name", "task_name"), r".+"),
    **dict.fromkeys(("country_name", "region", "cloud_provider", "cloud_region", "cpu_model"), _WORDS),
}
"""What a filled cell of a column looks like; every other column holds a number."""

_ALWAYS = frozenset({
    "timestamp", "run_id", "duration", "emissions", "energy_consumed", "cpu_power", "gpu_power", "ram_power",
    "cpu_energy", "gpu_energy", "ram_energy", "codecarbon_version", "os", "python_version", "on_cloud", "tracking_mode",
    "country_iso_code",
})  # fmt: skip
"""Columns that are never left out when a version drops the empty ones."""

_KEY = frozenset({
    "timestamp", "run_id", "duration", "emissions", "cpu_power", "gpu_power", "ram_power", "cpu_energy", "gpu_energy",
    "ram_energy", "energy_consumed", "codecarbon_version", "cpu_utilization_percent", "gpu_utilization_percent",
    "ram_used_gb", "pue",
})  # fmt: skip
"""Columns whose place must be certain before an aligned row is used."""

_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


@dataclass(frozen=True)
class Rows:
    """The rows of a file.

    Parameters
    ----------
    frame
        ``line, raw`` and all of :data:`COLUMNS` as text, null where the file has no such column.
    rejects
        Lines that could not be aligned with the header.
    lines
        Physical lines of the file.
    present
        Columns that the file has.
    aligned, split
        Lines that were shifted and put right; lines that held two rows.
    """

    frame: pl.DataFrame
    rejects: pl.DataFrame
    lines: int
    present: frozenset[str]
    aligned: tuple[int, ...]
    split: tuple[int, ...]

    def findings(self, name: str) -> list[Finding]:
        """Return what the reader of the file should know of lines that were put right."""
        told = (
            ("rows-aligned", self.aligned,
             "lack cells of empty columns; they were put under their columns by cells that fit only one"),
            ("rows-split", self.split, "hold two rows, because a line end was missing; both were read"),
        )  # fmt: skip
        return [
            Finding(
                code, Severity.WARNING, name, f"{len(lines)} lines {what}, first line {lines[0]}.", {"lines": list(lines[:50])},
            ) for code, lines, what in told if lines
        ]  # fmt: skip


@dataclass
class _Collector:
    cells: list[list[str | None]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    raws: list[str] = field(default_factory=list)
    odd: list[tuple[int, str, str]] = field(default_factory=list)
    aligned: list[int] = field(default_factory=list)
    split: list[int] = field(default_factory=list)

    def add(self, number: int, raw: str, row: dict[str, str]) -> None:
        """Take one row."""
        self.numbers.append(number)
        self.raws.append(raw)
        self.cells.append([row.get(c) for c in COLUMNS])


def separator_of(line: str) -> str | None:
    """Return the sign between the columns of a header of this format, ``None`` for any other line."""
    for sign in (",", ";", "\t"):
        if set(_header(line, sign)) >= NEEDED:
            return sign
    return None


def _header(line: str, sign: str) -> list[str]:
    names = [c.strip().strip('"').strip() for c in line.split(sign)]
    # A damaged header may name a column twice, or like one of ours; the first keeps its meaning.
    return [f"{n} (column {i})" if n in {*names[:i], "line", "raw"} else n for i, n in enumerate(names)]


def read(log: Log) -> Rows:
    """Return the rows of a file.

    Raises
    ------
    LogRefusedError
        The file is larger than a file of one row per run can be.
    """
    blocks = list(log.blocks())
    if sum(len(b.data) for b in blocks) > 1 << 28:
        raise LogRefusedError(f"{log.name}: larger than 256 MiB; split it into parts by date")
    lines = [line for b in blocks for line in b.lines]
    heads = [
        i for i, line in enumerate(lines) if set(re.split(r"[,;\t]", line.replace('"', "").replace(" ", ""))) >= NEEDED
    ]
    if not heads:
        raise LogRefusedError(f"{log.name}: has no header of CodeCarbon ({', '.join(sorted(NEEDED))} and more)")
    sign = separator_of(lines[heads[0]]) or ","
    found, frames, rejects = _Collector(), [], []
    present: set[str] = set()
    if any(line.strip() for line in lines[: heads[0]]):
        before = [(i, line) for i, line in enumerate(lines[: heads[0]], 1) if line.strip()]
        rejects.append(table.whole_lines(_odd_frame(before), "before-header"))
    for at, begin in enumerate(heads):
        end = heads[at + 1] if at + 1 < len(heads) else len(lines)
        names = _header(lines[begin], sign)
        present |= set(names) & set(COLUMNS)
        text = "\n".join(lines[begin + 1 : end])
        raw = table.split(Block(begin + 2, (text + "\n").encode()), names, sign, quoted=True)
        whole = pl.DataFrame({"line": range(begin + 2, end + 1), "raw": lines[begin + 1 : end]},
                             schema={"line": pl.Int64, "raw": pl.String})  # fmt: skip
        regular = raw.frame.join(whole, on="line", how="left", maintain_order="left")
        frames.append(regular.select("line", "raw", *(_column(regular, c) for c in COLUMNS)))
        for number, line in raw.odd.iter_rows():  # damaged lines only
            _repair(found, number, line, names, sign)
    frames.append(pl.DataFrame(found.cells, schema=dict.fromkeys(COLUMNS, pl.String), orient="row").with_columns(
        line=pl.Series(found.numbers, dtype=pl.Int64), raw=pl.Series(found.raws, dtype=pl.String)
    ).select("line", "raw", *COLUMNS))  # fmt: skip
    odd = pl.DataFrame(found.odd, schema={"line": pl.Int64, "raw": pl.String, "rule": pl.String}, orient="row")
    rejects.append(table.whole_lines(odd, pl.col("rule")))
    frame = _with_points(pl.concat(frames).sort("line", maintain_order=True), sign)
    return Rows(frame, pl.concat(rejects), len(lines), frozenset(present), tuple(found.aligned), tuple(found.split))


def _with_points(frame: pl.DataFrame, sign: str) -> pl.DataFrame:
    """Return the rows with points as decimal signs, where a spreadsheet saved them with commas."""
    numbers = [c for c in COLUMNS if c not in _SHAPES]
    if sign == "," or not frame["duration"].fill_null("").str.contains(r"^\d*,\d+$").any():
        return frame
    return frame.with_columns(
        pl.col(c).str.replace(r"^([+-]?\d*),(\d+(?:[eE][+-]?\d+)?)$", "${1}.${2}") for c in numbers
    )


def _column(frame: pl.DataFrame, name: str) -> pl.Expr:
    return pl.col(name) if name in frame.columns else pl.lit(None, pl.String).alias(name)


def _odd_frame(lines: list[tuple[int, str]]) -> pl.DataFrame:
    return pl.DataFrame(lines, schema={"line": pl.Int64, "raw": pl.String}, orient="row")


def _repair(found: _Collector, number: int, line: str, names: list[str], sign: str) -> None:
    """Split a line that holds two rows, or align a shifted one; else set it aside."""
    cells = _cells(line, sign)
    if len(cells) > len(names):
        second = [m.start() for m in _STAMP.finditer(line)][1:2] if names[0] == "timestamp" else []
        halves = [_cells(half, sign) for half in ((line[: second[0]], line[second[0] :]) if second else ())]
        if halves and all(len(h) == len(names) and _fits(h, names) for h in halves):
            for half in halves:
                found.add(number, line, dict(zip(names, half, strict=True)))
            found.split.append(number)
            return
    row = align(cells, names) if len(names) // 2 < len(cells) < len(names) else None
    if row is None:
        rule = "fused-rows" if len(cells) >= 2 * len(names) - 1 else "wrong-number-of-fields"
        found.odd.append((number, line[: table.LONGEST_RAW], rule))
    else:
        found.add(number, line, row)
        found.aligned.append(number)


def _cells(line: str, sign: str) -> list[str]:
    if line.count('"') % 2:
        return line.split(sign)
    try:
        return next(csv.reader([line], delimiter=sign, skipinitialspace=True), [])
    except csv.Error:  # a cell beyond all measure is damage
        return []


def _fits(cells: Sequence[str], names: Sequence[str]) -> bool:
    return all(_may_be(cell, name) for cell, name in zip(cells, names, strict=True))


def _may_be(cell: str, name: str) -> bool:
    text = cell.strip()
    return text == "" or re.fullmatch(_SHAPES.get(name, _NUMBER), text) is not None


def align(cells: Sequence[str], names: Sequence[str]) -> dict[str, str] | None:
    """Return the cells under their columns where left-out columns shifted them, ``None`` where a place is uncertain.

    Parameters
    ----------
    cells
        Fewer cells than columns.
    names
        Columns of the header, in order.

    Examples
    --------
    >>> align(["2026-03-02T10:00:00", "60", "0.2", "FRA", "N"],
    ...       ["timestamp", "duration", "energy_consumed", "country_iso_code", "region", "on_cloud"])["on_cloud"]
    'N'
    """
    rows, columns = len(cells), len(names)
    fits = [[_may_be(cells[i], names[j]) for i in range(rows)] for j in range(columns)]
    skips = [n not in _ALWAYS for n in names]
    # ahead[j][i]: the first j columns can hold the first i cells; behind[j][i]: the columns from j the cells from i.
    ahead = [[False] * (rows + 1) for _ in range(columns + 1)]
    behind = [[False] * (rows + 1) for _ in range(columns + 1)]
    ahead[0][0] = behind[columns][rows] = True
    for j in range(columns):
        for i in range(rows + 1):
            ahead[j + 1][i] = (skips[j] and ahead[j][i]) or (i > 0 and fits[j][i - 1] and ahead[j][i - 1])
    for j in reversed(range(columns)):
        for i in range(rows + 1):
            behind[j][i] = (skips[j] and behind[j + 1][i]) or (i < rows and fits[j][i] and behind[j + 1][i + 1])
    row = {}
    for j, name in enumerate(names):
        places = [i for i in range(rows) if fits[j][i] and ahead[j][i] and behind[j + 1][i + 1]]
        left_out = skips[j] and any(ahead[j][i] and behind[j + 1][i] for i in range(rows + 1))
        if len(places) + left_out != 1:
            if name in _KEY:
                return None
            continue
        if places:
            row[name] = cells[places[0]]
    return row
