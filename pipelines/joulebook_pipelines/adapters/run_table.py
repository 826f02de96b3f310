"""Run tables: one row a run with its energy or mean power, as experiment runners and sweeps export them (CSV, JSON, Markdown)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from joulebook import rules
from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import (
    cells,
    decimals,
    dialect,
    run_axis,
    run_json,
    run_lengths,
    run_markdown,
    run_rows,
    run_titles,
    run_totals,
    step_log,
    table,
)
from joulebook_pipelines.logs.contract import Adapter, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.run_spent import Spent
from joulebook_pipelines.logs.run_titles import Columns
from joulebook_pipelines.logs.table import Field

ORIGIN = "run table"

MOST_ROWS = 1_000_000
"""Nobody has made more runs; a longer table is a log."""

_WIDEST = "facility"
"""Where no boundary is known, the widest limits hold."""

_SEPARATORS = (",", ";", "\t")


def _header(head: Head) -> tuple[str, list[str]] | None:
    """Return separator and titles of a CSV table of runs."""
    line = head.top[1]
    if line.startswith(("{", "[")):
        return None
    for separator in _SEPARATORS:
        titles = dialect.split_line(line, separator)
        named = run_rows.are_named(head, separator, len(titles))
        if run_titles.is_run_table(titles, rows_named=named) and (
            named or not run_axis.of_head(head, separator, titles)
        ):
            return separator, titles
    return None


def _sniff(head: Head) -> bool:
    return _header(head) is not None or run_json.looks(head) or run_markdown.looks(head)


def _parse(log: Log) -> Iterator[Part]:
    found = _header(log.head)
    if found is not None:
        titles, lines = found[1], 0
        frames, rejects = [], []
        for block in log.blocks():
            raw = table.split(block, [f"c{i}" for i in range(len(titles))], found[0], quoted=b'"' in block.data)
            frames.append(raw.frame.filter(pl.col("line") > log.head.top[0]))
            rejects.append(
                table.whole_lines(raw.odd.filter(pl.col("line") > log.head.top[0]), "wrong-number-of-fields")
            )
            lines += block.count
            if sum(f.height for f in frames) > MOST_ROWS:
                raise LogRefusedError(f"{log.name}: has more than {MOST_ROWS} rows, so it is no table of runs")
        clean = [pl.col(f"c{i}").str.strip_chars(' \t"') for i in range(len(titles))]
        whole = decimals.with_points(pl.concat(frames).with_columns(clean), comma_separates=found[0] == ",")
        yield from _read(log, titles, whole, pl.concat(rejects), lines)
        return
    text = log.whole_text()
    count = text.count("\n") + (not text.endswith("\n"))
    if text.lstrip().startswith(("{", "[")):
        titles, rows = run_json.read(log, text)
        yield from _read(log, titles, rows, table.no_rejects(), count)
    elif run_markdown.looks(log.head):
        titles, rows, odd = run_markdown.read(text)
        yield from _read(log, titles, decimals.with_points(rows, comma_separates=False), odd, count)
    else:
        raise LogRefusedError(f"{log.name}: holds no table of runs, with titles for their energy or power")


def _read(log: Log, titles: list[str], raw: pl.DataFrame, odd: pl.DataFrame, lines: int) -> Iterator[Part]:
    try:
        found = run_titles.understand(titles, log.options.columns)
    except ValueError as error:
        raise LogRefusedError(f"{log.name}:1: {error}") from None
    # A column without a single number was not measured, or says how.
    found.spent = [
        s for s in found.spent if raw.is_empty() or raw[f"c{s.at}"].fill_null("").str.contains(r"\d").any()
    ] or found.spent
    run_axis.settle(log, found, raw)
    if (
        "duration" in found.roles
        and not found.duration_unit
        and run_lengths.are_spelled(raw[f"c{found.roles['duration']}"])
    ):
        found.duration_unit = "s"
    spent = run_titles.chosen(found)
    if not spent:
        raise LogRefusedError(
            f"{log.name}:1: gives neither energy nor power of the runs; put what it says into [[run]] (tokens_to_target) "
            "beside a log of power"
        )
    if missing := run_titles.unknown_units(found, log.options.units):
        without = [s.title for s in spent if not s.unit]
        without += [found.titles[found.roles["duration"]]] if "span_s" in missing[0] else []
        raise LogRefusedError(
            f"{log.name}:1: nothing says the unit of {', '.join(map(repr, without))}; "
            f"add units = {{ {', '.join(missing)} }} to this [[source]]"
        )
    if raw.is_empty():
        raise LogRefusedError(f"{log.name}: has a header but no run")
    raw, undone = _done(raw, found)
    raw = raw.with_columns(device=pl.lit(None, pl.String))
    timed, doubts = run_rows.times(log, raw, found)
    timed, lost = _timed(timed, found, spent)
    timed, numbers, bad = _numbers(timed, found)
    readings, rejects, channels = _readings(log, timed, spent)
    runs, phases = _work(log, timed, numbers, found, spent)
    yield Part(
        lines=lines, readings=readings, rejects=pl.concat([odd, undone, lost, bad, rejects]), channels=channels, runs=runs,
        phases=phases, findings=(*doubts, *_findings(log, found, spent)),
    )  # fmt: skip


def _done(raw: pl.DataFrame, found: Columns) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Set aside runs that the experiment runner did not finish."""
    if "done" not in found.roles:
        return raw, table.no_rejects()
    done = pl.col(f"c{found.roles['done']}").str.to_uppercase() == "DONE"
    return raw.filter(done), table.whole_lines(_as_text(raw.filter(~done.fill_null(value=False))), "run-not-done")


