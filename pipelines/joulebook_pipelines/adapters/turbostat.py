"""turbostat tables: watts of packages, cores, graphics and memory, a summary line and lines a CPU."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import (
    damage,
    one_interval,
    rapl,
    sections,
    stamp_lines,
    stamps,
    table,
    turbostat_lines,
    untimed,
    wide,
)
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.table import Field

_MEASURED = (*turbostat_lines.WATTS, *turbostat_lines.JOULES)
_JOULES, _TIME = turbostat_lines.JOULES, turbostat_lines.TIME
SAME_ROUND = 0.01
"""Steps below this share of the longest are between the lines of one round, where no line of the whole machine begins it."""

_TOOL = re.compile(r"\t|Watt|^\s*[-\d.]+\s+[-\d.]+\s+[-\d.]+|CPUID|^(?:cpu|turbostat)")
"""Lines of turbostat itself: they hold no collector's stamp."""

_EPOCH = stamps.StampForm("epoch", aware=True, unit_us=1e6)


def _headers(head: Head) -> list[str] | None:
    lines = [turbostat_lines.titles_of(line) for line in head.lines[:2000] if re.search(turbostat_lines.TITLES, line)]
    return next(
        (
            c
            for c in lines
            if (any(w in c for w in _MEASURED) and {"CPU", "Avg_MHz", "Busy%", "Package", _TIME} & set(c))
            or turbostat_lines.only_watts(c)
        ),
        None,
    )


def _sniff(head: Head) -> bool:
    plain = turbostat_lines.without_stamps(head)
    return _headers(head if plain is None else plain) is not None


def _parse(log: Log) -> Iterator[Part]:
    plain = turbostat_lines.without_stamps(log.head)
    if plain is None or _TIME in (_headers(plain) or ()):
        yield from _read(log)
        return
    with turbostat_lines.timed(log) as dated:
        yield from _read(dated)


def _read(log: Log) -> Iterator[Part]:
    headers = _headers(log.head)
    if headers is None:
        raise LogRefusedError(f"{log.name}: no header of turbostat with a column of watts")
    bare = _TIME not in headers and log.options.distance_s is None
    collector = stamp_lines.find(log, _TOOL) if bare else None
    if bare and collector is None:
        raise LogRefusedError(
            f"{log.name}: has no column of the time; without times there is no energy. Log again with --enable {_TIME}; or add "
            "period_s = (turbostat's --interval, 5 where none was given) to this [[source]]"
        )
    steps = None if _TIME in headers or collector is not None else untimed.Steps(log)
    below = turbostat_lines.packages_below(log.head, headers)
    reader = _Reader(headers, steps, None if collector is None else _Stamped(collector), below=below)
    for block in log.blocks():
        yield reader.read(block)
    if reader.steps is not None:
        yield Part(findings=reader.steps.findings)
    if collector is not None:
        yield Part(findings=(_early(log.name),))


def _early(name: str) -> Finding:
    return Finding(
        "stamped-before", Severity.NOTE, name,
        "The stamps stand before the rounds, and turbostat measures the time behind them: the powers lie early by up to its interval.",
    )  # fmt: skip


def _field(column: str, header: str, *, required: bool = False) -> Field:
    quantity, unit = ("energy_j", "J") if header in _JOULES else ("power_w", "W")
    return Field(column, header, quantity, unit, required=required)


