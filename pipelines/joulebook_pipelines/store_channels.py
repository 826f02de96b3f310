"""What can be asked of a store about channels, instruments and clocks: the questions of the stages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl

from joulebook import own_time, schema
from joulebook_pipelines.logs.contract import Channel
from joulebook_pipelines.store_power import NO_CHANNEL, SPEAKING
from joulebook_pipelines.store_tables import READING_ROWS, quoted
from joulebook_pipelines.store_timeline import TimelineReads

TRUE_US = """epoch_us(r.ts_utc) - case when m.drift_ppm = 0 then cast(round(1e6 * m.offset_s) as bigint)
    else cast(round(1e6 * m.offset_s + m.drift_ppm
        * (epoch_us(r.ts_utc) - coalesce(epoch_us(m.anchor_utc), epoch_us(r.ts_utc))) * 1e-6) as bigint) end"""
"""The true time of a reading [µs], in whole numbers: intervals of the database take twice as long."""

_PASSED_OVER = """select i.run_id as by_run, i.scope, s.path, i.source_id, i.device, m.offset_s, m.drift_ppm, m.anchor_utc
    from instruments i join sources s on s.source_id = i.source_id join clock_maps m on m.source_id = i.source_id
    where not i.chosen and i.scope not in ('', 'part') and i.reason not like 'part of%' order by i.scope, s.path, i.device"""


READINGS_AT_ONCE = 1_000_000
"""Readings that are held against runs in one question, about."""

_WITHIN = f"""with w as (select unnest(cast(? as varchar[])) as run_id, unnest(cast(? as bigint[])) as t0,
        unnest(cast(? as bigint[])) as t1),
    r as (select r.source_id, r.device, r.span_s, {TRUE_US} as us
        from readings r join clock_maps m on m.source_id = r.source_id
        where (r.power_w is not null or r.energy_j is not null or r.energy_counter_j is not null)
            and r.ts_utc > cast(? as timestamptz) and r.ts_utc <= cast(? as timestamptz)),
    seen as (select w.run_id, w.t0, w.t1, r.source_id, r.device, count(*) as n, sum(r.span_s) as span_s,
            min(r.us) / 1e6 as t_min, max(r.us) / 1e6 as t_max, min(r.us / 1e6 - coalesce(r.span_s, 0)) as t_begin,
            max(case when coalesce(r.span_s, 0) = 0 then 1.0 else (least(r.us, w.t1) - greatest(r.us - r.span_s * 1e6, w.t0))
                / least(r.span_s * 1e6, w.t1 - w.t0) end) as inside_ratio
        from r join w on r.us > w.t0 and r.us - cast(coalesce(r.span_s, 0) * 1e6 as bigint) <= w.t1
        group by w.run_id, w.t0, w.t1, r.source_id, r.device),
    lasting as (select n.*, c.scope, c.period_s, c.kind, case when n.span_s is not null then n.span_s
            when c.kind in ('on-change', 'counter') then n.t_max - n.t_min
            else n.n * coalesce(c.period_s, 0) end as covered_s
        from seen n join channels c on c.source_id = n.source_id and c.device = n.device)
    select n.run_id, s.host, n.scope, n.source_id, s.adapter, s.clock, n.device, n.period_s, n.kind, n.n,
        least(1.0, n.covered_s / (n.t1 / 1e6 - n.t0 / 1e6)) as coverage_ratio, n.t_begin as begin_s, n.t_max as end_s,
        case when n.t_max > n.t_begin then least(1.0, n.covered_s / (n.t_max - n.t_begin)) else 0.0 end as filled_ratio,
        n.inside_ratio, n.span_s is not null as spanned
    from lasting n join sources s on s.source_id = n.source_id
    order by n.t0, n.run_id, s.host, n.scope, n.source_id, n.device"""


class ChannelReads(TimelineReads):
    """The questions about channels."""

    def channels_of_source(self, source_id: int) -> dict[str, Channel]:
        """Return what is known of a source's devices."""
        rows = self.sql(
            "select device, scope, model, uuid, kind, window_s from channels where source_id = ?", [source_id]
        )
        return {r["device"]: Channel(**r) for r in rows.iter_rows(named=True)}

    def findings_of_source(self, source_id: int) -> pl.DataFrame:
        """Return what was found while a source was read, in order of code and subject."""
        return self.sql(
            "select * from findings where stage = 'ingest' and source_id = ? order by code, subject", [source_id]
        )

    def reject_counts(self, source_id: int) -> pl.DataFrame:
        """Return ``device, column_name, rule, n, first_line, raw`` of a source's rejects, the text of the first of each kind."""
        return self.sql(
            """select device, column_name, rule, count(*) as n, min(line) as first_line, arg_min(raw, line) as raw
            from rejects where source_id = ? group by all order by first_line, column_name, device, rule""",
            [source_id],
        )

    def sources_with(self, codes: Collection[str]) -> list[int]:
        """Return the sources about which any of some findings was made."""
        told = self.once("select distinct source_id, code from findings where source_id is not null")
        return told.filter(pl.col("code").is_in(list(codes)))["source_id"].to_list()

    def reach(self, source_id: int) -> tuple[datetime | None, datetime | None]:
        """Return the first and the last stamp of a source's readings."""
        row = self.sql("select min(ts_utc) as a, max(ts_utc) as b from readings where source_id = ?", [source_id]).row(
            0
        )
        return row[0], row[1]

    def first_back_line(self, source_id: int) -> int | None:
        """Return the first line of a source whose stamp lies before that of a line above it, ``None`` where all are in order."""
        row = self.sql(
            """select min(line) as line from (select line, ts_utc < max(ts_utc) over
                (order by line, device rows between unbounded preceding and 1 preceding) as back
                from readings where source_id = ?) where back""",
            [source_id],
        ).row(0)
        return None if row[0] is None else int(row[0])

    def first_line_set_back(self, source_id: int) -> int | None:
        """Return the first line with a stamp before one above it of the same series; ``None`` in a file of series after series."""
        row = self.sql(
            """select min(line) as line from (select line, ts_utc < max(ts_utc) over
                (partition by device, power_w is null, energy_counter_j is null
                    order by line rows between unbounded preceding and 1 preceding) as back
                from readings where source_id = ?) where back""",
            [source_id],
        ).row(0)
        return None if row[0] is None else int(row[0])

    def powered_devices(self, source_id: int) -> set[str]:
        """Return the devices of a source with at least one power or energy."""
        rows = self.sql(
            """select distinct device from readings where source_id = ?
                and (power_w is not null or energy_j is not null or energy_counter_j is not null)""",
            [source_id],
        )
        return set(rows["device"])

    def aligned_runs(self) -> pl.DataFrame:
        """Return the runs with their times on the reference clock, in order of time."""
        return self.once("select * from aligned_runs order by start_utc, run_id")

    def instruments(self, run_id: str) -> pl.DataFrame:
        """Return the chosen channels of a run."""
        return self.once_by("select * from instruments where chosen order by scope, source_id, device", run_id=run_id)

    def parts(self, run_id: str) -> pl.DataFrame:
        """Return the instruments of a run that lie inside another one."""
        return self.once_by("select * from instruments where scope = 'part' order by device, source_id", run_id=run_id)

    def chosen_channels(self, run_id: str, scope: str) -> pl.DataFrame:
        """Return what is known of the channels that a run's numbers of a scope are made from."""
        return self.once_by(
            """select i.run_id as by_run, i.scope as by_scope, c.*, s.path, s.adapter, s.clock, t.trail_s from instruments i
            join channels c on c.source_id = i.source_id and c.device = i.device join sources s on s.source_id = i.source_id
            left join trails t on t.source_id = i.source_id and t.device = i.device
            where i.chosen order by c.source_id, c.device""",
            by_run=run_id, by_scope=scope,
        )  # fmt: skip

    def channels_within_runs(self) -> pl.DataFrame:
        """Return, by ``run_id``, the channels that have power in a run, and what share of it they cover.

        ``begin_s`` and ``end_s`` bound what they saw in the run, ``filled_ratio`` is the share of that time that they cover,
        ``inside_ratio`` how much of the run's or its own length the best placed reading has inside.
        """
        return pl.DataFrame(self._answers.of(f"{_WITHIN} aligned_runs", self._within_runs))

    def _within_runs(self) -> pl.DataFrame:
        """Ask of few runs at a time: a question takes as long as some thousand readings, which all its runs are held against."""
        runs = self.aligned_runs()
        readings = int(self.once("select count(*) as n from readings")["n"][0])
        step = max(READINGS_AT_ONCE * runs.height // max(readings, 1), 1)
        parts = []
        for part in runs.iter_slices(step) if runs.height else (runs,):
            first, last = part.select(pl.col("start_utc").min(), pl.col("end_utc").max()).row(0)
            bounds = self._around(first, last) if part.height else ("epoch", "epoch")
            times = (part[c].dt.epoch("us").to_list() for c in ("start_utc", "end_utc"))
            parts.append(self.sql(_WITHIN, [part["run_id"].to_list(), *times, *bounds]))
        return pl.concat(parts)

    def first_told(self, source_id: int, device: str, most: int) -> pl.DataFrame:
        """Return ``ts_utc, power_w, energy_j, energy_counter_j, span_s`` of the first readings of a channel that tell any energy."""
        number = self._channel_keys.known().get((source_id, device), NO_CHANNEL)
        stored = self._stored()
        told = [c for c in SPEAKING if c in stored]
        if not told:
            return self._none(SPEAKING).select("ts_utc", *SPEAKING, "span_s")
        columns = ", ".join(c if c in stored else f"cast(null as double) as {c}" for c in (*SPEAKING, "span_s"))
        return self.sql(
            f"""select ts_utc, {columns} from {READING_ROWS} where channel_id = ? and ({" or ".join(f"{c} is not null" for c in told)})
            order by line limit ?""",
            [number, most],
        )

    def _longest_span_s(self) -> float:
        return float(self.once("select max(span_s) as longest_s from readings")["longest_s"][0] or 0.0)

    def _around(self, start_utc: datetime, end_utc: datetime) -> tuple[str, str]:
        """Return bounds on the clocks' own stamps: with them the database passes over what lies far from a window."""
        ahead = timedelta(seconds=self.most_ahead_s())
        return (start_utc - ahead).isoformat(), (
            end_utc + ahead + timedelta(seconds=self._longest_span_s())
        ).isoformat()

    def _around_run(self, run_id: str, margin_s: float) -> tuple[str, str]:
        run = self.aligned_runs().row(by_predicate=pl.col("run_id") == run_id, named=True)
        margin = timedelta(seconds=margin_s)
        return self._around(run["start_utc"] - margin, run["end_utc"] + margin)

    def witnesses(self, run_id: str, *, margin_s: float = 0.0) -> dict[tuple[str, str], pl.DataFrame]:
        """Return the power of a run by instruments that were not chosen, by scope and file."""
        passed = self.once_by(_PASSED_OVER, by_run=run_id)
        run = self.aligned_runs().row(by_predicate=pl.col("run_id") == run_id, named=True)
        margin = timedelta(seconds=margin_s)
        frames = self._channels(
            passed, ("span_s", "power_w", "energy_j"), (run["start_utc"] - margin, run["end_utc"] + margin)
        )
        found: dict[tuple[str, str], list[pl.DataFrame]] = {}
        for row, frame in zip(passed.iter_rows(named=True), frames, strict=True):
            told = frame.filter(pl.col("power_w").is_not_null() | pl.col("energy_j").is_not_null())
            if told.height:
                own = told.select(pl.lit(row["device"]).alias("device"), *told.columns)
                found.setdefault((row["scope"], row["path"]), []).append(own)
        return {place: pl.concat(parts) for place, parts in found.items()}

    def part(self, run_id: str, source_id: int, device: str, *, margin_s: float = 0.0) -> pl.DataFrame:
        """Return a run's readings of one channel that lies inside another: ``path, kind, device, ts_utc, span_s`` and what was read."""
        return self.sql(
            """select s.path, c.kind, r.device, r.ts_utc, r.span_s, r.power_w, r.energy_j, r.energy_counter_j, r.source_id
            from aligned_readings r join sources s on s.source_id = r.source_id
            join channels c on c.source_id = r.source_id and c.device = r.device
            join aligned_runs u on u.run_id = ?
            where r.source_id = ? and r.device = ? and r.clock_utc between cast(? as timestamptz) and cast(? as timestamptz)
                and (r.power_w is not null or r.energy_j is not null or r.energy_counter_j is not null)
                and r.ts_utc >= u.start_utc - to_microseconds(?) and r.ts_utc <= u.end_utc + to_microseconds(?)
            order by r.ts_utc, r.line""",
            [
                run_id,
                source_id,
                device,
                *self._around_run(run_id, margin_s),
                round(margin_s * 1e6),
                round(margin_s * 1e6),
            ],
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
        rows = self.once("select * from alignments").filter(
            pl.col("clock").is_in(list(clocks)) & (pl.col("status") == "aligned")
        )
        half = ((rows["offset_hi"] - rows["offset_lo"]) / 2).max()
        return float(half) if isinstance(half, float) else 0.0

    def clock_refused(self, clocks: Sequence[str]) -> bool:
        """Tell whether the offset of any of some clocks was looked for and not found."""
        rows = self.once("select * from alignments").filter(pl.col("clock").is_in(list(clocks)))
        return bool((rows["status"] == "refused").any())

    def power_spans(self, *, parts: bool = False) -> pl.DataFrame:
        """Return ``host, start_utc, end_utc``: from the first to the last power reading of each host.

        A silence of more than a year divides: no log is written through it. Readings without a date are laid on 1970; they count only
        on hosts that have no others. A single moment is no span.

        Parameters
        ----------
        parts
            Of the parts of other readings instead, where a study holds nothing else.
        """
        told = f"""select s.host, r.ts_utc, r.ts_utc - to_microseconds(cast(coalesce(r.span_s, 0) * 1e6 as bigint)) as begin_utc
                from readings r join sources s on s.source_id = r.source_id
                join channels c on c.source_id = r.source_id and c.device = r.device
                where c.scope {"= 'part'" if parts else "not in ('', 'part')"}
                    and (r.power_w is not null or r.energy_j is not null or r.energy_counter_j is not null)"""
        whole = self.sql(
            f"""select host, min(begin_utc) as start_utc, max(ts_utc) as end_utc from ({told})
            group by host having min(begin_utc) < max(ts_utc) order by host"""
        )
        if whole.filter(pl.col("end_utc") - pl.col("start_utc") > pl.duration(days=own_time.APART_DAYS)).is_empty():
            return whole
        return self.sql(
            f"""with days as (
                select host, date_trunc('day', ts_utc) as day, min(begin_utc) as start_utc, max(ts_utc) as end_utc
                from ({told}) group by all),
            marked as (
                select *, day - lag(day) over (partition by host order by day) > to_days(?) as apart from days),
            numbered as (
                select *, count(*) filter (where apart) over (partition by host order by day) as island from marked),
            spans as (
                select host, min(start_utc) as start_utc, max(end_utc) as end_utc from numbered
                group by host, island having min(start_utc) < max(end_utc))
            select * from spans
            qualify end_utc >= cast(? as timestamptz) or max(end_utc) over (partition by host) < cast(? as timestamptz)
            order by host, start_utc""",
            [own_time.APART_DAYS, own_time.SET_FROM.isoformat(), own_time.SET_FROM.isoformat()],
        )

    def write_table(self, name: str, file: Path, form: str) -> Path:
        """Write a table as a ``parquet``, ``csv`` or ``json`` file, without holding it in memory."""
        schema.table(name)
        options = {"parquet": "format parquet", "csv": "format csv, header", "json": "format json, array"}[form]
        self._con.execute(f"""copy (select * from "{name}") to '{quoted(str(file))}' ({options})""")
        return file
