"""Which readings of a scope a number is made from, where several instruments saw the same watts.

Two instruments of one boundary are two witnesses, never two parts: one is chosen, with the reason, and the others serve
for comparison.
"""

from __future__ import annotations

import polars as pl

from joulebook import instrument_order, instrument_parts
from joulebook.findings import Finding, Severity
from joulebook.instrument_order import ENOUGH_COVERAGE

SAME_START_S = 5.0
"""Records of one start agree to this [s]: stamps of trackers are whole seconds, taken a moment late."""

WHOLE = frozenset({"node", "rack", "facility", "components", "gpu", "cpu", "dram"})
"""Devices that stand for all of their scope: where one is there, its parts are not added to it."""

TWICE = "the same device is in another file of the study"
"""Why a file is left out that holds a device over the time of another file."""

OVERLAP_SHARE = 0.25
"""Share of the shorter file's time from which on two files of a device are no parts of one log: rotation repeats some lines."""

MOST_NAMED = 8
"""Files that are named one by one; of more, the number is told."""

CHOICE_SCHEMA = {
    "run_id": pl.String, "host": pl.String, "scope": pl.String, "source_id": pl.Int32, "device": pl.String, "chosen": pl.Boolean,
    "coverage_ratio": pl.Float64, "reason": pl.String, "passed_from_s": pl.Float64, "passed_until_s": pl.Float64,
}  # fmt: skip


def choose(channels: pl.DataFrame) -> pl.DataFrame:
    """Choose one instrument for every run, host and scope.

    Parameters
    ----------
    channels
        One row a run and channel that has readings in it: ``run_id, host, scope, source_id, adapter, clock, family, device,
        period_s, n, coverage_ratio``; to tell a copy of a part of a file, ``begin_s, end_s`` of what it saw and
        ``filled_ratio``, the share of that time which it covers; and, to tell which of two is the better one, ``kind``,
        ``grain_w`` and ``usual_w``, the step of its values and their median [W], and ``made_up``, whether its times were laid;
        ``spanned``, whether readings are over spans, is needed to join instruments that saw parts of the run.

    Returns
    -------
    polars.DataFrame
        ``run_id, host, scope, source_id, device, chosen, coverage_ratio, reason``, same rows; ``passed_from_s`` and ``passed_until_s``
        bound the time of a better instrument, for which this one is not used.

    Examples
    --------
    >>> row = {"run_id": "r", "host": "n", "scope": "node", "device": "node", "clock": "c", "n": 9, "period_s": 1.0,
    ...        "coverage_ratio": 1.0}
    >>> both = pl.DataFrame([
    ...     row | {"source_id": 1, "adapter": "ipmitool", "family": "sensor"},
    ...     row | {"source_id": 2, "adapter": "meter-csv", "family": "meter"},
    ... ])
    >>> choose(both).filter("chosen")["source_id"].to_list()
    [2]
    """
    return shown(judged(channels))


def judged(channels: pl.DataFrame) -> pl.DataFrame:
    """Return the channels with all that the choice rests on, as :func:`joulebook.instrument_parts.find` needs it."""
    if channels.is_empty():
        return channels
    return instrument_parts.joined(_ranked(_one_source_a_device(_whole_or_parts(channels))))


def shown(judged_channels: pl.DataFrame) -> pl.DataFrame:
    """Return what :func:`choose` returns, of judged channels."""
    if judged_channels.is_empty():
        return pl.DataFrame(schema=CHOICE_SCHEMA)
    rows = judged_channels.select(pl.col(c).cast(t) for c, t in CHOICE_SCHEMA.items())
    return rows.sort("run_id", "host", "scope", "source_id", "device")


def in_several_files(choice: pl.DataFrame, sources: pl.DataFrame, channels: pl.DataFrame) -> list[Finding]:
    """Say which devices several files hold at the same time: logs of several machines that nothing tells apart look so.

    Parameters
    ----------
    choice
        As :func:`choose` returns.
    sources
        ``source_id, path``.
    channels
        ``source_id, device, uuid, kind``; energies of runs are left out: a run that is told twice is told as that.
    """
    sampled = channels.filter(pl.col("kind") != "energy")
    choice = choice.join(sampled.select("source_id", "device", "uuid"), on=["source_id", "device"], how="inner")
    mine = choice.filter((pl.col("reason") == TWICE) & ~pl.col("scope").is_in(["", "part"]))
    if mine.is_empty():
        return []
    key = ["host", "scope", "device"]
    told = choice.join(mine.select(*key).unique(), on=key, how="semi").filter(
        pl.col("chosen") | (pl.col("reason") == TWICE)
    )
    told = told.join(sources.select("source_id", "path"), on="source_id")
    cards = pl.col("uuid").filter(pl.col("uuid") != "").n_unique().over(key)
    others = bool(told.select((cards > 1).any()).item())
    used = ", ".join(sorted(told.filter("chosen")["path"].unique()))
    left = sorted(told.filter(~pl.col("chosen"))["path"].unique())
    shown = ", ".join(left[:MOST_NAMED]) + (f" and {len(left) - MOST_NAMED} more" if left[MOST_NAMED:] else "")
    devices = sorted(told["device"].unique())
    why = (
        "They name different cards, so they are of several machines"
        if others
        else "If they are of several machines, only that one is counted"
    )
    return [Finding(
        "device-in-several-files", Severity.ERROR if others else Severity.WARNING, str(mine["host"][0]),
        f"{', '.join(devices[:MOST_NAMED])} is in {used} and, at the same time, in {shown}: the first is used, the others are in no "
        "number. "
        f'{why}: give each machine its host = "…" in [[source]].',
        {"devices": devices, "files": left},
    )]  # fmt: skip