class _Stamped:
    """The times that a collector wrote before each round."""

    def __init__(self, collector: stamp_lines.StampLines) -> None:
        self._collector, self._carried = collector, sections.Carried("ts_utc", "mark")
        self._begun: set[int] = set()

    def split(self, lines: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the other lines with ``ts_utc`` and ``mark`` of the stamp above, and rejects of broken stamps."""
        stamp, rest, meant = self._collector.split(pl.col("raw"))
        own = ~pl.col("raw").str.contains(_TOOL.pattern)
        told = lines.with_columns(stamp=pl.when(own & (rest.str.strip_chars() == "")).then(stamp), meant=own & meant)
        told = told.with_columns(self._collector.utc(told, pl.col("stamp")))
        broken = told.filter(pl.col("meant") & pl.col("ts_utc").is_null())
        # Below a stamp that cannot be read stands no other one's time.
        told = told.with_columns(mark=pl.when("meant").then("line"))
        told = self._carried.down(told)
        bad = told.select(pl.col("mark").is_in(broken["line"].implode()).alias("bad")).to_series()
        told = told.with_columns(pl.when(~bad.fill_null(value=False)).then("ts_utc").alias("ts_utc"))
        return told.filter(~pl.col("meant")).drop("stamp", "meant"), table.whole_lines(
            broken.select("line", "raw"), "no-such-time"
        )

    def one_round(self, raw: pl.DataFrame, whole: pl.Expr) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the rows of the first round below each stamp, and the others: their times are not known."""
        begun = (pl.col("mark").is_in(list(self._begun)) & whole.fill_null(value=False)).cast(pl.Int64)
        turn = (
            whole.fill_null(value=False).cast(pl.Int64).cum_sum().over("mark") + begun.max().over("mark")
        ).fill_null(9)
        timed = pl.col("ts_utc").is_not_null() & (turn <= 1)
        self._begun |= set(raw["mark"].drop_nulls().unique().to_list())
        return raw.filter(timed), raw.filter(~timed)


class _Reader:
    """State of one pass: the last stamp, which gives each reading its span."""

    def __init__(
        self, headers: list[str], steps: untimed.Steps | None = None, stamped: _Stamped | None = None, *, below: bool
    ) -> None:
        self._headers, self.steps, self._stamped, self._rounds = headers, steps, stamped, 0
        self._names = [f"c{i}" for i in range(len(headers))]
        self._below = turbostat_lines.Below() if below else None
        self._channels: dict[str, Channel] = {}
        self._last_us: int | None = None

    def _column(self, header: str) -> str | None:
        if self._below is not None and header in {"CPU", "Package"}:
            return turbostat_lines.Below.COLUMN
        return self._names[self._headers.index(header)] if header in self._headers else None

    def read(self, block: Block) -> Part:
        raw, rejects = self._rows(block)
        raw, lost = self._timed(raw)
        rejects.append(lost)
        readings, fresh = [], []
        for group, mine in self._groups(raw):
            values, bad = table.convert(mine, group.fields)
            energy = values["energy_j"] if "energy_j" in values.columns else None
            values = values.with_columns(mine["ts_utc"], one_interval.spans(mine["span_s"], energy))
            values, judged = table.judge(values, mine, group.fields, group.judged, never_zero=False)
            readings.append(table.kept(values))
            rejects += [bad, judged]
            if group.channel.device not in self._channels and mine.height:
                self._channels[group.channel.device] = group.channel
                fresh.append(group.channel)
        frame = pl.concat(readings, how="diagonal") if readings else None
        return Part(lines=block.count, readings=frame, rejects=pl.concat(rejects), channels=tuple(fresh))

    def _rows(self, block: Block) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
        """Return the rows that have every cell, as texts, and the rejects of the other lines."""
        lines, broken = sections.lines_of(block), table.no_rejects()
        if self._stamped is not None:
            lines, broken = self._stamped.split(lines)
        tabs, commas = (pl.col("raw").str.contains(c, literal=True) for c in "\t,")
        parts = (
            pl.when(tabs)
            .then(pl.col("raw").str.split("\t"))
            .when(commas)
            .then(pl.col("raw").str.split(","))
            .otherwise(pl.col("raw").str.strip_chars().str.extract_all(r"\S+"))
        )
        cells_ = lines.with_columns(cells=parts)
        header = pl.col("cells").list.contains(self._headers[0]) & pl.col("raw").str.contains(turbostat_lines.TITLES)
        if self._below is not None:
            cells_ = self._below.numbered(cells_, header)
        cells_ = cells_.filter(~header)
        regular = pl.col("cells").list.len() == len(self._names)
        # Lines before the table (the description of the CPU) are no rows; among the rows they are damage.
        number = pl.col("raw").str.contains(r"^\s*[-\d.]+[\t ,]+[-\d.]+[\t ,]")
        among = regular.shift(1).fill_null(value=False) & regular.shift(-1).fill_null(value=False)
        said = pl.col("raw").str.strip_chars() != ""
        odd = cells_.with_columns(odd=~regular & said & (number | among)).filter("odd").select("line", "raw")
        raw = cells_.filter(regular).select(
            "line", *(pl.col("cells").list.get(i).str.strip_chars().alias(n) for i, n in enumerate(self._names)),
            *(("ts_utc", "mark") if self._stamped is not None else ()),
            *((turbostat_lines.Below.COLUMN,) if self._below is not None else ()),
        )  # fmt: skip
        raw, cut = damage.cut_last(block, raw, self._names, "\t")
        return raw, [damage.odd_lines(block, odd, "wrong-number-of-fields"), broken, cut]

    def _timed(self, raw: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Each reading is the mean since the stamp before it; the first covers the usual step."""
        if self.steps is not None:
            return self._stepped(raw, self.steps), table.no_rejects()
        if self._stamped is not None:
            raw, others = self._stamped.one_round(raw, self._whole())
            text = pl.concat_str([pl.col(n).fill_null("") for n in self._names], separator="\t")
            late = table.whole_lines(others.select("line", raw=text), "round-without-time")
            return raw.with_columns(span_s=pl.lit(None, pl.Float64)), late
        time = str(self._column(_TIME))
        at = raw.select(stamps.parse(pl.col(time), _EPOCH).dt.replace_time_zone("UTC").alias("ts_utc")).to_series()
        raw = raw.with_columns(at)
        lost = raw.filter(pl.col("ts_utc").is_null()).with_columns(device=pl.lit(None, pl.String))
        watts = [_field(c, h) for h in _MEASURED if (c := self._column(h))]
        rejects = table.without_time(lost, watts, Field(time, _TIME, "ts_utc"))
        raw = raw.filter(pl.col("ts_utc").is_not_null())
        us = raw["ts_utc"].dt.timestamp("us").alias("us")
        begins = raw.with_columns(us).filter(self._whole())["us"]
        raw = raw.with_columns(us).join(self._steps(us, begins), on="us", how="left", maintain_order="left")
        return raw.with_columns(span_s=pl.col("step") / 1e6).drop("us", "step"), rejects

    def _whole(self) -> pl.Expr:
        """Tell the lines of the whole machine, with which rounds begin."""
        cpu = self._column("CPU")
        return pl.col("line") > 0 if cpu is None else pl.col(cpu).is_in(["-", ""])

    def _stepped(self, raw: pl.DataFrame, steps: untimed.Steps) -> pl.DataFrame:
        """Lay the rounds one after the other: each begins with the line of the whole machine."""
        if raw.is_empty():
            return raw.with_columns(ts_utc=pl.lit(None, pl.Datetime("us", "UTC")), span_s=pl.lit(None, pl.Float64))
        whole = self._whole()
        rounds = raw.select(pl.col("line").clip(1, 1) * whole.cast(pl.Int64)).to_series().cum_sum() + self._rounds
        if len(rounds):
            self._rounds = int(rounds[-1])
        return raw.with_columns(steps.at(rounds.clip(lower_bound=1)), span_s=pl.lit(steps.step_s))

    def _steps(self, us: pl.Series, begins: pl.Series) -> pl.DataFrame:
        """Return ``us, step``: lines of one round carry stamps some microseconds apart, a step is one between rounds."""
        stamps_ = pl.DataFrame({"us": us.unique().sort()})
        gap = pl.col("us") - pl.col("us").shift(1, fill_value=self._last_us)
        opens = pl.col("us").is_in(begins.implode()) if len(begins) else gap.is_null() | (gap > SAME_ROUND * gap.max())
        rounds = stamps_.filter(opens).select("us", start="us")
        step = pl.col("start") - pl.col("start").shift(1, fill_value=self._last_us)
        rounds = rounds.with_columns(step=step).with_columns(step=pl.coalesce("step", pl.col("step").median()))
        if rounds.height:
            self._last_us = int(rounds["start"][-1])
        return stamps_.join(rounds, on="us", how="left", maintain_order="left").select(
            "us", pl.col("step").forward_fill()
        )

    def _groups(self, raw: pl.DataFrame) -> Iterator[tuple[wide.Group, pl.DataFrame]]:
        """Yield the devices with their rows: the summary's line stands for the machine, others for their package."""
        package, cpu = self._column("Package"), self._column("CPU")
        summary = pl.lit(value=True) if cpu is None else pl.col(cpu).is_in(["-", ""])
        if package is not None:
            summary = summary & pl.col(package).is_in(["-", ""])
        sockets = [] if package is None else raw.filter(~summary)[package].unique(maintain_order=True).to_list()
        turns: list[tuple[int | None, pl.Expr]] = [(None, summary)]
        turns += [(int(s), ~summary & (pl.col(str(package)) == s)) for s in sockets if s.isdigit()]
        if package is None and cpu is not None and not raw.filter(~summary).is_empty():
            turns.append((0, ~summary))
        for socket, mine in turns:
            for header in _MEASURED:
                column = self._column(header)
                domain = rapl.domain(_JOULES.get(header, header), socket) if column else None
                if column is None or domain is None:
                    continue
                chosen = raw.filter(mine)
                # Only the first line of a package carries its watts; the blanks of the others say nothing.
                chosen = chosen if socket is None else chosen.filter(pl.col(column) != "")
                fields = [_field(column, header, required=socket is None)]
                if header in {"PkgWatt", "Pkg_J"} and (temperature := self._column("PkgTmp")):
                    fields.append(Field(temperature, "PkgTmp", "temperature_c", "C"))
                if chosen.height:
                    kind = "energy" if header in _JOULES else "mean"
                    channel = Channel(domain.device, domain.scope, kind=kind)
                    yield (
                        wide.Group(channel, tuple(fields), domain.scope),
                        chosen.with_columns(device=pl.lit(domain.device)),
                    )


ADAPTER = Adapter(
    name="turbostat",
    title="turbostat tables (with Time_Of_Day_Seconds, or at a fixed interval)",
    yields="power of packages, cores, graphics, memory and platform; temperature of packages",
    sniff=_sniff,
    parse=_parse,
)
