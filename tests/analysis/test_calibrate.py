"""Calibration: worked examples, refusals, coverage on a small scale."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from joulebook import acceptance_test, calibrate, calibrate_line, calibration_tables

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def points(x: list[float], y: list[float], *, sx: float = 0.5, sy: float = 0.5, **more: list[str]) -> pl.DataFrame:
    return pl.DataFrame(
        {"reading_w": x, "reference_w": y, "reading_se_w": [sx] * len(x), "reference_se_w": [sy] * len(x), **more}
    )


def test_a_precise_point_at_rest_is_no_outlier_among_points_that_scatter():
    rng = np.random.default_rng(3)
    at_work = np.linspace(400.0, 1000.0, 30)
    watts = pl.DataFrame({"reading_w": [136.0, *at_work], "reading_se_w": [0.02, *[0.3] * 30]})
    reference = 240.0 + 1.17 * watts["reading_w"].to_numpy() + np.array([-0.5, *rng.normal(0, 6.0, 30)])
    points = watts.with_columns(reference_w=pl.Series(reference), reference_se_w=pl.Series([0.02, *[0.3] * 30]))
    assert calibrate.fit(points).points == 31
    off = points.with_columns(
        pl.when(pl.col("reading_w") == 136.0)
        .then(pl.col("reference_w") + 60.0)
        .otherwise("reference_w")
        .alias("reference_w")
    )
    line = calibrate.fit(off)
    assert line.points == 30
    assert [f.code for f in line.findings].count("calibration-outlier") == 1


def test_points_of_a_calibration_are_rows_with_the_band_of_the_line():
    watts = [100.0, 200.0, 300.0, 400.0, 500.0, 600.0]
    line = calibrate.fit(
        pl.DataFrame(
            {
                "reading_w": watts,
                "reference_w": [1.1 * w + 20 for w in watts],
                "reading_se_w": 0.5,
                "reference_se_w": 0.5,
            }
        )
    )
    rows = calibration_tables.points(line, host="h", scope="board", reference_scope="node")
    assert rows["fitted_w"].to_list() == pytest.approx([1.1 * w + 20 for w in watts])
    assert (rows["reading_hi"] - rows["reading_lo"]).to_list() == pytest.approx([2 * 1.96 * 0.5] * 6, rel=1e-3)
    for row in rows.iter_rows(named=True):
        made = calibrate.predict(line, row["reading_w"])
        assert (row["fitted_lo"], row["fitted_hi"]) == pytest.approx((made.lo, made.hi))
    assert rows["kept"].all()
    refused = calibrate.fit(
        pl.DataFrame({"reading_w": [500.0], "reference_w": [100.0]}), reading_scope="board", reference_scope="node"
    )
    assert calibration_tables.points(refused, host="h", scope="board", reference_scope="node")[
        "fitted_w"
    ].to_list() == [None]


def test_one_point_gives_the_offset_of_the_worked_example() -> None:
    one = calibrate.fit(points([135.0], [125.0]))
    assert one.status == "offset-only"
    assert one.offset_w == pytest.approx(-10)
    assert one.gain == 1.0
    assert one.gain_lo is None
    assert "calibration-offset-only" in [f.code for f in one.findings]
    mean = calibrate.predict(one, 425.0)
    assert mean.value == pytest.approx(415.0)
    assert mean.value * 4.2 / 1000 == pytest.approx(1.743)
    assert (mean.value - 125) * 4.2 / 1000 == pytest.approx(1.218)
    assert "offset only" in mean.reason


def test_exact_line() -> None:
    line = calibrate.fit(points([100, 200, 300, 400], [130, 240, 350, 460]))
    assert line.status == "calibrated"
    assert line.gain == pytest.approx(1.1)
    assert line.offset_w == pytest.approx(20)
    assert (line.range_lo_w, line.range_hi_w) == (100, 400)


def test_york_worked_example() -> None:
    """Pearson's data with York's weights: slope -0.48053, intercept 5.47991 (York et al. 2004)."""
    x = np.array([0.0, 0.9, 1.8, 2.6, 3.3, 4.4, 5.2, 6.1, 6.5, 7.4])
    y = np.array([5.9, 5.4, 4.4, 4.6, 3.5, 3.7, 2.8, 2.8, 2.4, 1.5])
    wx = np.array([1000, 1000, 500, 800, 200, 80, 60, 20, 1.8, 1.0])
    wy = np.array([1, 1.8, 4, 8, 20, 20, 70, 70, 100, 500.0])
    gain, offset, cov, chi2 = calibrate_line._york(x, y, wx**-0.5, wy**-0.5)
    assert gain == pytest.approx(-0.480533, abs=1e-5)
    assert offset == pytest.approx(5.479910, abs=1e-5)
    assert chi2 == pytest.approx(11.8664, abs=1e-3)
    assert np.sqrt(np.diag(cov)) == pytest.approx([0.2950, 0.0580], abs=2e-3)


def test_two_levels_that_disagree_are_refused() -> None:
    two = calibrate.fit(points([100.0, 400.0], [130.0, 470.0]))
    assert two.status == "refused"
    assert two.gain is None
    assert "third load" in two.reason


def test_two_levels_that_agree_give_an_offset() -> None:
    assert calibrate.fit(points([100.0, 400.0], [120.0, 420.0])).offset_w == pytest.approx(20)


def test_extrapolation_is_refused() -> None:
    line = calibrate.fit(points([100, 200, 300], [130, 240, 350]))
    assert calibrate.predict(line, 319.0).value == pytest.approx(370.9)
    assert calibrate.predict(line, 321.0).value is None
    assert calibrate.predict(line, 75.0).value is None
    beyond = calibrate.apply(line, pl.DataFrame({"power_w": [500.0, 600.0]}))
    assert beyond.mean_w.value is None
    assert beyond.frame.is_empty()
    assert beyond.findings[-1].code == "calibration-not-applied"


def test_applied_readings_carry_the_error_of_the_calibration() -> None:
    line = calibrate.fit(points([100, 200, 300, 400], [130, 241, 349, 460]))
    power = pl.DataFrame({"power_w": [150.0, None, 350.0]})
    done = calibrate.apply(line, power)
    assert done.frame["power_w"].null_count() + done.frame["power_w"].is_nan().sum() == 1
    assert (done.frame["power_lo"][0], done.frame["power_hi"][0]) < (done.frame["power_hi"][0], 1e9)
    assert power["power_w"].to_list() == [150.0, None, 350.0]


def test_curved_points_are_refused() -> None:
    x = np.linspace(100, 500, 8)
    assert "curved" in calibrate.fit(points(list(x), list(20 + 1.1 * x + 4e-4 * (x - 300) ** 2))).reason


def test_precise_points_of_a_machine_at_rest_do_not_bend_the_line() -> None:
    rest = np.linspace(139.3, 140.6, 18)
    drift = np.tile([-0.6, 0.0, 0.4], 6) + 0.7 * (rest - 140.0)  # fans follow the room, readings hardly scatter
    busy = np.random.default_rng(4).uniform(670.0, 775.0, 40)
    x = np.concatenate([rest, busy])
    y = 265.0 + 1.104 * x + np.concatenate([drift, np.random.default_rng(5).normal(0.0, 3.0, 40)])
    errors = np.repeat([0.01, 2.0], [18, 40])
    frame = points(list(x), list(y)).with_columns(reading_se_w=pl.Series(errors), reference_se_w=pl.Series(errors))
    assert calibrate.fit(frame).gain == pytest.approx(1.104, abs=0.002)
    bent = frame.with_columns(
        pl.col("reference_w") - 2e-4 * (pl.col("reading_w") - 140.0) * (780.0 - pl.col("reading_w"))
    )
    line = calibrate.fit(bent)
    assert line.curvature_w > 0.0 or "curved" in line.reason


def test_an_outlier_is_left_out_and_named() -> None:
    rng = np.random.default_rng(0)
    x = np.repeat(np.linspace(60, 500, 6), 3)
    y = 15 + 1.08 * x + rng.normal(0, 0.5, x.size)
    y[7] += 40
    line = calibrate.fit(points(list(x), list(y)))
    assert line.gain == pytest.approx(1.08, abs=0.005)
    assert [f.code for f in line.findings].count("calibration-outlier") == 1


def test_a_board_that_rises_more_than_its_node_is_not_physical() -> None:
    found = calibrate.fit(points([50, 400], [150, 400]), reading_scope="board", reference_scope="node")
    assert found.status == "refused"
    assert "not physical" in found.reason
    assert "0.714" in found.reason


def test_software_above_the_wall_is_not_physical() -> None:
    found = calibrate.fit(points([50, 200, 300], [60, 190, 280]), reading_scope="board", reference_scope="node")
    assert "not physical" in found.reason
    assert calibrate.fit(points([50, 200, 300], [60, 190, 280])).status == "calibrated"


def test_a_factor_of_ten_is_an_error_not_a_calibration() -> None:
    assert "factor" in calibrate.fit(points([50, 200, 300], [500, 2000, 3000])).reason


def test_recordings_add_a_term_between_them() -> None:
    rng = np.random.default_rng(3)
    x = np.tile(np.linspace(100, 500, 6), 4)
    shift = np.repeat([-6.0, 4.0, 5.0, -3.0], 6)
    names = [f"r{i}" for i in np.repeat(range(4), 6)]
    line = calibrate.fit(points(list(x), list(20 + 1.1 * x + shift + rng.normal(0, 0.5, 24)), recording=names))
    assert line.between_w is not None
    assert 3 < line.between_w < 9


def test_coverage_of_the_slope() -> None:
    rng = np.random.default_rng(5)
    x = np.linspace(60, 500, 6)
    hits = 0
    for _ in range(200):
        line = calibrate.fit(
            points(list(x + rng.normal(0, 1, 6)), list(15 + 1.08 * x + rng.normal(0, 3, 6)), sx=1, sy=3)
        )
        assert line.gain_lo is not None
        assert line.gain_hi is not None
        hits += line.gain_lo <= 1.08 <= line.gain_hi
    assert 0.92 <= hits / 200 <= 1.0


def test_points_from_segments_and_bins() -> None:
    rng = np.random.default_rng(1)
    watts = np.repeat([100.0, 300.0, 200.0], 120) + rng.normal(0, 1, 360)
    t = [T0 + timedelta(seconds=i) for i in range(360)]
    log = pl.DataFrame({"ts_utc": t, "power_w": watts})
    segments = pl.DataFrame({
        "kind": ["idle", "stable", "warmup"], "start_utc": [t[0], t[120], t[240]], "end_utc": [t[119], t[239], t[359]],
    })  # fmt: skip
    made = calibrate.points(log, log.with_columns(pl.col("power_w") * 1.1 + 30), segments)
    assert made["reading_w"].to_list() == pytest.approx([100, 300], abs=0.5)
    assert made["reference_w"].to_list() == pytest.approx([140, 360], abs=0.6)
    assert calibrate.by_bin(log, log, every_s=60).height == 6
    assert calibrate.fit(calibrate.by_bin(log, log.with_columns(pl.col("power_w") * 1.1 + 30), every_s=60)).gain == (
        pytest.approx(1.1)
    )


def test_row_of_the_store() -> None:
    row = calibration_tables.row(calibrate.refused("why"), host="h", scope="board", reference_scope="node")
    assert row.row(0, named=True)["reason"] == "why"


def level(watts: float, start_s: int) -> pl.DataFrame:
    return pl.DataFrame({
        "ts_utc": [T0 + timedelta(seconds=start_s + i) for i in range(300)],
        "power_w": [watts + (50.0 if i // 60 == 2 else 0.0) for i in range(300)],
    })  # fmt: skip


@pytest.mark.parametrize(("factor", "status"), [(1.0, "passed"), (1.04, "passed"), (1.06, "failed")])
def test_five_minutes_five_per_cent(factor: float, status: str) -> None:
    reference = pl.concat([level(w, s) for w, s in ((100.0, 0), (300.0, 400), (500.0, 800))])
    reading = reference.with_columns(pl.col("power_w") * factor)
    starts = [T0 + timedelta(seconds=s) for s in (0, 400, 800)]
    levels = pl.DataFrame({"label": ["idle", "half", "full"], "start_utc": starts})
    verdict = acceptance_test.run(reading, reference, levels)
    assert verdict.status == status
    # the minute that is 50 W off is the highest and is dropped
    assert verdict.frame["reference_w"].to_list() == [100.0, 300.0, 500.0]
    assert acceptance_test.run(reading, reference, levels[:2]).status == "refused"
