"""The tables of a fleet: Parquet files in a shared folder, one a table and study, that DuckDB reads as one.

The layout is ``tables/TABLE.parquet/study=NAME/data.parquet``: every reader of partitioned Parquet sees one table with a
column ``study``. A file appears whole or not at all, so that work that is done twice does no harm. Times of the work
itself are left out: the same logs give the same bytes, wherever and whenever they were worked on.
"""

from __future__ import annotations

import io
import shutil
import uuid
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import duckdb
import polars as pl

from joulebook import schema
from joulebook_pipelines.config_errors import ConfigError
from joulebook_pipelines.store import Store
from joulebook_pipelines.store_tables import begin

FOLDER = "tables"
LEFT_IN_STORES = ("readings",)
"""Tables that are not exported: readings are facts of gigabytes, and stay in each study's store."""
_TIMES = {"sources": ("ingested_utc",), "stage_log": ("started_utc", "seconds")}
"""Columns that differ from one execution to the next."""
TABLES = tuple(t.name for t in schema.TABLES if t.name not in LEFT_IN_STORES)


class Place:
    """A shared folder: a local path, or any URL that fsspec knows.

    Parameters
    ----------
    at
        Path or URL.

    Raises
    ------
    ConfigError
        It is a URL and fsspec, or what it needs for that kind of URL, is not installed.
    """

    def __init__(self, at: str) -> None:
        self.at = at.rstrip("/")
        self.remote = "://" in at
        self.root = self.at
        self._fs: Any = None
        if self.remote:
            try:
                import fsspec  # noqa: PLC0415 (an extra, needed only for URLs)

                self._fs, path = fsspec.core.url_to_fs(self.at)
            except (ImportError, ValueError) as error:
                raise ConfigError(
                    f"{at}: cannot be written to ({error}); install what it needs: pip install 'joulebook[dask]'"
                ) from None
            self.root = str(path).rstrip("/")

    def put(self, name: str, content: bytes) -> None:
        """Write a file whole: on a disk under another name first; an object store shows nothing before all is there."""
        if self.remote:
            target = f"{self.root}/{name}"
            self._fs.makedirs(str(PurePosixPath(target).parent), exist_ok=True)
            self._fs.pipe_file(target, content)
            return
        file = Path(self.at) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        held = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
        held.write_bytes(content)
        held.replace(file)

    def send(self, file: Path, name: str) -> None:
        """Copy a local file to the place, whole or not at all, without holding it in memory."""
        if self.remote:
            target = f"{self.root}/{name}"
            self._fs.makedirs(str(PurePosixPath(target).parent), exist_ok=True)
            self._fs.put_file(str(file), target)
            return
        to = Path(self.at) / name
        to.parent.mkdir(parents=True, exist_ok=True)
        held = to.with_name(f".{to.name}.{uuid.uuid4().hex}")
        shutil.copyfile(file, held)
        held.replace(to)

    def fetch(self, name: str, file: Path) -> bool:
        """Copy a file of the place to a local one and return whether it was there."""
        if self.remote:
            there = bool(self._fs.exists(f"{self.root}/{name}"))
            if there:
                self._fs.get_file(f"{self.root}/{name}", str(file))
            return there
        source = Path(self.at) / name
        if source.is_file():
            shutil.copyfile(source, file)
        return source.is_file()

    def drop(self, name: str) -> None:
        """Delete a file where it is there."""
        if self.remote:
            target = f"{self.root}/{name}"
            if self._fs.exists(target):
                self._fs.rm_file(target)
            return
        (Path(self.at) / name).unlink(missing_ok=True)

    def connect(self) -> duckdb.DuckDBPyConnection:
        """Return a connection that can read the place."""
        con = duckdb.connect()
        begin(con)
        if self.remote:
            con.register_filesystem(self._fs)
        return con


def file_of(table: str, study: str) -> str:
    """Return where a study's rows of a table lie.

    Examples
    --------
    >>> file_of("results", "node 7")
    'tables/results.parquet/study=node%207/data.parquet'
    """
    return f"{FOLDER}/{table}.parquet/study={quote(study, safe='')}/data.parquet"


def publish(store: Store, place: Place, study: str) -> None:
    """Write a study's tables, in the order of their keys.

    Parameters
    ----------
    store
        The study's store.
    place
        The shared folder.
    study
        Name of the study in the fleet.
    """
    for table in TABLES:
        held = io.BytesIO()
        store.table(table).drop(_TIMES.get(table, ())).write_parquet(held)
        place.put(file_of(table, study), held.getvalue())


def withdraw(place: Place, study: str) -> None:
    """Delete a study's tables: those of an earlier execution must not stand for one that failed."""
    for table in TABLES:
        place.drop(file_of(table, study))


def read(at: str | Path, table: str = "results") -> pl.DataFrame:
    """Return a table of all studies as one frame, with the column ``study`` first.

    Parameters
    ----------
    at
        The shared folder.
    table
        Name of the table.

    Raises
    ------
    ConfigError
        The folder has no such table.
    """
    return query(at, f'select * from "{table}"', (table,))


def query(at: str | Path, sql: str, tables: tuple[str, ...] = TABLES) -> pl.DataFrame:
    """Return the answer to an SQL query over the tables of all studies.

    Parameters
    ----------
    at
        The shared folder.
    sql
        DuckDB SQL; every table has the column ``study``.
    tables
        Tables that the query may name.

    Raises
    ------
    ConfigError
        The folder has none of them.
    """
    place = Place(str(at))
    with place.connect() as con:
        there = 0
        for table in tables:
            glob = f"{place.at}/{FOLDER}/{table}.parquet/*/data.parquet".replace("'", "''")
            try:
                con.execute(
                    f"""create view "{table}" as select study, * exclude (study)
                    from read_parquet('{glob}', hive_partitioning = true, hive_types = {{'study': varchar}}, union_by_name = true)"""
                )
                there += 1
            except duckdb.IOException:
                continue
        if not there:
            raise ConfigError(
                f"{at}: has no tables of a fleet ({', '.join(tables[:3])}); make them with: joulebook run STUDY STUDY -o {at}"
            )
        relation = con.sql(sql)
        answer: pl.DataFrame = relation.pl() if relation is not None else pl.DataFrame()
        return answer
