from pathlib import Path

import duckdb
import polars as pl
import pytest

from joulebook import schema
from joulebook_pipelines import fleet_tables, store_timeline
from joulebook_pipelines.store import StoreError, open_store


def _insert_then_fail(store, runs):
    store.insert("runs", runs)
    store.insert("runs", pl.DataFrame({"nonsense": [1]}))


def _choose_then_fail(store, chosen, runs):
    store.insert("instruments", chosen)
    assert store.instruments("r").height == 1
    _insert_then_fail(store, runs)


def test_the_file_holds_the_tables_that_the_schema_names(store):
    columns = store.sql("select table_name, column_name, data_type, comment from duckdb_columns() where not internal")
    for table in schema.TABLES:
        mine = columns.filter(pl.col("table_name") == table.name)
        assert mine["column_name"].to_list() == [c.name for c in table.columns]
        assert mine["comment"].to_list() == [c.doc for c in table.columns]
        assert store.table(table.name).schema == pl.Schema(table.schema)


def test_a_transaction_that_fails_leaves_nothing(store):
    runs = pl.DataFrame({"run_id": ["a"], "host": ["node"]})
    with pytest.raises(ValueError, match="nonsense"), store.transaction():
        _insert_then_fail(store, runs)
    assert store.table("runs").is_empty()
    with store.transaction():
        store.insert("runs", runs)
    assert store.table("runs").height == 1


def test_the_database_draws_no_bar_of_its_own_into_the_output(store, tmp_path):
    setting = "select current_setting('enable_progress_bar')"
    assert store.sql(setting).row(0) == (False,)
    with fleet_tables.Place(str(tmp_path)).connect() as fleet:
        assert fleet.execute(setting).fetchone() == (False,)


def test_a_column_that_does_not_exist_is_an_error(store):
    with pytest.raises(ValueError, match="nonsense"):
        store.insert("runs", pl.DataFrame({"nonsense": [1]}))


def test_a_missing_store_says_how_to_make_it(tmp_path):
    with pytest.raises(StoreError, match="joulebook run"):
        open_store(tmp_path / "study.duckdb")


def test_a_store_of_another_version_says_how_to_replace_it(tmp_path):
    with duckdb.connect(str(tmp_path / "study.duckdb")) as old:
        old.execute("create table reading_rows (source_id integer, line bigint, device varchar, ts_utc timestamptz)")
    for read_only in (True, False):
        with pytest.raises(StoreError, match=r"another version; make it again .* joulebook run"):
            open_store(tmp_path / "study.duckdb", read_only=read_only)


def test_readings_come_back_as_they_were_written_whatever_the_order_of_devices(store):
    wide = {"source_id": pl.Int32}
    written = pl.DataFrame({
        "source_id": [7] * 5 + [2] * 4 + [7, 2, 7],
        "line": range(12),
        "device": [*"ababa", *"baab", *"abc"],
        "ts_utc": pl.Series(range(12)).cast(pl.Datetime("us", "UTC")),
        "power_w": [float(i) for i in range(12)],
    }, schema_overrides=wide)  # fmt: skip
    for first, rows in ((0, 5), (5, 4), (9, 3)):
        store.insert("readings", written.slice(first, rows))
    kept = store.table("readings").select(written.columns).sort("line")
    assert kept.equals(written)
    with store.transaction():
        store.forget_source(7)
    store.insert("readings", written.slice(0, 5).with_columns(source_id=pl.lit(9, pl.Int32)))
    kept = store.table("readings").select("source_id", "line", "device").sort("line").rows()
    assert kept == [(9, i, d) for i, d in enumerate("ababa")] + [(2, i, d) for i, d in enumerate("baab", 5)] + [
        (2, 10, "b")
    ]


def test_an_unknown_run_names_those_that_are_there(store):
    store.insert("runs", pl.DataFrame({"run_id": ["train-1"]}))
    with pytest.raises(KeyError, match="train-1"):
        store.power("train-2", scope="board")


