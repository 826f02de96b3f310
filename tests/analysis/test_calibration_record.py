"""Stored calibrations: a way through JSON changes nothing, what is not one is refused, doubts are named."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import polars as pl
import pytest

from joulebook import calibrate, calibration_record
from joulebook.calibration_record import Record


def record() -> Record:
    """A line through six loads of two recordings."""
    x = [60.0, 150.0, 240.0, 330.0, 420.0, 500.0]
    y = [15 + 1.08 * v + e for v, e in zip(x, [0.4, -0.8, 0.3, 0.9, -0.5, -0.3], strict=True)]
    line = calibrate.fit(
        pl.DataFrame(
            {"reading_w": x, "reference_w": y, "reading_se_w": [0.5] * 6, "reference_se_w": [1.0] * 6,
             "recording": ["a", "b"] * 3}
        )
    )  # fmt: skip
    assert line.status == "calibrated"
    return Record(line, "node7", "board", "node", "WT310E", date(2026, 11, 1), "before the fans were changed")


def test_a_way_through_json_changes_no_number_that_is_applied() -> None:
    one = record()
    two = calibration_record.from_dict(json.loads(json.dumps(calibration_record.to_dict(one))))
    assert (two.host, two.scope, two.reference_scope, two.meter, two.made_on, two.note) == (
        one.host, one.scope, one.reference_scope, one.meter, one.made_on, one.note,
    )  # fmt: skip
    for watts in (60.0, 300.0, 540.0, 800.0):
        assert calibrate.predict(two.calibration, watts, se_w=2.0) == calibrate.predict(
            one.calibration, watts, se_w=2.0
        )


def test_storing_twice_gives_the_same() -> None:
    stored = calibration_record.to_dict(record())
    assert calibration_record.to_dict(calibration_record.from_dict(stored)) == stored


def test_a_refused_one_is_not_stored() -> None:
    with pytest.raises(ValueError, match="refused"):
        calibration_record.to_dict(Record(calibrate.refused("no points"), "n", "board", "node", "m", date(2026, 1, 1)))


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        ("kind", "x", "kind"),
        ("version", 2, "version"),
        ("gain", None, "gain"),
        ("gain", "1.1", "gain"),
        ("offset_w", float("nan"), "offset_w"),
        ("scope", "gpu", "board"),
        ("status", "refused", "status"),
        ("covariance", [1.0, 0.0], "covariance"),
        ("covariance", [1.0, 0.0, -1.0], "covariance"),
        ("made_on", "1.11.2026", "made_on"),
        ("meter", None, "meter"),
    ],
)
def test_bad_values_are_named(key: str, value: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        calibration_record.from_dict(calibration_record.to_dict(record()) | {key: value})


@pytest.mark.parametrize(
    ("host", "scope", "day", "codes"),
    [
        ("node7", "board", date(2026, 11, 20), []),
        ("node8", "board", date(2026, 11, 20), ["calibration-other-host"]),
        ("node7", "package", date(2026, 11, 20), ["calibration-other-scope"]),
        ("node7", "board", date(2028, 1, 1), ["calibration-old"]),
        ("node7", "board", date(2026, 10, 1), ["calibration-old"]),
    ],
)
def test_doubts(host: str, scope: str, day: date, codes: list[str]) -> None:
    found = calibration_record.doubts(record(), host=host, scope=scope, reference_scope="node", used_on=day)
    assert [f.code for f in found] == codes
