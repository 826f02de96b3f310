"""Readings of power out of a store: on the reference clock or on their own, without carrying a text a row.

Strings, a join of the clocks and a sort over every reading cost far more than the numbers; so the database hands out
the numbers of each channel in the order in which they were written, and the rest is known once a channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import polars as pl

from joulebook import clock_maps, schema
from joulebook_pipelines.store_kept import FEW_DEVICES, Frames, by_channel
from joulebook_pipelines.store_reading import Reads
from joulebook_pipelines.store_tables import READING_ROWS, STORED_COLUMNS

ALWAYS = ("power_w", "energy_j", "energy_counter_j", "utilization_ratio", "temperature_c")
"""Quantities that a power frame has even where no log tells them."""


SPEAKING = ("power_w", "energy_j", "energy_counter_j")
"""Quantities that tell an energy."""

_USED = """select distinct i.run_id as by_run, i.scope as by_scope, m.host, i.device, i.source_id, m.offset_s, m.drift_ppm, m.anchor_utc,
        i.passed_from_utc, i.passed_until_utc
    from instruments i join clock_maps m on m.source_id = i.source_id where i.chosen order by m.host, i.device, i.source_id"""

Bounds = tuple[datetime | None, datetime | None]
"""First and last time; ``None`` for no bound."""

NO_CHANNEL = -1
"""The number of a channel without a reading."""

_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)

_SLACK = timedelta(seconds=1)
"""Windows are taken wider by this before clocks are set right, and cut exactly after."""


class PowerReads(Reads):
    """The questions about power."""

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
        quantities: Sequence[str] | None = None,
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
        quantities
            Only these quantities; for long logs, where each one more costs memory.

        Returns
        -------
        polars.DataFrame
            ``device, ts_utc, span_s, power_w``, energy, counter, utilisation and temperature, and further quantities
            that a log of the study has, ``source_id``, and ``host`` where there are several; in order of device and time.
        """
        chosen = self._used(run_id, scope, device)
        since, until = self._window(run_id, start_utc, end_utc, "runs" if as_measured else "aligned_runs")
        margin = timedelta(seconds=margin_s)
        bounds = (since - margin if since else None, until + margin if until else None)
        if as_measured:
            chosen = chosen.with_columns(offset_s=pl.lit(0.0), drift_ppm=pl.lit(0.0))
        stored = self._stored()
        if quantities is None:
            quantities = [q for q in schema.QUANTITY_NAMES if q in ALWAYS or q in stored]
        frames = self._channels(chosen, ("span_s", *quantities), bounds)
        several = chosen["host"].n_unique() > 1
        named: dict[tuple[str, str], list[pl.DataFrame]] = {}
        for row, frame in zip(chosen.iter_rows(named=True), frames, strict=True):
            device_name = f"{row['host']}/{row['device']}" if several else row["device"]
            # What is the same in each row stays one value: written out it takes as long as reading the powers.
            of_device, source = (
                pl.lit(device_name).alias("device"),
                pl.lit(row["source_id"], pl.Int32).alias("source_id"),
            )
            host = [pl.lit(row["host"]).alias("host")] if several else []
            columns = _not_passed(frame, row).select(of_device, "ts_utc", "span_s", *quantities, *host, source)
            named.setdefault((row["host"], device_name), []).append(columns)
        joined = [_in_order(parts) for _, parts in sorted(named.items())]
        if len(joined) == 1:
            return joined[0]
        return pl.concat(joined, rechunk=False) if joined else self._none(quantities)

    def measured_power(
        self, channels: pl.DataFrame, *, start_utc: datetime | None = None, end_utc: datetime | None = None
    ) -> pl.DataFrame:
        """Return the power readings of some channels (``source_id, device``) on their own clocks, in order of device and time."""
        own = channels.with_columns(offset_s=pl.lit(0.0), drift_ppm=pl.lit(0.0), anchor_utc=pl.lit(None, schema.UTC))
        named: dict[str, list[pl.DataFrame]] = {}
        frames = self._channels(own, ("span_s", *SPEAKING), (start_utc, end_utc))
        for device, frame in zip(own["device"], frames, strict=True):
            named.setdefault(device, []).append(frame.select(pl.lit(device).alias("device"), *frame.columns))
        joined = [_in_order(parts) for _, parts in sorted(named.items())]
        return (pl.concat(joined) if joined else self._none(SPEAKING)).select("device", "ts_utc", "span_s", *SPEAKING)

    def _stored(self) -> set[str]:
        """Return the columns of readings that occur in the study."""
        return set(self.once(STORED_COLUMNS)["column_name"])

    def tells(self, quantity: str) -> bool:
        """Return whether any log of the study tells a quantity."""
        return quantity in self._stored()

    def _none(self, quantities: Sequence[str]) -> pl.DataFrame:
        types = schema.table("readings").schema
        names = ("device", "ts_utc", "span_s", *quantities, "source_id")
        return pl.DataFrame(schema={n: types.get(n, pl.String) for n in names})

    def _used(self, run_id: str | None, scope: str, device: str | None) -> pl.DataFrame:
        """Return the chosen channels of a scope with their clocks, in order of host and device."""
        if run_id is not None:
            found = self.once_by(_USED, by_run=run_id, by_scope=scope)
        else:
            of_runs = self.once_by(_USED, by_scope=scope).drop("by_run", "passed_from_utc", "passed_until_utc")
            found = of_runs.unique(maintain_order=True)
        return found if device is None else found.filter(pl.col("device") == device)

    def _channels(self, channels: pl.DataFrame, columns: Sequence[str], bounds: Bounds) -> list[pl.DataFrame]:
        """Return the speaking readings of each channel in order of time: ``ts_utc`` and the columns."""
        if channels.is_empty():
            return []
        stored = self._stored()
        kept = [c for c in columns if c in stored]
        speaking = " or ".join(f"{c} is not null" for c in SPEAKING if c in stored)
        if not speaking:
            return [
                self._none([]).select("ts_utc", *(pl.lit(None, pl.Float64).alias(c) for c in columns))
            ] * channels.height
        keep = self._may_keep()
        frames: dict[tuple[int, str], pl.DataFrame] = {}
        clocks: dict[int, list[dict[str, object]]] = {}
        for row in channels.iter_rows(named=True):
            clocks.setdefault(row["source_id"], []).append(row)
        for source_id, own in clocks.items():
            devices, around = [str(c["device"]) for c in own], _around(bounds, own)
            if keep:
                known = self._whole(source_id, devices, speaking)
                read = {d: _of(between(known[d], around), ("ts_utc", *kept)) for d in devices}
            else:
                read = self._as_written(source_id, devices, kept, speaking, around)
            frames |= {(source_id, d): rows for d, rows in read.items()}
        absent = [pl.lit(None, schema.table("readings").schema[c]).alias(c) for c in columns if c not in stored]
        found = []
        for row in channels.iter_rows(named=True):
            rows = frames[row["source_id"], row["device"]]
            found.append(on_reference(rows.with_columns(absent) if absent else rows, row, bounds))
        return found

    def _may_keep(self) -> bool:
        """Return whether the study's readings are few enough to be kept in memory."""
        rows = int(self.once(f"select count(*) as n from {READING_ROWS}")["n"][0])
        return self._kept_readings.has_room(rows, len(self._stored()))

    def _whole(self, source_id: int, devices: Sequence[str], speaking: str) -> Frames:
        """Return all readings of some devices of a file in order of time, from memory after the first time."""
        fresh = [d for d in devices if d not in self._kept_readings.known(source_id)]
        if fresh:
            stored = self._stored()
            columns = [c for c in ("span_s", *schema.QUANTITY_NAMES) if c in stored]
            self._kept_readings.keep(source_id, self._of_source(source_id, fresh, columns, speaking, (None, None)))
        return self._kept_readings.known(source_id)

    def _as_written(
        self, source_id: int, devices: Sequence[str], columns: Sequence[str], speaking: str, bounds: Bounds
    ) -> Frames:
        """Return the readings of some devices of a file between two of its own stamps, in the order of its lines."""
        if bounds != (None, None) or len(devices) > FEW_DEVICES:
            return self._of_source(source_id, devices, columns, speaking, bounds)
        # All rows of a long log are held once only where its devices are asked for one by one; pieces have room to spare.
        one_by_one = (self._of_source(source_id, [d], columns, speaking, bounds) for d in devices)
        return {d: rows.rechunk() for some in one_by_one for d, rows in some.items()}

    def _of_source(
        self, source_id: int, devices: Sequence[str], columns: Sequence[str], speaking: str, bounds: Bounds
    ) -> Frames:
        """Ask the database for what :meth:`_as_written` returns.

        A join would lose the order of the lines; and a number a row is cheaper than a text a row.
        """
        where, params = [f"({speaking})"], list[object]()
        for bound, op in zip(bounds, (">=", "<="), strict=True):
            if bound is not None:
                where.append(f"r.ts_utc {op} cast(? as timestamptz)")
                params.append(bound.isoformat())
        selected, condition = ", ".join(("r.ts_utc", *(f"r.{c}" for c in columns))), " and ".join(where)
        numbers = {device: self._channel_keys.known().get((source_id, device), NO_CHANNEL) for device in devices}
        among = list(numbers.values())
        if len(among) == 1:
            text = f"select {selected} from {READING_ROWS} r where r.channel_id = ? and {condition}"
            return {devices[0]: self.sql(text, [*among, *params])}
        # Asked with "in" whether the channel is among several, the database joins.
        frame = self.sql(
            f"""select r.channel_id, {selected} from {READING_ROWS} r
            where r.channel_id between ? and ? and list_contains(?, r.channel_id) and {condition}""",
            [min(among), max(among), among, *params],
        )
        return by_channel(frame, numbers)

    def _window(
        self, run_id: str | None, start_utc: datetime | None, end_utc: datetime | None, table: str
    ) -> tuple[datetime | None, datetime | None]:
        if run_id is None:
            return start_utc, end_utc
        run = self.once_by(f"select * from {table}", run_id=run_id)
        if run.is_empty():
            known = ", ".join(self.table("runs")["run_id"].head(20))
            raise KeyError(f"there is no run {run_id!r}; the study has {known}")
        return start_utc or run["start_utc"][0], end_utc or run["end_utc"][0]

    def most_ahead_s(self) -> float:
        """Return by how much any clock can differ from the reference at any reading [s], or a little more."""
        row = self.once(
            """select max(abs(m.offset_s) + abs(m.drift_ppm) * 1e-6
                * (abs(epoch(s.last_utc) - epoch(s.first_utc)) + coalesce(abs(epoch(m.anchor_utc) - epoch(s.first_utc)), 0))) as ahead_s
            from clock_maps m join sources s on s.source_id = m.source_id"""
        )
        return float(row["ahead_s"][0] or 0.0) + 2.0