def test_alignment_is_applied_in_views_and_facts_stay(store):
    at = pl.Series(["2026-01-01T00:00:10"]).str.to_datetime(time_unit="us").dt.replace_time_zone("UTC")
    store.insert(
        "sources",
        pl.DataFrame(
            {"source_id": [1], "clock": ["meter"], "host": ["node"]}, schema_overrides={"source_id": pl.Int32}
        ),
    )
    store.insert(
        "channels",
        pl.DataFrame(
            {"source_id": [1], "device": ["node"], "scope": ["node"]}, schema_overrides={"source_id": pl.Int32}
        ),
    )
    store.insert(
        "readings",
        pl.DataFrame(
            {"source_id": [1], "line": [2], "device": ["node"], "ts_utc": at, "power_w": [5.0]},
            schema_overrides={"source_id": pl.Int32},
        ),
    )
    store.insert(
        "instruments",
        pl.DataFrame(
            {"run_id": ["r"], "scope": ["node"], "source_id": [1], "device": ["node"], "chosen": [True]},
            schema_overrides={"source_id": pl.Int32},
        ),
    )
    anchor = at.dt.offset_by("-1000000s")
    store.insert(
        "alignments",
        pl.DataFrame(
            {"clock": ["meter"], "anchor_utc": anchor, "offset_s": [4.0], "drift_ppm": [1.0], "status": ["aligned"]}
        ),
    )
    # True time = t − offset − drift·1e-6·(t − anchor) = 10 s − 4 s − 1e-6·1e6 s
    assert store.power(scope="node")["ts_utc"].dt.second().to_list() == [5]
    assert store.power(scope="node", as_measured=True)["ts_utc"].dt.second().to_list() == [10]
    assert store.table("readings")["ts_utc"].dt.second().to_list() == [10]


def _readings(source_id, device, seconds, watts, first_line=2):
    stamps = pl.Series([int(s * 1e6) for s in seconds]).cast(pl.Datetime("us", "UTC"))
    return pl.DataFrame({
        "line": range(first_line, first_line + len(seconds)), "device": device, "ts_utc": stamps, "power_w": watts,
    }).with_columns(source_id=pl.lit(source_id, pl.Int32))  # fmt: skip


def test_power_is_what_the_view_of_aligned_readings_says(store):
    own = {"source_id": pl.Int32}
    hosts = ["a", "a", "b"]
    store.insert(
        "sources", pl.DataFrame({"source_id": [1, 2, 3], "clock": ["x", "y", "z"], "host": hosts}, schema_overrides=own)
    )
    at = pl.Series([10_000_000, None, None]).cast(pl.Datetime("us", "UTC"))
    clocks = {"clock": ["x", "y", "z"], "status": ["aligned", "refused", "assumed"], "offset_s": [4.0, 9.0, -0.25]}
    store.insert("alignments", pl.DataFrame(clocks | {"drift_ppm": [50_000.0, None, None], "anchor_utc": at}))
    channels = [(1, "gpu:0"), (1, "gpu:1"), (2, "gpu:0"), (3, "gpu:0")]
    rows = pl.DataFrame(channels, schema={"source_id": pl.Int32, "device": pl.String}, orient="row")
    store.insert("channels", rows.with_columns(scope=pl.lit("board")))
    store.insert("instruments", rows.with_columns(run_id=pl.lit("r"), scope=pl.lit("board"), chosen=pl.lit(value=True)))
    # The first file goes back in time, the second interleaves with it, and one reading says nothing.
    store.insert("readings", _readings(1, "gpu:0", [10, 20, 15, 30], [1.0, 2.0, 3.0, None]))
    store.insert("readings", _readings(1, "gpu:1", [11, 21], [4.0, 5.0], 6))
    store.insert("readings", _readings(2, "gpu:0", [7.5, 30.5], [6.0, 7.0]))
    store.insert("readings", _readings(3, "gpu:0", [12, 13], [8.0, 9.0]))
    end = at[0].replace(second=21)
    for stamp, as_measured in (("ts_utc", False), ("clock_utc", True)):
        expected = store.sql(
            f"""select host || '/' || device as device, {stamp} as ts_utc, power_w from aligned_readings
            where power_w is not null and {stamp} between ? and ? order by host, device, {stamp}, line""",
            [at[0].replace(second=6).isoformat(), end.isoformat()],
        )
        assert 4 < expected.height < 9
        got = store.power(scope="board", start_utc=at[0].replace(second=6), end_utc=end, as_measured=as_measured)
        assert got.select("device", "ts_utc", "power_w").equals(expected)
    one = store.power(scope="board", device="gpu:1")
    assert one["power_w"].to_list() == [4.0, 5.0]


