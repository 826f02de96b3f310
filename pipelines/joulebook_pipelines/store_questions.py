"""What reading, the stages, the pages and the command line ask of a store besides its tables and its power."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import polars as pl

from joulebook_pipelines.store_channels import ChannelReads

MOST_STEPS = 200_000
"""Steps of all runs that are kept in memory; of more, those of a run are asked for each time."""


_COVERS_LESS = "not i.chosen and i.reason like 'covers %'"
"""Of instruments: one that would be used if it covered as much as the one that is."""


class Questions(ChannelReads):
    """The questions about runs, their steps, their numbers and where these come from; and about a source that was just read."""

    def finished_steps(self, run_id: str) -> pl.DataFrame:
        """Return the steps of a run whose end is known, in order of their number."""
        if self.once("select count(*) as n from steps")["n"][0] <= MOST_STEPS:
            return self.once_by("select * from steps where end_utc is not null order by step", run_id=run_id)
        return self.sql("select * from steps where run_id = ? and end_utc is not null order by step", [run_id])

    def step_times(self) -> pl.DataFrame:
        """Return ``run_id, step_time_s, steps``: time from end to end, so that what lies between steps is counted."""
        return self.sql(
            """select run_id, case when count(*) > 1 then (epoch_us(max(end_utc)) - epoch_us(min(end_utc))) / 1e6 / (count(*) - 1)
                else avg(epoch_us(end_utc) - epoch_us(start_utc)) / 1e6 end as step_time_s, count(*) as steps
            from steps where end_utc is not null group by run_id"""
        )

    def settings_by_run(self, quantity: str) -> pl.DataFrame:
        """Return ``run_id, setting, share_ratio``: the commonest value of a quantity in the readings of each run's own cards.

        Parameters
        ----------
        quantity
            A column of the readings that is a setting, such as ``power_limit_w``.
        """
        if quantity not in self._stored():
            return pl.DataFrame(schema={"run_id": pl.String, "setting": pl.Float64, "share_ratio": pl.Float64})
        return self.sql(
            f"""with told as (select u.run_id, r.{quantity} as setting, count(*) as n from aligned_runs u
                join instruments i on i.run_id = u.run_id and i.chosen and i.scope = 'board'
                join aligned_readings r on r.source_id = i.source_id and r.device = i.device and r.{quantity} is not null
                    and r.ts_utc >= u.start_utc and r.ts_utc < u.end_utc
                group by all)
            select run_id, arg_max(setting, n) as setting, max(n) / sum(n) as share_ratio from told group by run_id order by run_id"""
        )

    def number(self, run_id: str, scope: str, metric: str, phase: str = "") -> dict[str, Any] | None:
        """Return the row of a number of all devices together, ``None`` where no stage made it."""
        found = self.once_by(
            "select * from results where device = ''", run_id=run_id, scope=scope, metric=metric, phase=phase
        )
        return found.row(0, named=True) if found.height else None

    def scopes_with(self, run_id: str, metric: str) -> set[str]:
        """Return the scopes at which a run has a value of a metric."""
        rows = self.once_by(
            "select distinct run_id, metric, scope from results where device = '' and value is not null",
            run_id=run_id, metric=metric,
        )  # fmt: skip
        return set(rows["scope"])

    def phase_shares(self) -> pl.DataFrame:
        """Return ``run_id, scope, phase, power_w, share_ratio``: how each run spent its time, and at which power."""
        return self.sql(
            """select p.run_id, p.scope, p.phase, w.value as power_w,
                case when w.value > 0 then p.value / w.value / d.value end as share_ratio
            from results p join results w on w.run_id = p.run_id and w.scope = p.scope and w.phase = p.phase and w.metric = 'phase_power_w'
            join results d on d.run_id = p.run_id and d.scope = p.scope and d.metric = 'duration_s'
            where p.metric = 'phase_energy_j' and p.value is not null and w.value is not null"""
        )

    def channels_by_clock(self) -> pl.DataFrame:
        """Return the channels with more than one reading, and the clock, host and adapter of their files."""
        return self.sql(
            """select s.clock, s.host, s.adapter, c.* from channels c join sources s on s.source_id = c.source_id
            where c.n > 1 order by s.clock, c.source_id, c.device"""
        )

    def used_channels(self, host: str, scopes: Sequence[str]) -> pl.DataFrame:
        """Return ``scope, device, source_id, host, path, clock, status``: what runs of a host are measured by, and how its clock stands."""
        return self.sql(
            """select distinct i.scope, i.device, i.source_id, s.host, s.path, s.clock, a.status from instruments i
            join sources s on s.source_id = i.source_id left join alignments a on a.clock = s.clock
            where i.chosen and i.host = ? and list_contains(?, i.scope) order by all""",
            [host, list(scopes)],
        )

    def passes_over(self, run_id: str, scope: str) -> bool:
        """Return whether instruments of a run were not chosen because they cover less."""
        query = f"select distinct run_id, scope from instruments i where {_COVERS_LESS}"
        return bool(self.once_by(query, run_id=run_id, scope=scope).height)

    def passed_over(self, run_id: str, scope: str, start_utc: datetime, end_utc: datetime) -> pl.DataFrame:
        """Return the power of instruments that were not chosen because they cover less, with ``adapter, coverage_ratio``."""
        return self.sql(
            f"""select s.adapter, i.coverage_ratio, r.device, r.ts_utc, r.span_s, r.power_w, r.utilization_ratio
            from instruments i join sources s on s.source_id = i.source_id
            join aligned_readings r on r.source_id = i.source_id and r.device = i.device
            where i.run_id = ? and i.scope = ? and {_COVERS_LESS} and r.power_w is not null
                and r.ts_utc between cast(? as timestamptz) and cast(? as timestamptz)
            order by r.device, r.ts_utc""",
            [run_id, scope, start_utc.isoformat(), end_utc.isoformat()],
        )

    def hardware(self) -> pl.DataFrame:
        """Return ``run_id, hardware``: the cards of each run in words, such as ``8 × H100``."""
        return self.sql(
            """with cards as (select i.run_id, i.host, i.device, max(coalesce(c.model, '')) as model
                from instruments i join channels c on c.source_id = i.source_id and c.device = i.device
                where i.chosen and i.scope = 'board' group by all),
            m as (select run_id, model, count(*) as n from cards group by all)
            select run_id, string_agg(n || ' × ' || case when model = '' then 'card' else model end, ' + ' order by model) as hardware
            from m group by run_id"""
        )

    def rejects(self) -> pl.DataFrame:
        """Return the rejects with the path of their file, in order of lines."""
        return self.sql(
            """select s.path, r.line, r.device, r.column_name, r.rule, r.raw from rejects r join sources s on s.source_id = r.source_id
            order by s.path, r.line, r.column_name"""
        )

    def rejects_by_rule(self) -> pl.DataFrame:
        """Return how many cells of a file, column and rule were rejected, and the first of them.

        A log may hold a marker in every line: rejects are counted where they lie.
        """
        return self.sql(
            """select s.path, r.column_name, r.rule, count(*) as cells, min(r.line) as first_line, arg_min(r.raw, r.line) as example
            from rejects r join sources s on s.source_id = r.source_id group by all
            order by s.path, cells desc, first_line, r.column_name, r.rule"""
        )

    def lines_behind(self, run_id: str) -> pl.DataFrame:
        """Return the files and lines that a run's numbers are made from, by scope and device."""
        return self.sql(
            """select i.scope, s.path, s.sha256, s.adapter, i.device, count(*) as readings,
                min(r.line) as first_line, max(r.line) as last_line
            from instruments i join sources s on s.source_id = i.source_id
            join aligned_readings r on r.source_id = i.source_id and r.device = i.device
            join aligned_runs u on u.run_id = i.run_id and r.ts_utc >= u.start_utc and r.ts_utc <= u.end_utc
            where i.run_id = ? and i.chosen and (i.passed_from_utc is null or r.ts_utc not between i.passed_from_utc and i.passed_until_utc)
            group by all order by i.scope, s.path, i.device""",
            [run_id],
        )

    def above_limit(self, source_id: int) -> int:
        """Return how many readings of a source lie above the power limit that stands beside them."""
        if not {"power_w", "power_limit_w"} <= self._stored():
            return 0
        query = "select count(*) as n from readings where source_id = ? and power_w > power_limit_w"
        return int(self.sql(query, [source_id])["n"][0])

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
