from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulebook import occupancy, phase_timeline

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds):
    return T0 + timedelta(seconds=float(seconds))


def marks(*rows):
    return pl.DataFrame(
        {"phase": [r[0] for r in rows], "start_utc": [at(r[1]) for r in rows], "end_utc": [at(r[2]) for r in rows]}
    )


def cut(*rows, length=10.0):
    return phase_timeline.cut(marks(*rows), start_utc=T0, end_utc=at(length))


def seconds(line):
    return {n: s for n, s in zip(line.names, line.seconds.tolist(), strict=True) if s}


def test_time_in_no_phase_is_other():
    assert seconds(cut(("a", 1, 3), ("b", 3, 4), ("a", 6, 7))) == {"other": 6.0, "a": 3.0, "b": 1.0}


def test_phases_are_clipped_to_the_window():
    assert seconds(cut(("a", -5, 2), ("b", 9, 20))) == {"other": 7.0, "a": 2.0, "b": 1.0}


def test_the_inner_of_nested_phases_has_the_time():
    line = cut(("step", 0, 10), ("forward", 1, 4), ("backward", 4, 9))
    assert seconds(line) == {"step": 2.0, "forward": 3.0, "backward": 5.0}
    assert line.nested == ("step",)
    assert not line.overlapping


def test_time_in_two_overlapping_phases_is_its_own_label():
    line = cut(("backward", 0, 6), ("grad_sync", 4, 8))
    assert seconds(line) == {"other": 2.0, "backward": 4.0, "grad_sync": 2.0, "backward & grad_sync": 2.0}
    assert line.overlapping == ("backward", "grad_sync")


def test_the_same_interval_twice_is_an_overlap():
    assert seconds(cut(("a", 2, 5), ("b", 2, 5))) == {"other": 7.0, "a & b": 3.0}


def test_overlapping_stretches_of_one_phase_count_once():
    assert seconds(cut(("a", 0, 4), ("a", 2, 6))) == {"other": 4.0, "a": 6.0}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 10), st.floats(0.01, 5)), max_size=12))
def test_labels_always_fill_the_window(rows):
    line = cut(*[(n, a, a + d) for n, a, d in rows])
    assert line.seconds.sum() == pytest.approx(10, abs=1e-5)
    assert (np.diff(line.breaks_s) > 0).all()


def test_share_of_windows_by_hand():
    line = cut(("a", 0, 2.5), ("b", 2.5, 10))
    got = occupancy.share(line, np.array([2.0, 3.0, 4.0]), window_s=1.0)
    assert got[:, 1:] == pytest.approx(np.array([[1, 0], [0.5, 0.5], [0, 1]]))


def test_share_with_lag_is_the_integral_of_the_step_response():
    line = cut(("a", 0, 5), ("b", 5, 10))
    lag, window = 0.4, 0.5
    end = np.array([5.2, 5.5, 6.0, 8.0])
    start = np.maximum(end - window, 5)
    # 1 - exp(-t/T) integrated from start to end of the window
    want = (end - start + lag * (np.exp(-(end - 5) / lag) - np.exp(-(start - 5) / lag))) / window
    got = occupancy.share(line, end, window_s=window, lag_s=lag)
    assert got[:, 2] == pytest.approx(want, rel=1e-9)
    assert got.sum(axis=1) == pytest.approx(np.ones(4))


def test_energy_of_a_ramp_between_readings():
    t = [at(s) for s in (0, 1, 3)]
    frame = pl.DataFrame({"device": "gpu:0", "ts_utc": t, "power_w": [0.0, 100.0, 300.0]})
    spans = pl.DataFrame({"start_utc": [at(0), at(0.5)], "end_utc": [at(3), at(2)]})
    assert occupancy.within(frame, spans).tolist() == pytest.approx([450.0, 187.5])


def test_devices_are_added():
    t = [at(s) for s in range(5)]
    frame = pl.concat(
        pl.DataFrame({"device": d, "ts_utc": t, "power_w": w}) for d, w in (("gpu:0", 10.0), ("gpu:1", 30.0))
    )
    assert occupancy.within(frame, pl.DataFrame({"start_utc": [at(1)], "end_utc": [at(3)]})).tolist() == [80.0]


def test_a_reading_after_a_gap_does_not_stand_for_the_gap():
    t = [at(s) for s in (0, 1, 2, 3, 100, 101)]
    one = occupancy.series(
        pl.DataFrame({"device": "n", "ts_utc": t, "power_w": 1.0}), start_utc=T0, end_utc=at(101), margin_s=0.0
    )[0]
    assert one.weight_s.tolist() == [1, 1, 1, 1, 3, 1]
