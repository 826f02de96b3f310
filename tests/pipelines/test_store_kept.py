"""Readings kept in memory: the same answers as from the database, and no stale ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from joulebook_pipelines import config, run
from joulebook_pipelines.store import Store, open_store
from joulebook_pipelines.store_kept import CELL_BYTES, KeptReadings

START = datetime(2026, 11, 2, tzinfo=UTC)
STUDY = """
[study]
name = "kept"
timezone = "UTC"

[[source]]
path = "gpu.csv"

[[source]]
path = "meter.csv"
clock = "meter"
scope = "node"

[[source]]
path = "second.csv"
scope = "node"

[[run]]
id = "r"
start = 2026-11-02T00:05:00Z
end = 2026-11-02T00:15:00Z
"""


@pytest.fixture(scope="module")
def store_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two cards in turn, a stretch of which stands later in the file than its stamps, and two meters."""
    folder = tmp_path_factory.mktemp("kept")
    stamps = [START + timedelta(seconds=s) for s in range(1200)]
    stamps = stamps[:300] + stamps[600:] + stamps[300:600]
    lines = [f"{t:%Y/%m/%d %H:%M:%S}.000, {g}, {100 + 10 * g + (t.second % 7)}.00 W" for t in stamps for g in range(2)]
    (folder / "gpu.csv").write_text("\n".join(["timestamp, index, power.draw [W]", *lines, ""]))
    for name, above in (("meter", 300), ("second", 310)):
        rows = [f"{(START + timedelta(seconds=s)).isoformat()},{above + s % 5}" for s in range(0, 1200, 5)]
        (folder / f"{name}.csv").write_text("\n".join(["time,power_w", *rows, ""]))
    (folder / "study.toml").write_text(STUDY)
    return run.analyse(config.load(folder), folder / "out").store


def _answers(store: Store) -> list[pl.DataFrame]:
    scopes = ("board", "node")
    around = [store.power("r", scope=s, margin_s=60.0) for s in scopes]
    whole = [store.power(scope=s, quantities=("power_w",)) for s in scopes]
    own = store.measured_power(pl.DataFrame({"source_id": [1, 1], "device": ["gpu:1", "gpu:0"]}))
    witnesses = store.witnesses("r", margin_s=60.0)
    return [*around, *whole, own, *(witnesses[k] for k in sorted(witnesses))]


def test_answers_from_memory_are_those_of_the_database(store_path: Path):
    with open_store(store_path) as asked, open_store(store_path) as keeping:
        keeping.keep_readings(10_000_000)
        expected = _answers(asked)
        assert len(expected) == 6
        assert all(frame.height for frame in expected)
        for _ in range(2):  # the second time nothing is asked
            for mine, other in zip(_answers(keeping), expected, strict=True):
                assert_frame_equal(mine, other)


def test_what_is_taken_out_is_not_answered_from_memory(store_path: Path, tmp_path: Path):
    copy = tmp_path / "study.duckdb"
    copy.write_bytes(store_path.read_bytes())
    with open_store(copy, read_only=False) as store:
        store.keep_readings(10_000_000)
        before = store.power(scope="board").height
        store.forget_source(1)
        assert before == 2400
        assert store.measured_power(pl.DataFrame({"source_id": [1], "device": ["gpu:0"]})).is_empty()


def test_only_as_much_is_kept_as_is_allowed():
    kept = KeptReadings()
    assert not kept.has_room(1, 1)  # nothing is, before it is allowed
    kept.allow(100 * 3 * CELL_BYTES)
    assert kept.has_room(100, 3)
    assert not kept.has_room(101, 3)
