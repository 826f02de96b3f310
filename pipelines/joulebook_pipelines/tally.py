"""Bookkeeping of one source while it is read: stamps, steps and gaps per device, without a second pass over the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import polars as pl

from joulebook_pipelines.logs.contract import Channel
from joulebook_pipelines.turns import in_turn

GAP_S = 3.0
"""A step is a gap when it is longer than this and than :data:`GAP_PERIODS` periods: shorter ones are jitter."""

GAP_PERIODS = 3.0

PRINTED_MS = (1000, 100, 10)
"""Resolutions that stamps are printed with [ms]; finer ones are seldom shared."""

CROWDED_STEPS = 1.5
"""Usual distance of two readings, in steps of the printed stamp, up to which one may fall into the step of another."""

_POWER = ("power_w", "energy_j", "energy_counter_j")


@dataclass
class Tally:
    """Counts of one source, updated block by block.

    Attributes
    ----------
    sorted
        Every stamp so far is at or behind the one on the line before it.
    latest
        The last stamp so far; to begin with that of what was read another time.
    equal_stamps
        Readings whose device and stamp stood on the line before as well.
    """

    sorted: bool = True
    equal_stamps: int = 0
    readings: int = 0
    first_back_line: int | None = None
    first: datetime | None = None
    last: datetime | None = None
    latest: datetime | None = None
    _last_of: dict[str, int] = field(default_factory=dict)
    _first_of: dict[str, int] = field(default_factory=dict)
    _count_of: dict[str, int] = field(default_factory=dict)
    _steps: dict[str, list[pl.DataFrame]] = field(default_factory=dict)

    def add(self, readings: pl.DataFrame, devices: int = 0) -> None:
        """Count a block of readings, in file order.

        Parameters
        ----------
        readings
            ``line, device, ts_utc`` and quantities.
        devices
            Number of devices that stand one after another, each over all the same lines; 0 where line stands behind line.
        """
        if readings.is_empty():
            return
        self.readings += readings.height
        lines = readings.height // max(devices, 1)
        self._add_stamps(readings.head(lines))
        own = [_spoken(readings.slice(at, lines)) for at in range(0, readings.height, lines)] if devices else []
        each = ((p["device"][0], p["ts_utc"]) for p in own if p.height) if devices else _by_device(_spoken(readings))
        known: dict[int | None, _Moves] = {}
        for device, stamps in each:
            previous = self._last_of.get(device)
            # devices that stand one after another, each in all lines, have the same stamps: they are counted once
            moves = known.get(previous) if devices and len(stamps) == lines else None
            stamps_us = stamps.to_physical().cast(pl.Int64)
            moves = _moves(stamps_us, previous) if moves is None else moves
            if len(stamps) == lines:
                known[previous] = moves
            self._add_device(device, stamps_us, moves)

    def _add_stamps(self, readings: pl.DataFrame) -> None:
        """Note the reach and the order of the stamps of some lines."""
        stamps = readings["ts_utc"]
        first, last = stamps.min(), stamps.max()
        assert isinstance(first, datetime)
        assert isinstance(last, datetime)
        if self.sorted and (not stamps.is_sorted() or (self.latest is not None and stamps[0] < self.latest)):
            self.sorted = False
            back = readings.filter(pl.col("ts_utc") < pl.col("ts_utc").cum_max())
            self.first_back_line = int((back if back.height else readings)["line"][0])
        self.latest = last if self.latest is None else max(self.latest, last)
        self.first = first if self.first is None else min(self.first, first)
        self.last = self.latest

    def _add_device(self, device: str, stamps_us: pl.Series, moves: _Moves) -> None:
        self.equal_stamps += moves.equal
        self._first_of.setdefault(device, int(stamps_us[0]))
        self._last_of[device] = int(stamps_us[-1])
        self._count_of[device] = self._count_of.get(device, 0) + len(stamps_us)
        self._steps.setdefault(device, []).append(moves.steps)

    def steps(self) -> pl.DataFrame:
        """Return ``device, step_ms, count`` for a source whose lines are in order of time."""
        if not self._steps:
            return pl.DataFrame(schema={"device": pl.String, "step_ms": pl.Int64, "count": pl.Int64})
        counts = pl.concat([pl.concat(own).with_columns(device=pl.lit(device)) for device, own in self._steps.items()])
        return counts.group_by("device", "step_ms").agg(pl.col("count").sum().cast(pl.Int64))

    def crowded(self) -> bool:
        """Return whether lines are in order and about as fast as their stamps are printed, so that two may share one.

        A logger that samples once a second, and stamps whole seconds, prints a second twice now and then and passes
        over another.
        """
        moves = self.steps().filter(pl.col("step_ms") > 0).sort("step_ms")
        if not self.sorted or self.first is None or moves.is_empty():
            return False
        start_ms, steps = self.first.microsecond / 1e3, moves["step_ms"]
        printed = next((q for q in PRINTED_MS if (steps % q == 0).all() and start_ms % q == 0), 0)
        return 1e3 * (median_s(moves) or 0.0) <= CROWDED_STEPS * printed

    def spans(self) -> pl.DataFrame:
        """Return ``device, n, first_us, last_us`` for a source whose lines are in order of time."""
        return pl.DataFrame(
            [(d, self._count_of[d], self._first_of[d], self._last_of[d]) for d in self._count_of],
            schema={"device": pl.String, "n": pl.Int64, "first_us": pl.Int64, "last_us": pl.Int64}, orient="row",
        )  # fmt: skip


class _Moves(NamedTuple):
    """How often stamps move on by how much, ``step_ms, count``, and how many are as the one before."""

    steps: pl.DataFrame
    equal: int


def _moves(stamps_us: pl.Series, previous: int | None) -> _Moves:
    steps = stamps_us.diff().drop_nulls()
    if previous is not None:
        steps = pl.concat([pl.Series(steps.name, [int(stamps_us[0]) - previous], dtype=pl.Int64), steps])
    return _Moves((steps // 1000).rename("step_ms").value_counts(), int((steps == 0).sum()))


def _spoken(readings: pl.DataFrame) -> pl.DataFrame:
    """Return the readings that tell an energy."""
    said = [q for q in _POWER if q in readings.columns]
    if any(readings[q].null_count() == 0 for q in said):
        return readings
    return readings.filter(pl.any_horizontal(pl.col(q).is_not_null() for q in said)) if said else readings.clear()


def _by_device(readings: pl.DataFrame) -> Iterator[tuple[str, pl.Series]]:
    """Yield each device with its stamps, in file order."""
    if turn := in_turn(readings["device"]):
        for place, device in enumerate(turn):
            yield device, readings["ts_utc"].gather_every(len(turn), place)
        return
    for (name,), rows in readings.partition_by("device", as_dict=True, maintain_order=True).items():
        yield str(name), rows["ts_utc"]


def channel_rows(steps: pl.DataFrame, spans: pl.DataFrame, channels: dict[str, Channel]) -> pl.DataFrame:
    """Return rows of table ``channels`` less ``source_id``.

    Parameters
    ----------
    steps
        ``device, step_ms, count``: how often each step between stamps occurs.
    spans
        ``device, n, first_us, last_us``.
    channels
        What the adapter said of each device.
    """
    rows = []
    told = {r["device"]: r for r in spans.iter_rows(named=True)}
    for device, channel in sorted(channels.items()):
        mine = steps.filter((pl.col("device") == device) & pl.col("step_ms").is_not_null()).sort("step_ms")
        known = told.get(device)
        period_s = median_s(mine)
        limit_ms = 1e3 * max(GAP_S, GAP_PERIODS * period_s) if period_s else 1e3 * GAP_S
        short = mine.filter(pl.col("step_ms") <= limit_ms)
        covered = int((short["step_ms"] * short["count"]).sum())
        whole = int((mine["step_ms"] * mine["count"]).sum())
        rows.append({
            "device": device, "scope": channel.scope, "model": channel.model, "uuid": channel.uuid, "period_s": period_s,
            "n": known["n"] if known else 0, "gaps": int(mine["count"].sum()) - int(short["count"].sum()),
            "coverage_ratio": covered / whole if whole else None, "kind": channel.kind, "window_s": channel.window_s,
            "first_us": known["first_us"] if known else None, "last_us": known["last_us"] if known else None,
        })  # fmt: skip
    schema = {
        "device": pl.String, "scope": pl.String, "model": pl.String, "uuid": pl.String, "period_s": pl.Float64, "n": pl.Int64,
        "gaps": pl.Int64, "coverage_ratio": pl.Float64, "kind": pl.String, "window_s": pl.Float64,
        "first_us": pl.Int64, "last_us": pl.Int64,
    }  # fmt: skip
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    times = [
        pl.col(f"{c}_us").cast(pl.Datetime("us")).dt.replace_time_zone("UTC").alias(f"{c}_utc")
        for c in ("first", "last")
    ]
    return frame.with_columns(times).drop("first_us", "last_us")


def median_s(steps: pl.DataFrame) -> float | None:
    """Return the median step [s] of a table of counts."""
    total = steps["count"].sum()
    if not total:
        return None
    at = steps.filter(pl.col("count").cum_sum() * 2 >= total)
    return float(at["step_ms"][0]) / 1e3
