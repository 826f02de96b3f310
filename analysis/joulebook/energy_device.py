"""The energy of one device over one window, with the parts of its uncertainty and what was left open."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from joulebook import aliasing, arrays, bridges, load_edges, ranks, stats, step_sums, stretches, uncertainty
from joulebook.stretches import Floats, Stretches
from joulebook.wording import lasting

Kind = Literal["instant", "mean", "hold"]

NEAR_PERIODS = 1.5
"""A bridged step of more periods than this lacks at least one reading."""


@dataclass(frozen=True)
class Rule:
    """How readings are turned into stretches of time: the caller's choices, ``None`` = found from the data."""

    kind: Kind | None = None
    period_s: float | None = None
    max_gap_s: float | None = None
    window_s: float = 0.0
    update_s: float | None = None
    step_s: float | None = None
    hold_edges: bool = True
    trail_s: float = 0.0
    load_edges: bool = False
    step_ends: tuple[Floats, Floats] | None = None


MEANS = "means over spans"
"""Method of readings that say the whole of the time they cover."""


@dataclass(frozen=True)
class DeviceEnergy:
    """One device's energy over the window; times in seconds from the window's start.

    ``unknown_j`` is the most that the open time can add: its length at ``peak_w``, the highest power seen in the
    window, or in the log where the window has none. It is not a number for a device without any reading.
    """

    device: str
    stamp_s: Floats
    power_w: Floats
    stretches: Stretches
    hole_start_s: Floats
    hole_end_s: Floats
    first_s: float
    last_s: float
    period_s: float | None
    n: int
    missing: int
    method: str
    reason: str = ""
    noise_j: float = 0.0
    edges_j: float = 0.0
    resolution_j: float = 0.0
    aliasing_j: float = 0.0
    unknown_j: float = 0.0
    peak_w: float | None = None
    refused: bool = False
    open_w: float | None = None

    @property
    def known(self) -> bool:
        """Whether there is an energy to give."""
        return self.stretches.start_s.size > 0 and not self.refused

    @cached_property
    def energy_j(self) -> float:
        """Energy of the covered time [J]."""
        return self.stretches.total_j

    @cached_property
    def covered_s(self) -> float:
        """Covered time [s]."""
        return self.stretches.covered_s

    @property
    def half_j(self) -> float:
        """Half width of the interval over the covered time [J]: independent parts, added in squares."""
        return float(np.sqrt(self.noise_j**2 + self.edges_j**2 + self.resolution_j**2 + self.aliasing_j**2))


def measure(
    readings: pl.DataFrame, *, device: str, origin_us: int, length_s: float, rule: Rule, attempts: pl.Series | None
) -> DeviceEnergy:
    """Return one device's energy from its power readings.

    Parameters
    ----------
    readings
        ``ts_utc``, ``span_s`` [s] and ``power_w`` [W] of this device; ``source_id`` where several logs tell it.
    device
        Its name.
    origin_us, length_s
        Start of the window [µs since 1970] and its length [s].
    rule
        How readings become stretches.
    attempts
        Stamps at which the tool asked, with or without success; ``None`` = as the readings.
    """
    if readings["power_w"].has_nulls() or not np.isfinite(float(readings["power_w"].sum())):
        readings = readings.filter(pl.col("power_w").is_finite())
    if not readings["ts_utc"].is_sorted():
        readings = readings.sort("ts_utc", maintain_order=True)
    stamp, power = arrays.seconds(readings["ts_utc"], origin_us), arrays.of(readings["power_w"])
    asked = stamp if attempts is None else np.sort(arrays.seconds(attempts.drop_nulls(), origin_us))
    period = rule.period_s or bridges.median_step_s(asked)
    limit = rule.max_gap_s if rule.max_gap_s is not None else bridges.limit_s(period)
    whole, blur, method = _model(stamp, readings["span_s"], power, rule, period_s=period, limit_s=limit, asked=asked)
    seen = slice(*np.searchsorted(stamp, (0.0, np.nextafter(length_s, np.inf))))
    reach = max(period or 0.0, blur)
    longer, held_s = stretches.extended(
        whole, length_s=length_s, reach_s=reach if rule.hold_edges else 0.0,
        at_start=not stamp.size or stamp[0] > 0, at_end=not stamp.size or stamp[-1] < length_s,
    )  # fmt: skip
    if held_s:
        method += f", outer readings held {held_s:.3g} s to the edges"
    if rule.load_edges and method.startswith("trapezoid") and readings["span_s"].null_count() == readings.height:
        window_s = rule.window_s or 2 * rule.trail_s
        inside, from_inside_s = load_edges.hold(
            longer, stamp - _lag_s(rule, period), power, window_s=window_s, length_s=length_s, limit_s=limit
        )
        method += f", held {from_inside_s:.3g} s from inside where power jumps at an end" if from_inside_s else ""
    else:
        inside = stretches.clip(longer, length_s=length_s)
    ahead, bridged = step_sums.step_counts(stamp[seen], NEAR_PERIODS * (period or np.inf), limit)
    bridged = 0 if rule.kind == "hold" else bridged  # what is written on change has no period
    result = DeviceEnergy(
        device=device, stamp_s=stamp[seen], power_w=power[seen], stretches=inside,
        hole_start_s=np.zeros(0), hole_end_s=np.zeros(0),
        first_s=float(stamp[0]) if stamp.size else np.nan, last_s=float(stamp[-1]) if stamp.size else np.nan,
        period_s=period, n=ahead + int(stamp[seen].size > 0), missing=bridged, method=method,
    )  # fmt: skip
    result = judged(result, power_w=power, seen=seen, length_s=length_s, blur_s=blur, held_s=held_s)
    spread_w = float(np.ptp(power)) if power.size else 0.0
    result = _with_aliasing(_rounded(result, readings, seen), rule, spread_w=spread_w, length_s=length_s)
    return _with_meetings(result, rule, spread_w=spread_w, second_s=origin_us % 1_000_000 / 1e6)


