"""What can be asked of a store: tables and results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import duckdb
import polars as pl

from joulebook import schema
from joulebook_pipelines.store_answers import MOST_BYTES, Answers
from joulebook_pipelines.store_kept import KeptReadings
from joulebook_pipelines.store_keys import ChannelKeys


class Reads:
    """The questions; :class:`joulebook_pipelines.store.Store` opens the file and writes."""

    path: Path
    _con: duckdb.DuckDBPyConnection
    _answers: Answers
    _channel_keys: ChannelKeys
    _kept_readings: KeptReadings

    def keep_readings(self, most_bytes: int) -> None:
        """Keep power readings in memory between questions, where all of the study's are at most so many bytes."""
        self._kept_readings.allow(most_bytes)

    def sql(self, query: str, params: Sequence[object] = ()) -> pl.DataFrame:
        """Return the answer to any SQL query as a frame.

        Parameters
        ----------
        query
            DuckDB SQL; ``?`` marks a parameter.
        params
            Values of the parameters.
        """
        relation = self._con.sql(query, params=list(params)) if params else self._con.sql(query)
        return pl.DataFrame(relation.pl()) if relation is not None else pl.DataFrame()

    def once(self, query: str) -> pl.DataFrame:
        """Return the answer to a query without parameters, asked once until a table behind it is written to."""
        frame: pl.DataFrame = self._answers.of(query, lambda: self.sql(query))
        if frame.estimated_size() > MOST_BYTES:
            self._answers.drop(query)
        return frame

    def once_by(self, query: str, **key: object) -> pl.DataFrame:
        """Return the rows of such an answer with these values in these columns, and without the columns ``by_…`` among them.

        Stages ask for each run and scope; one question for all of them takes as long as one for one of them.
        """
        names = tuple(key)

        def ask() -> tuple[pl.DataFrame, dict[tuple[object, ...], pl.DataFrame]]:
            whole = self.sql(query)
            by = [n for n in names if n.startswith("by_")]
            parts = whole.partition_by(names, as_dict=True, maintain_order=True)
            return whole.clear().drop(by), {k: part.drop(by) for k, part in parts.items()} if by else parts

        nothing, parts = self._answers.of(query, ask, form=f"by {names}")
        found: pl.DataFrame = parts.get(tuple(key.values()), nothing)
        return found

    def table(self, name: str) -> pl.DataFrame:
        """Return a whole table, in the order of its key.

        Raises
        ------
        KeyError
            There is no such table.
        """
        table = schema.table(name)
        key = ", ".join(f'"{c.name}"' for c in table.columns if c.key) or "all"
        return self.once(f'select * from "{name}" order by {key}')

    def results(self, run_id: str | None = None) -> pl.DataFrame:
        """Return the rows of ``results``, of one run or of all."""
        frame = self.table("results")
        return frame if run_id is None else frame.filter(pl.col("run_id") == run_id)

    def findings(self) -> pl.DataFrame:
        """Return what the reader of a number should know, worst first."""
        order = pl.col("severity").replace_strict({"error": 0, "warning": 1, "note": 2}, default=3)
        return self.table("findings").sort(order, "stage", "code", "subject")

    def runs(self) -> pl.DataFrame:
        """Return the runs, in order of time."""
        return self.table("runs").sort("start_utc", "run_id")

    def sweeps(self) -> pl.DataFrame:
        """Return the points of all sweeps."""
        return self.table("sweeps")

    def changes(self) -> pl.DataFrame:
        """Return the effects of the changes of all campaigns."""
        return self.table("changes")

    @property
    def study(self) -> dict[str, object]:
        """Settings in force, by dotted name."""
        return {k: json.loads(v) for k, v in self.table("study").iter_rows()}
