"""The DuckDB file that holds a study's facts and results. The only module that speaks SQL.

Facts (sources, readings, rejects) are written once, one transaction a source; alignment is applied by views.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb
import polars as pl

from joulebook import schema

_TYPES = {
    pl.String: "VARCHAR", pl.Int64: "BIGINT", pl.Int32: "INTEGER", pl.Float64: "DOUBLE", pl.Boolean: "BOOLEAN",
}  # fmt: skip

_VIEWS = """
create view if not exists clock_maps as
    select s.source_id, s.host, s.clock, s.adapter, a.anchor_utc,
           case when a.status in ('aligned', 'assumed') then coalesce(a.offset_s, 0) else 0 end as offset_s,
           case when a.status in ('aligned', 'assumed') then coalesce(a.drift_ppm, 0) else 0 end as drift_ppm
    from sources s left join alignments a on a.clock = s.clock;
create view if not exists aligned_readings as
    select r.source_id, r.line, r.device, m.host, c.scope,
           r.ts_utc - to_microseconds(cast(round(1e6 * m.offset_s + coalesce(m.drift_ppm, 0)
               * (epoch_us(r.ts_utc) - coalesce(epoch_us(m.anchor_utc), epoch_us(r.ts_utc))) * 1e-6) as bigint)) as ts_utc,
           r.ts_utc as clock_utc, r.* exclude (source_id, line, device, ts_utc)
    from readings r join clock_maps m on m.source_id = r.source_id
    left join channels c on c.source_id = r.source_id and c.device = r.device;
create view if not exists aligned_runs as
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

SOURCE_TABLES = ("rejects", "channels", "logged_runs", "steps", "phases", "sources")


class StoreError(Exception):
    """The store cannot be opened or is of another version; the message says what to do."""


