"""The total power of a scope over time, thinned for a picture so that no spike is lost."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from joulebook import schema
from joulebook_pipelines.store_power import PowerReads

Floats = npt.NDArray[np.float64]
Stamps = npt.NDArray[np.int64]

MOST_ROWS = 20_000_000
"""Readings that are held at once; a longer log is summed piece by piece."""

LEAST_STEP_S = 0.001
"""Devices are added within ticks of the longest of their periods, and at least this long [s]."""


class _Summed(NamedTuple):
    """Devices added tick by tick: number and first stamp [µs] of each tick that all of them tell, and the sum [W]."""

    tick: Floats
    us: Stamps
    watts: Floats


class TimelineReads(PowerReads):
    """The question how power went over time."""

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
        chosen = self._used(None, scope, None)
        if chosen.is_empty():
            return _thinned([], points)
        step_s, pieces = self._pieces(scope, start_utc, end_utc)
        seen: set[tuple[str, str]] = set()
        sums: list[tuple[int, _Summed]] = []
        for first, behind in pieces:
            bounds = (_later(start_utc, first * step_s - step_s), _earlier(end_utc, behind * step_s + step_s))
            devices = self._devices(chosen, bounds)
            seen |= set(devices)
            found = [_by_tick(frame, step_s, (first, behind)) for frame in devices.values()]
            if found:
                sums.append((len(devices), _added(found)))
        return _thinned([s for devices, s in sums if devices == len(seen)], points)

    def _pieces(
        self, scope: str, start_utc: datetime | None, end_utc: datetime | None
    ) -> tuple[float, list[tuple[float, float]]]:
        """Return the length of a tick [s] and the pieces of the window, each as its first tick and the one behind its last."""
        told = self.sql(
            """select max(coalesce(c.period_s, 1)) as step_s, sum(c.n)::bigint as n,
                min(s.first_utc) as first_utc, max(s.last_utc) as last_utc
            from (select distinct source_id, device from instruments where chosen and scope = ?) i
            join channels c on c.source_id = i.source_id and c.device = i.device join sources s on s.source_id = i.source_id""",
            [scope],
        ).row(0, named=True)
        step_s = max(float(told["step_s"] or 1.0), LEAST_STEP_S)
        if not told["n"] or told["first_utc"] is None:
            return step_s, [(-math.inf, math.inf)]
        ahead = timedelta(seconds=self.most_ahead_s())
        first, last = told["first_utc"] - ahead, told["last_utc"] + ahead
        since, until = max(start_utc or first, first), min(end_utc or last, last)
        count = math.ceil(told["n"] * max(until - since, timedelta(0)) / (last - first) / MOST_ROWS)
        ends = np.linspace(since.timestamp() / step_s, until.timestamp() / step_s, count + 1)[1:-1].round().tolist()
        return step_s, list(zip([-math.inf, *ends], [*ends, math.inf], strict=True))

    def _devices(
        self, chosen: pl.DataFrame, bounds: tuple[datetime | None, datetime | None]
    ) -> dict[tuple[str, str], pl.DataFrame]:
        """Return the powers of each device in order of time."""
        named: dict[tuple[str, str], list[pl.DataFrame]] = {}
        for row, frame in zip(chosen.iter_rows(named=True), self._channels(chosen, ("power_w",), bounds), strict=True):
            known = frame.drop_nulls("power_w") if frame["power_w"].null_count() else frame
            if known.height:
                named.setdefault((row["host"], row["device"]), []).append(known)
        return {d: f[0] if len(f) == 1 else pl.concat(f).sort("ts_utc", maintain_order=True) for d, f in named.items()}


def _later(start_utc: datetime | None, seconds: float) -> datetime | None:
    own = datetime.fromtimestamp(seconds, UTC) if math.isfinite(seconds) else start_utc
    return own if start_utc is None or own is None else max(start_utc, own)


def _earlier(end_utc: datetime | None, seconds: float) -> datetime | None:
    own = datetime.fromtimestamp(seconds, UTC) if math.isfinite(seconds) else end_utc
    return own if end_utc is None or own is None else min(end_utc, own)


def _by_tick(frame: pl.DataFrame, step_s: float, ticks: tuple[float, float]) -> _Summed:
    """Return the mean of one device's readings in each tick of a piece."""
    us, watts = frame["ts_utc"].to_physical().to_numpy(), frame["power_w"].to_numpy()
    tick = np.floor(us / 1e6 / step_s)
    mine = slice(*np.searchsorted(tick, ticks))
    us, watts, tick = us[mine], watts[mine], tick[mine]
    if not tick.size:
        return _Summed(tick, us, watts)
    first = np.flatnonzero(np.diff(tick, prepend=tick[0] - 1))
    return _Summed(tick[first], us[first], np.add.reduceat(watts, first) / np.diff(first, append=tick.size))


def _added(devices: list[_Summed]) -> _Summed:
    """Return the sum of devices in the ticks that all of them tell."""
    total = devices[0]
    for one in devices[1:]:
        if not np.array_equal(total.tick, one.tick):
            tick, mine, other = np.intersect1d(total.tick, one.tick, assume_unique=True, return_indices=True)
            total, one = (_Summed(tick, s.us[at], s.watts[at]) for s, at in ((total, mine), (one, other)))  # noqa: PLW2901
        total = _Summed(total.tick, np.minimum(total.us, one.us), total.watts + one.watts)
    return total


def _thinned(sums: list[_Summed], points: int) -> pl.DataFrame:
    """Return least, most and mean of each of ``points`` stretches of equal length that holds a tick."""
    us = np.concatenate([np.zeros(0, np.int64), *(s.us for s in sums)])
    watts = np.concatenate([np.zeros(0), *(s.watts for s in sums)])
    at_s = us / 1e6
    length_s = max(at_s[-1] - at_s[0], 1e-3) if us.size else 1.0
    stretch = np.minimum(np.floor((at_s - at_s[:1]) / length_s * points), points - 1)
    first = np.flatnonzero(np.diff(stretch, prepend=-1.0))
    if not first.size:
        return pl.DataFrame(schema={"ts_utc": schema.UTC, "lo_w": pl.Float64, "hi_w": pl.Float64, "mean_w": pl.Float64})
    return pl.DataFrame({
        "ts_utc": pl.Series(us[first]).cast(pl.Datetime("us")).dt.replace_time_zone("UTC"),
        "lo_w": np.minimum.reduceat(watts, first), "hi_w": np.maximum.reduceat(watts, first),
        "mean_w": np.add.reduceat(watts, first) / np.diff(first, append=us.size),
    })  # fmt: skip
