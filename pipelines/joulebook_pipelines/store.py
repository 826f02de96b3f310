"""The DuckDB file that holds a study's facts and results: opening it, and writing to it.

Facts (sources, readings, rejects) are written once, one transaction a source; alignment is applied by views. Only the
modules named ``store`` and the tables of a fleet speak SQL.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb
import polars as pl

from joulebook import own_time, schema
from joulebook_pipelines.store_answers import Answers
from joulebook_pipelines.store_kept import KeptReadings
from joulebook_pipelines.store_keys import ChannelKeys
from joulebook_pipelines.store_questions import Questions
from joulebook_pipelines.store_tables import (
    READING_CHANNELS,
    READING_ROWS,
    begin,
    create,
    is_complete,
    is_of_this_version,
    lay_out,
    make_room,
)
from joulebook_pipelines.store_threads import WritingThreads

SOURCE_TABLES = ("rejects", "channels", "logged_runs", "steps", "phases", "sources")

_TOLD = """case when power_w is not null then 'power' when energy_j is not null then 'energy' when energy_counter_j is not null
    then 'counter' else concat(voltage_v is null, current_a is null, temperature_c is null) end"""
"""What a reading tells, for SQL: readings that tell different things do not repeat one another."""


class StoreError(Exception):
    """The store cannot be opened or is of another version; the message says what to do."""


class OtherVersionError(StoreError):
    """The store was made by another version of the project: it can be made again from the logs."""


class Store(Questions):
    """A study's facts and results.

    Parameters
    ----------
    path
        The DuckDB file.
    read_only
        Whether to refuse writing. A store that is written to is made when it is missing.
    memory_limit
        Most memory that the database may take, e.g. ``"2GB"``.
    """

    def __init__(self, path: Path, *, read_only: bool = True, memory_limit: str | None = None) -> None:
        self.path = path
        if read_only and not path.is_file():
            raise StoreError(f"{path}: there is no store; make it with: joulebook run STUDY")
        if not read_only and not path.exists():
            lay_out(path)
        config: dict[str, str | bool | int | float | list[str]] = {"memory_limit": memory_limit} if memory_limit else {}
        try:
            self._con = duckdb.connect(str(path), read_only=read_only, config=config)
        except duckdb.Error as error:
            raise StoreError(f"{path}: cannot be opened: {str(error).splitlines()[0]}") from None
        complete = is_complete(self._con)
        if not complete and not is_of_this_version(self._con):
            self._con.close()
            raise OtherVersionError(
                f"{path}: was made by another version; make it again from the logs with: joulebook run STUDY"
            )
        self._reading_columns: set[str] = set()
        self._answers = Answers()
        self._channel_keys = ChannelKeys(self._con)
        self._kept_readings = KeptReadings()
        self._threads = WritingThreads(self._con)
        begin(self._con)
        if not read_only and not complete:
            create(self._con)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._con.close()

    # writing

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Write all or nothing."""
        self._con.begin()
        try:
            yield
        except BaseException:
            self._con.rollback()
            self._answers.clear()
            self._reading_columns = set()
            self._channel_keys.forget()
            self._kept_readings.forget()
            raise
        self._con.commit()

    def appending(self) -> AbstractContextManager[None]:
        """Return a context in which row after row is written, with :meth:`append`."""
        return self._threads.few()

    def append(self, readings: pl.DataFrame, devices: int = 0) -> None:
        """Append a block of readings; ``devices`` as :class:`Part` has it."""
        self._threads.fit(readings.height, devices)
        self.insert("readings", readings)

    def _write(self, table: str, query: str, params: Sequence[object] | None = None) -> None:
        self._answers.written(table)
        self._con.execute(query, params)

    def _readings_change(self) -> None:
        """Forget what is remembered of readings and of the numbers of their channels."""
        self._kept_readings.forget()
        self._answers.written(READING_ROWS)
        self._answers.written(READING_CHANNELS)

    def insert(self, name: str, frame: pl.DataFrame) -> None:
        """Append rows to a table; columns are matched by name, missing ones stay null."""
        if frame.is_empty():
            return
        table = schema.table(name).schema
        unknown = [c for c in frame.columns if c not in table]
        if unknown:
            raise ValueError(f"table {name!r} has no column {', '.join(unknown)}")
        stored = READING_ROWS if name == "readings" else name
        if name == "readings":
            self._readings_change()
            frame = self._kept(frame)
        self._answers.written(stored)
        # Named in the statement, not registered: what is registered stays in memory until the file is closed.
        rows_to_insert = frame.to_arrow(compat_level=pl.CompatLevel.newest())  # noqa: F841
        self._con.execute(f'insert into "{stored}" by name select * from rows_to_insert')

    def _kept(self, readings: pl.DataFrame) -> pl.DataFrame:
        """Return readings as they are kept: by the number of their channel, without columns in which nothing stands."""
        optional = {"span_s", *schema.QUANTITY_NAMES}
        empty = [c for c in readings.columns if c in optional and readings[c].null_count() == readings.height]
        channel = self._channel_keys.of_rows(readings["source_id"], readings["device"])
        frame = readings.drop("source_id", "device", *empty).insert_column(0, channel)
        if not self._reading_columns.issuperset(frame.columns):
            self._reading_columns = make_room(self._con, frame)
        return frame

    def replace(self, name: str, frame: pl.DataFrame) -> None:
        """Put new rows in place of all rows of a table."""
        self._write(name, f'delete from "{name}"')
        self.insert(name, schema.conform(frame, name))

    def replace_findings(self, stage: str, frame: pl.DataFrame) -> None:
        """Put new findings in place of those of a stage."""
        self._write("findings", "delete from findings where stage = ?", [stage])
        self.insert("findings", frame)

    def replace_numbers(self, stage: str, results: pl.DataFrame, parts: pl.DataFrame) -> None:
        """Put new results and parts of uncertainties in place of those that a stage made before."""
        for name, frame in (("results", results), ("uncertainties", parts)):
            self._write(name, f"delete from {name} where stage = ?", [stage])
            self.insert(name, frame.with_columns(stage=pl.lit(stage)))

    def log_stage(self, row: dict[str, object]) -> None:
        """Note that a stage has run."""
        self._write("stage_log", "delete from stage_log where stage = ?", [row["stage"]])
        self.insert("stage_log", pl.DataFrame([row], schema=schema.table("stage_log").schema))

    def remember(self, settings: Mapping[str, object]) -> None:
        """Set some of the study's settings."""
        told = pl.DataFrame(
            {"key": list(settings), "value": [json.dumps(v) for v in settings.values()]},
            schema=schema.table("study").schema,
        )
        self._write("study", "delete from study where key in (select unnest(?))", [list(settings)])
        self.insert("study", told)

    def forget_source(self, source_id: int) -> None:
        """Delete a source and all that came from it."""
        own = f"select channel_id from {READING_CHANNELS} where source_id = ?"
        self._write(READING_ROWS, f"delete from {READING_ROWS} where channel_id in ({own})", [source_id])
        self._channel_keys.forget()
        self._readings_change()
        for name in (READING_CHANNELS, *SOURCE_TABLES, "findings"):
            self.forget_rows(name, source_id)

    def forget_rows(self, name: str, source_id: int) -> None:
        """Delete a source's rows of one table."""
        self._write(name, f'delete from "{name}" where source_id = ?', [source_id])

    def next_source_id(self) -> int:
        """Return the first free number."""
        return int(self.sql("select coalesce(max(source_id), 0) + 1 as free from sources")["free"][0])

    def settle_duplicates(self, source_id: int, *, spans: bool, crowded: bool = False) -> pl.DataFrame:
        """Take out readings that stand twice and return them.

        Of readings of one device with the same stamp and the same values the first line is kept. A power and a voltage, or a
        power and a register, are no two readings of one thing: exports put series after series.

        Parameters
        ----------
        source_id
            Source.
        spans
            Judge only readings over a span (they would be counted twice); otherwise all.
        crowded
            The log is about as fast as its stamps are fine: readings of a moment whose values differ are two readings.

        Returns
        -------
        polars.DataFrame
            ``line, device, same``: what was taken out, and whether its values were those of the kept line.
        """
        condition = "and span_s is not null" if spans else ""
        gone = self.sql(
            f"""select line, device,
                    power_w is not distinct from first_value(power_w) over w
                    and energy_j is not distinct from first_value(energy_j) over w
                    and energy_counter_j is not distinct from first_value(energy_counter_j) over w as same
                from readings where source_id = ? {condition}
                window w as (partition by device, ts_utc, span_s, {_TOLD} order by line)
                qualify row_number() over w > 1 and (same or span_s is not null or not ?) order by line""",
            [source_id, crowded],
        )
        self._take_out(source_id, gone)
        return gone

    def settle_strays(self, source_id: int) -> pl.DataFrame:
        """Take out readings and runs of days that their source cannot have been written on; return ``line, device, ts_utc``."""
        days = self.sql(
            """select date_trunc('day', ts_utc) as day, count(*) as rows, min(line) as first_line, max(line) as last_line
            from readings where source_id = ? group by day""",
            [source_id],
        )
        stray = own_time.stray_days(days)
        gone = self.sql(
            """select line, device, ts_utc from readings where source_id = ? and date_trunc('day', ts_utc) in
                (select unnest(cast(? as timestamptz[]))) order by line, device""",
            [source_id, stray.to_list()],
        )
        self._take_out(source_id, gone)
        self._write(
            "logged_runs",
            """delete from logged_runs where source_id = ? and date_trunc('day', end_utc) in
                (select unnest(cast(? as timestamptz[])))""",
            [source_id, stray.to_list()],
        )
        return gone

    def _take_out(self, source_id: int, gone: pl.DataFrame) -> None:
        """Delete the readings of these lines and devices."""
        if gone.is_empty():
            return
        self._readings_change()
        gone_rows = gone.select("line", "device").to_arrow()  # noqa: F841
        self._con.execute(
            f"""delete from {READING_ROWS} r using gone_rows g, {READING_CHANNELS} k
            where k.source_id = ? and k.device = g.device and r.channel_id = k.channel_id and r.line = g.line""",
            [source_id],
        )


def open_store(path: str | Path, *, read_only: bool = True, memory_limit: str | None = None) -> Store:
    """Open a study's store.

    Parameters
    ----------
    path
        The DuckDB file, or the folder that holds ``study.duckdb``.
    read_only, memory_limit
        As in :class:`Store`.
    """
    path = Path(path)
    return Store(path / "study.duckdb" if path.is_dir() else path, read_only=read_only, memory_limit=memory_limit)
