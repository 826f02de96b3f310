"""What can be asked of a store: tables, results, power on the reference clock, and what stages need to know."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import duckdb
import polars as pl

from joulebook import schema
from joulebook_pipelines.store_tables import stored_columns

ALWAYS = ("power_w", "energy_j", "energy_counter_j", "utilization_ratio", "temperature_c")
"""Quantities that a power frame has even where no log tells them."""


class Reads:
    """The questions; :class:`joulebook_pipelines.store.Store` opens the file and writes."""

    path: Path
    _con: duckdb.DuckDBPyConnection

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
            ``device, ts_utc, span_s, power_w``, energy, counter, utilisation and temperature, and further quantities
            that a log of the study has; in order of device and time.
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
        stored = stored_columns(self._con)
        quantities = ", ".join(f"r.{q}" for q in schema.QUANTITY_NAMES if q in ALWAYS or q in stored)
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
