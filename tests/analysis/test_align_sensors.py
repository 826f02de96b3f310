"""Clocks where a sensor is polled faster or slower than it averages: the middle of each window is what is known."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from scipy.signal import lfilter

from joulebook import align, align_curve, align_sensors, align_trials
from joulebook.align_search import Candidates
from joulebook.align_signal import Signal, build

T0_US = round(datetime(2026, 3, 2, tzinfo=UTC).timestamp() * 1e6)
DT_S = 0.01


def log(power_w: np.ndarray, period_s: float, window_s: float, late_s: float) -> pl.DataFrame:
    """Means over a window before each stamp, polled at a pace that is not quite the clock's."""
    energy = np.concatenate([[0.0], np.cumsum(power_w) * DT_S])
    grid = np.arange(energy.size) * DT_S
    true = np.arange(3.137, grid[-1] - 1, period_s * 1.0007)
    mean = (np.interp(true, grid, energy) - np.interp(true - window_s, grid, energy)) / window_s
    stamps = pl.Series(T0_US + np.rint((true + late_s) * 1e6).astype(np.int64)).cast(pl.Datetime("us", "UTC"))
    return pl.DataFrame({"ts_utc": stamps, "power_w": mean})


@pytest.fixture(scope="module")
def power() -> np.ndarray:
    rng = np.random.default_rng(8)
    lengths = rng.uniform(2, 30, 400)
    return rng.uniform(100, 700, 400)[np.searchsorted(np.cumsum(lengths), np.arange(0, 3600, DT_S))]


@pytest.mark.parametrize(
    ("period_s", "window_s", "meter_s"), [(0.5, 1.0, 2.0), (0.1, 1.0, 1.0), (0.5, 1.0, 1.0), (1.0, 0.1, 10.0)]
)
def test_a_window_other_than_the_pace_moves_no_clock(
    power: np.ndarray, period_s: float, window_s: float, meter_s: float
) -> None:
    board, node = log(power, period_s, window_s, 0.0), log(1.1 * power + 250, meter_s, meter_s, 41.7)
    found = align.estimate(node, board, reference_window_s=window_s)
    assert found.offset_s == pytest.approx(41.7, abs=0.05)
    assert found.offset_lo <= 41.7 <= found.offset_hi


@pytest.mark.parametrize(("pace_s", "lag_s"), [(2.0, 5.0)])
def test_a_controller_that_is_asked_may_creep_at_any_pace(power: np.ndarray, pace_s: float, lag_s: float) -> None:
    keep = np.exp(-DT_S / lag_s)
    wall = 1.1 * power + 250
    crept = lfilter([1 - keep], [1, -keep], wall, zi=[keep * wall[0]])[0]
    asked, board = log(crept, pace_s, DT_S, 41.7), log(power, 1.0, 1.0, 0.0)
    found = align.estimate(asked, board, reference_window_s=1.0, reading_age_s=pace_s)
    assert found.lag_s == pytest.approx(lag_s, rel=0.1)
    assert found.offset_s == pytest.approx(41.7, abs=0.3)
    assert found.offset_lo < 41.7 < found.offset_hi
    # Of a meter that is not known to be one, the same is not believed.
    assert align.estimate(asked, board, reference_window_s=1.0).lag_s in (None, 0.0)


@pytest.mark.parametrize("held", [True, False])
def test_a_lag_follows_a_ramp_by_its_time_constant(held: bool) -> None:
    # Long after its start a first-order lag shows a ramp as it was one time constant ago.
    at, window_s = np.arange(200.0), 1.0 if held else 0.0
    ramp = Signal(at, 3.0 * (at - window_s / 2), "mean", 1.0, window_s, 0)
    lagged = align_curve.curve(ramp, align_curve.Sensor(0.0, 6.0, held))
    assert lagged.power(np.array([150.0, 160.5])) == pytest.approx([3.0 * 144.0, 3.0 * 154.5], rel=1e-3)