def _whole_or_parts(channels: pl.DataFrame) -> pl.DataFrame:
    """Set aside the parts of an instrument that reads their whole as well."""
    instrument = list(instrument_order.INSTRUMENT)
    whole = pl.col("device").is_in(sorted(WHOLE)) | (pl.col("device") == pl.col("scope"))
    part_beside = ~whole & whole.any().over(instrument)
    reason = pl.when(part_beside).then(pl.lit("part of another reading of the same instrument")).otherwise(pl.lit(""))
    return channels.with_columns(
        usable=~part_beside & (pl.col("scope") != "part") & (pl.col("scope") != ""), reason=reason
    )


def _one_source_a_device(channels: pl.DataFrame) -> pl.DataFrame:
    """Keep one of the files in which the same device was logged over the same time; rotated parts do not overlap."""
    key = [*instrument_order.INSTRUMENT, "device"]
    overlapping = (pl.col("coverage_ratio").sum().over(key) > 1.5) & (pl.len().over(key) > 1)
    best = pl.col("n").rank("ordinal", descending=True).over(key) == 1
    inside = _inside_another(channels, key)
    twice = (overlapping & ~best) | _beside_another(channels, key)
    reason = (
        pl.when(inside).then(pl.lit("part of what another file of the study holds"))
        .when(twice).then(pl.lit(TWICE)).otherwise("reason")
    )  # fmt: skip
    return channels.with_columns(usable=pl.col("usable") & ~twice & ~inside, reason=reason)


def _beside_another(channels: pl.DataFrame, key: list[str]) -> pl.Series:
    """Tell which files saw a device over much of the time of another file that has more of it: joined, two machines would be one."""
    if not {"begin_s", "end_s", "filled_ratio"} <= set(channels.columns):
        return pl.Series([False] * channels.height, dtype=pl.Boolean)
    numbered = channels.with_row_index("place")
    covered_s = (pl.col("end_s") - pl.col("begin_s")) * pl.col("filled_ratio")
    mine = numbered.select("place", *key, "n", "begin_s", "end_s", covered_s=covered_s)
    pairs = mine.join(mine, on=key, suffix="_other")
    more = (pl.col("n_other") > pl.col("n")) | (
        (pl.col("n_other") == pl.col("n")) & (pl.col("place_other") < pl.col("place"))
    )
    all_s = pl.max_horizontal("end_s", "end_s_other") - pl.min_horizontal("begin_s", "begin_s_other")
    # What both cover together beyond the time from their first to their last reading they cover twice.
    twice_s = pl.col("covered_s") + pl.col("covered_s_other") - all_s
    shorter_s = pl.min_horizontal("covered_s", "covered_s_other")
    beside = pairs.filter(more & (twice_s > OVERLAP_SHARE * shorter_s) & (twice_s > 0))
    return numbered.select(pl.col("place").is_in(beside["place"].unique().to_list())).to_series()


def _inside_another(channels: pl.DataFrame, key: list[str]) -> pl.Series:
    """Tell which files saw nothing of a device but a part of what another file saw without a hole: an earlier flush, a copy."""
    if not {"begin_s", "end_s", "filled_ratio"} <= set(channels.columns):
        return pl.Series([False] * channels.height, dtype=pl.Boolean)
    numbered = channels.with_row_index("place")
    mine = ["source_id", "begin_s", "end_s"]
    beside = numbered.select("place", *key, *mine).join(
        numbered.filter(pl.col("filled_ratio") >= ENOUGH_COVERAGE).select(*key, *mine), on=key, suffix="_other"
    )
    seen_s, other_s = pl.col("end_s") - pl.col("begin_s"), pl.col("end_s_other") - pl.col("begin_s_other")
    within = beside.filter(
        (pl.col("source_id") != pl.col("source_id_other")) & (seen_s < other_s)
        & (pl.col("begin_s") >= pl.col("begin_s_other") - SAME_START_S) & (pl.col("end_s") <= pl.col("end_s_other"))
    )  # fmt: skip
    return numbered.select(pl.col("place").is_in(within["place"].unique().to_list())).to_series()


def _ranked(channels: pl.DataFrame) -> pl.DataFrame:
    """Choose the first instrument of each scope, in their order."""
    instruments = instrument_order.placed(channels.filter("usable"))
    joined = channels.join(instruments, on=instrument_order.INSTRUMENT, how="left")
    chosen = pl.col("usable") & (pl.col("place") == 0)
    why = (
        pl.when(chosen & (pl.len().over(*instrument_order.SCOPE) == 1)).then(pl.lit("the only reading of its scope"))
        .when(chosen).then(pl.lit("used"))
        .when(pl.col("reason") != "").then("reason")
        .when(~pl.col("usable")).then(pl.lit("belongs to no boundary"))
        .when(pl.col("short") & ~pl.col("best_short"))
        .then(pl.format("covers {} of the run; {} covers more", pl.col("coverage_ratio").round(2), "best"))
        .otherwise(pl.format("a second witness of the scope; {} is used: {}", "best", "why"))
    )  # fmt: skip
    return joined.with_columns(chosen=chosen.fill_null(value=False), reason=why)
