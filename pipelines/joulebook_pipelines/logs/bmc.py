"""Readings of a management controller: what its tools print, dump after dump, as sensors under stamps.

A dump itself tells no time. The stamp that a collector wrote before it is its time; failing that, the controller's own
stamp where the tool prints one, which is another clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import polars as pl

from joulebook_pipelines.logs import (
    bmc_devices,
    bmc_doubts,
    bmc_values,
    cells,
    host_prefix,
    local_time,
    stamp_lines,
    stamp_spellings,
    stamps,
    table,
    untimed,
)
from joulebook_pipelines.logs.contract import Block, Channel, Log, LogRefusedError, Part

_NUMERIC = re.compile(r"^\d{1,4}[-/.]\d")


@dataclass(frozen=True)
class Dialect:
    """How a tool prints.

    Parameters
    ----------
    cells
        From a line's text, if it is no stamp of the controller's own, to ``kind`` (``value``, ``name``, ``state``,
        ``message``, ``known``, ``other``) and, of values, ``name, value, unit, entity, said`` (the cell as it stands).
    own_stamp
        A line with the controller's own stamp; group 1 is the stamp.
    own_time
        The naive time of such a stamp.
    dcmi_name
        Name of the reading that the controller's stamp belongs to.
    cure
        What to log so that dumps have a time.
    """

    cells: Callable[[pl.Expr], dict[str, pl.Expr]]
    own_stamp: re.Pattern[str]
    own_time: Callable[[pl.Expr], pl.Expr]
    dcmi_name: str
    cure: str


def parse(log: Log, dialect: Dialect) -> Iterator[Part]:
    """Yield the parts of a log.

    Raises
    ------
    LogRefusedError
        Nothing in the file tells a time, or stamps lack a zone.
    """
    host = host_prefix.host_of(log)
    if host is not None:
        log = host_prefix.head_of(log, host)
    reader = _reader(log, dialect)
    reader.host = host
    previous: Block | None = None
    for block in log.blocks():
        if previous is not None:
            yield reader.read(previous, final=False)
        previous = block
    if previous is not None:
        yield reader.read(previous, final=True)
    told = reader.steps.findings if reader.steps is not None else ()
    yield Part(findings=(*told, *reader.doubts.findings(log.name, reader.devices.side_unnamed)))


def _reader(log: Log, dialect: Dialect) -> _Reader:
    lines = log.head.lines
    collector = stamp_lines.find(log, dialect.own_stamp)
    if collector is not None:
        return _Reader(log, dialect, collector, collector.clock)
    own = [(i, m[1].strip()) for i, line in enumerate(lines, 1) if (m := dialect.own_stamp.search(line))]
    if not own:
        first, dumps = _dumps(log, dialect)
        steps = untimed.of_dumps(log, dumps, dialect.cure)
        return _Reader(log, dialect, None, local_time.Localiser(None), steps=steps, first_name=first)
    form = stamps.StampForm("own", aware=False)
    texts = pl.DataFrame({"text": [t for _, t in own]})
    times = texts.select(naive=dialect.own_time(pl.col("text")))
    if _NUMERIC.match(own[0][1]) and times["naive"].null_count() == times.height:
        form = _numeric(log, texts["text"])
        dialect = replace(dialect, own_time=partial(_in_numbers, form=form))
        times = texts.select(naive=dialect.own_time(pl.col("text")))
    if times.filter(pl.col("naive") >= bmc_values.CLOCK_SET_FROM).is_empty():
        raise LogRefusedError(
            f"{log.name}:{own[0][0]}: the controller's clock is not set ({own[0][1].strip()!r}) and nothing else "
            "tells a time; "
            f"{dialect.cure}"
        )
    clock = local_time.localiser(log, form, *own[0])
    return _Reader(log, dialect, None, clock)


def _numeric(log: Log, texts: pl.Series) -> stamps.StampForm:
    """Return the form of stamps that newer tools print in the order of the machine's locale.

    Raises
    ------
    LogRefusedError
        Day and month cannot be told apart, or the form is not known.
    """
    return local_time.form(log, stamp_spellings.plain(texts).to_list())


def _in_numbers(text: pl.Expr, *, form: stamps.StampForm) -> pl.Expr:
    """Return naive datetimes of stamps in numbers (UTC where they name their zone)."""
    return stamps.parse(text.map_batches(stamp_spellings.plain, return_dtype=pl.String), form)


def _dumps(log: Log, dialect: Dialect) -> tuple[str, int]:
    """Return the sensor that begins each dump, and how many dumps the beginning of the file holds.

    Several sensors of one dump may share a name; a name that stands in each dump once tells dumps apart.
    """
    said = pl.DataFrame({"text": log.head.lines}).select(**dialect.cells(pl.col("text")))
    named = said.with_columns(_name_above()).filter(kind="value")
    names = named.filter(pl.col("name").is_not_null()).group_by("name", maintain_order=True).len()
    if names.is_empty():
        raise LogRefusedError(f"{log.name}: holds no sensor")
    rarest = names.filter(pl.col("len") == pl.col("len").min()).row(0)
    return str(rarest[0]), int(rarest[1])


def _name_above() -> pl.Expr:
    """Return the names of sensors; the reading of a verbose block has none, its name stands some lines above it."""
    header = pl.when(pl.col("kind") == "name").then("name").forward_fill()
    nameless = (pl.col("kind") == "value") & pl.col("name").is_null()
    return pl.when(nameless).then(header).otherwise("name").alias("name")


@dataclass
class _Reader:
    """State of one pass: the stamp in force, the devices, and what is doubtful."""

    log: Log
    dialect: Dialect
    collector: stamp_lines.StampLines | None
    clock: local_time.Localiser
    doubts: bmc_doubts.Doubts = field(default_factory=bmc_doubts.Doubts)
    devices: bmc_devices.Devices = field(default_factory=bmc_devices.Devices)
    held: pl.DataFrame | None = None
    mark: tuple[int, object] = (0, None)
    steps: untimed.Steps | untimed.Moment | None = None
    first_name: str = ""
    passed: int = 0
    host: str | None = None

    def read(self, block: Block, *, final: bool) -> Part:
        """Return what the whole dumps of a block say; the last dump waits for the next block."""
        frame = block.numbered("text")
        if self.host is not None:
            mine, plain = host_prefix.only(pl.col("text"), self.host)
            frame = frame.filter(mine).with_columns(text=plain)
        if self.held is not None:
            frame, self.held = pl.concat([self.held, frame]), None
        frame = frame.filter(pl.col("text").str.strip_chars() != "")
        frame = self._understood(frame)
        if not final:
            begins = pl.col("stamped") if self.collector else pl.col("name") == self.dialect.dcmi_name
            last = frame.filter(begins.fill_null(value=False)).select(pl.col("line").max()).item()
            if last is not None and last > frame["line"][0]:
                self.held = frame.filter(pl.col("line") >= last).select("line", "text")
                frame = frame.filter(pl.col("line") < last)
        frame = self._timed(frame)
        readings, rejects = self._readings(frame)
        channels = self._channels(readings)
        self.doubts.count(readings)
        return Part(lines=block.count, readings=readings, rejects=rejects, channels=channels)

    def _understood(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Add what each line is and says; dumps repeat themselves, so each distinct text is read once."""
        text = pl.col("text")
        texts = frame.select(text.unique(maintain_order=True))
        if self.collector is None:
            texts = texts.with_columns(stamp=pl.lit(None, pl.String), rest=text, stamped=pl.lit(value=False))
        else:
            stamp, rest, stamped = self.collector.split(text)
            texts = texts.with_columns(stamp=stamp, rest=rest, stamped=stamped)
        texts = texts.join(self._said(texts.select(pl.col("rest").unique(maintain_order=True))), on="rest", how="left")
        bare = pl.col("stamped") & (pl.col("stamp").is_null() | (pl.col("rest").str.strip_chars() == ""))
        kind = pl.when(bare & (pl.col("kind") != "value")).then(pl.lit("stamp")).otherwise("kind")
        frame = frame.join(texts.with_columns(kind=kind).drop("rest"), on="text", how="left", maintain_order="left")
        return frame.with_columns(_name_above())

    def _said(self, rests: pl.DataFrame) -> pl.DataFrame:
        """Return texts with what they are and say; the controller's stamps, hardly two the same, are not asked for more."""
        stamps_ = rests.with_columns(own=pl.col("rest").str.extract(self.dialect.own_stamp.pattern, 1))
        others = stamps_.filter(pl.col("own").is_null()).drop("own")
        said = others.with_columns(**self.dialect.cells(pl.col("rest")))
        own = stamps_.filter(pl.col("own").is_not_null()).select("rest", kind=pl.lit("bmc-stamp"), value="own")
        return pl.concat([said, own], how="diagonal")

    def _timed(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Add ``mark`` (line of the stamp in force) and ``ts_utc``."""
        dcmi = (pl.col("kind") == "value") & (pl.col("name") == self.dialect.dcmi_name)
        frame = frame.with_columns(block=dcmi.cast(pl.Int64).cum_sum(), is_dcmi=dcmi)
        for kind, name in (("bmc-stamp", "own"), ("state", "state")):
            told = frame.filter(pl.col("kind") == kind).unique("block", keep="first")
            frame = frame.join(
                told.select("block", pl.col("value").alias(name)), on="block", how="left", maintain_order="left"
            )
        # Of the lines that only describe nothing is needed any more; a stamp in front of one still counts.
        frame = frame.filter((pl.col("kind") != "known") & (pl.col("kind") != "name") | pl.col("stamped"))
        own = self.dialect.own_time(pl.when("is_dcmi").then("own"))
        frame = frame.with_columns(own=own)
        if self.steps is not None:
            begins = (pl.col("kind") == "value") & (pl.col("name") == self.first_name)
            frame = frame.with_columns(mark=begins.fill_null(value=False).cast(pl.Int64).cum_sum() + self.passed)
            self.passed = int(frame["mark"][-1]) if frame.height else self.passed
            return frame.with_columns(self.steps.at(frame["mark"].clip(lower_bound=1)))
        if self.collector is None:
            naive = frame.select(
                pl.when(dcmi & (pl.col("own") >= bmc_values.CLOCK_SET_FROM)).then("own").alias("ts_utc")
            ).to_series()
            return frame.with_columns(self.clock.to_utc(naive), mark=pl.col("line"))
        naive = frame.select(self.collector.naive(pl.col("stamp")).alias("at")).to_series()
        frame = frame.with_columns(self.clock.to_utc(naive))
        marks = pl.when("stamped").then("line").forward_fill()
        frame = frame.with_columns(mark=marks.fill_null(self.mark[0]))
        times = frame.filter("stamped").select(mark="line", ts_utc="at")
        if self.mark[0] not in set(times["mark"]):
            before = pl.DataFrame({"mark": [self.mark[0]], "ts_utc": [self.mark[1]]}, schema=times.schema)
            times = pl.concat([before, times])
        frame = frame.join(times, on="mark", how="left", maintain_order="left")
        if frame.height:
            last = frame.row(-1, named=True)
            self.mark = (last["mark"], last["ts_utc"])
        return frame

    def _readings(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        raw = frame.filter(pl.col("kind") == "value")
        raw = self.devices.placed(raw)
        factor = pl.when(pl.col("canonical") == "percent").then(0.01).otherwise(1.0)
        raw = raw.with_columns(number=cells.plain_number(pl.col("value")) * factor)
        raw = raw.with_columns(rule=bmc_values.rule_of("no-such-time" if self.collector else "no-time"))
        self.doubts.note(raw, two_clocks=self.collector is not None)
        good, judged = bmc_values.judged(raw.filter(pl.col("rule").is_null()), self.devices.scopes)
        bad = bmc_values.cell_rejects(raw.filter(pl.col("rule").is_not_null()))
        return good, pl.concat([*self._odd_lines(frame), bad, judged])

    def _odd_lines(self, frame: pl.DataFrame) -> list[pl.DataFrame]:
        """Return rejects of messages, of lines that mean nothing here, and of stamps that are none."""
        odd = frame.filter(pl.col("kind").is_in(["message", "other"]))
        rule = pl.when(pl.col("kind") == "message").then(pl.lit("tool-message")).otherwise(pl.lit("not-understood"))
        out = [table.whole_lines(odd.select("line", "kind", raw="text"), rule)]
        if self.collector is not None:
            lost = frame.filter((pl.col("kind") == "stamp") & pl.col("at").is_null()).select("line", raw="text")
            out.append(table.whole_lines(lost, "no-such-time"))
        return out

    def _channels(self, readings: pl.DataFrame) -> tuple[Channel, ...]:
        return tuple(Channel(d, self.devices.scopes[d]) for d in readings["device"].unique(maintain_order=True))