def _rounded(result: DeviceEnergy, readings: pl.DataFrame, seen: slice) -> DeviceEnergy:
    """Return the result with the rounding of what its logs told: powers, or the energies that means were made from."""
    if "source_id" in readings.columns:
        result = _rounded_by_log(result, readings["source_id"].to_numpy()[seen])
    if not result.method.startswith(MEANS):
        return result
    told_j = result.power_w * arrays.of(readings["span_s"].fill_null(0.0))[seen]
    return replace(result, resolution_j=max(result.resolution_j, uncertainty.digits_j(told_j)))


def _rounded_by_log(result: DeviceEnergy, log: NDArray[np.int64]) -> DeviceEnergy:
    """Return the result with the rounding of each log's own digits: the finest of them would stand for all."""
    if not result.known or np.all(log == log[:1]):
        return result
    rounding_j = uncertainty.resolution_of_logs_j(
        result.stretches, stamp_s=result.stamp_s, power_w=result.power_w, log=log
    )
    return replace(result, resolution_j=rounding_j)


def _model(
    stamp: Floats, spans: pl.Series, power: Floats, rule: Rule, *, period_s: float | None, limit_s: float, asked: Floats
) -> tuple[Stretches, float, str]:
    """Return the stretches, the length over which an edge is blurred [s] and the name of the method."""
    kind = rule.kind or ("mean" if spans.null_count() < len(spans) else "instant")
    if kind == "hold":
        limit = np.inf if rule.max_gap_s is None else rule.max_gap_s
        made = stretches.held(stamp, power, limit_s=limit)
        return stretches.without(made, asked), 0.0, "held until the next reading"
    if kind == "mean":
        span = spans.fill_null(0.0).to_numpy()
        usual = ranks.median(span)
        step = bridges.median_step_s(stamp)
        if step is None or step >= stretches.MOVING_MEAN_STEP * usual or not _overlap(stamp, span):
            return stretches.over_spans(stamp, span, power, limit_s=limit_s), 0.0, MEANS
        rule = replace(rule, window_s=usual)
    lag, known = _lag_s(rule, period_s), rule.window_s > 0 or rule.update_s is not None
    # Where the window is the log itself, it trails the load as the readings do: moving them alone would cut one end off.
    moved = lag if rule.hold_edges or kind == "mean" else 0.0
    made = stretches.between_instants(
        stamp - moved if moved else stamp, power, limit_s=limit_s, seen_s=rule.window_s,
        paced=rule.max_gap_s is None,
    )  # fmt: skip
    named = "trapezoid"
    if lag:
        named += f", stamps moved back {lag:.3g} s" if moved else f"; readings and window trail the load by {lag:.3g} s"
    if lag and not known:
        named += " as found with the clock's offset"
    return made, max(period_s or 0.0, rule.window_s, 2 * lag if not known else 0.0), named


def _lag_s(rule: Rule, period_s: float | None) -> float:
    """Return by how much readings trail what they speak of [s]: as the sensor is known to, else as was found with its clock."""
    return stretches.lag_s(window_s=rule.window_s, update_s=rule.update_s, period_s=period_s) or rule.trail_s


def _overlap(stamp: Floats, span: Floats) -> bool:
    """Tell whether spans reach into that of the reading before: each against its own step, as those of runs differ in length."""
    return ranks.median(np.diff(stamp) - stretches.MOVING_MEAN_STEP * span[1:]) < 0


