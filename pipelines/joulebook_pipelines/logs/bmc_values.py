"""Values of a management controller's sensors: which rule one breaks, what is rejected, and readings of the rest."""

from __future__ import annotations

import polars as pl

from joulebook import own_time, rules
from joulebook_pipelines.logs import bmc_doubts, cells, clock_set, table

CLOCK_SET_FROM = pl.lit(own_time.SET_FROM.replace(tzinfo=None))
"""A controller that knows no time counts from 1970, or from 2000."""


def rule_of(no_time: str) -> pl.Expr:
    """Return the name of the rule that a reading breaks before its size is judged; null where none."""
    null, time = pl.col("number").is_null(), pl.col("ts_utc").is_null()
    idle = pl.col("state").str.contains(bmc_doubts.INACTIVE).fill_null(value=False) & (pl.col("number") == 0)
    again = (pl.col("quantity") == "power_w") & ~pl.struct("mark", "device", "quantity").is_first_distinct()
    return (
        pl.when(null & pl.col("value").str.contains("^0x")).then(pl.lit("discrete-state"))
        .when(null).then(cells.why_null(pl.col("value")))
        .when(pl.col("canonical") == "").then(pl.lit("no-unit"))
        .when(pl.col("is_dcmi") & idle).then(pl.lit("deactivated"))
        .when(time & pl.col("is_dcmi") & (pl.col("own") < CLOCK_SET_FROM)).then(pl.lit(clock_set.RULE))
        .when(time).then(pl.lit(no_time))
        .when(again).then(pl.lit("second-under-one-stamp"))
    )  # fmt: skip


def cell_rejects(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rejects of cells, with the rule of each."""
    raw = pl.col("said").fill_null("").str.strip_chars().str.head(table.LONGEST_RAW)
    return rows.select("line", "device", column_name="name", rule="rule", raw=raw)


def judged(raw: pl.DataFrame, scopes: dict[str, str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return readings with a column per quantity, and rejects of what is physically impossible."""
    present = raw["quantity"].unique(maintain_order=True).to_list()
    wide = raw.with_columns(pl.when(pl.col("quantity") == q).then("number").alias(q) for q in present)
    scope = pl.col("device").replace_strict(scopes, default="part", return_dtype=pl.String)
    wide = wide.with_columns(scope=scope, whole=(pl.col("device") == "node"))
    rejects, frames = [], []
    for (scope_, whole), mine in wide.group_by("scope", "whole", maintain_order=True):
        # A whole machine that answers never draws 0 W; a supply in standby does.
        bare = mine.select("line", "device", *present)
        _, broken = rules.judge(bare, str(scope_), never_zero=True if whole else None)
        if broken.is_empty():
            frames.append(mine)
            continue
        joined = mine.join(
            broken.select("line", "device", "rule"),
            on=["line", "device"],
            how="left",
            suffix="_broken",
            maintain_order="left",
        )
        gone = pl.col("rule_broken").is_not_null()
        rejects.append(cell_rejects(joined.filter(gone).with_columns(rule="rule_broken")))
        frames.append(joined.filter(~gone).select(mine.columns))
    columns = ["line", "device", "ts_utc", *present]
    good = pl.concat(frames).select(columns).sort("line") if frames else raw.select("line", "device", "ts_utc").clear()
    return good, pl.concat(rejects) if rejects else table.no_rejects()
