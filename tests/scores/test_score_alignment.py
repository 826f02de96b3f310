"""Alignment against known clocks: simulated machines, seeded, at least 200 studies a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.signal import lfilter

from joulebook import align

STUDIES = 200
TRUE_PAIRS, NULL_PAIRS = 29, 31
"""First words of the seeds: other ones than those that any constant was chosen on."""
DT_S = 0.02
T0 = datetime(2026, 3, 2, 9, 0, 0, tzinfo=UTC)
T0_US = round(T0.timestamp() * 1e6)

pytestmark = pytest.mark.score


@dataclass(frozen=True)
class Meter:
    """A sensor: period, averaging window (None = point), lag, counter step, stamp resolution."""

    period_s: float
    window_s: float | None = None
    lag_s: float = 0.0
    counter_wh: float = 0.0
    stamp_s: float = 0.001
    watt_s: float = 0.1
    exact: bool = False
    declared: bool = False


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    name: str
    board: Meter
    wall: Meter
    hours: float
    median_s: float | None
    p95_s: float | None


FAST = Meter(0.2)
TEN = Meter(0.1, window_s=0.1, declared=True)
ONE = Meter(1.0, window_s=1.0, declared=True)
EXACT = Meter(1.0, window_s=1.0, declared=True, exact=True)
CASES = (
    Case("1 Hz meter, 5 Hz board", FAST, Meter(1, 1), 2, 0.010, 0.050),
    Case("1 Hz meter, 10 Hz board", TEN, Meter(1, 1), 2, 0.010, 0.050),
    Case("1 Hz meter, 1 Hz board of 1 s means", ONE, Meter(1, 1), 2, 0.05, 0.2),
    Case("1 Hz meter, 1 Hz board of 1 s means, one pace", EXACT, Meter(1, 1, exact=True), 2, 0.05, 0.2),
    Case("1 Hz meter, 1 Hz board of points, nothing declared", Meter(1.0), Meter(1, 1), 2, None, None),
    Case("1 Hz meter with whole-second stamps, 5 Hz board", FAST, Meter(1, 1, stamp_s=1), 2, None, None),
    Case("1 Hz meter, whole-second stamps, 1 Hz board", ONE, Meter(1, 1, stamp_s=1), 2, None, None),
    Case("1 Hz meter, whole-second stamps, exact second", FAST, Meter(1, 1, stamp_s=1, exact=True), 2, None, None),
    Case("10 s mean controller, 5 Hz board", FAST, Meter(10, 10), 2, 0.050, 0.100),
    Case("60 s mean meter, 5 Hz board", FAST, Meter(60, 60), 6, 0.25, 0.5),
    Case("60 s mean meter, 1 Hz board of 1 s means", ONE, Meter(60, 60), 6, 0.25, 0.5),
    Case("60 s mean meter, whole-minute stamps", FAST, Meter(60, 60, stamp_s=60, exact=True), 6, None, None),
    Case("60 s counter of 1 Wh, 5 Hz board", FAST, Meter(60, counter_wh=1), 6, 1.2, 3.0),
    Case("60 s counter of 10 Wh, 5 Hz board", FAST, Meter(60, counter_wh=10), 6, None, None),
    Case("5 s controller with a lag of 15 s, 1 Hz board", ONE, Meter(5, lag_s=15, watt_s=1), 2, None, None),
)  # fmt: skip


def machine(
    rng: np.random.Generator, seconds: float, *, periodic: bool = False, noise: np.random.Generator | None = None
) -> np.ndarray:
    """Return board power [W] every 20 ms: idle, then steps of phases, with stalls, checkpoints and pauses."""
    n = int(seconds / DT_S)
    scale = rng.uniform(0.7, 2.0)
    phases = np.array([0.30, 0.50, 0.15, 0.05]), np.array([330.0, 380.0, 190.0, 140.0])
    step = rng.uniform(0.8, 5.0)
    levels: list[np.ndarray] = []
    lengths: list[np.ndarray] = []
    idle = 65.0
    levels.append(np.array([idle]))
    lengths.append(np.array([0.0 if periodic else rng.uniform(60, 300)]))
    total = float(lengths[0][0])
    while total < seconds:
        k = int(rng.integers(40, 400))
        wobble = 1.0 if periodic else 1 + rng.normal(0, 0.03, (k, 4))
        d = (step * phases[0] * np.ones((k, 4)) * wobble).clip(0.01)
        p = np.tile(phases[1], (k, 1)) * (1.0 if periodic else 1 + rng.normal(0, 0.02, (k, 4)))
        lengths.append(d.ravel())
        levels.append(p.ravel())
        total += float(d.sum())
        if not periodic:
            pause = rng.choice([rng.uniform(1, 6), rng.uniform(8, 40), rng.uniform(60, 240)], p=[0.6, 0.3, 0.1])
            lengths.append(np.array([pause]))
            levels.append(np.array([rng.choice([idle, 150.0])]))
            total += float(pause)
    ends = np.cumsum(np.concatenate(lengths))
    power = np.concatenate(levels)[np.minimum(np.searchsorted(ends, np.arange(n) * DT_S), ends.size - 1)] * scale
    power = lfilter(
        [1 - np.exp(-DT_S / 0.05)], [1, -np.exp(-DT_S / 0.05)], power, zi=[power[0] * np.exp(-DT_S / 0.05)]
    )[0]
    return np.asarray(power + ar_noise(noise or rng, n, 3.0, 1.0))


def ar_noise(rng: np.random.Generator, n: int, sd: float, tau_s: float) -> np.ndarray:
    """Return AR(1) noise of a correlation time."""
    phi = np.exp(-DT_S / tau_s)
    return np.asarray(lfilter([np.sqrt(1 - phi**2) * sd], [1, -phi], rng.normal(size=n)))


def node_of(rng: np.random.Generator, board: np.ndarray) -> np.ndarray:
    """Return node power: supply losses, slow fans, and loads of its own."""
    own = ar_noise(rng, board.size, 6.0, 60.0) + ar_noise(rng, board.size, 4.0, 0.5)
    return np.asarray(250 + 1.08 * board + 4e-5 * board**2 + own)


def read(rng: np.random.Generator, power: np.ndarray, m: Meter, offset_s: float, drift: float) -> pl.DataFrame:
    """Return the log that a sensor writes: samples on its clock, from the machine's true power."""
    seconds = power.size * DT_S
    if m.lag_s:
        keep = np.exp(-DT_S / m.lag_s)
        power = lfilter([1 - keep], [1, -keep], power, zi=[power[0] * keep])[0]
    energy = np.concatenate([[0.0], np.cumsum(power) * DT_S])
    grid = np.arange(energy.size) * DT_S
    start = offset_s - drift * seconds / 2
    period = m.period_s if m.exact else m.period_s * (1 + rng.uniform(2e-4, 1e-3))
    w = m.window_s or 0.0
    first = (
        np.ceil((max(w, m.period_s) + start) / m.period_s) * m.period_s
        if m.stamp_s >= 60
        else max(w, 1.0) + rng.uniform(0, m.period_s) + start
    )
    clock = np.arange(first, seconds - 1 + start, period)
    if not m.exact:
        clock = clock + rng.normal(0, min(0.003, 0.01 * m.period_s), clock.size)
    true = clock - offset_s - drift * (clock - offset_s - seconds / 2)
    inside = (true > w) & (true < seconds - 0.5)
    clock, true = clock[inside], true[inside]
    stamps = np.floor(clock / m.stamp_s + 1e-6) * m.stamp_s
    frame: dict[str, Any] = {
        "ts_utc": pl.Series(T0_US + np.rint(stamps * 1e6).astype(np.int64)).cast(pl.Datetime("us", "UTC")),
        "span_s": pl.repeat(m.window_s if m.declared else None, clock.size, dtype=pl.Float64, eager=True),
    }
    if m.counter_wh:
        frame["energy_counter_j"] = (
            np.floor((np.interp(true, grid, energy) + 5e5) / 3600 / m.counter_wh) * m.counter_wh * 3600
        )
    elif w:
        mean = (np.interp(true, grid, energy) - np.interp(true - w, grid, energy)) / w
        frame["power_w"] = np.rint(mean / m.watt_s) * m.watt_s
    else:
        frame["power_w"] = np.rint(np.interp(true, grid[:-1] + DT_S / 2, power) / m.watt_s) * m.watt_s
    return pl.DataFrame(frame)


