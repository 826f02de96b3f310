"""What stands around the numbers: what power varies with, days, shared machines, other hours."""

from __future__ import annotations

import polars as pl
from markupsafe import Markup

from joulebook import boundaries, schema
from joulebook.plots.drivers import NAMES
from joulebook_pipelines import metrics, shown
from joulebook_pipelines.metrics import Unit
from joulebook_pipelines.report import comparison_pictures
from joulebook_pipelines.report.blocks import Block, Column, Section, Table, Text, copyable
from joulebook_pipelines.report.pictures import Budget
from joulebook_pipelines.report.sections.cost import currency, shared_whole
from joulebook_pipelines.report.source import Source
from joulebook_pipelines.shown import Number

ROWS_SHOWN = 40
"""Rows of a table on the page; the store has all."""
_PERCENT = Unit("%", 0.01)


def drivers(source: Source, budget: Budget) -> Section | None:
    """Return the share of the variance of each driver, ``None`` where nothing was looked for."""
    rows = source.rows("drivers")
    if rows.is_empty():
        return None
    order = [d for d in NAMES if d in set(rows["driver"])]
    order = [d for d in order if d != "unexplained"] + ["unexplained"]
    by_device = rows.partition_by("run_id", "scope", "device", as_dict=True, maintain_order=True)
    made: list[list[str | Number]] = []
    for key, of in list(by_device.items())[:ROWS_SHOWN]:
        known = {r["driver"]: r for r in of.iter_rows(named=True)}
        why = next((r["reason"] for r in known.values() if r["reason"]), "")
        shares = [known.get(d, {}) for d in order]
        made.append([
            *map(str, key),
            *(shown.number(s.get("share_ratio"), s.get("share_lo"), s.get("share_hi"), unit=_PERCENT, reason="–")
              for s in shares),
            why or "",
        ])  # fmt: skip
    columns = [Column(c) for c in ("run", "boundary", "device")] + [Column(NAMES[d], "%") for d in order]
    caption = (
        f"Share of the variance of power, in the longest steady stretch of each run.{_more(len(by_device), 'drivers')}"
    )
    lead = (
        "How much of the up and down of power goes with what was logged beside it. What is not explained is noise, the "
        "steps themselves and whatever was not logged; going together is not yet a cause."
    )
    if any(row[-1] for row in made):
        columns.append(Column("why there is none"))
    table = Table(columns, [row[: len(columns)] for row in made], caption, "table-drivers")
    picture = comparison_pictures.drivers(source, budget)
    return Section("drivers", "What does power go with?", [Text(lead), *([picture] if picture else []), table])


def days(source: Source, budget: Budget) -> Section | None:
    """Return the board of days, ``None`` where there is one day only."""
    rows = source.rows("days")
    if rows["day"].n_unique() < 2:
        return None
    known = [s for s in schema.SCOPES if s in set(rows["scope"])]
    kept = boundaries.split(known)
    rows = rows.filter(pl.col("scope").is_in(kept)).sort("day", "scope")
    made: list[list[str | Number]] = [
        [
            r["day"], r["scope"], shown.exact(r["runs"]),
            shown.number(r["mfu_ratio"], unit=_PERCENT, reason="–"), shown.number(r["tokens_per_j"], reason="–"),
            shown.number(r["pue"], reason="–"),
            shown.ratio(r["mfu_ratio_change_ratio"], reason="–"), shown.ratio(r["tokens_per_j_change_ratio"], reason="–"),
        ]
        for r in rows.tail(ROWS_SHOWN).iter_rows(named=True)
    ]  # fmt: skip
    columns = [
        Column("day"), Column("boundary"), Column("runs"), Column("MFU", "%"), Column("tokens per joule", "1/J"),
        Column("PUE"), Column("MFU since the first day", "%"), Column("tokens per joule since then", "%"),
    ]  # fmt: skip
    more = f" The last {ROWS_SHOWN} of {rows.height}; the table days has all." if rows.height > ROWS_SHOWN else ""
    picture = comparison_pictures.days(rows, budget)
    parted = [g for g in source.footnotes.groups if g.code == "efficiency-diverges"]
    blocks: list[Block] = [picture] if picture else []
    blocks += [Text(f["message"]) for g in parted for f in g.findings[:3]]
    table = Table(columns, made, f"Means over the runs that started on a day (UTC).{more}", "table-days")
    return Section("days", "Did the days differ?", [*blocks, table])


