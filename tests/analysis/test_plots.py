"""Pictures: what is drawn is what the frames say."""

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_hex, to_rgb
from matplotlib.legend import Legend

from joulebook import plots, schema
from joulebook.clock_maps import corrected
from joulebook.plots import style as look
from joulebook.plots import thinning
from joulebook.plots.energy_bar import _spread

T0 = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def power(watts, *, device="gpu:0", step_s=1.0, start_s=0.0):
    stamps = [T0 + timedelta(seconds=start_s + step_s * i) for i in range(len(watts))]
    frame = pl.DataFrame({"device": device, "ts_utc": stamps, "power_w": np.asarray(watts, dtype=float)})
    return frame.with_columns(pl.col("ts_utc").cast(schema.UTC))


def texts(ax):
    axes = [ax, *ax.child_axes]
    return " | ".join(t.get_text() for a in axes for t in a.texts) + " | " + ax.get_title("left")


class TestThinning:
    @given(st.lists(st.floats(0, 1e4), min_size=1, max_size=400), st.integers(30, 200))
    @settings(max_examples=20, deadline=None)
    def test_keeps_the_extremes_within_the_number_of_points(self, watts, points):
        thin = thinning.outline(power(watts), points=points)
        assert thin.height <= points
        assert (thin["power_w"].min(), thin["power_w"].max()) == (min(watts), max(watts))
        assert thin["ts_utc"].is_sorted()

    def test_breaks_the_line_at_a_gap(self):
        rows = pl.concat([power([100.0] * 50), power([100.0] * 50, start_s=400.0)])
        thin = thinning.outline(rows)
        assert thin["power_w"].null_count() == 1
        assert thin.drop_nulls().height == 100

    def test_devices_are_thinned_apart(self):
        rows = pl.concat([power([1.0] * 5000), power([2.0] * 10, device="gpu:1")])
        counts = dict(thinning.outline(rows).group_by("device").len().iter_rows())
        assert counts["gpu:1"] == 10
        assert counts["gpu:0"] <= 2000

    def test_sum_holds_each_device_until_its_next_reading(self):
        rows = pl.concat([power([100.0, 200.0], step_s=2.0), power([10.0, 20.0, 30.0], device="gpu:1")])
        assert thinning.summed(rows)["power_w"].to_list() == [110.0, 120.0, 230.0]

    def test_shares_of_a_bin_add_up(self):
        rows = pl.DataFrame({"phase": ["a", "b"] * 50, "start_s": np.arange(100.0), "end_s": np.arange(1.0, 101.0)})
        share = thinning.shares(rows, name="phase", edges_s=pl.Series([0.0, 10.0, 50.0, 100.0]))
        assert np.allclose(share["a"].to_numpy() + share["b"].to_numpy(), 1.0)
        assert np.allclose(share["a"].to_numpy(), 0.5)


