import polars as pl

from joulebook import conditions


def test_equal_runs_have_no_differences():
    assert conditions.differences(pl.DataFrame({"run_id": ["a", "b"], "driver": ["1", "1"], "loss": [1.0, 2.0]})) == ()


def test_each_difference_names_the_runs():
    runs = pl.DataFrame(
        {"run_id": ["a", "b", "c"], "scope": ["board", "node", "board"], "precision": ["bf16", None, "bf16"]}
    )
    found = conditions.differences(runs)
    assert [f.subject for f in found] == ["scope", "precision"]
    assert "board (a, c), node (b)" in found[0].message
