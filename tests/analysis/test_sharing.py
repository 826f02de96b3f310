import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulebook import sharing, sharing_part


def test_boards_by_energy_and_processors_by_time_with_overhead():
    boards = sharing.by_measured_energy(
        pl.DataFrame({"job": ["a", "b"], "energy_j": [600.0, 300.0]}), total_j=1000.0, boards_j=1000.0
    )
    cpus = sharing.by_cpu_time(pl.DataFrame({"job": ["b"], "cpu_s": [500.0]}), total_j=200.0, cores=10, window_s=100.0)
    got = sharing.with_overhead(sharing.combined(boards, cpus), pue=1.5).frame
    assert got.select("job", "energy_j").rows() == [("a", 900.0), ("b", 600.0), ("idle", 300.0)]


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 8), st.floats(0, 3600)), max_size=10), st.floats(1, 1e9)
)
def test_sums_are_kept(rows, total):
    jobs = pl.DataFrame(rows, schema={"job": pl.String, "accelerators": pl.Int64, "seconds": pl.Float64}, orient="row")
    got = sharing.by_accelerator_time(jobs, total_j=total, accelerators=8, window_s=3600.0)
    assert got.frame["energy_j"].sum() == pytest.approx(total, rel=1e-9)
    assert got.frame["share_ratio"].sum() == pytest.approx(1, abs=1e-9)
    assert got.frame["job"][-1] == "idle"
    assert (got.frame["energy_j"] >= 0).all()


def test_jobs_that_claim_too_much_are_named():
    jobs = pl.DataFrame({"job": ["a", "b"], "accelerators": [8, 8], "seconds": [3600.0, 3600.0]})
    got = sharing.by_accelerator_time(jobs, total_j=100.0, accelerators=8, window_s=3600.0)
    assert got.findings[0].code == "jobs-claim-too-much"
    assert got.frame["energy_j"].to_list() == [50.0, 50.0, 0.0]


def test_wrong_calls_are_errors():
    jobs = pl.DataFrame({"job": ["idle"], "cpu_s": [1.0]})
    with pytest.raises(ValueError, match="remainder"):
        sharing.by_cpu_time(jobs, total_j=1.0, cores=1, window_s=10.0)
    with pytest.raises(ValueError, match="nothing to split"):
        sharing.by_cpu_time(jobs, total_j=1.0, cores=0, window_s=10.0)
    with pytest.raises(ValueError, match="negative"):
        sharing.by_measured_energy(pl.DataFrame({"job": ["a"], "energy_j": [-1.0]}), total_j=1.0, boards_j=1.0)


def test_the_part_of_a_run_and_who_was_beside_it():
    rows = [
        ("n1", 0, "a", 900.0), ("n1", 0, "b", 600.0), ("n1", 0, "idle", 300.0),
        ("n2", 0, "c", 70.0), ("n2", 0, "idle", None),
    ]  # fmt: skip
    shares = pl.DataFrame(rows, schema=["host", "start_utc", "run_id", "energy_j"], orient="row").with_columns(
        scope=pl.lit("node"),
        energy_lo=pl.col("energy_j") - 5,
        energy_hi=pl.col("energy_j") + 5,
        method=pl.lit("by board"),
    )
    part = sharing_part.part_of(shares, "a", scope="node")
    assert part is not None
    assert (part.energy.value, part.energy.lo, part.energy.hi, part.others) == (900.0, 895.0, 905.0, ("b",))
    assert sharing_part.part_of(shares, "c", scope="node").others == ()
    assert sharing_part.part_of(shares, "a", scope="rack") is None
    assert sharing_part.part_of(shares, "d", scope="node") is None