class TestTimeline:
    def test_draws_on_the_axes_given(self):
        _, ax = plt.subplots()
        assert plots.timeline(power([100.0] * 10), ax=ax) is ax

    def test_never_more_points_than_the_limit(self):
        ax = plots.timeline(power(np.random.default_rng(0).normal(300, 20, 20_000)))
        assert max(len(line.get_xdata()) for line in ax.lines) <= thinning.POINTS

    @pytest.mark.parametrize(("watts", "label"), [(700.0, "power [W]"), (5600.0, "power [kW]")])
    def test_unit_fits(self, watts, label):
        ax = plots.timeline(power([watts] * 10))
        assert ax.get_ylabel() == label
        assert ax.get_ylim()[0] == 0.0

    def test_names_every_line_and_the_idle_level(self):
        rows = pl.concat([power([300.0] * 9), power([320.0] * 9, device="gpu:1")])
        words = texts(plots.timeline(rows, idle_w=60.0))
        assert all(w in words for w in ("gpu:0", "gpu:1", "idle 60 W"))

    def test_time_is_local_and_the_zone_named(self):
        ax = plots.timeline(power([300.0] * 9), timezone="Asia/Shanghai")
        assert ax.get_xlabel() == "time of day (Asia/Shanghai)"
        assert ax.get_xlim()[0] % 1 == pytest.approx(8 / 24, abs=1e-6)

    def test_segments_come_as_frame_or_as_result(self):
        frame = pl.DataFrame({"kind": ["stable"], "start_utc": [T0], "end_utc": [T0 + timedelta(seconds=50)]})

        @dataclass(frozen=True)
        class Result:
            frame: pl.DataFrame

        for segments in (frame, Result(frame)):
            assert "stable" in texts(plots.timeline(power([300.0] * 60), segments=segments))

    def test_phases_gaps_and_events_are_drawn(self):
        second = timedelta(seconds=1)
        phases = pl.DataFrame(
            {
                "phase": ["forward", "odd"],
                "start_utc": [T0, T0 + 10 * second],
                "end_utc": [T0 + 10 * second, T0 + 60 * second],
            }
        )
        gaps = pl.DataFrame({"start_utc": [T0 + 20 * second], "end_utc": [T0 + 30 * second]})
        events = pl.DataFrame({"ts_utc": [T0 + 5 * second], "label": ["restart"]})
        ax = plots.timeline(power([300.0] * 60), phases=phases, gaps=gaps, events=events)
        assert [t.get_text() for t in ax.get_legend().get_texts()] == ["forward", "odd"]
        assert any(p.get_hatch() for p in ax.patches)
        assert "restart" in texts(ax)

    def test_band_does_not_cross_a_gap(self):
        stamps = [T0 + timedelta(seconds=s) for s in (*range(10), *range(100, 110))]
        band = pl.DataFrame({"ts_utc": stamps, "lo_w": 90.0, "hi_w": 110.0, "mean_w": 100.0})
        y = plots.timeline(band).lines[0].get_ydata()
        assert np.isnan(y).sum() == 1

    def test_arguments_are_not_changed(self):
        rows = power([300.0] * 60)
        before = rows.clone()
        plots.timeline(rows)
        assert rows.equals(before)

    def test_missing_column_is_named(self):
        with pytest.raises(ValueError, match=r"power: no column device; it has"):
            plots.timeline(power([1.0]).drop("device"))

    def test_nothing_to_draw_is_said(self):
        assert "no readings" in texts(plots.timeline(power([]).clear()))


def fit(**values):
    base = {"clock": "meter", "reference_clock": "node", "anchor_utc": T0, "drift_ppm": 0.0, "status": "aligned"}
    return schema.conform(pl.DataFrame({k: [v] for k, v in (base | values).items()}), "alignments")


class TestAlignment:
    @pytest.mark.parametrize(
        ("offset", "title"),
        [
            (-68.0, "meter runs 68.00 s behind node [67.50, 68.50]"),
            (3.25, "meter runs 3.25 s ahead of node [2.75, 3.75]"),
        ],
    )
    def test_title_says_who_is_ahead_and_how_well_it_is_known(self, offset, title):
        level = [100.0] * 300 + [900.0] * 300
        row = fit(offset_s=offset, offset_lo=offset - 0.5, offset_hi=offset + 0.5)
        ax = plots.alignment(power(level), power(level, start_s=offset), row)
        assert ax.get_title("left") == title

    def test_edges_meet_after_alignment(self):
        level = [100.0] * 300 + [900.0] * 300
        ax = plots.alignment(
            power(level), power(level, start_s=30.0), fit(offset_s=30.0, offset_lo=29.9, offset_hi=30.1)
        )
        before, after, rest = ax.child_axes

        def edges(panel):
            return [line.get_xdata()[np.nanargmax(np.diff(line.get_ydata())) + 1] for line in panel.lines]

        assert np.diff(edges(before)) == pytest.approx(30.0)
        assert np.diff(edges(after)) == pytest.approx(0.0)
        assert np.nanmax(np.abs(rest.lines[1].get_ydata())) < 0.01

    def test_correction_follows_the_definition_of_the_table(self):
        row = fit(offset_s=10.0, drift_ppm=100.0).row(0, named=True)
        at = T0 + timedelta(seconds=1000)
        moved = pl.DataFrame({"t": [at]}, schema={"t": schema.UTC}).select(corrected(pl.col("t"), row)).item()
        assert (at - moved).total_seconds() == pytest.approx(10.0 + 100e-6 * 1000)

    def test_refused_clock_says_why(self):
        ax = plots.alignment(power([1.0]), power([1.0]), fit(status="refused", reason="no common edge"))
        assert "no common edge" in texts(ax)


