"""The order of instruments that saw the same watts, the best first, and in words why each other one stands behind it."""

from __future__ import annotations

import polars as pl

FAMILIES = ("meter", "sensor", "model")
"""From most to least trusted: an instrument in the supply line, the device's own sensor, a tracker's estimate."""

ENOUGH_COVERAGE = 0.95
"""An instrument that covers less of the run yields to one that covers more."""

SAME_COVERAGE = 0.01
"""Coverages that differ by less are alike: logs of one pace begin and end at other moments."""

SAME_PACE = 1.5
"""Periods up to this ratio are one pace; a denser log has more to tell than finer digits have."""

FINE_RATIO = 1e-3
"""A grain below this share of the usual power is fine enough: no sensor is as exact."""

TOLD_KINDS = ("mean", "counter", "energy", "on-change")
"""Kinds that say what lies between two readings, which single instants do not."""

SCOPE = ("run_id", "host", "scope")
INSTRUMENT = (*SCOPE, "adapter", "clock")

_NO_MATTER = {"kind": pl.String, "grain_w": pl.Float64, "usual_w": pl.Float64, "made_up": pl.Boolean}
"""What need not be known of a channel."""

_KEYS = ("short", "lacking", "rank", "made_up", "sparse", "slow", "coarse", "instant")
"""What an instrument yields for, the weightiest first; each is least for the best one."""


def placed(channels: pl.DataFrame) -> pl.DataFrame:
    """Return the instruments of each scope in their order.

    Enough coverage comes first, then whether all devices are there, then the kind of instrument, then stamps of its own,
    coverage, pace, the grain of the values, and whether it is told what a reading is. The name decides where nothing else does.

    Parameters
    ----------
    channels
        Usable channels, as for :func:`joulebook.instruments.choose`.

    Returns
    -------
    polars.DataFrame
        ``run_id, host, scope, adapter, clock, place`` (0 = the best), ``best`` (its name), ``short``, ``best_short`` and ``why``
        it is behind the best one.

    Examples
    --------
    >>> row = {"run_id": "r", "host": "n", "scope": "board", "clock": "n", "family": "sensor", "device": "gpu:0",
    ...        "period_s": 1.0, "coverage_ratio": 1.0, "usual_w": 300.0}
    >>> both = pl.DataFrame([row | {"adapter": "a", "grain_w": 1.0}, row | {"adapter": "b", "grain_w": 0.01}])
    >>> placed(both).select("adapter", "place", "why").rows()
    [('b', 0, ''), ('a', 1, 'its values are in steps of 0.01 W, here 1.0 W')]
    """
    known = channels.with_columns(pl.lit(None, t).alias(c) for c, t in _NO_MATTER.items() if c not in channels.columns)
    judged = _judged(_instruments(known))
    best = {f"best_{c}": pl.col(c).first().over(SCOPE) for c in (*_KEYS, "covered", "step_s", "grain_w", "family")}
    return (
        judged.sort(*_KEYS, "covered", "step_s", "grain_w", "adapter", "clock",
                    descending=[c == "covered" for c in (*_KEYS, "covered", "step_s", "grain_w", "adapter", "clock")], nulls_last=True)
        .with_columns(place=pl.int_range(pl.len()).over(SCOPE), best=_name().first().over(SCOPE), **best)
        .with_columns(why=_why())
        .select(*INSTRUMENT, "place", "best", "short", "best_short", "why")
    )  # fmt: skip


def _instruments(channels: pl.DataFrame) -> pl.DataFrame:
    """Return one row an instrument, with the worst of its channels where they differ."""
    order = {f: i for i, f in enumerate(FAMILIES)}
    return channels.group_by(*INSTRUMENT, maintain_order=True).agg(
        covered=pl.col("coverage_ratio").sum() / pl.col("device").n_unique(),
        rank=pl.col("family").replace_strict(order, default=len(FAMILIES), return_dtype=pl.Int64).min(),
        family=pl.col("family").first(),
        step_s=pl.col("period_s").median(),
        grain_w=pl.col("grain_w").max(),
        coarse=(pl.col("grain_w") / pl.col("usual_w").abs()).max(),
        instant=~pl.col("kind").is_in(TOLD_KINDS).all() & pl.col("kind").is_not_null().all(),
        made_up=pl.col("made_up").fill_null(value=False).any(),
        devices=pl.col("device").unique(),
    )


def _judged(instruments: pl.DataFrame) -> pl.DataFrame:
    """Add what each instrument yields for, next to the others of its scope."""
    least_s, most = pl.col("step_s").min().over(SCOPE), pl.col("covered").max().over(SCOPE)
    coarse = pl.col("coarse").fill_null(0.0)
    judged = instruments.with_columns(
        short=pl.col("covered") < ENOUGH_COVERAGE,
        sparse=pl.col("covered") < most - SAME_COVERAGE,
        slow=(pl.col("step_s") > SAME_PACE * least_s).fill_null(value=False),
        coarse=pl.when(coarse > FINE_RATIO).then("grain_w").otherwise(0.0),
    )
    return judged.with_columns(lacking=_lacking(judged))


def _lacking(judged: pl.DataFrame) -> pl.Series:
    """Tell which instruments lack a device that another one of no lesser kind has besides all of theirs, over enough of the run."""
    numbered = judged.with_row_index("_at")
    fuller = numbered.filter(~pl.col("short")).select(*SCOPE, "rank", "devices")
    pairs = numbered.select("_at", *SCOPE, "rank", "devices").join(fuller, on=SCOPE, suffix="_other")
    within = pl.col("devices").list.set_difference("devices_other").list.len() == 0
    more = pl.col("devices_other").list.len() > pl.col("devices").list.len()
    lacks = pairs.filter(within & more & (pl.col("rank_other") <= pl.col("rank")))
    return numbered.select(pl.col("_at").is_in(lacks["_at"].unique().to_list())).to_series()


def _name() -> pl.Expr:
    """Return the name of an instrument, with its clock where another one of the scope has that name."""
    alone = pl.col("clock").n_unique().over(*SCOPE, "adapter") == 1
    return pl.when(alone).then("adapter").otherwise(pl.format("{} on the clock {}", "adapter", "clock"))


def _why() -> pl.Expr:
    """Return the weightiest thing in which an instrument yields to the best one, in words; nothing for the best one."""
    steps = pl.format("its values are in steps of {} W, here {} W", "best_grain_w", pl.col("grain_w"))
    words = {
        "short": pl.format("it covers {} of the run, this {}", pl.col("best_covered").round(2), pl.col("covered").round(2)),
        "lacking": pl.lit("it has devices that lack here"),
        "rank": pl.format("it is a {}, this a {}", "best_family", "family"),
        "made_up": pl.lit("its times are its own, here they were laid at one distance"),
        "sparse": pl.format("it covers {} of the run, this {}", pl.col("best_covered").round(3), pl.col("covered").round(3)),
        "slow": pl.format("it reads every {} s, this every {} s", "best_step_s", "step_s"),
        "coarse": pl.coalesce(steps, pl.lit("its values are finer")),
        "instant": pl.lit("it says what its values are, which are instants here"),
    }  # fmt: skip
    found = pl.lit("nothing tells them apart but their names")
    for key in reversed(_KEYS):
        found = pl.when(pl.col(key) != pl.col(f"best_{key}")).then(words[key]).otherwise(found)
    return pl.when(pl.col("place") > 0).then(found).otherwise(pl.lit(""))
