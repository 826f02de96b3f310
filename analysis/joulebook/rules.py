"""Named rules that judge single readings: what is physically impossible is taken out, with its name.

A rule speaks about one quantity of one reading and needs nothing but that reading. What needs neighbours (duplicates,
steps back in time, filled tails) is judged where the whole source is at hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from joulebook.findings import Finding, Severity

CEILING_W = {
    "part": 3_000.0, "board": 3_000.0, "package": 2_000.0, "dram": 2_000.0,
    "components": 60_000.0, "dc": 60_000.0, "node": 60_000.0, "rack": 1_000_000.0, "facility": 1e9,
}  # fmt: skip
"""No single device of a scope draws more [W]. Boards: twice the largest announced module (1.4 kW); nodes: four times a
72 kW rack shelf's share; a reading above is an error code or a wrong unit, not a load."""

LEAST_RUNNING_W = 1.0
"""A computer that runs draws more than this [W]; what a meter of one shows below is another unit."""

LIMIT_FACTOR = 1.5
"""Short excursions above the power limit are real (12 % and more were seen); half as much again is not."""

SENTINELS_W = (65_535.0, 6_553.5, 4_294_967_295.0, 4_294_967.295, 42_949_672.95, 4_294.967295, 1.8446744073709552e19)
"""All bits set in 16, 32 and 64 bits, in W and in the scales (deci, centi, milli, micro) that firmware uses."""

BUSY_LIMITS = (0.0, 1.05)
"""A share of time cannot leave 0 to 1; samplers that divide by their nominal period overshoot by a few per cent."""

BUSY_SHARES = ("utilization_ratio", "memory_utilization_ratio")
"""Quantities that are shares of time."""

NEVER_ZERO = frozenset({"board", "package", "node-bmc"})
"""A powered part never draws exactly 0 W; a plug or a standby supply may."""


@dataclass(frozen=True)
class Rule:
    """A rule about one quantity.

    Parameters
    ----------
    name
        Stable name, as in ``rejects.rule``.
    quantity
        Column that is judged, and set to null where the rule is broken.
    broken
        True where a reading breaks the rule; may use other columns of the same row.
    needs
        Columns that must be present.
    cure
        What the reader should make of it.
    """

    name: str
    quantity: str
    broken: pl.Expr
    needs: tuple[str, ...]
    cure: str


def rules_for(scope: str, *, never_zero: bool | None = None) -> tuple[Rule, ...]:
    """Return the rules for readings of a scope, in the order in which they are tried.

    Parameters
    ----------
    scope
        One of :data:`joulebook.schema.SCOPES`.
    never_zero
        Whether 0 W is impossible; by default it is for boards and packages.
    """
    power = pl.col("power_w")
    zero = scope in NEVER_ZERO if never_zero is None else never_zero
    sentinel = pl.any_horizontal([(power - s).abs() <= s * 1e-9 for s in SENTINELS_W])
    found = [
        Rule("error-code", "power_w", sentinel, ("power_w",), "all bits set: an error code of the firmware, not a power"),
        Rule(
            "beyond-physical", "power_w", power > CEILING_W[scope], ("power_w",),
            f"no {scope} draws more than {CEILING_W[scope]:g} W: an error code or a wrong unit",
        ),
        Rule(
            "beyond-physical", "energy_j", pl.col("energy_j") > CEILING_W[scope] * pl.col("span_s"), ("energy_j", "span_s"),
            f"no {scope} draws more than {CEILING_W[scope]:g} W: an error code, a wrong unit, or a register that counts on",
        ),
        Rule(
            "beyond-limit", "power_w", (pl.col("power_limit_w") > 0) & (power > LIMIT_FACTOR * pl.col("power_limit_w")),
            ("power_w", "power_limit_w"), f"more than {LIMIT_FACTOR} times the power limit of the same line",
        ),
        Rule(
            "impossible-temperature", "temperature_c", ~pl.col("temperature_c").is_between(-60.0, 200.0),
            ("temperature_c",), "outside of −60 to 200 °C",
        ),
    ]  # fmt: skip
    if scope == "board":
        found += [
            Rule(
                "impossible-ratio", q, ~pl.col(q).is_between(*BUSY_LIMITS), (q,),
                "a share of time outside of 0 to 100 %: another quantity or a wrong unit",
            )
            for q in BUSY_SHARES
        ]  # fmt: skip
    if zero:
        found.append(
            Rule("zero-power", "power_w", power == 0, ("power_w",), "a powered device never draws exactly 0 W")
        )
    if scope in {"board", "package", "dram", "components"}:
        found.append(Rule("negative-power", "power_w", power < 0, ("power_w",), "a consumer never gives power back"))
    return tuple(found)


