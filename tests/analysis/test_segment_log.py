"""One device's log as arrays."""

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from joulebook import segment_log, states

START = datetime(2026, 11, 2, tzinfo=UTC)


def frame(watts, **columns):
    stamps = [START + timedelta(seconds=s) for s in range(len(watts))]
    return pl.DataFrame({"ts_utc": stamps, "power_w": watts, **columns})


def test_what_is_left_out_takes_the_state_before_it():
    watts = np.repeat([60.0, 400.0], 100) + np.random.default_rng(0).normal(0.0, 2.0, 200)
    watts[150] = 0.0
    log, doubts = segment_log.load(frame(watts), "gpu:0", idle_w=None)
    assert log.state[150] == states.BUSY
    assert not log.usable[150]
    assert [f.code for f in doubts] == ["zero-power"]
    busy = log.counted(100, 200, states.BUSY)
    assert busy.watts.size == 99
    assert (busy.place(0), busy.place(98), busy.from_place(151).place(0)) == (100, 199, 151)
    idle = log.counted(10, 100, states.IDLE)
    assert idle.at is None
    assert (idle.place(3), idle.from_place(40).place(0), idle.from_place(40).watts.size) == (13, 40, 60)


def test_a_reading_begins_where_its_span_does_and_ends_a_step_on_without_one():
    spans = [None] * 5 + [0.5] * 5
    log, _ = segment_log.load(frame(300.0 + np.arange(10) % 3, span_s=spans), "gpu:0", idle_w=None)
    assert log.begins(2) == START + timedelta(seconds=2)
    assert log.ends(2) == START + timedelta(seconds=3)
    assert log.begins(7) == START + timedelta(seconds=6.5)
    assert log.ends(7) == START + timedelta(seconds=7)


def test_the_usual_step_of_a_long_log_is_read_all_over_it(monkeypatch):
    monkeypatch.setattr(segment_log, "SAMPLE", 640)
    log, _ = segment_log.load(frame(300.0 + np.arange(2000) % 7), "gpu:0", idle_w=None)
    assert log.step_s == 1.0
