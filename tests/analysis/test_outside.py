"""A log without any reading in a run is told, with how far it is away and whether a zone would explain that."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from joulebook import outside, schema

T0 = datetime(2026, 3, 2, 10, tzinfo=UTC)


def found(begins_s: float, *, length_s: float = 300.0, scope: str = "node", host: str = "node") -> list[str]:
    first = T0 + timedelta(seconds=begins_s)
    sources = pl.DataFrame(
        [(1, "meter.csv", host, first, first + timedelta(seconds=length_s))],
        schema={
            "source_id": pl.Int32,
            "path": pl.String,
            "host": pl.String,
            "first_utc": schema.UTC,
            "last_utc": schema.UTC,
        },
        orient="row",
    )
    channels = pl.DataFrame({"source_id": [1], "scope": [scope], "n": [300]}, schema_overrides={"source_id": pl.Int32})
    runs = pl.DataFrame(
        [("r", "node", T0, T0 + timedelta(seconds=600))],
        schema={"run_id": pl.String, "host": pl.String, "start_utc": schema.UTC, "end_utc": schema.UTC},
        orient="row",
    )
    return [f.message for f in outside.find(sources, channels, runs)]


def test_a_log_of_another_zone_is_told_with_its_hours() -> None:
    (message,) = found(-3600.0)
    assert "55 min before the nearest, r" in message
    assert "1 h before the run" in message and "timezone" in message


def test_a_log_of_another_day_is_no_matter_of_a_zone() -> None:
    (message,) = found(-100_000.0)
    assert "timezone" not in message and "27.7 h before" in message


@pytest.mark.parametrize("begins_s", [-200.0, 0.0, 599.0])
def test_a_log_that_reaches_into_a_run_is_not_told(begins_s: float) -> None:
    assert found(begins_s) == []


def test_logs_without_power_or_of_other_hosts_are_not_told() -> None:
    assert found(-3600.0, scope="part") == []
    assert found(-3600.0, host="other") == []


def test_a_run_a_quarter_of_an_hour_before_is_no_matter_of_a_zone() -> None:
    """A ranging run comes just before the run that counts: quarters of an hour are no zones of one place."""
    (message,) = found(-900.0)
    assert "timezone" not in message
