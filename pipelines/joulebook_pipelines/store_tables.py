"""How the store's tables are made in DuckDB: from the schema, with comments; readings are kept narrow behind a view.

A reading's file and device are one number, and only the quantities that occur are columns: each column of each row
costs as much as a number to write, a text three times as much.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import tempfile
from pathlib import Path

import duckdb
import polars as pl

from joulebook import schema

_TYPES = {
    pl.String: "VARCHAR", pl.Int64: "BIGINT", pl.Int32: "INTEGER", pl.Float64: "DOUBLE", pl.Boolean: "BOOLEAN",
}  # fmt: skip

_VIEWS = """
create or replace view clock_maps as
    select s.source_id, s.host, s.clock, s.adapter, a.anchor_utc,
           case when a.status in ('aligned', 'assumed') then coalesce(a.offset_s, 0) else 0 end as offset_s,
           case when a.status in ('aligned', 'assumed') then coalesce(a.drift_ppm, 0) else 0 end as drift_ppm
    from sources s left join alignments a on a.clock = s.clock;
create or replace view aligned_readings as
    select r.source_id, r.line, r.device, m.host, c.scope,
           r.ts_utc - to_microseconds(cast(round(1e6 * m.offset_s + coalesce(m.drift_ppm, 0)
               * (epoch_us(r.ts_utc) - coalesce(epoch_us(m.anchor_utc), epoch_us(r.ts_utc))) * 1e-6) as bigint)) as ts_utc,
           r.ts_utc as clock_utc, r.* exclude (source_id, line, device, ts_utc)
    from readings r join clock_maps m on m.source_id = r.source_id
    left join channels c on c.source_id = r.source_id and c.device = r.device;
create or replace view aligned_runs as
    select u.* replace (
        u.start_utc - to_microseconds(cast(round(1e6 * coalesce(a.offset_s, 0) + coalesce(a.drift_ppm, 0)
            * (epoch_us(u.start_utc) - coalesce(epoch_us(a.anchor_utc), epoch_us(u.start_utc))) * 1e-6) as bigint)) as start_utc,
        u.end_utc - to_microseconds(cast(round(1e6 * coalesce(a.offset_s, 0) + coalesce(a.drift_ppm, 0)
            * (epoch_us(u.end_utc) - coalesce(epoch_us(a.anchor_utc), epoch_us(u.end_utc))) * 1e-6) as bigint)) as end_utc)
    from runs u left join alignments a on a.clock = u.host and a.status in ('aligned', 'assumed');
"""
"""True time = t − offset − drift·1e-6·(t − anchor); what was refused is left as it was measured."""

READING_ROWS = "reading_rows"
"""Where readings are kept; `readings` is a view of it."""

STORED_COLUMNS = f"select name as column_name from pragma_table_info('{READING_ROWS}')"
"""The question for the columns of readings that occur in a study."""

READING_CHANNELS = "reading_channels"
"""Which file and device the channel of a kept reading stands for."""

BEHIND_VIEWS = {"readings": f"{READING_ROWS} {READING_CHANNELS}"} | dict(
    re.findall(r"create or replace view (\w+) as\b(.*?);", _VIEWS, re.DOTALL)
)
"""By name of a view, text that names the tables and views that it is made of."""

_KEPT = {
    "channel_id": "integer using compression bitpacking",
    "line": "uinteger using compression bitpacking",
    "ts_utc": "timestamptz using compression bitpacking",
}
"""What is kept of every reading besides its quantities. Told how to pack whole numbers, the database tries no other ways."""


_VERSION = hashlib.sha256(f"{schema.TABLES}{_KEPT}{_VIEWS}".encode()).hexdigest()[:16]
"""Of everything that `create` makes: stores that bear it need not be looked through."""


def lay_out(path: Path) -> None:
    """Put an empty store there, as it was made once before: the comments alone would take a tenth of a second each time.

    Where a file has appeared meanwhile, or the file system has no links, nothing is done: `create` does it.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        try:
            draft.write_bytes(_empty())
            os.link(draft, path)
        finally:
            draft.unlink(missing_ok=True)


@functools.cache
def _empty() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.duckdb"
        with duckdb.connect(str(path)) as con:
            create(con)
        return path.read_bytes()


def begin(con: duckdb.DuckDBPyConnection) -> None:
    """Set what holds for a connection: UTC, and no bar of the database's own, which would stand in the output of a command."""
    con.execute("set timezone = 'UTC'")
    # Where a notebook cannot draw the bar it is off, and putting it off is an error.
    if con.execute("select current_setting('enable_progress_bar')").fetchall() == [(True,)]:
        con.execute("set enable_progress_bar = false")


