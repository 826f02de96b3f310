from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from joulebook import quiet

START = datetime(2026, 11, 2, 1, tzinfo=UTC)


def series(values, lengths):
    watts = np.repeat(np.array(values, dtype=float), lengths)
    watts = watts + np.random.default_rng(0).normal(0.0, 1.0, watts.size)
    stamps = [START + timedelta(seconds=k) for k in range(watts.size)]
    return pl.DataFrame(
        {"ts_utc": stamps, "power_w": watts, "utilization_ratio": pl.Series([None] * watts.size, dtype=pl.Float64)}
    )


def test_the_higher_of_two_quiet_stretches_is_left_out():
    runs = pl.DataFrame({"start_utc": [START + timedelta(seconds=300)], "end_utc": [START + timedelta(seconds=600)]})
    rows = quiet.stretches(series([60, 500, 90], [300, 300, 300]), runs=runs)
    assert rows["used"].to_list() == [True, False]
    assert "lowest" in rows["reason"][1]


def test_time_beside_a_run_is_guarded():
    runs = pl.DataFrame({"start_utc": [START + timedelta(seconds=300)], "end_utc": [START + timedelta(seconds=600)]})
    rows = quiet.stretches(series([60, 500, 60], [300, 300, 300]), runs=runs)
    assert rows["end_utc"][0] <= START + timedelta(seconds=300 - quiet.GUARD_S + 1)
    assert rows["start_utc"][1] >= START + timedelta(seconds=600 + quiet.GUARD_S)


def test_no_time_outside_no_rows():
    runs = pl.DataFrame({"start_utc": [START], "end_utc": [START + timedelta(seconds=900)]})
    assert quiet.stretches(series([60, 500], [300, 300]), runs=runs).equals(quiet.EMPTY)


def test_a_node_whose_boards_rest_is_at_rest_though_it_draws_most_of_what_it_draws_at_work():
    runs = pl.DataFrame({"start_utc": [START + timedelta(seconds=300)], "end_utc": [START + timedelta(seconds=600)]})
    node = series([330, 480, 330], [300, 300, 300])
    boards = node.select(
        "ts_utc", device=pl.lit("gpu:0"), utilization_ratio=pl.Series(np.repeat([0.0, 0.95, 0.0], 300))
    )
    assert quiet.stretches(node, runs=runs)["reason"].str.contains("under load").all()
    assert quiet.stretches(node, runs=runs, use=boards)["used"].to_list() == [True, True]
    # Boards at work outside of runs, and a column that is nought at work too, leave it under load.
    for told in ([0.9, 0.95, 0.9], [0.0, 0.0, 0.0]):
        use = boards.with_columns(utilization_ratio=pl.Series(np.repeat(told, 300)))
        assert not quiet.stretches(node, runs=runs, use=use)["used"].any()
    # As high as the run: whatever it is, it is no rest.
    assert not quiet.stretches(series([470, 480, 470], [300, 300, 300]), runs=runs, use=boards)["used"].any()


def test_a_rest_of_equal_readings_is_not_called_too_short():
    at = [START + timedelta(seconds=5 * i) for i in range(330)]
    watts = [564.0] * 130 + [1500.0 + 4 * (i % 3) for i in range(200)]
    node = pl.DataFrame(
        {"ts_utc": at, "power_w": watts, "utilization_ratio": pl.Series([None] * 330, dtype=pl.Float64)}
    )
    rows = quiet.stretches(node, runs=pl.DataFrame({"start_utc": [at[130]], "end_utc": [at[-1]]}))
    assert not rows["used"].any()
    assert quiet.UNMOVED in set(rows["reason"])