class TestCalibration:
    row = schema.conform(
        pl.DataFrame(
            {"scope": ["board"], "reference_scope": ["node"], "gain": [1.2], "gain_lo": [1.1], "gain_hi": [1.3], "offset_w": [-10.0],
             "range_lo_w": [100.0], "range_hi_w": [900.0], "status": ["calibrated"]}
        ),
        "calibrations",
    )  # fmt: skip

    def test_line_and_residuals(self):
        points = pl.DataFrame(
            {
                "reading_w": [100.0, 900.0],
                "reference_w": [115.0, 1070.0],
                "reading_lo": [99.0, 899.0],
                "reading_hi": [101.0, 901.0],
            }
        )
        ax = plots.calibration(points, self.row)
        assert ax.get_title("left") == "node = 1.200 · board − 10 W"
        assert ax.child_axes[1].lines[-1].get_ydata() == pytest.approx([5.0, 0.0])

    def test_needs_a_row(self):
        with pytest.raises(ValueError, match="no row"):
            plots.calibration(None, self.row.clear())


def sweep(**more):
    base = {"sweep": "batch", "knob": "batch_size", "x": [16.0, 32.0, 64.0], "step_time_s": [0.1, 0.15, 0.3],
            "energy_to_target_j": [5e6, 4e6, 6e6]}  # fmt: skip
    return schema.conform(pl.DataFrame(base | more), "sweeps")


def spots(**row):
    return schema.conform(pl.DataFrame([{"sweep": "batch", "objective": "energy_to_target_j"} | row]), "sweet_spots")


class TestSweetSpot:
    def test_only_known_curves_on_one_log_axis(self):
        ax = plots.sweet_spot(sweep(), spots(x=32.0, x_lo=20.0, x_hi=50.0, status="found"))
        assert len(ax.child_axes) == 2
        assert ax.child_axes[-1].get_xscale() == "log"
        assert ax.child_axes[-1].get_xlabel() == "batch size [samples]"
        assert ax.child_axes[-1].get_ylabel() == "energy to target [kWh]"
        assert "best near 32" in texts(ax)

    @pytest.mark.parametrize(("status", "word"), [("flat", "flat"), ("edge", "at the edge")])
    def test_flat_and_edge_are_named(self, status, word):
        assert word in texts(plots.sweet_spot(sweep(), spots(x=64.0, status=status)))

    def test_refusal_gives_its_reason(self):
        assert "too few runs" in texts(plots.sweet_spot(sweep(), spots(status="refused", reason="too few runs")))

    def test_one_sweep_at_a_time(self):
        with pytest.raises(ValueError, match="choose one"):
            plots.sweet_spot(sweep(sweep=["a", "b", "b"]))


def changes(verdict="saves", after=1.8, reason=""):
    row = {"campaign": "c", "position": 1, "change": "placement", "scope": "node", "metric": "energy_per_token_j", "before": 2.0,
           "after": after, "effect_ratio": None if after is None else -0.1, "effect_lo": -0.12, "effect_hi": -0.08, "verdict": verdict,
           "reason": reason}  # fmt: skip
    return schema.conform(pl.DataFrame([row, row | {"scope": "board"}]), "changes")


class TestCampaign:
    def test_bar_reaches_from_before_to_after(self):
        panels = plots.campaign(changes()).child_axes
        assert [p.get_title("left") for p in panels] == ["node", "board"]
        bar = panels[0].patches[0]
        assert (bar.get_x(), bar.get_width()) == pytest.approx((2.0 / 3.6e-3, -0.2 / 3.6e-3))
        assert panels[0].lines[0].get_xdata() == pytest.approx([1.76 / 3.6e-3, 1.84 / 3.6e-3])
        assert "−10.0 %" in panels[0].texts[0].get_text()

    def test_refused_bar_is_hollow_and_says_why(self):
        panel = plots.campaign(changes("refused", None, "two scopes")).child_axes[0]
        assert panel.patches[0].get_facecolor()[3] == 0.0
        assert "two scopes" in panel.texts[0].get_text()