def session(seed: int, *, idle_s: float = 600.0, work_s: float = 1500.0, step_s: float = 2.5) -> np.ndarray:
    """Power every 10 ms: rest, training in steps with a pause now and then, rest."""
    rng = np.random.default_rng(seed)
    count = int(work_s / step_s)
    lasts = np.array([0.4, 0.38, 0.22, 0.0]) * step_s * rng.normal(1.0, 0.01, (count, 1))
    lasts[19::20, 3], lasts[179::180, 3] = 5.0, 15.0
    watts = np.tile([1030.0, 1140.0, 740.0, 460.0], count)
    ends = np.concatenate([[idle_s], idle_s + np.cumsum(lasts.ravel())])
    at = np.arange(0.0, ends[-1] + 300.0, DT_S)
    return np.append(np.append(130.0, watts), 130.0)[np.searchsorted(ends, at)]


def controller(power_w: np.ndarray, lag_s: float, seed: int) -> np.ndarray:
    """Power at the wall as a lagging sensor shows it, with a slow wander of its own."""
    rng = np.random.default_rng(seed)
    keep, stays = np.exp(-DT_S / lag_s), np.exp(-DT_S / 60.0)
    wander = lfilter([1.0], [1.0, -stays], rng.normal(0.0, 8.0 * np.sqrt(1 - stays**2), power_w.size))
    wall = 1.2 * power_w + 250 + wander
    return np.asarray(lfilter([1 - keep], [1, -keep], wall, zi=[keep * wall[0]])[0])


@pytest.mark.parametrize("seed", [7, 58])
def test_a_sensor_that_is_not_quite_as_taken_is_no_clock_that_runs_away(seed: int) -> None:
    power = session(seed)
    coarse = pl.col("ts_utc").dt.truncate("1s"), (pl.col("power_w") / 4).round() * 4
    asked = log(controller(power, 5.0, seed), 15.0, DT_S, 7.0).with_columns(*coarse)
    board = log(power, 2.0, 1.0, 0.0)
    found = align.estimate(asked, board, reference_window_s=1.0, reading_age_s=15.0)
    assert found.status == "aligned"
    assert found.offset_lo < 7.0 < found.offset_hi
    assert found.drift_lo < 0.0 < found.drift_hi
    # A clock that does run away is refused still.
    away = asked.with_columns(pl.col("ts_utc") + (pl.col("ts_utc") - pl.col("ts_utc").min()) / 700)
    refused = align.estimate(away, board, reference_window_s=1.0, reading_age_s=15.0)
    assert refused.status == "refused"
    assert "ppm" in refused.reason


def test_a_candidate_that_shows_nothing_does_not_choose_the_sensor() -> None:
    power = session(3, step_s=1.1)
    fast = build(log(power, 0.5, 1.0, 0.0), window_s=1.0)[0]
    slow = build(log(controller(power, 20.0, 3), 2.0, DT_S, 18.6), age_s=2.0, epoch_us=fast.epoch_us)[0]
    found = Candidates(np.array([-1800.0, -36.5, -22.5]), np.array([0.73, 0.72, 0.7]), 2, np.array([0.3, 1.0, 1.0]))
    best = align_trials.refine(fast, slow, found)[0][0]
    assert best.shift_s == pytest.approx(-18.6, abs=0.3)
    assert best.sensor.lag_s == pytest.approx(20.0, rel=0.1)


def test_a_slow_meter_with_few_edges_is_not_refused_for_a_drift_that_they_hardly_show() -> None:
    rng, t = np.random.default_rng(0), np.arange(0, 1400, 0.1)
    place = (t - 400) / 8.3 % 1  # steps of training, points of which say little of what lies between
    work = np.select([place < 0.08, place < 0.45, place < 0.88], [110.0, 300.0, 350.0], 200.0)
    work[(t - 400) % 40 < 4] = 90.0
    watts = np.where((t > 400) & (t < 1300), work, 60.0)
    watts[((t > 700) & (t < 712)) | ((t > 1010) & (t < 1022))] = 80.0
    energy = np.concatenate([[0.0], np.cumsum(250 + 1.15 * watts) * 0.1])
    ends = np.arange(47.0, 1400.0, 30.0)
    grid = np.append(t, 1400.0)
    means = (np.interp(ends, grid, energy) - np.interp(ends - 30, grid, energy)) / 30
    found = align.estimate(
        stamped(ends + 19.0, means + 0.3 * rng.standard_normal(ends.size)),
        stamped(t[::10], watts[::10] + rng.normal(0, 3, t[::10].size)),
    )
    assert found.status == "aligned"
    assert found.offset_lo <= 19.0 <= found.offset_hi
    assert found.offset_hi - found.offset_lo < 8.0
    assert found.drift_lo <= 0.0 <= found.drift_hi