def _around(bounds: Bounds, clocks: Sequence[dict[str, object]]) -> Bounds:
    """Return bounds on the clocks' own stamps that hold all between two true times, and a little more."""
    since, until = bounds
    return (
        None if since is None else min(since - _SLACK + _ahead(since, c) for c in clocks),
        None if until is None else max(until + _SLACK + _ahead(until, c) for c in clocks),
    )


def _ahead(at: datetime, clock: dict[str, object]) -> timedelta:
    """Return by how much a clock is ahead of the reference near a time."""
    offset_s, drift_ppm, anchor = float(str(clock["offset_s"])), float(str(clock["drift_ppm"])), clock["anchor_utc"]
    since_s = (at - anchor).total_seconds() if isinstance(anchor, datetime) else 0.0
    return timedelta(seconds=offset_s + drift_ppm * 1e-6 * since_s)


def on_reference(frame: pl.DataFrame, clock: dict[str, object], bounds: Bounds) -> pl.DataFrame:
    """Return the rows of a channel at their true times t - offset - drift * (t - anchor), within bounds and in order."""
    if clock["offset_s"] or clock["drift_ppm"]:
        frame = frame.with_columns(clock_maps.corrected(pl.col("ts_utc"), clock))
    if not frame["ts_utc"].is_sorted():
        frame = frame.sort("ts_utc", maintain_order=True)
    return between(frame, bounds)