class TestEnergyBar:
    parts = pl.DataFrame({"part": ["board", "package"], "energy_j": [2.0e6, 0.4e6]})

    def test_adds_up_with_the_rest_drawn(self):
        ax = plots.energy_bar(self.parts, total_j=3.6e6, total="node", remainder="fans")
        assert sum(p.get_width() for p in ax.patches) == pytest.approx(1.0)
        assert ax.patches[-1].get_hatch()
        assert ax.get_xlim()[0] == 0.0
        assert "fans" in texts(ax)

    def test_parts_beyond_the_whole_are_marked(self):
        ax = plots.energy_bar(self.parts, total_j=2.0e6, total="node")
        assert "the parts exceed it" in texts(ax)
        assert not any(p.get_hatch() for p in ax.patches)

    @given(st.lists(st.floats(0, 100), min_size=1, max_size=6), st.floats(1, 10))
    @settings(max_examples=25, deadline=None)
    def test_labels_stay_apart_and_inside(self, middles, width):
        names = [("x", m, width) for m in sorted(middles)]
        at = _spread(names, 100.0)
        assert all(b - a >= width - 1e-9 for a, b in itertools.pairwise(at))
        assert at[0] >= width / 2 - 1e-9
        assert at[-1] <= 100.0 - width / 2 + 1e-9


def test_convergence_has_a_panel_for_the_marginal_cost_where_known():
    curve = pl.DataFrame(
        {
            "energy_j": [1e6, 2e6, 3e6],
            "loss": [3.0, 2.5, 2.4],
            "marginal_j": [None, 2e6, 1e7],
            "marginal_lo": [None, 1e6, 5e6],
            "marginal_hi": [None, 3e6, None],
        }
    )
    ax = plots.convergence(curve, stop_j=2.5e6)
    assert len(ax.child_axes) == 2
    assert ax.child_axes[-1].get_xlabel() == "cumulative energy [kWh]"
    assert len(plots.convergence(curve.drop("marginal_j")).child_axes) == 1


def test_triangle_marks_a_marginal_cost_without_an_upper_end():
    curve = pl.DataFrame(
        {
            "energy_j": [1e6, 2e6],
            "loss": [3.0, 2.5],
            "marginal_j": [1e6, 2e6],
            "marginal_lo": [9e5, 1e6],
            "marginal_hi": [2e6, None],
        }
    )
    panel = plots.convergence(curve).child_axes[1]
    arrows = [line for line in panel.lines if line.get_marker() == "^"]
    assert [len(a.get_xdata()) for a in arrows] == [1]


def test_parts_of_an_effect_start_at_zero_and_refused_changes_are_left_out():
    rows = schema.conform(
        pl.DataFrame(
            {
                "campaign": "c",
                "position": [1, 1, 2],
                "change": ["data", "data", "fp8"],
                "scope": "node",
                "part": ["duration", "power-level", "duration"],
                "effect_ratio": [-0.16, 0.07, -0.02],
                "effect_lo": [-0.17, 0.06, -0.03],
                "effect_hi": [-0.15, 0.08, -0.01],
            }
        ),
        "decompositions",
    )
    ax = plots.decomposition(rows)
    (panel,) = ax.child_axes
    widths = sorted(p.get_width() for p in panel.patches)
    assert widths == pytest.approx([-16.0, -2.0, 7.0])
    assert all(p.get_x() == 0.0 for p in panel.patches)
    with pytest.raises(ValueError, match="choose one"):
        plots.decomposition(pl.concat([rows, rows.with_columns(campaign=pl.lit("d"))]))


def test_drivers_are_bars_from_zero_with_what_is_left_last():
    rows = schema.conform(
        pl.DataFrame(
            {
                "run_id": "r",
                "scope": "board",
                "device": "gpu:0",
                "driver": ["unexplained", "temperature_c", "utilization_ratio"],
                "share_ratio": [0.2, 0.1, 0.7],
                "share_lo": [0.1, 0.0, 0.6],
                "share_hi": [0.3, 0.2, 0.8],
            }
        ),
        "drivers",
    )
    (panel,) = plots.drivers(rows).child_axes
    assert [t.get_text() for t in panel.get_yticklabels()] == ["utilisation", "temperature", "not explained"]
    assert [p.get_width() for p in panel.patches] == pytest.approx([70.0, 10.0, 20.0])
    assert plots.drivers(rows.with_columns(share_ratio=pl.lit(None, pl.Float64))).child_axes == []


