"""Learning from the beginning of a meter's table how to read all of it: dialect, columns, stamps, decimal sign."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import (
    cells,
    decimals,
    dialect,
    local_time,
    meter_columns,
    meter_mapping,
    meter_spans,
    meter_stamps,
    meter_totals,
    positions,
    rows,
    stamps,
    table,
)
from joulebook_pipelines.logs.contract import Block, Log, LogRefusedError
from joulebook_pipelines.logs.dialect import Dialect
from joulebook_pipelines.logs.meter_columns import Layout
from joulebook_pipelines.logs.meter_form import Understood, plain_cells, prepared, stamp_text

SAMPLE_LINES = 2_000
"""Lines from which the forms of stamps, numbers and energies are learnt."""

MOST_OF_ONE_HOST = 2
"""From this many hosts in a table on, the host is part of the name of each device."""

_WORDS = r"^(?i:[A-Z][a-z]{2,}(?:[ _-][A-Z]?[a-z]+)*)$"
"""Cells that name something."""

_NOT_MEASURED = r"^(?i:unavailable|unknown|none|null|nan|error|off|missing|invalid|timeout|failed|not .*)$"
"""Cells that name nothing: numbers may follow, whose unit is needed."""

_TIME_UNITS_US = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3, "min": 6e7, "h": 3.6e9}


def understand(log: Log) -> Understood:
    """Learn from the beginning of a file how to read all of it.

    Raises
    ------
    LogRefusedError
        Something cannot be known: the message says what to add to study.toml.
    """
    written, layout = _columns(log)
    sample = _sample(log, written)
    if sample.is_empty():
        raise LogRefusedError(f"{log.name}: {_why_empty(log, written)}")
    return settle(log, written, layout, sample, _decimal(log, written, layout, sample))


def settle(log: Log, written: Dialect, layout: Layout, sample: pl.DataFrame, decimal: str) -> Understood:
    """Learn from rows of text cells how stamps, energies and spans are meant, once the columns are known.

    Raises
    ------
    LogRefusedError
        Something cannot be known: the message says what to add to study.toml.
    """
    if not layout.groups and not (layout.value and layout.unit):
        raise LogRefusedError(
            f"{log.name}: has a time but nothing that is a power or an energy with a unit; name the column: "
            'columns = { time = "…", power_w = "…" } and units = { power_w = "W" }'
        )
    layout = meter_stamps.with_clock(sample, layout, written)
    layout, total = meter_totals.found(sample, layout, decimal)
    text = stamp_text(sample, layout)
    known = text.drop_nulls().str.strip_chars().to_list()
    like = [t for t in known if any(ch.isdigit() for ch in t)]
    if not like:
        raise LogRefusedError(
            f"{log.name}: no row has a time stamp (first: {known[0] if known else ''!r}): nothing was measured"
        )
    clock_only = all(stamps.is_time_of_day(t) for t in like[:200])
    form = meter_stamps.form_of(log, like, clock_only=clock_only)
    if form.pattern == "relative":
        meter_stamps.refuse_durations(log, written, layout, like)
        seconds = replace(form, unit_us=_TIME_UNITS_US.get(layout.relative_unit, form.unit_us))
        form = meter_stamps.day_numbers(log, like) or seconds
    zoned = (
        replace(log, options=meter_stamps.in_zone(log.options, layout.zone)) if layout.zone and not form.aware else log
    )
    aware = replace(form, aware=form.pattern != "relative" or log.options.date is None) if form.aware else form
    clock = local_time.localiser(zoned, aware, written.first_line, like[0])
    found = Understood(
        written, layout, form, clock, decimal, clock_only=clock_only, findings=_about(log, written, layout, form, total)
    )
    found = replace(found, months=meter_stamps.are_months(sample, layout))
    if (
        layout.device is not None
        and sample[layout.device].str.strip_chars(' "').str.contains(r"(?i)^gpu[ _#:-]?\d+$").all()
    ):
        found = replace(found, layout=replace(found.layout, cards=True))
    if layout.host is not None and sample[layout.host].n_unique() < MOST_OF_ONE_HOST:
        found = replace(found, layout=replace(found.layout, host=None))
    return meter_spans.decide(log, found, sample)


def _columns(log: Log) -> tuple[Dialect, Layout]:
    options, head = log.options, log.head
    if not options.columns:
        written = dialect.find(head, meter_columns.knows, delimiter=options.delimiter)
        if written is None:
            raise LogRefusedError(_why_unknown(log))
        written = _with_unit_column(log, written)
        words = _of_words(log, written)
        numbers = replace(written, titles=tuple("" if t in words else t for t in written.titles))
        layout = meter_columns.from_titles(numbers, options, log.name)
        return written, replace(layout, unread=(*layout.unread, *words))
    titles = {v.casefold().strip() for v in options.columns.values() if not v.isdigit()}
    written = None
    if titles:
        written = dialect.find(
            head, lambda found: titles <= {t.casefold().strip() for t in found}, delimiter=options.delimiter
        )
    written = written or dialect.find(head, meter_columns.knows, delimiter=options.delimiter)
    if written is None and not titles:
        highest = max(int(v) for v in options.columns.values())
        written = dialect.without_header(head, highest, delimiter=options.delimiter)
    if written is None:
        raise LogRefusedError(
            f"{log.name}: no line of the first {dialect.HEADER_WITHIN} has the columns "
            f"{', '.join(repr(v) for v in options.columns.values())}; give titles as the file writes them, or "
            f"positions from 1"
        )
    return written, meter_mapping.from_options(written, options, log.name)


def _with_unit_column(log: Log, written: Dialect) -> Dialect:
    """Return the dialect with the unit that a column of units gives throughout, for the energy or power beside it."""
    meant = meter_columns.meanings(written.titles, written.units)
    at = next((i for i, m in enumerate(meant) if m.role == "unit"), None)
    if at is None or any(m.role == "value" for m in meant):
        return written
    sample = _sample(log, written)
    if sample.is_empty():
        return written
    said = sample[written.names[at]].str.strip_chars(' "').unique().to_list()
    said = [u for u in said if u]
    if len(said) != 1:
        return written
    units = [
        said[0] if m.role == "quantity" and not m.unit and cells.factor(m.quantity, said[0]) is not None else u
        for m, u in zip(meant, written.units or ("",) * len(meant), strict=True)
    ]
    return replace(written, units=tuple(units))


def _of_words(log: Log, written: Dialect) -> tuple[str, ...]:
    """Return the titles that speak of power or energy without a unit over columns of words, which name something."""
    meant = meter_columns.meanings(written.titles, written.units or ("",) * len(written.titles))
    doubtful = [i for i, m in enumerate(meant) if m.quantity in {"power_w", "energy_j"} and not m.unit]
    sample = _sample(log, written) if doubtful else pl.DataFrame()
    if sample.is_empty():
        return ()
    cells_ = {i: sample[written.names[i]].str.strip_chars(" \"'").replace("", None).drop_nulls() for i in doubtful}
    name = {i: c.str.contains(_WORDS).all() and not c.str.contains(_NOT_MEASURED).any() for i, c in cells_.items()}
    return tuple(written.titles[i] for i, told in cells_.items() if len(told) and name[i])


def _why_empty(log: Log, written: Dialect) -> str:
    """Return why a table has no row that can be looked at."""
    below = next(((i, x) for i, x in enumerate(log.head.lines, 1) if i >= written.first_line and x.strip()), None)
    if below is None:
        return "has a header but no row below it: nothing was measured"
    return (
        f"no row has the {len(written.names)} cells of the header in line {written.header_line} (line {below[0]}: {below[1][:80]!r}); if "
        "another line has the titles, delete what stands above it; if this is no log of readings, leave it out of the study"
    )


def _why_unknown(log: Log) -> str:
    width = dialect.looks_headerless(log.head)
    first = next((line for line in log.head.lines if line.strip()), "")[:100]
    if width:
        time, power = positions.likely(log.head, width)
        return (
            f"{log.name}:1: has no header line, so its {width} columns have no names: {first!r}. Say in study.toml "
            f"which is which by "
            f'position, e.g. columns = {{ time = "{time}", power_w = "{power}" }} and units = {{ power_w = "W" }}'
        )
    return (
        f"{log.name}: no line names a time and a power or an energy (it begins {first!r}); name the columns: "
        'columns = { time = "…", power_w = "…" }'
    )


def _sample(log: Log, written: Dialect) -> pl.DataFrame:
    lines = log.head.lines if log.head.complete else log.head.lines[:-1]
    mine = [line for line in lines[written.first_line - 1 :][:SAMPLE_LINES] if line.strip() and "\x00" not in line]
    if not mine:
        return pl.DataFrame()
    block = prepared(Block(written.first_line, ("\n".join(mine) + "\n").encode()), written)
    separator = "\t" if written.comma_decimals or written.separator == " " else written.separator
    return plain_cells(table.split(block, written.names, separator, quoted=written.quoted).frame)


def _decimal(log: Log, written: Dialect, layout: Layout, sample: pl.DataFrame) -> str:
    """Return the decimal sign; looks through the whole file where its beginning does not decide."""
    if written.comma_decimals:
        return ","
    columns = [f.column for f in layout.fields] + ([layout.value] if layout.value else [])

    def told(frame: pl.DataFrame) -> decimals.Evidence:
        return sum((decimals.evidence(frame[c]) for c in columns), decimals.Evidence())

    if log.options.decimal:
        return ".," if log.options.decimal == "." and told(sample).grouped else log.options.decimal
    if written.separator == "," and not written.quoted:
        return "."
    found, usual = told(sample), written.separator in {",", "\t"}
    decided = decimals.decide(found, point_is_usual=usual)
    if decided is None and not found.comma and not found.point and not log.head.complete:
        found = decimals.Evidence()
        for block in rows.below(log.blocks(), written.first_line - 1):
            found = found + told(table.split(block, written.names, written.separator, quoted=written.quoted).frame)
            if found.comma or found.point:
                break
        decided = decimals.decide(found, point_is_usual=usual)
    if decided is None:
        example = next((v for c in columns for v in sample[c].to_list() if v and ("," in v or "." in v)), "")
        why = "both signs are used" if found.comma and found.point else "no number of the file decides"
        raise LogRefusedError(
            f"{log.name}: whether {example.strip()!r} has a decimal sign or a mark between thousands cannot be told "
            f"({why}); "
            'add decimal = "," or decimal = "." to this [[source]]'
        )
    return decided


def _about(log: Log, written: Dialect, layout: Layout, form: stamps.StampForm, total: str) -> tuple[Finding, ...]:
    found = [*meter_totals.about(log.name, total)]
    if form.pattern == "relative" and log.options.date is None:
        found.append(Finding(
            "relative-time", Severity.WARNING, log.name,
            "The stamps are seconds since an unknown start; they were laid on 1970-01-01. Energies hold, but nothing "
            "can be compared in "
            "time with other files; add date = YYYY-MM-DD of the start to this "
            "[[source]].", {"title": list(layout.time)},
        ))  # fmt: skip
    found += meter_stamps.about_days(log.name, form)
    if written.comma_decimals:
        found.append(Finding(
            "decimal-comma-unquoted", Severity.WARNING, log.name,
            "The decimal comma is the separator as well: two titles, three cells a line. What stands behind the "
            "second comma was read as "
            "decimals.", {"titles": list(written.titles)},
        ))  # fmt: skip
    if written.header_line == 0:
        found.append(Finding(
            "header-missing", Severity.NOTE, log.name,
            "The file has no header; its columns are read by position as study.toml "
            "says.", {"columns": dict(log.options.columns)},
        ))  # fmt: skip
    if layout.unread:
        found.append(Finding(
            "columns-not-read", Severity.NOTE, log.name,
            f"Not read, as another column says the same or no unit is known: {', '.join(map(repr, layout.unread))}.",
            {"columns": list(layout.unread)},
        ))  # fmt: skip
    if log.options.sign == -1:
        found.append(Finding(
            "sign-turned", Severity.NOTE, log.name,
            "The sign of every power of this file is turned, as study.toml says.", {}
        ))  # fmt: skip
    return tuple(found)
