"""Tables of ``rocm-smi --csv`` and ``amd-smi --csv``: a row per card and round, the header repeated with each round."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from joulebook_pipelines.logs import amd_names, cells, damage, table
from joulebook_pipelines.logs.amd_rounds import Said, Times
from joulebook_pipelines.logs.contract import Block, Log


def _cells(line: str) -> list[str]:
    return [c.strip().strip('"').lower() for c in line.split(",")]


def header_at(lines: Sequence[str]) -> int | None:
    """Return the place of the first header line, ``None`` where the lines are of no such table."""
    for at, line in enumerate(lines[:60]):
        cells = _cells(line)
        if (
            ({"device", "gpu"} & set(cells))
            and amd_names.chosen(cells)
            and cells[0] in {"device", "gpu", *amd_names.TIMES}
        ):
            return at
    return None


@dataclass
class _Table:
    """Columns of a table and the state between its blocks."""

    titles: list[str]
    times: Times
    mark: str | None = None

    @property
    def names(self) -> list[str]:
        return [t.lower() for t in self.titles]

    @property
    def columns(self) -> list[str]:
        return [f"c{i}" for i in range(len(self.titles))]

    def column(self, names: frozenset[str] | set[str]) -> str | None:
        """Return the first column of one of these names."""
        return next((c for c, n in zip(self.columns, self.names, strict=True) if n in names), None)

    def rows(self, block: Block) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
        """Return the rows of a block with the collector's stamp over them, and the rejects."""
        block, nul = damage.without_nul(block)
        raw = table.split(block, self.columns, ",", quoted=b'"' in block.data)
        plain = pl.element().str.strip_chars(' "').str.to_lowercase()
        again = pl.concat_list(self.columns).list.eval(plain).list.join(",") == ",".join(self.names)
        frame, others = raw.frame.filter(~again), raw.odd
        if self.times.collector is not None:
            frame, others = self._marked(frame, others)
        row = pl.col("raw").str.contains(r"^\s*(?:card\d|\d)")
        rule = pl.when(row).then(pl.lit("wrong-number-of-fields")).otherwise(pl.lit("tool-message"))
        odd = [nul, table.whole_lines(others, rule)]
        if frame.height and frame["line"][-1] == block.cut_line:
            odd.append(table.whole_lines(self.as_lines(frame.tail(1)), damage.CUT))
            frame = frame.head(frame.height - 1)
        return frame, odd

    def _marked(self, frame: pl.DataFrame, others: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        assert self.times.collector is not None
        stamp, rest, _ = self.times.collector.split(pl.col("raw"))
        alone = (stamp.is_not_null() & (rest.str.strip_chars() == "")).fill_null(value=False)
        marks = others.with_columns(mark=stamp).filter(alone).select("line", "mark")
        frame = frame.join_asof(marks.sort("line"), on="line", strategy="backward")
        frame = frame.with_columns(pl.col("mark").fill_null(pl.lit(self.mark, pl.String)))
        self.mark = marks["mark"][-1] if marks.height else self.mark
        return frame, others.filter(~alone)

    def as_lines(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return ``line, raw`` of rows."""
        return rows.select("line", raw=pl.concat_str(self.columns, separator=",", ignore_nulls=True))


def read(log: Log) -> Said:
    """Return what a table says.

    Raises
    ------
    LogRefusedError
        Its rounds carry no time, or one that needs a zone.
    """
    at = header_at(log.head.lines) or 0
    titles = [c.strip().strip('"') for c in log.head.lines[at].split(",")]
    names = [t.lower() for t in titles]
    time_at = next((i for i, n in enumerate(names) if n in amd_names.TIMES), None)
    rows = [c for line in log.head.lines[at + 1 : at + 200] if len(c := line.split(",")) == len(names)]
    samples = [] if time_at is None else [r[time_at].strip(' "') for r in rows]
    found = _Table(titles, Times(log, [s for s in samples if re.match(r"\d", s)], at + 2))
    frames, odd, count = [], [table.no_rejects()], 0
    for block in log.blocks():
        frame, more = found.rows(block)
        frames.append(frame)
        odd += more
        count += block.count
    whole, more = _timed(found, pl.concat(frames, how="diagonal"))
    return Said(_entries(found, whole), count, _naming(found, whole), pl.concat([*odd, *more]))


def _timed(found: _Table, whole: pl.DataFrame) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Return the rows with time and device, and the rejects of those without."""
    place, time = found.column({"device", "gpu"}), found.column(amd_names.TIMES)
    stamp = whole[time or "mark"].str.strip_chars(' "').fill_null("")
    devices = {t: amd_names.card(t) for t in whole[place or "c0"].str.strip_chars(' "').unique()}
    device = pl.col(place or "c0").str.strip_chars(' "').replace_strict(devices, default=None, return_dtype=pl.String)
    whole = whole.with_columns(found.times.utc(stamp).alias("ts_utc"), device=device)
    odd = [table.whole_lines(found.as_lines(whole.filter(pl.col("device").is_null())), "no-such-device")]
    whole = whole.filter(pl.col("device").is_not_null())
    if time:
        title = found.titles[found.columns.index(time)]
        odd.append(
            table.cell_rejects(
                whole.filter(pl.col("ts_utc").is_null()), table.Field(time, title, ""), pl.lit("no-such-time")
            )
        )
    return whole, odd


def _entries(found: _Table, whole: pl.DataFrame) -> pl.DataFrame:
    longs = []
    for quantity, name in amd_names.chosen(found.names).items():
        at = found.names.index(name)
        text = _told(at)
        if quantity == "power_w":
            # Cards of two generations in one machine fill different columns: each is read where it says something.
            filled = [_told(found.names.index(n)) for n in amd_names.others(found.names, name)]
            text = pl.coalesce(
                *(pl.when(~t.str.to_lowercase().is_in(cells.MISSING)).then(t) for t in (text, *filled)), text
            )
        # An empty cell of the power is a reject; of another column it says nothing.
        wanted = whole if quantity == "power_w" else whole.filter(text != "")
        line, unit = pl.col("line").cast(pl.Int64), amd_names.QUANTITIES[name][1]
        longs.append(wanted.select(
            row=line, line=line, device="device", ts_utc="ts_utc", quantity=pl.lit(quantity), header=pl.lit(found.titles[at]),
            unit=pl.lit(unit), raw=text,
        ))  # fmt: skip
    return pl.concat(longs).sort("row", maintain_order=True)


def _told(at: int) -> pl.Expr:
    return pl.col(f"c{at}").fill_null("").str.strip_chars(' "()')


def _naming(found: _Table, whole: pl.DataFrame) -> dict[str, dict[str, str]]:
    naming: dict[str, dict[str, str]] = {}
    for name in amd_names.NAMING & set(found.names):
        text = pl.col(f"c{found.names.index(name)}").str.strip_chars(' "')
        told = whole.select("device", v=text).unique("device", keep="first", maintain_order=True)
        for device, value in told.iter_rows():  # one row a card
            naming.setdefault(device, {})[name] = value
    return naming
