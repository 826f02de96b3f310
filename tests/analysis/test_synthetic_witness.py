"""Instruments see the truth through windows and clocks exactly as they say."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulebook import synthetic
from joulebook.synthetic_witness import (
    Clock,
    decimal,
    energy_before,
    lines,
    mean_before,
    shifted,
    stamps,
    ticks_s,
)


@settings(deadline=None)
@given(st.floats(-1e4, 1e4), st.floats(-500, 500), st.floats(0, 1e5))
def test_clock_obeys_the_formula_of_the_alignments_table(offset_s: float, drift_ppm: float, at_s: float) -> None:
    shown = float(Clock(offset_s=offset_s, drift_ppm=drift_ppm).reads(np.array([at_s]), duration_s=5e4)[0])
    anchor_s = 2.5e4
    assert shown - offset_s - drift_ppm * 1e-6 * (shown - anchor_s) == pytest.approx(at_s, abs=1e-6)


@settings(deadline=None)
@given(st.floats(-1e6, 1e6), st.integers(0, 6))
def test_decimal_writes_what_python_writes(value: float, decimals: int) -> None:
    text = pl.DataFrame({"x": [value]}).select(decimal("x", decimals)).item()
    assert float(text) == pytest.approx(value, abs=0.5000001 * 10**-decimals)
    assert len(text.partition(".")[2]) == decimals
    assert "e" not in text


def test_window_means_are_means_of_cells() -> None:
    values = pl.Series(np.random.default_rng(1).uniform(50, 700, 400))
    at = np.array([1.0, 5.0, 39.95])
    mean = mean_before(values, at, window_s=1.0, cell_s=0.1)
    assert mean[:2] == pytest.approx([values[0:10].mean(), values[40:50].mean()])
    cells = values.to_numpy()
    half = (0.5 * cells[389] + cells[390:399].sum() + 0.5 * cells[399]) / 10
    assert mean[2] == pytest.approx(half)
    assert mean_before(values, at, window_s=0.0, cell_s=0.1).tolist() == [values[10], values[50], values[399]]
    assert energy_before(values, np.array([2.0]), cell_s=0.1)[0] == pytest.approx(values[:20].sum() * 0.1)


def test_zone_changes_the_text_not_the_instant() -> None:
    truth = synthetic.node(1)
    at = np.array([0.0, 60.0])
    utc, local = (stamps(truth, at, clock=Clock(zone=z)) for z in ("UTC", "Asia/Shanghai"))
    assert (utc.dt.epoch("us") == local.dt.epoch("us")).all()
    assert local.dt.hour()[0] == 9
    assert shifted(truth, utc, clock=Clock()).equals(utc)


def test_lines_end_each_row_and_nothing_for_none() -> None:
    frame = pl.DataFrame({"a": ["1", "2"], "b": ["x", "y"]})
    assert lines(frame, ";") == "1;x\n2;y\n"
    assert lines(frame.clear(), ";") == ""


def test_a_period_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        ticks_s(synthetic.node(1), period_s=0.0)
