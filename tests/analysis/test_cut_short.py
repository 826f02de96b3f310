import polars as pl

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
