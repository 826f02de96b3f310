"""Lines of a tool inside of a collector's JSON are read as if the tool had written them."""

import json

import polars as pl
import pytest

from joulebook_pipelines import ingest
from joulebook_pipelines.logs.contract import Options
from joulebook_pipelines.store import open_store

WATTS = [200.0, 210.0, 220.0, 190.0]
QUERY = ["timestamp, index, power.draw [W]", *(f"2026/03/13 10:00:0{i}.000, 0, {w:.2f} W" for i, w in enumerate(WATTS))]
BARE = ["index, power.draw [W]", *(f"0, {w:.2f} W" for w in WATTS)]
TRAINING = [f"step {10 * i} loss: 2.{9 - i}" for i in range(1, 5)]


def docker(lines):
    return [
        json.dumps({"log": f"{line}\n", "stream": "stdout", "time": f"2026-03-13T10:00:0{max(i - 1, 0)}.000000000Z"})
        for i, line in enumerate(lines)
    ]


def journal(lines):
    begin_us = 1_773_396_000_000_000
    return [
        json.dumps(
            {"__REALTIME_TIMESTAMP": str(begin_us + max(i - 1, 0) * 1_000_000), "_HOSTNAME": "n1", "MESSAGE": line}
        )
        for i, line in enumerate(lines)
    ]


def taken(tmp_path, lines, table, *, damaged=None):
    lines = list(lines)
    if damaged is not None:
        lines[damaged] = lines[damaged][:20]
    path = tmp_path / "collected.json"
    path.write_text("\n".join(lines) + "\n")
    source = ingest.SourceFile(path, path.name, "node", options=Options(timezone="UTC"))
    with open_store(tmp_path / "s.duckdb", read_only=False) as store:
        (outcome,) = ingest.ingest((source,), store)
        assert outcome.status == "read", outcome.reason
        return store.table(table), store.rejects()


@pytest.mark.parametrize("wrap", [docker, journal])
@pytest.mark.parametrize("said", [QUERY, BARE], ids=["own time", "the collector's time"])
def test_rows_of_a_query(tmp_path, wrap, said):
    readings, rejects = taken(tmp_path, wrap(said), "readings")
    assert readings["power_w"].to_list() == WATTS
    assert [f"{t:%Y-%m-%dT%H:%M:%S}" for t in readings["ts_utc"]] == [f"2026-03-13T10:00:0{i}" for i in range(4)]
    assert readings["line"].to_list() == [2, 3, 4, 5]
    assert rejects.height == 0


def test_a_damaged_line_is_rejected_and_the_others_kept(tmp_path):
    readings, rejects = taken(tmp_path, docker([*QUERY, *QUERY[1:], *QUERY[1:3]]), "readings", damaged=3)
    assert 4 not in readings["line"].to_list()
    assert rejects.filter(pl.col("line") == 4).height >= 1


def test_steps_get_the_time_of_the_collector(tmp_path):
    steps, _ = taken(tmp_path, docker(TRAINING), "steps")
    assert steps.select("step", "loss").sort("step").rows() == [(10, 2.8), (20, 2.7), (30, 2.6), (40, 2.5)]
    assert steps["end_utc"].null_count() == 0
