"""Stamps that collectors write between dumps."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines.logs import stamp_lines
from joulebook_pipelines.logs.contract import Head, Log, LogRefusedError, Options

NEVER = re.compile(r"(?!)")
TEN = datetime(2026, 3, 2, 10, tzinfo=UTC)


def log_of(*lines: str, options: Options | None = None) -> Log:
    return Log(Path("log.txt"), Head("log.txt", "\n".join(lines), "utf-8", True), options or Options())


def read(line: str, options: Options | None = None) -> tuple[datetime | None, str]:
    found = stamp_lines.find(log_of(line, options=options), NEVER)
    assert found is not None, line
    stamp, rest, _ = found.split(pl.col("text"))
    frame = pl.DataFrame({"text": [line]}).with_columns(stamp=stamp, rest=rest)
    utc = found.clock.to_utc(frame.select(found.naive(pl.col("stamp")).alias("at")).to_series())
    return utc[0], frame["rest"][0]


@pytest.mark.parametrize("line", [
    "2026-03-02T10:00:00Z", "### 2026-03-02T10:00:00Z", "=== 2026-03-02 10:00:00 UTC ===",
    "[2026-03-02 11:00:00+01:00]",
    "2026-03-02T11:00:00+0100", "Mon Mar  2 10:00:00 UTC 2026", "Mon 02 Mar 2026 10:00:00 AM UTC", "1772445600",
    "1772445600.000",
    "# 1772445600", "date: 2026-03-02T10:00:00Z", "--- Mon Mar 2 10:00:00 GMT 2026 ---",
])  # fmt: skip
def test_forms(line: str) -> None:
    assert read(line) == (TEN, "")


def test_a_stamp_in_front_leaves_the_line() -> None:
    assert read("2026-03-02T10:00:00Z PS1 Input Power | 158 Watts | ok") == (TEN, "PS1 Input Power | 158 Watts | ok")


def test_another_zone_must_be_named() -> None:
    line = "Mon 02 Mar 2026 11:00:00 AM CET"
    with pytest.raises(LogRefusedError, match="timezone"):
        read(line)
    assert read(line, Options(timezone="Europe/Berlin"))[0] == TEN


def test_noon_and_midnight() -> None:
    assert read("Mon 02 Mar 2026 12:30:00 AM UTC")[0] == datetime(2026, 3, 2, 0, 30, tzinfo=UTC)
    assert read("Mon 02 Mar 2026 12:30:00 PM UTC")[0] == datetime(2026, 3, 2, 12, 30, tzinfo=UTC)


def test_no_stamp_is_found_where_there_is_none() -> None:
    lines = ["PS1 Input Power | 158 Watts | ok", "Sampling period: 00000001 Seconds.", "Get SDR 0042 command failed"]
    assert stamp_lines.find(log_of(*lines), NEVER) is None


def test_a_broken_stamp_is_no_reading_of_the_time_before() -> None:
    found = stamp_lines.find(log_of("### 2026-03-02T10:00:00Z"), NEVER)
    assert found is not None
    stamp, _, meant = found.split(pl.col("text"))
    frame = pl.DataFrame({"text": ["### 2026-03-02T10:0x:00Z", "# a comment"]}).select(stamp=stamp, meant=meant)
    assert frame["stamp"].to_list() == [None, None] and frame["meant"].to_list() == [True, False]
