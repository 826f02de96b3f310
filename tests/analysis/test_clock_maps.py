from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from joulebook import clock_maps, schema

NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)


def alignment(**cells):
    row = {"clock": "node", "anchor_utc": NOON, "offset_s": 71.0, "drift_ppm": 100.0, "status": "aligned"} | cells
    return schema.conform(pl.DataFrame([row]), "alignments")


def rows(*seconds):
    stamps = [NOON + timedelta(seconds=s) for s in seconds]
    return pl.DataFrame({"start_utc": stamps, "end_utc": [t + timedelta(seconds=1) for t in stamps]}).cast(schema.UTC)


def test_spans_move_by_offset_and_drift():
    # 10 000 s after the anchor a clock that gains 100 ppm is another second ahead
    moved = clock_maps.spans(rows(0, 10_000), alignment(), clock="node")["start_utc"]
    assert [(t - NOON).total_seconds() for t in moved] == pytest.approx([-71.0, 10_000 - 72.0])


@pytest.mark.parametrize(
    "cells", [{"status": "refused"}, {"clock": "meter"}, {"offset_s": None, "drift_ppm": None, "status": "assumed"}]
)
def test_what_was_not_aligned_stays(cells):
    assert clock_maps.spans(rows(0), alignment(**cells), clock="node").equals(rows(0))


def test_a_start_that_is_not_known_stays_so():
    some = rows(0).with_columns(start_utc=pl.lit(None, schema.UTC))
    moved = clock_maps.spans(some, alignment(drift_ppm=None), clock="node")
    assert moved["start_utc"].to_list() == [None]
    assert moved["end_utc"].to_list() == [NOON + timedelta(seconds=1 - 71)]
