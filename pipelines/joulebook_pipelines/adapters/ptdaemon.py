"""SPEC PTDaemon logs: ``Time,MM-DD-YYYY hh:mm:ss.fff,Watts,…`` lines, the total first, then channels or analysers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import cells, local_time, relative, stamps, table, wide
from joulebook_pipelines.logs.contract import Adapter, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.electrical import Electrical
from joulebook_pipelines.logs.table import Field

_LINE = re.compile(r"^Time,\d\d-\d\d-\d{4} \d\d:\d\d:\d\d(\.\d+)?,Watts,[^,]+,Volts,[^,]+,Amps,")
_FORM = stamps.StampForm("%m-%d-%Y %H:%M:%S%.f", aware=False, fixed=True)
"""Month, day, year: fixed by the format, whatever the locale of the machine."""

_QUANTITIES = {
    "Watts": ("power_w", "W"),
    "Volts": ("voltage_v", "V"),
    "Amps": ("current_a", "A"),
    "PF": ("power_factor_ratio", "1"),
}
_FILLERS = (-1.0, -2.0)
"""The format writes -1 where it has nothing to say, and -2 where it asked too late."""

_UNMEASURED = {"power_w": (_FILLERS, "no-measurement")} | dict.fromkeys(
    ("voltage_v", "current_a", "power_factor_ratio"), (_FILLERS, "not-applicable")
)

_LEARNT_FROM = 200
"""Lines from which the layout is learnt: one damaged line does not settle it."""

_RANGING = "ranging"
SUM_SLACK_W = 0.5
"""Total and parts are rounded each by itself."""


@dataclass
class _Parts:
    """Whether the channels or analysers of a line add up to its total."""

    columns: dict[str, str]
    rows: int = 0
    off: int = 0
    magnitudes: int = 0
    negative: dict[str, int] = field(default_factory=dict)

    def add(self, frame: pl.DataFrame) -> None:
        watts = frame.select(
            total=_number(frame, "c3"), **{n: _number(frame, c) for n, c in self.columns.items()}
        ).drop_nulls()
        names = list(self.columns)
        watts = watts.filter(~pl.any_horizontal(pl.all().is_in(_FILLERS)))
        slack = SUM_SLACK_W + 1e-3 * pl.col("total").abs()
        sums = watts.select(
            plain=(pl.sum_horizontal(names) - pl.col("total")).abs() <= slack,
            magnitude=(pl.sum_horizontal(pl.col(n).abs() for n in names) - pl.col("total")).abs() <= slack,
        )
        self.rows += watts.height
        self.off += int((~sums["plain"]).sum())
        self.magnitudes += int((~sums["plain"] & sums["magnitude"]).sum())
        for name in names:
            self.negative[name] = self.negative.get(name, 0) + int((watts[name] < 0).sum())

    def findings(self, name: str) -> tuple[Finding, ...]:
        found = []
        for part, lines in self.negative.items():
            if 2 * lines > self.rows:
                found.append(Finding(
                    "analyser-reversed", Severity.WARNING, f"{name}: {part}",
                    f"{part} shows negative power in {lines} of {self.rows} lines: it is connected the other way round. The total of the "
                    f"line{' counts its magnitude and' if self.magnitudes else ''} is used; turn the connection for the next run.",
                    {"lines": lines, "of": self.rows},
                ))  # fmt: skip
        if self.off > self.magnitudes:
            found.append(Finding(
                "parts-off-total", Severity.WARNING, name,
                f"The analysers do not add up to the total in {self.off - self.magnitudes} of {self.rows} lines. The total is used.",
                {"lines": self.off - self.magnitudes},
            ))  # fmt: skip
        return tuple(found)


def _number(frame: pl.DataFrame, column: str) -> pl.Expr:
    """Return a column as numbers, whether it was read as such or as text."""
    return pl.col(column) if frame.schema[column] == pl.Float64 else cells.plain_number(pl.col(column))


def _sniff(head: Head) -> bool:
    return any(_LINE.match(line) for line in head.lines[:20])


def _marks(log: Log) -> tuple[str | None, str | None]:
    """Return the mark that lines must contain, and the kind of mark that is left out."""
    if log.options.mark:
        return log.options.mark, None
    first = re.search(r",Mark,[^,\n]*", log.head.text)
    if first is None or _RANGING not in first[0]:
        return None, _RANGING
    other = re.compile(rb",Mark,(?![^,\n]*" + _RANGING.encode() + rb")")
    return None, _RANGING if any(
        other.search(b.data) for b in replace(log, from_byte=0, from_line=1).blocks()
    ) else None


@dataclass
class _Choice:
    """Which lines are of the pass that is read."""

    column: str | None
    wanted: str | None
    unwanted: str | None
    separator: str = ","
    left_out: int = 0

    def split(self, raw: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        if self.column is None or (self.wanted is None and self.unwanted is None):
            return raw, table.no_rejects()
        mark = pl.col(self.column)
        mine = (
            mark.str.contains(self.wanted, literal=True)
            if self.wanted
            else ~mark.str.contains(str(self.unwanted), literal=True)
        )
        others = raw.filter(~mine)
        if others.is_empty():
            return raw, table.no_rejects()
        self.left_out += others.height
        rule = "other-mark" if self.wanted else "ranging-pass"
        return raw.filter(mine), table.whole_lines(others.select("line", raw=mark), rule)


def _usual_line(log: Log) -> tuple[int, list[str]]:
    """Return the first line of the usual number of words, and those.

    Raises
    ------
    LogRefusedError
        There is no line of a meter.
    """
    found = [(i, line) for i, line in enumerate(log.head.lines[:_LEARNT_FROM], 1) if _LINE.match(line)]
    if not found:
        raise LogRefusedError(f"{log.name}: no line begins with Time,MM-DD-YYYY …,Watts,: it is no log of PTDaemon")
    widths = Counter(line.count(",") for _, line in found)
    at, line = next((i, line) for i, line in found if line.count(",") == widths.most_common(1)[0][0])
    return at, [w.strip() for w in line.split(",")]


def _parse(log: Log) -> Iterator[Part]:
    at, words = _usual_line(log)
    clock = local_time.localiser(log, _FORM, at, words[1])
    names = tuple(f"c{i}" for i in range(len(words)))
    labels, fields, parts = _layout(words)
    mark = f"c{words.index('Mark') + 1}" if "Mark" in words[:-1] else None
    channel = _channel(log)
    sheet = wide.Sheet(
        names, ",", Field("c1", "Time", "ts_utc"), (wide.Group(channel, fields, channel.scope or "facility"),),
        lambda text: stamps.parse(text, _FORM), clock, first_row=1, form=_FORM, labels=labels, unmeasured=_UNMEASURED,
        scale=log.options.sign,
    )  # fmt: skip
    check, choice = _Parts(parts), _Choice(mark, *_marks(log))
    negative = _Negative()

    def watch(frame: pl.DataFrame) -> None:
        negative.add(frame)
        if parts:
            check.add(frame)

    reader = wide.Reader(
        log,
        sheet,
        choose=choice.split,
        watch=watch,
        also_numbers=tuple(parts.values()),
        also_words=(mark,) if mark else (),
    )
    electrical = Electrical()
    for part in reader.parts():
        if part.readings is not None:
            electrical.add(part.readings)
        yield part
    yield Part(
        findings=(
            *check.findings(log.name),
            *electrical.findings(log.name, channel.device),
            *negative.findings(log),
            *_left_out(log, choice),
            *relative.repeated_hour(log, clock),
        )
    )


def _channel(log: Log) -> Channel:
    """Return what the total of the lines is about: the node, where study.toml says nothing else."""
    scope = log.options.scope or ""
    device = log.options.device or (scope if scope in {"rack", "facility"} else "node")
    kind = log.options.kind or ("mean" if log.options.window_s else "instant")
    return Channel(device, scope, kind=kind, window_s=log.options.window_s)


def _layout(words: list[str]) -> tuple[dict[str, str], tuple[Field, ...], dict[str, str]]:
    """Return the fixed words by column, the fields of the total, and the Watts column of each channel or analyser."""
    labels: dict[str, str] = {}
    fields: list[Field] = []
    parts: dict[str, str] = {}
    owner, at = "", 0
    while at < len(words):
        word = words[at]
        if word not in {*_QUANTITIES, "Time", "Mark"}:  # a channel or an analyser begins: its name, no value
            owner, at = word, at + 1
            labels[f"c{at - 1}"] = word
            continue
        labels[f"c{at}"] = word
        if at + 1 == len(words):  # the line is cut behind a name
            break
        if owner and word == "Watts":
            parts[owner] = f"c{at + 1}"
        elif not owner and word in _QUANTITIES:
            quantity, unit = _QUANTITIES[word]
            if any(f.quantity == quantity for f in fields):
                at += 2
                continue
            fields.append(Field(f"c{at + 1}", word, quantity, unit, required=word == "Watts"))
        at += 2
    return labels, tuple(fields), parts


@dataclass
class _Negative:
    """Lines whose total is negative."""

    rows: int = 0
    negative: int = 0

    def add(self, frame: pl.DataFrame) -> None:
        watts = frame.select(_number(frame, "c3")).to_series()
        self.rows += frame.height
        self.negative += int(((watts < 0) & ~watts.is_in(_FILLERS)).sum() or 0)

    def findings(self, log: Log) -> tuple[Finding, ...]:
        if not self.negative or 2 * self.negative < self.rows or log.options.sign == -1:
            return ()
        return (Finding(
            "sign-reversed", Severity.WARNING, log.name,
            f"{self.negative} of {self.rows} totals are negative: the analyser is connected the other way round. They are kept as read; "
            "if the machine only consumes, add sign = -1 to this [[source]].", {"readings": self.negative},
        ),)  # fmt: skip


def _left_out(log: Log, choice: _Choice) -> tuple[Finding, ...]:
    if not choice.left_out:
        return ()
    what = f"without {choice.wanted!r} in their mark" if choice.wanted else "of the ranging pass"
    cure = "" if choice.wanted else '; add mark = "ranging" to this [[source]] to read those instead'
    return (Finding(
        "lines-of-other-mark", Severity.NOTE, log.name, f"{choice.left_out} lines {what} were left out{cure}.", {"lines": choice.left_out},
    ),)  # fmt: skip


ADAPTER = Adapter(
    name="ptdaemon",
    title="SPEC PTDaemon logs of power analysers (spl.txt of MLPerf, SPECpower)",
    yields="power, voltage, current and power factor of the total; channels and further analysers are checked against it",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
    family="meter",
    appendable=True,
)