def between(frame: pl.DataFrame, bounds: Bounds) -> pl.DataFrame:
    """Return the rows from one stamp to another, both included, of rows in order of time: a view of them."""
    since, until = (None if t is None else (t - _EPOCH) // _MICROSECOND for t in bounds)
    at = frame["ts_utc"].to_physical()
    # An array is quicker to search, for one ask a run; but what is in pieces would be copied into one.
    find = at.search_sorted if at.n_chunks() > 1 else at.to_numpy().searchsorted
    first = 0 if since is None else int(find(since, side="left"))
    behind = frame.height if until is None else int(find(until, side="right"))
    return frame.slice(first, max(behind - first, 0))


def _of(frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Return some columns; stages ask for each run, and a plan for each would take longer than its few rows."""
    return pl.DataFrame([frame[c] for c in columns])


def _not_passed(frame: pl.DataFrame, channel: dict[str, object]) -> pl.DataFrame:
    """Return the rows of a channel that lie outside of the time for which a better instrument is used."""
    since, until = channel.get("passed_from_utc"), channel.get("passed_until_utc")
    if not (isinstance(since, datetime) and isinstance(until, datetime)):
        return frame
    return frame.filter(~pl.col("ts_utc").is_between(since, until))


def _in_order(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Return the readings of one device from several files, in order of time."""
    return parts[0] if len(parts) == 1 else pl.concat(parts).sort("ts_utc", maintain_order=True)