def test_what_is_asked_once_is_asked_again_when_something_was_written(store):
    chosen = pl.DataFrame({"run_id": ["r"], "scope": ["board"], "device": ["gpu:0"], "chosen": [True]})
    runs = pl.DataFrame({"run_id": ["r"], "host": ["node"]})
    for _ in range(2):
        assert store.instruments("r").is_empty()
        assert store.aligned_runs().is_empty()
        with pytest.raises(ValueError, match="nonsense"), store.transaction():
            _choose_then_fail(store, chosen, runs)
    store.insert("instruments", chosen)
    store.insert("runs", runs)
    assert store.instruments("r").select(chosen.columns).equals(chosen)
    assert store.aligned_runs()["run_id"].to_list() == ["r"]
    store.replace("instruments", chosen.clear())
    assert store.instruments("r").is_empty()


def test_a_time_line_is_the_sum_of_what_all_devices_tell_whole_or_piece_by_piece(store, monkeypatch):
    seconds = [s for s in range(1000) if s not in (200, 201)]
    watts = [100.0 + (s % 7) + 50 * (s == 500) for s in seconds]
    first, last = (pl.Series([s * 1_000_000]).cast(pl.Datetime("us", "UTC")) for s in (0, 999))
    rows = pl.DataFrame({"source_id": 1, "device": ["gpu:0", "gpu:1"]}, schema_overrides={"source_id": pl.Int32})
    store.insert("sources", pl.DataFrame({"source_id": [1], "clock": ["x"], "first_utc": first, "last_utc": last}))
    store.insert("channels", rows.with_columns(scope=pl.lit("board"), period_s=pl.lit(1.0), n=pl.lit(1000)))
    store.insert("instruments", rows.with_columns(run_id=pl.lit("r"), scope=pl.lit("board"), chosen=pl.lit(value=True)))
    store.insert("readings", _readings(1, "gpu:0", [s + 0.1 for s in range(1000)], [10.0] * 1000))
    store.insert("readings", _readings(1, "gpu:1", [s + 0.3 for s in seconds], watts, 1002))
    whole = store.timeline("board", 100)
    assert whole.height == 100
    assert whole["lo_w"].min() == 110.0
    assert whole["hi_w"].max() == 110.0 + 500 % 7 + 50
    assert whole["mean_w"][2] == pytest.approx(10.0 + sum(watts[20:30]) / 10)
    assert store.timeline("board", 1000).height == 998
    monkeypatch.setattr(store_timeline, "MOST_ROWS", 300)
    assert store.timeline("board", 100).equals(whole)
    assert store.timeline("node").is_empty()


def test_only_the_store_speaks_sql():
    source = Path(__file__).resolve().parents[2] / "pipelines" / "joulebook_pipelines"
    speaking = {p.name for p in source.rglob("*.py") if ".sql(" in p.read_text()}
    assert {n for n in speaking if not n.startswith("store") and n != "fleet_tables.py"} == set()


def test_a_store_that_this_version_did_not_make_whole_is_completed(tmp_path):
    path = tmp_path / "study.duckdb"
    open_store(path, read_only=False).close()
    with duckdb.connect(str(path)) as old:
        old.execute("drop view store_version")
        old.execute("drop table findings")
        old.execute("create or replace view aligned_runs as select * from runs limit 0")
    with open_store(path, read_only=False) as store:
        store.insert("runs", pl.DataFrame({"run_id": ["a"], "host": ["node"]}))
        assert store.table("findings").is_empty()
        assert store.sql("select run_id from aligned_runs")["run_id"].to_list() == ["a"]


def test_two_stores_made_one_after_the_other_know_nothing_of_each_other(tmp_path):
    for name in ("a", "b"):
        with open_store(tmp_path / f"{name}.duckdb", read_only=False) as store:
            assert store.table("runs").is_empty()
            store.insert("runs", pl.DataFrame({"run_id": [name], "host": ["node"]}))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.duckdb", "b.duckdb"]


def test_where_files_cannot_be_linked_a_store_is_made_all_the_same(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError("no links here")

    monkeypatch.setattr("os.link", refused)
    with open_store(tmp_path / "study.duckdb", read_only=False) as store:
        assert store.table("runs").is_empty()
    assert [p.name for p in tmp_path.iterdir()] == ["study.duckdb"]
