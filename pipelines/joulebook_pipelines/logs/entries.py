"""Formats that say one value a line or element: entries, each with its own line, gathered into readings.

An entry is a row of ``row, line, device, ts_utc, quantity, header, unit, raw``: entries with one ``row`` make one
reading. Each entry ends in the readings or in the rejects, with the line on which it stands.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from joulebook import rules, schema
from joulebook_pipelines.logs import cells, table

SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "row": pl.Int64, "line": pl.Int64, "device": pl.String, "ts_utc": schema.UTC, "quantity": pl.String,
    "header": pl.String, "unit": pl.String, "raw": pl.String,
}  # fmt: skip


def fresh(readings: pl.DataFrame, told: set[str]) -> list[str]:
    """Return the devices of readings that were not told before, which now are."""
    devices = [d for d in readings["device"].unique(maintain_order=True) if d not in told]
    told.update(devices)
    return devices


def gather(
    entries: pl.DataFrame, scopes: Mapping[str, str], *, never_zero: bool | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return readings and rejects of entries.

    Parameters
    ----------
    entries
        Columns of :data:`SCHEMA`, every one with a device; one without ``ts_utc`` is rejected.
    scopes
        Boundary of each device; an unknown one is judged like a part.
    never_zero
        As in :func:`joulebook.rules.rules_for`.

    Returns
    -------
    tuple of polars.DataFrame
        ``line, device, ts_utc`` and quantities, in the order of the rows; and the rejects.
    """
    nothing = pl.DataFrame(schema={"line": pl.Int64, "device": pl.String, "ts_utc": schema.UTC})
    if entries.is_empty():
        return nothing, table.no_rejects()
    told = _with_numbers(entries)
    again = ~pl.struct("row", "quantity").is_first_distinct()
    # A counter that is 0 all along is one that the device does not have, not a device that used nothing.
    counter = pl.when(pl.col("quantity") == "energy_counter_j").then("number")
    dead = (counter == 0) & (counter.max().over("device") == 0)
    why = (
        pl.when(pl.col("ts_utc").is_null()).then(pl.lit("row-without-time"))
        .when(pl.col("number").is_null() & pl.col("text").is_null()).then(cells.why_null(pl.col("raw").fill_null("")))
        .when(again).then(pl.lit("said-twice"))
        .when(dead).then(pl.lit("zero-counter"))
    )  # fmt: skip
    told = told.with_columns(rule=why)
    rejects = [rejected(told.filter(pl.col("rule").is_not_null()), pl.col("rule"))]
    good = told.filter(pl.col("rule").is_null())
    if good.is_empty():
        return nothing, pl.concat(rejects)
    wide, broken = _judged(_wide(good), scopes, never_zero)
    if broken.height:
        rejects.append(rejected(good.join(broken, on=["row", "quantity"], how="inner"), pl.col("rule_broken")))
    return table.kept(wide.drop("row")), pl.concat(rejects)


def rejected(rows: pl.DataFrame, rule: pl.Expr | str) -> pl.DataFrame:
    """Return rejects of entries under a rule."""
    named = pl.lit(rule) if isinstance(rule, str) else rule
    return rows.select(
        pl.col("line").cast(pl.Int64), "device", column_name="header", rule=named,
        raw=pl.col("raw").fill_null("").str.head(table.LONGEST_RAW),
    )  # fmt: skip


def _with_numbers(entries: pl.DataFrame) -> pl.DataFrame:
    """Add ``number`` in canonical units, or ``text`` for quantities that are words."""
    frames = []
    for (quantity, unit), mine in entries.group_by("quantity", "unit", maintain_order=True):
        name, unit_ = str(quantity), str(unit)
        if name in cells.TEXT_QUANTITIES:
            frames.append(
                mine.with_columns(number=pl.lit(None, pl.Float64), text=cells.number(pl.col("raw"), name, unit_))
            )
            continue
        if cells.factor(name, unit_) is None:
            unit_ = ""  # a unit that does not fit tells no number: a damaged cell, or another thing under a known name
        told = mine.with_columns(number=cells.number(pl.col("raw"), name, unit_), text=pl.lit(None, pl.String))
        if told["number"].null_count():  # cells with another unit than their name says
            told = told.with_columns(pl.coalesce("number", cells.with_own_unit(pl.col("raw"), name)))
        frames.append(told)
    return pl.concat(frames).sort("row", "line", maintain_order=True)


def _wide(good: pl.DataFrame) -> pl.DataFrame:
    """Return one row per ``row`` with a column per quantity; its line is that of the power, else the first."""
    present = [q for q in schema.QUANTITY_NAMES if q in set(good["quantity"].unique())]
    powers = pl.col("line").filter(pl.col("quantity").is_in(["power_w", "energy_counter_j", "energy_j"]))
    columns = [
        pl.col("text" if q in cells.TEXT_QUANTITIES else "number").filter(pl.col("quantity") == q).first().alias(q)
        for q in present
    ]
    return good.group_by("row", maintain_order=True).agg(
        pl.coalesce(powers.first(), pl.col("line").first()).alias("line"),
        pl.col("device", "ts_utc").first(),
        *columns,
    )


def _judged(
    wide: pl.DataFrame, scopes: Mapping[str, str], never_zero: bool | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Apply the physical rules, and return what broke one as ``row, quantity, rule_broken``."""
    scope = pl.col("device").replace_strict(dict(scopes), default="part", return_dtype=pl.String)
    frames, broken = [], [pl.DataFrame(schema={"row": pl.Int64, "quantity": pl.String, "rule_broken": pl.String})]
    for (name,), mine in wide.with_columns(scope=scope).group_by("scope", maintain_order=True):
        keyed = mine.drop("scope").rename({"line": "at", "row": "line"})
        judged, bad = rules.judge(keyed, str(name) or "part", never_zero=never_zero)
        frames.append(judged.rename({"line": "row", "at": "line"}))
        broken.append(bad.select(row="line", quantity="quantity", rule_broken="rule"))
    whole = pl.concat(frames) if frames else wide
    return whole.sort("row", maintain_order=True), pl.concat(broken)