class Store:
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
        config: dict[str, str | bool | int | float | list[str]] = {"memory_limit": memory_limit} if memory_limit else {}
        try:
            self._con = duckdb.connect(str(path), read_only=read_only, config=config)
        except duckdb.Error as error:
            raise StoreError(f"{path}: cannot be opened: {str(error).splitlines()[0]}") from None
        self._con.execute("set timezone = 'UTC'")
        if not read_only:
            self._create()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._con.close()

    def _create(self) -> None:
        present = {r[0] for r in self._con.execute("select table_name from duckdb_tables()").fetchall()}
        for table in schema.TABLES:
            stored = READING_ROWS if table.name == "readings" else table.name
            if stored in present:
                continue
            kept = [c for c in table.columns if table.name != "readings" or c.name not in schema.QUANTITY_NAMES]
            columns = ", ".join(f'"{c.name}" {_sql_type(c.dtype)}' for c in kept)
            self._con.execute(f'create table "{stored}" ({columns})')
            if table.name == "readings":
                self._show_readings()
                self._con.execute(f"""comment on view "readings" is '{_quoted(table.doc)}'""")
            else:
                self._con.execute(f"""comment on table "{table.name}" is '{_quoted(table.doc)}'""")
                self._comment_columns(table)
        self._con.execute(_VIEWS)

    def _comment_columns(self, table: schema.Table) -> None:
        for column in table.columns:
            self._con.execute(f"""comment on column "{table.name}"."{column.name}" is '{_quoted(column.doc)}'""")

    def _show_readings(self) -> None:
        """Make the view ``readings``: every quantity is a column, null where no source of the study has it.

        Writing a column of nulls costs as much as one of numbers, and no log fills more than half of them; so the rows
        are kept with the columns that occur, and the view adds the others.
        """
        stored = self._stored_columns()
        shown = ", ".join(
            f'"{c.name}"' if c.name in stored else f'cast(null as {_sql_type(c.dtype)}) as "{c.name}"'
            for c in schema.table("readings").columns
        )
        self._con.execute(f"create or replace view readings as select {shown} from {READING_ROWS}")
        self._comment_columns(schema.table("readings"))

    def _stored_columns(self) -> set[str]:
        query = "select column_name from duckdb_columns() where table_name = ?"
        return {r[0] for r in self._con.execute(query, [READING_ROWS]).fetchall()}

    def _make_room(self, frame: pl.DataFrame) -> None:
        """Add the columns of a frame of readings that no source had before."""
        stored = self._stored_columns()
        types = schema.table("readings").schema
        fresh = [c for c in frame.columns if c not in stored]
        for name in fresh:
            self._con.execute(f'alter table {READING_ROWS} add column "{name}" {_sql_type(types[name])}')
        if fresh:
            self._show_readings()

    # reading

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

    def table(self, name: str) -> pl.DataFrame:
        """Return a whole table, in the order of its key.

        Raises
        ------
        KeyError
            There is no such table.
        """
        table = schema.table(name)
        key = ", ".join(f'"{c.name}"' for c in table.columns if c.key) or "all"
        return self.sql(f'select * from "{name}" order by {key}')

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

    def power(
        self,
        run_id: str | None = None,
        *,
        scope: str,
        device: str | None = None,
        start_utc: datetime | None = None,
        end_utc: datetime | None = None,
        as_measured: bool = False,
        margin_s: float = 0.0,
    ) -> pl.DataFrame:
        """Return the power readings of a scope: those that the run's numbers are made from.

        Parameters
        ----------
        run_id
            A run; without it the whole study, from the instruments that most runs use.
        scope
            Boundary, one of :data:`joulebook.schema.SCOPES`.
        device
            One device; all of the scope by default.
        start_utc, end_utc
            Window; the run's own by default.
        as_measured
            Stamps as the tool wrote them, not aligned to the reference clock.
        margin_s
            Seconds to add on both sides of the window.

        Returns
        -------
        polars.DataFrame
            ``device, ts_utc, span_s, power_w`` and further quantities, in order of device and time.
        """
        window = self._window(run_id, start_utc, end_utc)
        stamp = "r.clock_utc" if as_measured else "r.ts_utc"
        where, params = (
            ["r.scope = ?", "(r.power_w is not null or r.energy_counter_j is not null or r.energy_j is not null)"],
            [scope],
        )
        if device is not None:
            where.append("r.device = ?")
            params.append(device)
        for bound, sign, op in ((window[0], -1, ">="), (window[1], 1, "<=")):
            if bound is not None:
                where.append(f"{stamp} {op} cast(? as timestamptz) + to_microseconds({sign * round(margin_s * 1e6)})")
                params.append(bound.isoformat())
        quantities = ", ".join(f"r.{q}" for q in schema.QUANTITY_NAMES)
        chosen = "select distinct source_id, device from instruments where chosen and scope = ?" + (
            " and run_id = ?" if run_id is not None else ""
        )
        params = [scope, *([run_id] if run_id is not None else []), *params]
        frame = self.sql(
            f"""with used as ({chosen})
            select r.device, {stamp} as ts_utc, r.span_s, {quantities}, r.host, r.source_id, r.line
            from aligned_readings r join used u on u.source_id = r.source_id and u.device = r.device
            where {" and ".join(where)} order by r.host, r.device, ts_utc, r.line""",
            params,
        )
        several_hosts = frame["host"].n_unique() > 1
        return frame.with_columns(pl.format("{}/{}", "host", "device").alias("device")) if several_hosts else frame

    def _window(
        self, run_id: str | None, start_utc: datetime | None, end_utc: datetime | None
    ) -> tuple[datetime | None, datetime | None]:
        if run_id is None:
            return start_utc, end_utc
        run = self.sql("select start_utc, end_utc from runs where run_id = ?", [run_id])
        if run.is_empty():
            known = ", ".join(self.table("runs")["run_id"].head(20))
            raise KeyError(f"there is no run {run_id!r}; the study has {known}")
        return start_utc or run["start_utc"][0], end_utc or run["end_utc"][0]

    def timeline(
        self, scope: str, points: int = 2000, start_utc: datetime | None = None, end_utc: datetime | None = None
    ) -> pl.DataFrame:
        """Return the total power of a scope, thinned so that no spike is lost.

        Parameters
        ----------
        scope
            Boundary.
        points
            Most rows to return.
        start_utc, end_utc
            Window; everything by default.

        Returns
        -------
        polars.DataFrame
            ``ts_utc, lo_w, hi_w, mean_w``: least, most and mean of the devices' sum within each of ``points`` stretches;
            stretches without a reading of every device are left out.
        """
        bounds = ["r.ts_utc >= cast(? as timestamptz)"] * (start_utc is not None) + [
            "r.ts_utc <= cast(? as timestamptz)"
        ] * (end_utc is not None)
        limits = [t.isoformat() for t in (start_utc, end_utc) if t is not None]
        return self.sql(
            f"""with used as (select distinct i.source_id, i.device, coalesce(c.period_s, 1) as period_s from instruments i
                join channels c on c.source_id = i.source_id and c.device = i.device where i.chosen and i.scope = ?),
            step as (select greatest(max(period_s), 0.001) as s from used),
            r as (select r.host || '/' || r.device as device, r.ts_utc, r.power_w, floor(epoch(r.ts_utc) / step.s) as tick
                from aligned_readings r join used u on u.source_id = r.source_id and u.device = r.device, step
                where r.power_w is not null {"".join(" and " + b for b in bounds)}),
            d as (select tick, device, avg(power_w) as w, min(ts_utc) as ts_utc from r group by tick, device),
            n as (select count(distinct device) as devices from d),
            t as (select tick, sum(w) as w, min(ts_utc) as ts_utc from d group by tick
                having count(*) >= (select devices from n)),
            e as (select min(epoch(ts_utc)) as t0, greatest(max(epoch(ts_utc)) - min(epoch(ts_utc)), 1e-3) as length from t)
            select min(ts_utc) as ts_utc, min(w) as lo_w, max(w) as hi_w, avg(w) as mean_w
            from t, e group by least(floor((epoch(ts_utc) - t0) / length * {int(points)}), {int(points) - 1}) order by ts_utc""",
            [scope, *limits],
        )

    def measured_power(self, channels: pl.DataFrame) -> pl.DataFrame:
        """Return the power readings of some channels (``source_id, device``) on their own clocks."""
        self._con.register("wanted_channels", channels.to_arrow())
        frame = self.sql(
            """select r.device, r.ts_utc, r.span_s, r.power_w, r.energy_j, r.energy_counter_j
            from readings r join wanted_channels w on w.source_id = r.source_id and w.device = r.device
            where r.power_w is not null or r.energy_j is not null or r.energy_counter_j is not null
            order by r.device, r.ts_utc, r.line"""
        )
        self._con.unregister("wanted_channels")
        return frame

    def aligned_runs(self) -> pl.DataFrame:
        """Return the runs with their times on the reference clock, in order of time."""
        return self.sql("select * from aligned_runs order by start_utc, run_id")

    def instruments(self, run_id: str) -> pl.DataFrame:
        """Return the chosen channels of a run."""
        return self.sql(
            "select * from instruments where run_id = ? and chosen order by scope, source_id, device", [run_id]
        )

    def chosen_channels(self, run_id: str, scope: str) -> pl.DataFrame:
        """Return what is known of the channels that a run's numbers of a scope are made from."""
        return self.sql(
            """select c.*, s.path, s.adapter, s.clock from instruments i
            join channels c on c.source_id = i.source_id and c.device = i.device join sources s on s.source_id = i.source_id
            where i.run_id = ? and i.scope = ? and i.chosen order by c.source_id, c.device""",
            [run_id, scope],
        )

    def channels_within(self, start_utc: datetime, end_utc: datetime) -> pl.DataFrame:
        """Return the channels that have power in a window of the reference clock, and what share of it they cover."""
        return self.sql(
            """with w as (select cast(? as timestamptz) as t0, cast(? as timestamptz) as t1),
            seen as (select r.source_id, r.device, count(*) as n, sum(r.span_s) as span_s, min(r.ts_utc) as t_min, max(r.ts_utc) as t_max
                from aligned_readings r, w
                where (r.power_w is not null or r.energy_j is not null or r.energy_counter_j is not null)
                    and r.ts_utc > w.t0 and r.ts_utc - to_microseconds(cast(coalesce(r.span_s, 0) * 1e6 as bigint)) <= w.t1
                group by r.source_id, r.device)
            select s.host, c.scope, n.source_id, s.adapter, s.clock, n.device, c.period_s, c.kind, n.n,
                least(1.0, case when n.span_s is not null then n.span_s
                    when c.kind in ('on-change', 'counter') then epoch(n.t_max) - epoch(n.t_min)
                    else n.n * coalesce(c.period_s, 0) end / (epoch(w.t1) - epoch(w.t0))) as coverage_ratio
            from seen n join sources s on s.source_id = n.source_id
            join channels c on c.source_id = n.source_id and c.device = n.device, w
            order by s.host, c.scope, n.source_id, n.device""",
            [start_utc.isoformat(), end_utc.isoformat()],
        )

    def witnesses(self, run_id: str, *, margin_s: float = 0.0) -> dict[tuple[str, str], pl.DataFrame]:
        """Return the power of a run by instruments that were not chosen, by scope and file."""
        frame = self.sql(
            """select i.scope, s.path, r.device, r.ts_utc, r.span_s, r.power_w, r.energy_j from instruments i
            join sources s on s.source_id = i.source_id
            join aligned_readings r on r.source_id = i.source_id and r.device = i.device
            join aligned_runs u on u.run_id = i.run_id
            where i.run_id = ? and not i.chosen and i.scope not in ('', 'part') and (r.power_w is not null or r.energy_j is not null)
                and i.reason not like 'part of%'
                and r.ts_utc >= u.start_utc - to_microseconds(?) and r.ts_utc <= u.end_utc + to_microseconds(?)
            order by i.scope, s.path, r.device, r.ts_utc""",
            [run_id, round(margin_s * 1e6), round(margin_s * 1e6)],
        )
        parts = frame.partition_by("scope", "path", as_dict=True, include_key=False, maintain_order=True)
        return {(str(scope), str(path)): rows for (scope, path), rows in parts.items()}

    def parts(self, run_id: str, *, margin_s: float = 0.0) -> pl.DataFrame:
        """Return the power of a run's parts of other readings: ``path, kind, device, ts_utc, span_s`` and what was read."""
        return self.sql(
            """select s.path, c.kind, r.device, r.ts_utc, r.span_s, r.power_w, r.energy_j, r.energy_counter_j, r.source_id
            from instruments i join sources s on s.source_id = i.source_id
            join channels c on c.source_id = i.source_id and c.device = i.device
            join aligned_readings r on r.source_id = i.source_id and r.device = i.device
            join aligned_runs u on u.run_id = i.run_id
            where i.run_id = ? and i.scope = 'part'
                and (r.power_w is not null or r.energy_j is not null or r.energy_counter_j is not null)
                and r.ts_utc >= u.start_utc - to_microseconds(?) and r.ts_utc <= u.end_utc + to_microseconds(?)
            order by r.device, s.path, r.ts_utc, r.line""",
            [run_id, round(margin_s * 1e6), round(margin_s * 1e6)],
        )

    def inlet_by_run(self) -> pl.DataFrame:
        """Return ``run_id, inlet_c``: the mean inlet temperature of each run where it was logged."""
        return self.sql(
            """select u.run_id, avg(r.temperature_c) as inlet_c from aligned_runs u
            join aligned_readings r on r.device = 'inlet' and r.temperature_c is not null
                and r.ts_utc >= u.start_utc and r.ts_utc < u.end_utc group by u.run_id"""
        )

    def clock_half_s(self, clocks: Sequence[str]) -> float:
        """Return the largest half width of the offsets of some clocks [s]; 0 for the reference and what is assumed."""
        rows = self.table("alignments").filter(pl.col("clock").is_in(list(clocks)) & (pl.col("status") == "aligned"))
        half = ((rows["offset_hi"] - rows["offset_lo"]) / 2).max()
        return float(half) if isinstance(half, float) else 0.0

    def power_spans(self, *, parts: bool = False) -> pl.DataFrame:
        """Return ``host, start_utc, end_utc``: from the first to the last power reading of each host.

        Parameters
        ----------
        parts
            Of the parts of other readings instead, where a study holds nothing else.
        """
        scopes = "= 'part'" if parts else "not in ('', 'part')"
        return self.sql(
            f"""select s.host, min(r.ts_utc - to_microseconds(cast(coalesce(r.span_s, 0) * 1e6 as bigint))) as start_utc,
                max(r.ts_utc) as end_utc
            from readings r join sources s on s.source_id = r.source_id
            join channels c on c.source_id = r.source_id and c.device = r.device
            where c.scope {scopes} and (r.power_w is not null or r.energy_j is not null or r.energy_counter_j is not null)
            group by s.host having count(*) > 1 or max(r.span_s) is not null order by s.host"""
        )

    def write_table(self, name: str, file: Path, form: str) -> Path:
        """Write a table as a ``parquet``, ``csv`` or ``json`` file, without holding it in memory."""
        schema.table(name)
        options = {"parquet": "format parquet", "csv": "format csv, header", "json": "format json, array"}[form]
        self._con.execute(f"""copy (select * from "{name}") to '{_quoted(str(file))}' ({options})""")
        return file

    # writing

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all or nothing."""
        self._con.begin()
        try:
            yield
        except BaseException:
            self._con.rollback()
            raise
        self._con.commit()

    def insert(self, name: str, frame: pl.DataFrame) -> None:
        """Append rows to a table; columns are matched by name, missing ones stay null."""
        if frame.is_empty():
            return
        table = schema.table(name).schema
        unknown = [c for c in frame.columns if c not in table]
        if unknown:
            raise ValueError(f"table {name!r} has no column {', '.join(unknown)}")
        if name == "readings":
            # A column without a value is no column of this log.
            empty = [c for c in frame.columns if c in schema.QUANTITY_NAMES and frame[c].null_count() == frame.height]
            frame = frame.drop(empty)
            self._make_room(frame)
        stored = READING_ROWS if name == "readings" else name
        self._con.register("rows_to_insert", frame.to_arrow())
        self._con.execute(f'insert into "{stored}" by name select * from rows_to_insert')
        self._con.unregister("rows_to_insert")

    def replace(self, name: str, frame: pl.DataFrame) -> None:
        """Put new rows in place of all rows of a table."""
        self._con.execute(f'delete from "{name}"')
        self.insert(name, schema.conform(frame, name))

    def replace_findings(self, stage: str, frame: pl.DataFrame) -> None:
        """Put new findings in place of those of a stage."""
        self._con.execute("delete from findings where stage = ?", [stage])
        self.insert("findings", frame)

    def replace_numbers(self, stage: str, results: pl.DataFrame, parts: pl.DataFrame) -> None:
        """Put new results and parts of uncertainties in place of those that a stage made before."""
        for name, frame in (("results", results), ("uncertainties", parts)):
            self._con.execute(f"delete from {name} where stage = ?", [stage])
            self.insert(name, frame.with_columns(stage=pl.lit(stage)))

    def log_stage(self, row: dict[str, object]) -> None:
        """Note that a stage has run."""
        self._con.execute("delete from stage_log where stage = ?", [row["stage"]])
        self.insert("stage_log", pl.DataFrame([row], schema=schema.table("stage_log").schema))

    def remember(self, key: str, value: object) -> None:
        """Set one of the study's settings."""
        self._con.execute("delete from study where key = ?", [key])
        self._con.execute("insert into study values (?, ?)", [key, json.dumps(value)])

    def forget_source(self, source_id: int) -> None:
        """Delete a source and all that came from it."""
        for name in (READING_ROWS, *SOURCE_TABLES, "findings"):
            self._con.execute(f'delete from "{name}" where source_id = ?', [source_id])

    def next_source_id(self) -> int:
        """Return the first free number."""
        return int(self.sql("select coalesce(max(source_id), 0) + 1 as free from sources")["free"][0])

    def settle_duplicates(self, source_id: int, *, spans: bool) -> pl.DataFrame:
        """Take out readings that stand twice and return them.

        Of readings of one device with the same stamp and the same values the first line is kept.

        Parameters
        ----------
        source_id
            Source.
        spans
            Judge only readings over a span (they would be counted twice); otherwise all.

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
                window w as (partition by device, ts_utc, span_s order by line)
                qualify row_number() over w > 1 order by line""",
            [source_id],
        )
        if gone.height:
            self._con.register("gone_rows", gone.to_arrow())
            self._con.execute(
                f"delete from {READING_ROWS} r using gone_rows g where r.source_id = ? and r.line = g.line and r.device = g.device",
                [source_id],
            )
            self._con.unregister("gone_rows")
        return gone

    def steps_of(self, source_id: int) -> pl.DataFrame:
        """Return ``device, step_ms, count, first_utc, last_utc`` of a source's power readings, in order of time."""
        return self.sql(
            """with t as (select device, ts_utc,
                    epoch_ms(ts_utc) - lag(epoch_ms(ts_utc)) over (partition by device order by ts_utc) as step_ms
                from readings where source_id = ?
                    and (power_w is not null or energy_j is not null or energy_counter_j is not null))
            select device, cast(step_ms as bigint) as step_ms, count(*) as count, min(ts_utc) as first_utc, max(ts_utc) as last_utc
            from t group by device, step_ms""",
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


def _sql_type(dtype: pl.DataType | type[pl.DataType]) -> str:
    return "TIMESTAMPTZ" if dtype == schema.UTC else next(s for t, s in _TYPES.items() if dtype == t)


def _quoted(text: str) -> str:
    return text.replace("'", "''")
