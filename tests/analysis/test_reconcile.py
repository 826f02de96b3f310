"""Reconciliation of the sources of one run."""

from __future__ import annotations

import polars as pl
import pytest

from joulebook import reconcile


def frame(*rows: tuple[str, str, float, float, float]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["scope", "source", "energy_j", "lo", "hi"], orient="row")


def codes(found: reconcile.Reconciliation) -> list[str]:
    return [f.code for f in found.findings]


def test_parts_and_residual() -> None:
    found = reconcile.run(
        frame(
            ("board", "smi", 700.0, 690.0, 710.0),
            ("package", "rapl", 100.0, 100.0, 100.0),
            ("node", "meter", 1000.0, 995.0, 1005.0),
        )
    )
    rest = found.frame.filter(pl.col("role") == "residual").row(0, named=True)
    assert rest["energy_j"] == pytest.approx(200)
    assert rest["lo"] == pytest.approx(200 - (10**2 + 5**2) ** 0.5)
    assert found.frame.filter(pl.col("source") == "smi")["share_ratio"].item() == pytest.approx(0.7)
    assert codes(found) == []


def test_board_above_the_wall() -> None:
    found = reconcile.run(frame(("board", "smi", 4140.0, 4140.0, 4140.0), ("node", "meter", 2490.0, 2490.0, 2490.0)))
    assert codes(found) == ["parts-exceed-whole"]
    assert "4140 J" in found.findings[0].message
    assert "2490 J" in found.findings[0].message


def test_counter_ten_times_too_small() -> None:
    found = reconcile.run(frame(("node", "power", 7.2e6, 7.2e6, 7.2e6), ("node", "counter", 7.2e5, 7.2e5, 7.2e5)))
    assert codes(found) == ["sources-differ-by-factor"]
    assert found.findings[0].evidence["ratio"] == pytest.approx(10.0)
    assert found.findings[0].severity == "error"


def test_counter_seven_per_cent_off_is_a_warning_within_five_none() -> None:
    assert codes(
        reconcile.run(frame(("node", "power", 100.0, 99.0, 101.0), ("node", "counter", 107.0, 107.0, 107.0)))
    ) == ["sources-disagree"]
    assert (
        codes(reconcile.run(frame(("node", "power", 100.0, 99.0, 101.0), ("node", "counter", 103.0, 103.0, 103.0))))
        == []
    )


def test_a_missing_device_shows_in_the_residual() -> None:
    found = reconcile.run(frame(("board", "smi", 200.0, 200.0, 200.0), ("node", "meter", 1000.0, 1000.0, 1000.0)))
    assert codes(found) == ["residual-implausible"]


def test_a_total_of_the_same_parts_is_not_added_to_them() -> None:
    found = reconcile.run(
        frame(
            ("board", "smi", 600.0, 600.0, 600.0),
            ("components", "codecarbon", 650.0, 650.0, 650.0),
            ("node", "meter", 900.0, 900.0, 900.0),
        )
    )
    assert found.frame.filter(pl.col("role") == "residual")["energy_j"].item() == pytest.approx(300)


def test_parts_side_by_side_hold_nothing() -> None:
    found = reconcile.run(
        frame(
            ("board", "smi", 900.0, 890.0, 910.0),
            ("package", "rapl", 100.0, 100.0, 100.0),
            ("dram", "rapl", 10.0, 10.0, 10.0),
        )
    )
    assert codes(found) == []
    assert found.frame["role"].to_list() == ["beside"] * 3
    assert found.frame["share_ratio"].null_count() == 3


def test_components_hold_their_parts() -> None:
    found = reconcile.run(
        frame(("board", "smi", 900.0, 890.0, 910.0), ("components", "codecarbon", 500.0, 500.0, 500.0))
    )
    assert codes(found) == ["parts-exceed-whole"]


def test_parts_that_make_the_whole_to_the_last_digit_do_not_exceed_it() -> None:
    found = reconcile.run(
        frame(
            ("package", "cc", 29.9999988, 29.9999988, 29.9999988),
            ("dram", "cc", 3600.0, 3600.0, 3600.0),
            ("components", "cc", 3629.999998799, 3629.999998799, 3629.999998799),
        )
    )
    assert codes(found) == []


def test_unknown_scope_and_empty() -> None:
    with pytest.raises(ValueError, match="allowed are"):
        reconcile.run(frame(("shelf", "x", 1.0, 1.0, 1.0)))
    assert reconcile.run(frame().cast({"energy_j": pl.Float64, "scope": pl.String})).frame.is_empty()