def test_a_meter_of_points_beside_a_board_of_means_at_one_pace_has_both_in_its_interval() -> None:
    rng, n = np.random.default_rng(2), 2400
    lengths = rng.uniform(0.3, 2.5, 3 * n)
    lengths[::40] = rng.uniform(1.5, 6.0, lengths[::40].size)
    levels = np.tile([120.0, 330.0, 250.0, 380.0], lengths.size // 4)
    levels[::40] = 90.0
    grid, energy = (np.concatenate([[0.0], np.cumsum(x)]) for x in (lengths, lengths * levels))

    def mean(at: np.ndarray, window_s: float) -> np.ndarray:
        return (np.interp(at, grid, energy) - np.interp(at - window_s, grid, energy)) / window_s

    board, meter = np.arange(5.21, n, 1.0), np.arange(5.68, n, 1.0)
    found = align.estimate(
        stamped(meter + 17.3, 250 + 1.15 * mean(meter, 0.02) + rng.standard_normal(meter.size)),
        stamped(board, mean(board, 1.0)),
    )
    assert found.status == "refused" or found.offset_lo <= 17.3 <= found.offset_hi


def stamped(at_s: np.ndarray, power_w: np.ndarray) -> pl.DataFrame:
    stamps = pl.Series(T0_US + np.rint(at_s * 1e6).astype(np.int64)).cast(pl.Datetime("us", "UTC"))
    return pl.DataFrame({"ts_utc": stamps, "power_w": power_w})


def test_a_large_step_far_from_the_middle_of_a_log_is_found() -> None:
    rng, cell = np.random.default_rng(5), 0.1
    lengths = rng.uniform(0.2, 0.6, 9000)
    levels = np.tile([300.0, 360.0, 200.0], 3000)
    levels[::90] = 80.0
    lengths[::90] = rng.uniform(2.0, 5.0, lengths[::90].size)
    train = levels[np.searchsorted(np.cumsum(lengths), np.arange(0, 1500, cell))]
    rest = np.full(1800, 60.0)
    watts = np.concatenate([rest, train, rest[:450], 0.93 * train[::-1], rest])
    energy = np.concatenate([[0.0], np.cumsum(watts) * cell])
    grid = np.arange(energy.size) * cell

    def mean(at: np.ndarray) -> np.ndarray:
        return np.interp(at, grid, energy) - np.interp(at - 1.0, grid, energy)

    board, meter = np.arange(2.3, grid[-1], 1.0), np.arange(2.7, grid[-1], 1.0)
    shown = meter + 60.9 + np.where(meter > 1005.0, 30.0, 0.0)
    found = align.estimate(
        stamped(shown, 250 + 1.12 * mean(meter) + rng.normal(0, 0.3, meter.size)), stamped(board, mean(board))
    )
    assert found.status == "refused"
    when, size = found.steps.row(0)
    assert size == pytest.approx(30.0, abs=0.5)
    assert (when.timestamp() - T0_US / 1e6) == pytest.approx(1080.0, abs=60.0)


def test_only_a_log_without_jumps_may_be_a_moving_mean() -> None:
    """Samples of a load that changes faster than they are taken look smoother under any window, and are no mean of it."""
    watts = np.repeat(np.random.default_rng(5).uniform(100.0, 400.0, 4000), 7)  # another level each 0.7 s

    def signal(value: np.ndarray) -> Signal:
        return Signal(np.arange(value.size, dtype=float), value, "mean", 1.0, None, 0)

    sums = np.cumsum(watts)
    moving = (sums[100::10] - sums[:-100:10]) / 100  # over 10 s, each second
    fast = signal(watts[::10])
    assert max(s.window_s for s in align_sensors.longer(fast, signal(watts[3::10]))) < 2
    assert [s.window_s for s in align_sensors.longer(fast, signal(moving))] == [1.6, 2.5, 5.0, 10.0]