def one(case: Case, seed: int) -> tuple[float, float, bool, bool, bool, float]:
    """Return offset error, drift error, whether each is covered, whether it was accepted, and the half width."""
    rng = np.random.default_rng([TRUE_PAIRS, seed])
    board = machine(rng, case.hours * 3600)
    node = node_of(rng, board)
    offset, drift = rng.uniform(-300, 300), rng.uniform(-1e-4, 1e-4)
    reading, reference = read(rng, node, case.wall, offset, drift), read(rng, board, case.board, 0.0, 0.0)
    a = align.estimate(reading, reference)
    if a.offset_s is None or a.anchor_utc is None:
        return np.nan, np.nan, False, False, False, np.nan
    at = (a.anchor_utc - T0).total_seconds() - offset
    truth = offset + drift * (at - case.hours * 1800)
    ppm = drift * 1e6
    assert (
        a.offset_lo is not None
        and a.offset_hi is not None
        and a.drift_lo is not None
        and a.drift_hi is not None
        and a.drift_ppm is not None
    )
    covered = a.offset_lo <= truth <= a.offset_hi
    return (
        a.offset_s - truth,
        a.drift_ppm - ppm,
        covered,
        a.drift_lo <= ppm <= a.drift_hi,
        True,
        (a.offset_hi - a.offset_lo) / 2,
    )