def create(con: duckdb.DuckDBPyConnection) -> None:
    """Make the tables and views that are not there yet, with their comments, in one transaction: each of its own takes twice as long."""
    con.begin()
    try:
        _create(con)
    except BaseException:
        con.rollback()
        raise
    con.commit()


def _create(con: duckdb.DuckDBPyConnection) -> None:
    present = {r[0] for r in con.execute("select table_name from duckdb_tables()").fetchall()}
    for table in schema.TABLES:
        if table.name == "readings":
            if READING_ROWS not in present:
                _create_readings(con)
        elif table.name not in present:
            columns = ", ".join(f'"{c.name}" {_sql_type(c.dtype)}' for c in table.columns)
            con.execute(f'create table "{table.name}" ({columns})')
            con.execute(f"""comment on table "{table.name}" is '{quoted(table.doc)}'""")
            _comment_columns(con, table)
    con.execute(_VIEWS)
    con.execute(f"create or replace view store_version as select '{_VERSION}' as version")


def _create_readings(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"create table {READING_CHANNELS} (channel_id integer, source_id integer, device varchar)")
    con.execute(f"create table {READING_ROWS} ({', '.join(f'{name} {kind}' for name, kind in _KEPT.items())})")
    _show_readings(con)
    con.execute(f"""comment on view "readings" is '{quoted(schema.table("readings").doc)}'""")


def _comment_columns(con: duckdb.DuckDBPyConnection, table: schema.Table) -> None:
    for column in table.columns:
        con.execute(f"""comment on column "{table.name}"."{column.name}" is '{quoted(column.doc)}'""")


def _show_readings(con: duckdb.DuckDBPyConnection) -> None:
    """Make the view ``readings``: every quantity is a column, null where no source of the study has it.

    Writing a column of nulls costs as much as one of numbers, and no log fills more than half of them; so the rows
    are kept with the columns that occur, and the view adds the others.
    """
    stored = stored_columns(con) | {"source_id", "device"}
    shown = ", ".join(
        f'cast({c.name if c.name in stored else "null"} as {_sql_type(c.dtype)}) as "{c.name}"'
        for c in schema.table("readings").columns
    )
    con.execute(
        f"create or replace view readings as select {shown} from {READING_ROWS} join {READING_CHANNELS} using (channel_id)"
    )
    _comment_columns(con, schema.table("readings"))


def stored_columns(con: duckdb.DuckDBPyConnection) -> set[str]:
    """Return the columns of readings that occur in the study."""
    return {r[0] for r in con.execute(STORED_COLUMNS).fetchall()}


def is_complete(con: duckdb.DuckDBPyConnection) -> bool:
    """Tell whether this version made the whole store: a question that costs a tenth of looking through its columns."""
    try:
        return con.execute("select version from store_version").fetchone() == (_VERSION,)
    except duckdb.CatalogException:
        return False


def is_of_this_version(con: duckdb.DuckDBPyConnection) -> bool:
    """Tell whether what a store holds has the columns that this version reads and writes."""
    rows = con.execute(
        "select table_name, list(column_name) from duckdb_columns() where not internal group by all"
    ).fetchall()
    held = {name: set(columns) for name, columns in rows}
    wanted = {t.name: {c.name for c in t.columns} for t in schema.TABLES} | {READING_ROWS: set(_KEPT)}
    return all(columns <= held[name] for name, columns in wanted.items() if name in held)


def make_room(con: duckdb.DuckDBPyConnection, frame: pl.DataFrame) -> set[str]:
    """Add the columns of a frame of readings that no source had before; return all columns that there are now."""
    stored = stored_columns(con)
    types = schema.table("readings").schema
    fresh = [c for c in frame.columns if c not in stored]
    for name in fresh:
        con.execute(f'alter table {READING_ROWS} add column "{name}" {_sql_type(types[name])}')
    if fresh:
        _show_readings(con)
    return stored.union(fresh)


def _sql_type(dtype: pl.DataType | type[pl.DataType]) -> str:
    return "TIMESTAMPTZ" if dtype == schema.UTC else next(s for t, s in _TYPES.items() if dtype == t)


def quoted(text: str) -> str:
    """Return text as it stands between the quotes of an SQL literal."""
    return text.replace("'", "''")