def _as_text(raw: pl.DataFrame) -> pl.DataFrame:
    columns = [c for c in raw.columns if re.fullmatch(r"c\d+", c)]
    return raw.select("line", raw=pl.concat_str([pl.col(c).fill_null("") for c in columns], separator=","))


def _timed(raw: pl.DataFrame, found: Columns, spent: list[Spent]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Set aside rows whose time or length cannot be read."""
    rejects = [table.no_rejects()]
    # A length that is no number takes its end with it, so it is looked at first.
    for columns, roles in ((("span_s",), ("duration", "end")), (("start_utc", "end_utc"), ("stamp", "start", "end"))):
        whole = pl.all_horizontal([pl.col(c).is_not_null() for c in columns])
        lost = raw.filter(~whole)
        if lost.height:
            at = next((found.roles[r] for r in roles if r in found.roles), 0)
            others = [Field(f"c{s.at}", s.title, s.quantity) for s in spent if s.at != at]
            rule = "no-such-duration" if columns == ("span_s",) else "no-such-time"
            rejects.append(table.without_time(lost, others, Field(f"c{at}", found.titles[at], "time"), rule))
            raw = raw.filter(whole)
    return raw, pl.concat(rejects)


def _numbers(raw: pl.DataFrame, found: Columns) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return the rows, their tokens, samples and batch size, and rejects of cells that are no number."""
    rejects = []
    numbers = raw.select("line")
    for role in ("tokens", "samples", "batch_size", "tokens_per_s"):
        if role not in found.roles:
            numbers = numbers.with_columns(pl.lit(None, pl.Float64).alias(role))
            continue
        column = f"c{found.roles[role]}"
        value = raw.select(cells.plain_number(pl.col(column).fill_null("")).alias(role)).to_series()
        numbers = numbers.with_columns(value)
        bad = value.is_null() & (raw[column].fill_null("") != "")
        if bad.any():
            shown = Field(column, found.titles[found.roles[role]], role)
            rejects.append(table.cell_rejects(raw.filter(bad), shown, cells.why_null(pl.col(column))))
    rate = pl.col("tokens_per_s") * raw["span_s"]
    return (
        raw,
        numbers.with_columns(pl.coalesce("tokens", rate).alias("tokens")),
        pl.concat([table.no_rejects(), *rejects]),
    )


def _readings(
    log: Log, raw: pl.DataFrame, spent: list[Spent]
) -> tuple[pl.DataFrame, pl.DataFrame, tuple[Channel, ...]]:
    """Return what each run used, as a reading over its span."""
    frames, rejects, channels = [], [], []
    own = _own_device(log, spent)
    for device in dict.fromkeys(s.device or own for s in spent):
        columns = [s for s in spent if (s.device or own) == device]
        scope = columns[0].scope or log.options.scope or ""
        both = {s.quantity for s in columns} == {"energy_j", "power_w"}
        fields = [
            Field(
                f"c{s.at}", s.title, "reported_power_w" if both and s.quantity == "power_w" else s.quantity,
                s.unit or log.options.units.get(s.quantity, ""), required=s.quantity == "energy_j" or not both,
            ) for s in columns
        ]  # fmt: skip
        mine = raw.with_columns(device=pl.lit(device))
        values, bad = table.convert(mine, fields)
        values, impossible = _impossible(values, mine, fields, scope)
        values, judged = table.judge(values, mine, fields, scope or _WIDEST)
        rejects.append(impossible)
        frames.append(table.kept(values.with_columns(raw["end_utc"].alias("ts_utc"), raw["span_s"])))
        rejects += [bad, judged]
        channels.append(Channel(device, scope, kind="energy" if "energy_j" in values.columns else "mean"))
    whole = None if log.options.scope or log.options.device else run_totals.of(frames, [c.scope for c in channels])
    if whole is not None:
        frames[whole] = frames[whole].with_columns(device=pl.lit("components"))
        channels[whole] = replace(channels[whole], device="components", scope="components")
    return pl.concat(frames, how="diagonal"), pl.concat(rejects), tuple(channels)


def _impossible(
    values: pl.DataFrame, raw: pl.DataFrame, fields: list[Field], scope: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Set aside energies that no device uses in that time: below nothing, or above what its boundary can draw."""
    field = next((f for f in fields if f.quantity == "energy_j"), None)
    if field is None:
        return values, table.no_rejects()
    energy, most = values["energy_j"], rules.CEILING_W[scope or _WIDEST] * raw["span_s"]
    bad = ((energy < 0) | (energy > most)).fill_null(value=False)
    if not bad.any():
        return values, table.no_rejects()
    rule = pl.when(pl.lit(energy.filter(bad)) < 0).then(pl.lit("negative")).otherwise(pl.lit("beyond-physical"))
    rejects = table.cell_rejects(raw.filter(bad), field, rule)
    kept = pl.DataFrame({"energy": energy, "bad": bad}).select(pl.when(~pl.col("bad")).then("energy").alias("energy_j"))
    return values.with_columns(kept.to_series()), rejects


def _own_device(log: Log, spent: list[Spent]) -> str:
    """Return what columns are about whose title does not say."""
    if log.options.device:
        return log.options.device
    usual = {"board": "gpu", "package": "cpu"}.get(log.options.scope or "", log.options.scope or "node")
    return "sensor" if usual in {s.device for s in spent} else usual


def _work(
    log: Log, raw: pl.DataFrame, numbers: pl.DataFrame, found: Columns, spent: list[Spent]
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Return the runs; where rows are phases, the run that they make, and the phases."""
    used = {*(i for r, i in found.roles.items() if r != "tokens_per_s"), *(s.at for s in spent)}
    others = [i for i in range(len(found.titles)) if i not in used]
    name = pl.col(f"c{found.roles['run']}").fill_null("") if "run" in found.roles else pl.lit(None, pl.String)
    frame = raw.select("line", "start_utc", "end_utc", name=name).hstack(numbers.drop("line"))
    stem = step_log.run_of(log)
    if "phase" in found.roles:
        run = pl.coalesce("name", pl.lit(stem))
        phase = raw[f"c{found.roles['phase']}"].fill_null("")
        phases = frame.select(run_id=run, phase=phase, start_utc="start_utc", end_utc="end_utc", origin=pl.lit(ORIGIN))
        batch = pl.col("batch_size").drop_nulls()
        runs = frame.group_by(run.alias("run_id"), maintain_order=True).agg(
            host=pl.lit(log.options.host), start_utc=pl.col("start_utc").min(), end_utc=pl.col("end_utc").max(), origin=pl.lit(ORIGIN),
            batch_size=pl.when(batch.n_unique() == 1).then(batch.first()), labels=pl.lit("{}"),
        )  # fmt: skip
        return runs, phases.filter(pl.col("phase") != "")
    numbered = pl.format("{}-{}", pl.lit(stem), pl.int_range(1, pl.len() + 1).cast(pl.String).str.zfill(4))
    frame = frame.with_columns(run_id=pl.when(pl.col("name").fill_null("") != "").then("name").otherwise(numbered))
    again = pl.int_range(1, pl.len() + 1).over("run_id")
    runs = frame.with_columns(raw.pipe(run_rows.labels, found, others, log.options.units)).select(
        run_id=pl.when(again == 1).then("run_id").otherwise(pl.format("{}#{}", "run_id", again)), host=pl.lit(log.options.host),
        start_utc="start_utc", end_utc="end_utc", origin=pl.lit(ORIGIN), tokens="tokens", samples="samples", batch_size="batch_size",
        labels="labels",
    )  # fmt: skip
    return runs, None


def _findings(log: Log, found: Columns, spent: list[Spent]) -> tuple[Finding, ...]:
    read = {s.at for s in spent}
    left = [s.title for s in found.spent if s.at not in read]
    sums = [s.title for s in spent if s.scope == "part"]
    told = []
    if left:
        told.append(Finding(
            "columns-not-read", Severity.NOTE, log.name,
            f"Not read, as another column says the same or no unit is known: {', '.join(left)}.", {"columns": left},
        ))  # fmt: skip
    if sums:
        told.append(Finding(
            "column-is-part", Severity.NOTE, log.name,
            f"Read but not added, as another column holds it or its parts: {', '.join(sums)}.", {"columns": sums},
        ))  # fmt: skip
    return tuple(told)


ADAPTER = Adapter(
    name="run-table",
    title="run tables of experiment runners and sweeps, one row a run (CSV, JSON, Markdown); ZeusMonitor windows",
    yields="runs with given energy or mean power, tokens, batch size and knobs as labels",
    sniff=_sniff,
    parse=_parse,
)
