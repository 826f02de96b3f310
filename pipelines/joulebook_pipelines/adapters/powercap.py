"""Polls of Linux powercap (RAPL) counters as CSV: a time and one column a domain, or one line a domain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import cells, damage, local_time, rapl, relative, rows, stamps, table, wide
from joulebook_pipelines.logs.contract import Adapter, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.table import Field

_ZONES = frozenset({"zone", "domain", "name", "rapl_domain", "rapl_zone"})
_COUNTER = re.compile(r"(?i)energy[_ ]?\(?uj\)?")
_SEPARATORS = (",", ";", "\t")

UNDERFLOW = 2.0**63
"""A difference below 0 that was stored as an unsigned number lies above, and no counter ever gets there."""

COUNTING_FALLS = 1 / 3
"""A counter falls only where it wraps; the energies of single intervals fall about every second time."""


FEW_ROWS = 4
"""Of so few rows the share of falls says nothing: one wrap is a third of them."""

MOST_OF_A_DOMAIN_W = 1e4
"""No RAPL domain takes 10 kW: what would be more over the time between two rows is the state of a counter."""


@dataclass
class _Columns:
    """What the header says."""

    separator: str
    headers: list[str]
    energies: dict[str, tuple[rapl.Domain, str]] = field(default_factory=dict)
    ranges: dict[str, tuple[rapl.Domain, str]] = field(default_factory=dict)
    zone: int | None = None


def _header(head: Head) -> _Columns | None:
    line = next((li for li in head.lines[:20] if li.strip() and not li.startswith("#")), "")
    for separator in _SEPARATORS:
        headers = [c.strip().strip('"') for c in line.split(separator)]
        if len(headers) < 2 or headers[0].lower() not in rapl.TIMES:
            continue
        found = _Columns(separator, headers)
        if rapl.is_poll(headers):
            for name in headers[1:]:
                domain, unit, ranges = rapl.energy_column(name) or (rapl.Domain("", ""), "", False)
                (found.ranges if ranges else found.energies)[name] = (domain, unit)
            return found if found.energies else None
        zones = [i for i, n in enumerate(headers) if n.lower() in _ZONES]
        if zones and any(_COUNTER.fullmatch(n) for n in headers):
            found.zone = zones[0]
            return found
    return None


def _sniff(head: Head) -> bool:
    return _header(head) is not None


def _parse(log: Log) -> Iterator[Part]:
    found = _header(log.head)
    if found is None:
        raise LogRefusedError(
            f"{log.name}:1: needs a header with a time and a column a RAPL domain, such as package-0_uj"
        )
    first_row = next(i for i, li in enumerate(log.head.lines, 1) if li.strip() and not li.startswith("#")) + 1
    sample = rows.first(log, len(found.headers), found.separator, first_row)
    if not sample:
        raise LogRefusedError(f"{log.name}: has a header but no row below it: nothing was measured")
    form = local_time.form(log, _alike([r[0] for r in sample if r[0]][:200]))
    unit = re.search(r"_(ns|us|ms)$", found.headers[0].lower())
    if unit and form.pattern == "relative":
        form = stamps.StampForm("relative", aware=True, unit_us={"ns": 1e-3, "us": 1.0, "ms": 1e3}[unit[1]])
    how = relative.stamping(log, form, first_row, sample[0][0])
    if found.zone is not None:
        yield from _long(log, found, first_row, how)
    else:
        yield from _wide(log, found, first_row, sample, form, how)


def _alike(samples: list[str]) -> list[str]:
    """Return the stamps that are plain numbers where most are: one damaged line does not settle the form of all."""
    numbers = [t for t in samples if re.fullmatch(r"\d+([.,]\d+)?", t)]
    return numbers if 2 * len(numbers) > len(samples) else samples


def _wide(
    log: Log, found: _Columns, first_row: int, sample: list[list[str]], form: stamps.StampForm, how: relative.Stamping
) -> Iterator[Part]:
    names = tuple(f"c{i}" for i in range(len(found.headers)))
    if len(sample) < 2:
        raise LogRefusedError(f"{log.name}: one row of counters tells no energy; the poll must run on")
    counting = _counting(log, found, sample, how)
    span_s = None if all(counting.values()) else _step_s(sample, how)
    groups = []
    for header, (domain, unit) in found.energies.items():
        quantity = "energy_counter_j" if counting[header] else "energy_j"
        scope = _scope(log, domain, len(found.energies))
        one = Field(names[found.headers.index(header)], header, quantity, _unit(unit), required=True)
        groups.append(
            wide.Group(
                Channel(domain.device, scope, kind="counter" if counting[header] else "energy"),
                (one,),
                scope or "facility",
            )
        )
    number = form.unit_us if form.pattern == "epoch" or (form.pattern == "relative" and how.findings) else None
    rule = (UNDERFLOW, "unsigned-underflow")
    sheet = wide.Sheet(
        names, found.separator, Field("c0", found.headers[0], "ts_utc"), tuple(groups), how.naive, how.clock, first_row=first_row,
        beyond={"energy_j": rule, "energy_counter_j": rule}, time_unit_us=number, form=form, span_s=span_s,
    )  # fmt: skip
    yield from wide.Reader(log, sheet).parts()
    ranges = {
        d.device: r * (cells.factor("energy_j", _unit(u)) or 1.0)
        for h, (d, u) in found.ranges.items()
        if (r := _first_number(sample, found.headers.index(h)))
    }
    yield Part(findings=(*how.findings, *_ranges(log, ranges), *relative.repeated_hour(log, how.clock)))


def _counting(log: Log, found: _Columns, sample: list[list[str]], how: relative.Stamping) -> dict[str, bool]:
    """Tell of each column whether it counts on; otherwise it holds the energy of each interval."""
    devices = [d.device for d, _ in found.energies.values()]
    twice = next((d for d in devices if devices.count(d) > 1), None)
    if twice is not None:
        raise LogRefusedError(
            f"{log.name}: two columns are of {twice} ({', '.join(found.energies)}); take one of them out"
        )
    ranged = {d.device for d, _ in found.ranges.values()}
    in_time = _in_time(sample, how)  # lines out of order are no falls of a counter
    counting = {
        h: d.device in ranged or _counts([r[found.headers.index(h)] for r in in_time])
        for h, (d, _) in found.energies.items()
    }
    if len(sample) <= FEW_ROWS and not all(counting.values()) and _beyond_intervals(found, sample, how):
        return dict.fromkeys(counting, True)
    if len(set(counting.values())) > 1:
        raise LogRefusedError(
            f"{log.name}: some columns count on, others hold the energy of each interval "
            f"({', '.join(h for h, c in counting.items() if not c)}); split them into two files"
        )
    return counting


def _beyond_intervals(found: _Columns, sample: list[list[str]], how: relative.Stamping) -> bool:
    """Tell whether the numbers are too large for the energies of single intervals, so that they are counters that wrapped."""
    step_s = _step_s(sample, how)
    if step_s is None:
        return False
    for header, (_, unit) in found.energies.items():
        texts = pl.DataFrame({"v": [r[found.headers.index(header)] for r in sample]})
        values = texts.select(cells.plain_number(pl.col("v"))).to_series().drop_nulls()
        largest = float(str(values.filter(values < UNDERFLOW).max() or 0)) * (
            cells.factor("energy_j", _unit(unit)) or 1.0
        )
        if largest > MOST_OF_A_DOMAIN_W * step_s:
            return True
    return False


def _unit(text: str) -> str:
    return {"uj": "uj", "µj": "uj", "mj": "mJ"}.get(text.lower(), "J")


def _scope(log: Log, domain: rapl.Domain, columns: int) -> str:
    """Return the scope of a domain; study.toml decides where the file has one column only."""
    return log.options.scope if log.options.scope and (columns == 1 or domain.scope == "") else domain.scope


def _counts(texts: list[str]) -> bool:
    values = pl.DataFrame({"v": texts}).select(cells.plain_number(pl.col("v"))).to_series().drop_nulls()
    falls = int((values.diff().drop_nulls() < 0).sum())
    return falls <= COUNTING_FALLS * max(len(values) - 1, 1)


def _in_time(sample: list[list[str]], how: relative.Stamping) -> list[list[str]]:
    """Return the rows whose time can be read in order of time."""
    at = pl.DataFrame({"t": [r[0] for r in sample]}).select(how.naive(pl.col("t"))).to_series()
    order = at.arg_sort(nulls_last=True)[: len(at) - at.null_count()]
    return [sample[i] for i in order]


def _step_s(sample: list[list[str]], how: relative.Stamping) -> float | None:
    at = pl.DataFrame({"t": [r[0] for r in sample]}).select(how.naive(pl.col("t"))).to_series().drop_nulls()
    steps = at.diff().dt.total_microseconds().drop_nulls()
    steps = steps.filter(steps > 0)
    return None if steps.is_empty() else float(str(steps.median())) / 1e6


def _first_number(sample: list[list[str]], place: int) -> float | None:
    values = (
        pl.DataFrame({"v": [r[place] for r in sample]}).select(cells.plain_number(pl.col("v"))).to_series().drop_nulls()
    )
    return None if values.is_empty() else float(values[0])


def _ranges(log: Log, ranges: dict[str, float]) -> tuple[Finding, ...]:
    if not ranges:
        return ()
    told = ", ".join(f"{d} at {r:.6g} J" for d, r in ranges.items())
    return (Finding(
        "counter-range", Severity.NOTE, log.name, f"The file says where its counters wrap: {told}. Wraps are corrected with it.",
        dict(ranges),
    ),)  # fmt: skip


def _ranges_told(raw: pl.DataFrame, column: str) -> dict[str, float]:
    """Return where the counter of each device wraps [J], as a column of the log says."""
    told = cells.plain_number(pl.col(column)).drop_nulls().first() * 1e-6
    return dict(raw.group_by("device", maintain_order=True).agg(r=told).drop_nulls().iter_rows())


def _long(log: Log, found: _Columns, first_row: int, how: relative.Stamping) -> Iterator[Part]:
    """Read one line a domain: time, name of the zone, counter."""
    names = tuple(f"c{i}" for i in range(len(found.headers)))
    at = next(i for i, n in enumerate(found.headers) if _COUNTER.fullmatch(n))
    reach = next((i for i, n in enumerate(found.headers) if "range" in n.lower()), None)
    zone, energy = names[found.zone or 0], Field(names[at], found.headers[at], "energy_counter_j", "uj", required=True)
    channels: dict[str, Channel] = {}
    ranges: dict[str, float] = {}
    yield Part(lines=first_row - 1)
    for block in rows.below(log.blocks(), first_row - 1):
        split = table.split(block, names, found.separator, quoted=b'"' in block.data)
        rejects = [damage.odd_lines(block, split.odd, "wrong-number-of-fields")]
        raw = split.frame.filter(pl.col("c0").str.strip_chars() != found.headers[0])
        domains = {t: rapl.of_path(t) for t in raw[zone].unique(maintain_order=True) if t is not None}
        devices = {t: d.device for t, d in domains.items() if d}
        raw = raw.with_columns(device=pl.col(zone).replace_strict(devices, default=None, return_dtype=pl.String))
        raw = raw.with_columns(how.utc(raw, pl.col("c0").fill_null("")))
        text = pl.concat_str([pl.col(n).fill_null("") for n in names], separator=found.separator)
        rejects.append(
            table.whole_lines(raw.filter(pl.col("device").is_null()).select("line", raw=text), "no-such-domain")
        )
        raw = raw.filter(pl.col("device").is_not_null())
        raw, lost = table.timed(raw, (energy,), Field("c0", found.headers[0], "ts_utc"))
        rejects.append(lost)
        values, bad = table.convert(raw, (energy,))
        fresh = [
            Channel(d.device, d.scope or log.options.scope or "", kind="counter")
            for d in domains.values()
            if d and d.device not in channels
        ]
        channels |= {c.device: c for c in fresh}
        ranges |= _ranges_told(raw, names[reach]) if reach is not None else {}
        readings = table.kept(values.with_columns(raw["ts_utc"]))
        yield Part(lines=block.count, readings=readings, rejects=pl.concat([*rejects, bad]), channels=tuple(fresh))
    yield Part(findings=(*how.findings, *_ranges(log, ranges), *relative.repeated_hour(log, how.clock)))


ADAPTER = Adapter(
    name="powercap",
    title="polls of Linux powercap (RAPL) counters as CSV",
    yields="energy counters (or energy per interval) of packages, their parts, memory and platform",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
    appendable=True,
)
