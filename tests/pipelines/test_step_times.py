"""Seconds of steps, and seconds since the start of a log that are called the same."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from joulebook_pipelines.logs import step_times

START = datetime(2026, 3, 13, 10, tzinfo=UTC)


def _of(ends_s, told_s):
    frame = pl.DataFrame({"run_id": "r", "at": [START + timedelta(seconds=s) for s in ends_s], "step_time_s": told_s})
    return step_times.of_steps(frame)["step_time_s"].to_list()


def test_seconds_since_the_start_become_those_of_each_step():
    assert _of([10, 20, 31, 41], [12.0, 22.0, 33.0, 43.0]) == pytest.approx([12.0, 10.0, 11.0, 10.0])


def test_a_count_that_begins_again_after_a_restart_leaves_that_step_open():
    found = _of([10, 20, 30, 60, 70, 80], [10.0, 20.0, 30.0, 15.0, 25.0, 35.0])
    assert found == [10.0, 10.0, 10.0, None, 10.0, 10.0]


@pytest.mark.parametrize(
    "told_s", [[10.0, 10.5, 9.5, 10.0], [0.5, 0.5, 0.6, 0.7], [1.0, 2.0, 3.0, 4.0], [9.0, None, 11.0, None]]
)
def test_seconds_of_single_steps_stay(told_s):
    assert _of([10, 20, 30, 40], told_s) == told_s