def _with_aliasing(result: DeviceEnergy, rule: Rule, *, spread_w: float, length_s: float) -> DeviceEnergy:
    """Return the result with what samples may have missed of a repeating step, refused where they always missed it."""
    if rule.step_s is None or result.period_s is None or not result.method.startswith("trapezoid"):
        return result
    sample_s = max(result.period_s, rule.update_s or 0.0)
    found = aliasing.beat(step_s=rule.step_s, sample_s=sample_s, window_s=rule.window_s, spread_w=spread_w)
    if found.beat_s < length_s or rule.window_s >= sample_s:
        return replace(result, aliasing_j=found.half_j(length_s))
    reason = (
        f"a step of {rule.step_s:.4g} s and a sample every {sample_s:.4g} s keep meeting at the same phase: "
        f"the mean may be off by {found.amplitude_w:.4g} W or more"
    )
    return replace(result, refused=True, reason=reason, unknown_j=np.nan)


def _with_meetings(result: DeviceEnergy, rule: Rule, *, spread_w: float, second_s: float) -> DeviceEnergy:
    """Return the result with what samples may have missed of the logged steps, refused where they met one phase of them."""
    if rule.step_ends is None or not result.method.startswith("trapezoid") or not result.known or not result.period_s:
        return result
    sample_s = max(result.period_s, rule.update_s or 0.0)
    if rule.window_s >= sample_s:
        return result
    end_s, number = rule.step_ends
    at_s = result.stamp_s + second_s
    met = aliasing.met(at_s, result.power_w, end_s=end_s + second_s, number=number, sample_s=sample_s)
    if not met.locked:  # samples that meet more than one phase show how power goes within a step
        hidden_w = met.amplitude_w(spread_w=met.spread_w, window_s=rule.window_s, sample_s=sample_s)
        return replace(result, aliasing_j=max(result.aliasing_j, hidden_w * result.covered_s))
    hidden_w = met.amplitude_w(spread_w=spread_w, window_s=rule.window_s, sample_s=sample_s)
    reason = f"steps of {met.step_s:.4g} s and samples every {sample_s:.4g} s keep meeting at the same phase: " + (
        f"the mean may be off by {hidden_w:.4g} W or more" if hidden_w else "nobody knows what they miss"
    )
    return replace(result, refused=True, reason=reason, unknown_j=np.nan)


def judged(
    result: DeviceEnergy, *, power_w: Floats, seen: slice, length_s: float, blur_s: float, held_s: float
) -> DeviceEnergy:
    """Return the result with holes, peak, uncertainty and reason filled in."""
    s = result.stretches
    start, end = stretches.holes(s, length_s=length_s)
    open_s = float((end - start).sum())
    inside = power_w[seen]
    ends = np.array([s.power_start_w.max(initial=-np.inf), s.power_end_w.max(initial=-np.inf)])
    peak = float(max(ends.max(), inside.max(initial=-np.inf)))
    if not np.isfinite(peak):
        peak = float(power_w.max(initial=-np.inf))
    if np.isfinite(peak):
        result = replace(result, peak_w=peak)
    result = replace(
        result, hole_start_s=start, hole_end_s=end, unknown_j=open_s * peak if np.isfinite(peak) else np.nan,
        reason=_reason(result, power_w, holes=start.size, open_s=open_s, length_s=length_s),
    )  # fmt: skip
    if s.start_s.size == 0 or inside.size == 0:
        return result
    step_sd = float(np.sqrt(step_sums.squared_jumps(inside) / (inside.size - 1) / 2)) if inside.size > 1 else 0.0
    grain, noise = uncertainty.grain_w(inside), uncertainty.noise_j(s)
    edges = uncertainty.edges_j(blur_s=blur_s, held_s=held_s, sd_w=stats.standard_deviation(inside))
    # Point readings show a jump at an end in their own differences; of means only the ends tell.
    far = int(blur_s / result.period_s) if result.period_s and blur_s > 2 * result.period_s else 0
    more = max(uncertainty.jumps_j(blur_s=blur_s, jumps_w=load_edges.jumps_w(power_w, seen, far)) - noise, 0.0)
    return replace(
        result,
        noise_j=noise,
        edges_j=float(np.hypot(edges, more)),
        resolution_j=uncertainty.resolution_j(s, grain=grain, sd_step_w=step_sd),
    )


def _reason(result: DeviceEnergy, power_w: Floats, *, holes: int, open_s: float, length_s: float) -> str:
    if result.stretches.start_s.size == 0:
        if power_w.size == 0:
            return "no readings of power"
        if result.n == 0:
            return "no readings in the window"
        return "the readings in the window do not adjoin: one reading has no duration"
    if holes == 0:
        return ""
    where = "1 place" if holes == 1 else f"{holes} places"
    return f"{lasting(open_s)} of {lasting(length_s)} not covered, in {where}; open time is in the interval, not in the value"