def test_days_start_at_zero_and_name_each_line():
    rows = schema.conform(
        pl.DataFrame(
            {
                "day": ["2026-11-01", "2026-11-02"],
                "scope": "node",
                "runs": 3,
                "tokens_per_j": [50.0, 45.0],
                "mfu_ratio": [0.3, 0.33],
                "tokens_per_j_change_ratio": [0.0, -0.1],
                "mfu_ratio_change_ratio": [0.0, 0.1],
            }
        ),
        "days",
    )
    ax = plots.days(rows)
    assert {tuple(round(float(v), 6) for v in line.get_ydata()) for line in ax.lines if len(line.get_xdata()) == 2} >= {
        (0.0, -10.0),
        (0.0, 10.0),
    }
    assert "MFU" in texts(ax) and "tokens per joule, node" in texts(ax)


def test_weeks_band_is_that_of_the_eight_before():
    names = [f"2026-W{w:02d}" for w in range(1, 13)]
    rows = pl.DataFrame({"week": names, "metric": "energy_kwh", "value": [99.0, 99.0, 99.0, *range(1, 9), 50.0]})
    panel = plots.weeks(rows, week="2026-W12").child_axes[0]
    band = panel.patches[0].get_extents().transformed(panel.transData.inverted())
    assert (band.y0, band.y1) == pytest.approx((1.0, 8.0))


def test_palette_can_be_told_apart_by_the_colour_blind():
    # Machado, Oliveira and Fernandes (2009), severity 1: deuteranopia and protanopia, linear RGB
    kinds = {
        "deuteranopia": [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        "protanopia": [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
    }
    colours = np.array([to_rgb(c) for c in (look.BLUE, look.ORANGE, look.GREEN, look.VERMILLION)])
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    for matrix in kinds.values():
        seen = linear @ np.array(matrix).T
        gaps = [np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)]
        assert min(gaps) > 0.1


def test_users_own_settings_stay_as_they_were():
    with mpl.rc_context({"font.size": 23.0, "text.color": "red"}):
        ax = plots.timeline(power([100.0] * 9), idle_w=50.0)
        assert to_hex(ax.texts[0].get_color()) == look.INK
        assert plt.rcParams["font.size"] == 23.0


def test_the_steepest_edge_is_found_though_stamps_of_devices_lie_close_together():
    """Two cards, 2 ms apart: a step of rows is no step of time."""
    seconds = [s + g * 0.002 for s in range(3600) for g in (0, 1)]
    watts = [500.0 if 1000 <= s < 2600 else 100.0 + 0.05 * s for s in seconds]
    cards = pl.DataFrame({
        "device": ["gpu:0", "gpu:1"] * 3600, "ts_utc": [T0 + timedelta(seconds=s) for s in seconds], "power_w": watts,
    })  # fmt: skip
    meter = cards.filter(device="gpu:0").with_columns(pl.col("ts_utc") + timedelta(seconds=20), device=pl.lit("node"))
    row = schema.conform(
        pl.DataFrame({"clock": ["meter"], "anchor_utc": [T0], "offset_s": [20.0], "offset_lo": [19.0], "offset_hi": [21.0],
                      "drift_ppm": [0.0], "status": ["aligned"]}), "alignments",
    )  # fmt: skip
    aligned = plots.alignment(cards, meter, row).child_axes[1]
    times, power = aligned.lines[0].get_data()
    # the highest step, from 150 W up to 500 W at 1000 s, stands in the middle of the picture
    assert power[(times > -20) & (times < -3)].max() < 0.5
    assert power[(times > 3) & (times < 20)].min() > 0.9


def test_segments_too_narrow_for_a_name_are_named_beside_the_strip():
    power = pl.DataFrame(
        {"device": "gpu:0", "ts_utc": [T0 + timedelta(seconds=s) for s in range(1000)], "power_w": 300.0}
    )
    ends = [("warmup", 0, 10), ("stable", 10, 980), ("stall", 500, 505)]
    segments = pl.DataFrame([
        {"kind": k, "start_utc": T0 + timedelta(seconds=a), "end_utc": T0 + timedelta(seconds=b)} for k, a, b in ends
    ])  # fmt: skip
    ax = plots.timeline(power, segments=segments)
    (beside,) = [c for c in ax.get_children() if isinstance(c, Legend)]
    assert {t.get_text() for t in beside.get_texts()} == {"warmup", "stall"}
    assert "stable" in {t.get_text() for t in ax.texts}