def judge(readings: pl.DataFrame, scope: str, *, never_zero: bool | None = None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the readings with impossible values nulled, and what was nulled.

    Parameters
    ----------
    readings
        Rows with ``line``, ``device`` and quantities, all of one scope.
    scope, never_zero
        As in :func:`rules_for`.

    Returns
    -------
    tuple of polars.DataFrame
        The readings, same rows; and ``line, device, quantity, rule, value``, one row per broken rule.

    Examples
    --------
    >>> frame = pl.DataFrame({"line": [2, 3], "device": ["gpu:0"] * 2, "power_w": [300.0, 4294967.0]})
    >>> good, broken = judge(frame, "board")
    >>> good["power_w"].to_list(), broken["rule"].to_list()
    ([300.0, None], ['beyond-physical'])
    """
    if _plainly_fine(readings, scope):
        return readings, _BROKEN.clone()
    applicable = [r for r in rules_for(scope, never_zero=never_zero) if set(r.needs) <= set(readings.columns)]
    if not applicable:
        return readings, _BROKEN.clone()
    masks = readings.select(r.broken.fill_null(value=False).alias(f"{r.name} {r.quantity}") for r in applicable)
    broken: list[pl.DataFrame] = []
    seen: dict[str, pl.Series] = {}
    for rule in applicable:
        mask = masks[f"{rule.name} {rule.quantity}"]
        if rule.quantity in seen:
            mask = mask & ~seen[rule.quantity]
        if mask.any():
            broken.append(
                readings.filter(mask).select(
                    pl.col("line").cast(pl.Int64),
                    "device",
                    quantity=pl.lit(rule.quantity),
                    rule=pl.lit(rule.name),
                    value=pl.col(rule.quantity).cast(pl.Float64),
                )
            )
            seen[rule.quantity] = seen.get(rule.quantity, mask) | mask
    if not broken:
        return readings, _BROKEN.clone()
    nulled = [pl.when(~mask).then(pl.col(q)).alias(q) for q, mask in ((q, pl.lit(m)) for q, m in seen.items())]
    return readings.with_columns(nulled), pl.concat(broken)


def _plainly_fine(readings: pl.DataFrame, scope: str) -> bool:
    """Tell from extremes alone that no rule can be broken: the usual case, at a tenth of the cost of every rule."""
    if {"energy_j", "span_s"} <= set(readings.columns):
        mean_w = readings.select((pl.col("energy_j") / pl.col("span_s")).max()).item()
        if isinstance(mean_w, float) and not mean_w < CEILING_W[scope]:
            return False
    power_lo, power_hi = _extremes(readings, "power_w")
    limit_lo, _ = _extremes(readings, "power_limit_w")
    ceiling = (
        min(CEILING_W[scope], *SENTINELS_W)
        if limit_lo is None
        else min(CEILING_W[scope], LIMIT_FACTOR * limit_lo, *SENTINELS_W)
    )
    return (
        (power_hi is None or power_lo is None or (power_lo > 0 and power_hi < ceiling))
        and _within(readings, "temperature_c", -60.0, 200.0)
        and (scope != "board" or all(_within(readings, q, *BUSY_LIMITS) for q in BUSY_SHARES))
    )


def _within(readings: pl.DataFrame, quantity: str, least: float, most: float) -> bool:
    low, high = _extremes(readings, quantity)
    return low is None or high is None or (low >= least and high <= most)


def _extremes(readings: pl.DataFrame, quantity: str) -> tuple[float | None, float | None]:
    if quantity not in readings.columns:
        return None, None
    least, most = readings[quantity].min(), readings[quantity].max()
    return (least, most) if isinstance(least, float) and isinstance(most, float) else (None, None)


_BROKEN = pl.DataFrame(
    schema={"line": pl.Int64, "device": pl.String, "quantity": pl.String, "rule": pl.String, "value": pl.Float64}
)


WHOLE_MACHINES = frozenset({"package", "board", "components", "node", "rack"})
"""Scopes of which one device cannot be off while a run goes on; of several supplies one may rest."""


def unpowered(power: pl.DataFrame, scope: str) -> pl.Series:
    """Return which readings within a run say 0 W or less of the only device of a scope: they failed.

    Parameters
    ----------
    power
        ``device`` and ``power_w`` [W] of a run.
    scope
        Boundary of the readings.

    Returns
    -------
    polars.Series
        False throughout where there are several devices, or where none of the readings is above 0 W: then it is not the
        run's machine that is measured, which is for others to say.

    Examples
    --------
    >>> frame = pl.DataFrame({"device": "node", "power_w": [420.0, 0.0, -1.0, None]})
    >>> unpowered(frame, "node").to_list(), unpowered(frame, "facility").to_list()
    ([False, True, True, False], [False, False, False, False])
    """
    if scope not in WHOLE_MACHINES or not (power["power_w"] > 0).any():
        return _none(power)
    return _of_one_device(power, power["power_w"] <= 0)


REVERSED_FACTOR = 2.0
"""Power that is fed back may be as high as the power that is drawn; what is this many times as high never flowed."""


def reversed_beyond(power: pl.DataFrame, scope: str) -> pl.Series:
    """Return which readings say that the only device of a scope feeds back far more than it ever draws: they failed.

    A machine that is off draws nothing, and one with panels or a battery feeds back; so a log without runs keeps zeros and
    negative powers of the size of the others.

    Examples
    --------
    >>> frame = pl.DataFrame({"device": "node", "power_w": [30.0, -12977.0, 0.0, -31.0, None]})
    >>> reversed_beyond(frame, "node").to_list()
    [False, True, False, False, False]
    """
    most: Any = power["power_w"].max()
    if scope not in WHOLE_MACHINES or most is None or most <= 0:
        return _none(power)
    return _of_one_device(power, power["power_w"] < -REVERSED_FACTOR * most)


def _of_one_device(power: pl.DataFrame, found: pl.Series) -> pl.Series:
    """Return what was found, nothing where there are several devices: one of them may be off or feed back."""
    return found.fill_null(value=False) if found.any() and power["device"].n_unique() == 1 else _none(power)


def _none(power: pl.DataFrame) -> pl.Series:
    return pl.Series("power_w", [False]).new_from_index(0, power.height)


def failed(readings: int, scope: str) -> list[Finding]:
    """Return a finding about readings of a run that failed, as :func:`unpowered` tells.

    Examples
    --------
    >>> [f.code for f in failed(2, "node")], failed(0, "node")
    (['unpowered-in-run'], [])
    """
    if not readings:
        return []
    return [Finding(
        "unpowered-in-run", Severity.WARNING, scope,
        f"{readings} readings of the {scope} within the run are 0 W or less, which no machine at work draws: the instrument failed. They "
        "count as missing: short holes are bridged, longer ones are open time. If the machine was off, end the run before that.",
        {"readings": readings},
    )]  # fmt: skip


def too_small(mean_power_w: float | None, scope: str) -> list[Finding]:
    """Return a finding where a whole machine draws less on average than any that runs: its kilowatts were read as watts.

    Examples
    --------
    >>> [f.code for f in too_small(0.41, "node")], too_small(0.41, "dram"), too_small(0.0, "node")
    (['power-too-small'], [], [])
    """
    if scope not in ("node", "rack", "facility") or mean_power_w is None or not 0 < mean_power_w < LEAST_RUNNING_W:
        return []
    return [Finding(
        "power-too-small", Severity.WARNING, scope,
        f"The {scope} draws {mean_power_w:.3g} W on average, less than any computer that runs. If its log is in kilowatts, say so: "
        'units = { power_w = "kW" } in its [[source]]; if nothing was plugged in, take the source out.',
        {"mean_power_w": mean_power_w},
    )]  # fmt: skip
