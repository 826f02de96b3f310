from datetime import date

import polars as pl
import pytest

from joulebook import baseline_book


def _entry(day, mean_w, half_w=2.0, **more):
    row = {"name": "resnet", "scope": "node", "date": date(2026, 1, day), "study": "s", "runs": 3, "device_model": "A"}
    return row | {"mean_w": mean_w, "lo": mean_w - half_w, "hi": mean_w + half_w} | more


def test_changes_are_against_the_last_and_the_first():
    frame = baseline_book.drift(pl.DataFrame([_entry(1, 500.0), _entry(2, 504.0), _entry(3, 514.08)])).frame
    assert frame["since_last_ratio"].to_list() == [None, pytest.approx(0.008), pytest.approx(0.02)]
    assert frame["since_first_ratio"].to_list() == pytest.approx([0.0, 0.008, 0.02816])
    assert frame["drifted"].to_list() == [False, False, True]


def test_a_change_inside_its_interval_is_no_drift():
    done = baseline_book.drift(pl.DataFrame([_entry(1, 500.0, 10.0), _entry(2, 512.0, 10.0)]))
    assert not done.frame["drifted"].any()
    assert done.findings == ()


def test_scopes_and_names_are_kept_apart_and_conditions_are_compared():
    book = pl.DataFrame([_entry(1, 500.0), _entry(1, 300.0, scope="board"), _entry(2, 500.5, device_model="B")])
    done = baseline_book.drift(book)
    assert done.frame["since_first_ratio"].abs().max() < 0.01
    assert [f.code for f in done.findings] == ["conditions-differ"]
    assert "A (2026-01-01), B (2026-01-02)" in done.findings[0].message
