import polars as pl

from joulebook import confounds

RUNS = pl.DataFrame(
    {
        "variant": ["base"] * 3 + ["new"] * 3 + ["last"] * 3,
        "driver": ["550"] * 3 + ["560"] * 6,
        "host": ["n1"] * 9,
        "operator": ["a", "b", "a", "b", "a", "b", "a", "b", "a"],
        "rack": ["r1", None, "r1", "r2", "r2", "r2", "r2", "r2", "r2"],
    }
)


def test_a_driver_that_changes_with_the_variant_is_told_once_and_what_alternates_is_not():
    (found,) = confounds.find(RUNS, order=["base", "new", "last"], columns=["driver", "host", "operator", "rack"])
    assert found.subject == "new"
    assert found.evidence == {"driver": ["550", "560"]}
    assert "driver (550 → 560)" in found.message


def test_a_variant_without_runs_has_nothing_to_compare():
    assert confounds.find(RUNS, order=["base", "absent"], columns=["driver"]) == ()
