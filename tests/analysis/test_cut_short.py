import polars as pl
import pytest

from joulebook import cut_short


def _runs(rows):
    return pl.DataFrame(rows, schema=["run_id", "x", "duration_s"], orient="row")


def test_a_run_that_died_is_set_aside_and_named():
    runs = _runs([("a", 8, 300.0), ("b", 8, 310.0), ("c", 8, 60.0), ("d", 16, 61.0), ("e", 16, 60.0)])
    kept, (found,) = cut_short.without(runs, kind="x", name="batch_size")
    assert kept["run_id"].to_list() == ["a", "b", "d", "e"]
    assert "c (60 s)" in found.message
    assert "batch_size" in found.message


def test_runs_of_about_one_length_stay_as_do_those_of_which_nobody_knows():
    runs = _runs([("a", 8, 300.0), ("b", 8, 200.0), ("c", 8, None), ("d", 16, 10.0)])
    kept, found = cut_short.without(runs, kind="x")
    assert kept.equals(runs)
    assert found == ()


def test_a_run_is_named_once_for_all_its_scopes():
    runs = _runs([(name, 8, s) for name, s in (("a", 300.0), ("b", 300.0), ("c", 20.0)) for _ in range(2)])
    kept, (found,) = cut_short.without(runs, kind="x")
    assert kept.height == 4
    assert found.evidence == {"runs": ["c"]}


def _settings(batch, seconds, steps):
    tokens = [None if n is None else 1024.0 * b * n for b, n in zip(batch, steps, strict=True)]
    names = [f"r{i}" for i in range(len(batch))]
    return pl.DataFrame({"run_id": names, "x": batch, "duration_s": seconds, "steps": steps, "tokens": tokens})


def test_a_setting_that_ran_out_of_memory_is_set_aside_with_all_of_its_runs():
    runs = _settings([32, 32, 64, 64, 128, 128], [240.0, 240, 240, 239, 6, 9], [190, 191, 120, 121, 2, 3])
    kept, (found,) = cut_short.without_failed(runs, kind="x", name="batch_size")
    assert kept["x"].to_list() == [32, 32, 64, 64]
    assert found.evidence == {"runs": ["r4", "r5"]}
    assert "batch_size 128 (9 s, 3 steps)" in found.message


@pytest.mark.parametrize(
    ("seconds", "steps"),
    [
        ([300.0] * 8, [4096 // 2**i for i in range(8)]),  # equal time
        ([60.0 * 2**i for i in range(8)], [500] * 8),  # equal steps
        ([3840.0 / 2**i + 24 for i in range(8)], [4096 // 2**i for i in range(8)]),  # equal tokens
        ([300.0] * 7 + [6.0], [None] * 8),  # no log of steps
    ],
)
def test_settings_that_ran_are_kept_however_the_sweep_was_planned(seconds, steps):
    runs = _settings([2**i for i in range(8)], seconds, steps)
    kept, found = cut_short.without_failed(runs, kind="x")
    assert kept.equals(runs) and found == ()
