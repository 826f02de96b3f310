"""Tables under ``#`` headers: the header in force, and damage to it."""

from __future__ import annotations

import polars as pl
import pytest

from joulebook_pipelines.logs import hash_table

NAMES, UNITS = "# gpu  pwr  temp  sm  mem", "# Idx    W     C   %    %"


def _split(text, *, rest_in_last=False):
    start = hash_table.first(text[:2])
    lines = pl.DataFrame({"line": range(1, len(text) + 1), "raw": text})
    return list(
        hash_table.Splitter(start, rest_in_last=rest_in_last).split(lines.with_columns(pl.col("line").cast(pl.Int64)))
    )


def test_repeated_headers_are_no_rows():
    ((header, raw),) = _split([NAMES, UNITS, "0 71 45 98 40", NAMES, UNITS, "0 72 45 98 40"])
    assert header.names == ("gpu", "pwr", "temp", "sm", "mem") and header.units == ("Idx", "W", "C", "%", "%")
    assert raw.frame["line"].to_list() == [3, 6] and raw.frame["c1"].to_list() == ["71", "72"]
    assert raw.odd.is_empty()


def test_a_header_with_other_columns_takes_over():
    found = _split([NAMES, UNITS, "0 71 45 98 40", "# gpu  temp  sm", "# Idx   C   %", "0 45 98"])
    assert [(h.names[1], r.frame["c1"].to_list()) for h, r in found] == [("pwr", ["71"]), ("temp", ["45"])]


@pytest.mark.parametrize(
    "spoilt", [NAMES.replace("pwr", "pxr"), NAMES.replace("pwr", ""), NAMES.replace("pwr", "p wr")]
)
def test_a_spoilt_header_changes_nothing(spoilt):
    ((_, raw),) = _split([NAMES, UNITS, "0 71 45 98 40", spoilt, UNITS, "0 72 45 98 40", "0 45 98 40"])
    assert raw.frame["c1"].to_list() == ["71", "72"] and raw.odd["line"].to_list() == [7]


def test_cells_never_move_to_the_left():
    ((_, raw),) = _split([NAMES, UNITS, "0 45 98 40", "0 71 45 98 40 1"])
    assert raw.frame.is_empty() and raw.odd["line"].to_list() == [3, 4]


def test_the_last_column_takes_the_rest_of_the_line():
    text = ["# gpu  pid  type  command", "# Idx    #   C/G  name", "0 4123 C python train.py --lr 0.1"]
    ((_, raw),) = _split(text, rest_in_last=True)
    assert raw.frame["c3"].to_list() == ["python train.py --lr 0.1"]