@cache
def studies(case: Case, n: int = STUDIES) -> np.ndarray:
    """Return the outcomes of all studies of a row."""
    return np.array([one(case, seed) for seed in range(n)], dtype=float)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_offset(case: Case, score: Any) -> None:
    rows = studies(case)
    ok = rows[rows[:, 4] > 0]
    if ok.size:
        error = np.abs(ok[:, 0])
        median, p95 = np.median(error), np.quantile(error, 0.95)
        worst = error.max()
        score.row(
            "alignment",
            f"{case.name}: offset, median / p95 [s]",
            f"≤ {case.median_s} / {case.p95_s}" if case.median_s else "reported",
            f"{median:.3f} / {p95:.3f} ({len(ok)} of {len(rows)} accepted)",
        )
        score.row("alignment", f"{case.name}: interval holds the offset", "≥ 0.90", f"{ok[:, 2].mean():.3f}")
        score.row("alignment", f"{case.name}: interval holds the drift", "≥ 0.90", f"{ok[:, 3].mean():.3f}")
        limit = max(1.0, (case.wall.window_s or case.wall.period_s) / 2)
        score.row(
            "alignment",
            f"{case.name}: accepted but wrong",
            f"0 off by > {limit:g} s",
            f"{int((error > limit).sum())}, worst {worst:.2f} s",
        )
        assert worst <= limit
        if len(ok) >= 20:
            assert ok[:, 2].mean() >= 0.90
            assert ok[:, 3].mean() >= 0.90
        if case.median_s and case.p95_s:
            assert median <= case.median_s and p95 <= case.p95_s
            assert len(ok) >= 0.9 * len(rows)


def flat(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return two powers without edges."""
    n = int(7200 / DT_S)
    return 300 + ar_noise(rng, n, 2, 1), 600 + ar_noise(rng, n, 4, 1)


def unrelated(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the board of one machine and the wall of another."""
    return machine(rng, 7200), node_of(rng, machine(rng, 7200))


def periodic(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return a job whose steps are all alike, without a start or an end; its noise is each sensor's own."""
    seed = int(rng.integers(2**31))
    one, two = (machine(np.random.default_rng(seed), 7200, periodic=True, noise=n) for n in (rng, rng))
    return one, node_of(rng, two)


NULLS = {
    "1 s meter": (Meter(1, 1), FAST),
    "1 s meter and 1 Hz board": (Meter(1, 1), ONE),
    "10 s meter": (Meter(10, 10), FAST),
    "60 s counter of 1 Wh": (Meter(60, counter_wh=1), FAST),
    "60 s counter of 10 Wh": (Meter(60, counter_wh=10), FAST),
}


@pytest.mark.parametrize("wall", NULLS)
@pytest.mark.parametrize("pair", [flat, unrelated, periodic], ids=lambda f: f.__name__)
def test_null(pair: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]], wall: str, score: Any) -> None:
    refused = 0
    for seed in range(STUDIES):
        rng = np.random.default_rng([NULL_PAIRS, seed])
        board, node = pair(rng)
        slow, fast = NULLS[wall]
        a = align.estimate(read(rng, node, slow, rng.uniform(-300, 300), 0.0), read(rng, board, fast, 0.0, 0.0))
        refused += a.status == "refused"
    score.row("alignment", f"{pair.__name__} pair, {wall}: refused", "all", f"{refused} of {STUDIES}")
    assert refused == STUDIES