def shares(source: Source, budget: Budget) -> Section | None:
    """Return who used a shared machine, ``None`` where none was shared."""
    rows = source.rows("shares")
    if rows.is_empty():
        return None
    blocks: list[Block] = []
    groups = rows.partition_by("host", "scope", "start_utc", maintain_order=True)
    for at, of in enumerate(groups[:4]):
        unit = metrics.unit_for("energy_j", of["energy_j"].to_list())
        made: list[list[str | Number]] = [
            [r["run_id"], shown.number(r["energy_j"], r["energy_lo"], r["energy_hi"], unit=unit, reason="–"),
             shown.number(r["share_ratio"], unit=_PERCENT, reason="–"), r["method"] or ""]
            for r in of.sort("energy_j", descending=True, nulls_last=True).head(ROWS_SHOWN).iter_rows(named=True)
        ]  # fmt: skip
        host, scope = of["host"][0] or "the machine", of["scope"][0]
        start, end = (
            of[c].dt.convert_time_zone(source.timezone).dt.strftime("%Y-%m-%d %H:%M")[0]
            for c in ("start_utc", "end_utc")
        )
        caption = f"Host {host}: energy at the {scope} from {start} to {end} ({source.timezone})."
        picture = comparison_pictures.shares(of, budget, host, at)
        columns = [Column("run"), Column("energy", unit.name), Column("share", "%"), Column("split by")]
        blocks += [*([picture] if picture else []), Table(columns, made, caption, f"table-shares-{at + 1}")]
    return Section("shares", "Who used the shared machine?", blocks)


def better_hour(source: Source) -> Markup | None:
    """Return in words which run would have gained most by another start, ``None`` where no curve was given."""
    rows = source.rows("what_if").drop_nulls("value")
    least = rows.sort("value", "shift_h").unique(["run_id", "metric"], keep="first", maintain_order=True)
    was = rows.filter(pl.col("shift_h") == 0.0).select("run_id", "metric", was="value")
    gains = least.join(was, on=["run_id", "metric"]).filter(pl.col("value") < pl.col("was"))
    if gains.is_empty():
        return None
    row = gains.sort(pl.col("was") - pl.col("value"), "run_id", descending=[True, False]).row(0, named=True)
    unit = metrics.unit_for(row["metric"], [row["was"]], currency=currency(source))
    amounts = [copyable(shown.number(row[k], unit=unit)) for k in ("value", "was")]
    return Markup(
        "Start at a better hour: {}, run {} would have come to {} instead of {} (<a href='#hours'>hours</a>)."
    ).format(_start(row["shift_h"]), row["run_id"], *amounts)


def hours(source: Source) -> Section | None:
    """Return carbon and cost at the best and the worst start, ``None`` where no curve was given."""
    rows = source.rows("what_if").drop_nulls("value")
    if rows.is_empty():
        return None
    made: list[list[str | Number]] = []
    for run in source.runs:
        for metric in ("carbon_kg", "cost"):
            of = rows.filter((pl.col("run_id") == run) & (pl.col("metric") == metric)).sort("value", "shift_h")
            was = of.filter(pl.col("shift_h") == 0.0)
            if of.is_empty() or was.is_empty():
                continue
            unit = metrics.unit_for(metric, of["value"].to_list(), currency=currency(source))
            best, worst = of.row(0, named=True), of.row(-1, named=True)
            three = (was.row(0, named=True), best, worst)
            amounts = [shown.number(r["value"], r.get("lo"), r.get("hi"), unit=unit) for r in three]
            made.append([
                run, f"{metrics.of(metric).label} [{unit.name}]", amounts[0], amounts[1], _start(best["shift_h"]), amounts[2],
                _start(worst["shift_h"]),
            ])  # fmt: skip
    if not made:
        return None
    columns = [
        Column("run"), Column("amount"), Column("as it was"), Column("least"), Column("started"), Column("most"),
        Column("started"),
    ]  # fmt: skip
    caption = (
        f"The same run moved along the same curve of the grid or the price.{_more(len(made), 'what_if')} Nothing else is "
        "assumed to change: not the room, not the load of others. Amounts and intervals are those of the facility energy; what is not "
        "known of it is the same at every start, so the difference of two starts is known better than each of them."
    ) + shared_whole(source)
    table = Table(columns, made[:ROWS_SHOWN], caption, "table-hours")
    return Section("hours", "Would another hour have been better?", [table])


def _start(shift_h: float) -> str:
    if shift_h == 0.0:
        return "when it did"
    return f"{abs(shift_h):g} h {'later' if shift_h > 0 else 'earlier'}"


def _more(rows: int, table: str) -> str:
    return f" The first {ROWS_SHOWN} of {rows}; the table {table} has all." if rows > ROWS_SHOWN else ""
