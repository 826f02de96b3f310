"""The total power of a scope over time, thinned for a picture so that no spike is lost."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import polars as pl

from joulebook import counter_power, timeline, totals
from joulebook_pipelines.store_attempts import AttemptReads

Ticks = npt.NDArray[np.int64]

MOST_ROWS = 20_000_000
"""Readings that are held at once; a longer log is summed piece by piece."""

LEAST_STEP_S = 0.001
"""Devices are added within ticks of the longest of their periods, and at least this long [s]."""


class TimelineReads(AttemptReads):
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
            return timeline.thinned([], points)
        step_s, pieces = self._pieces(scope, start_utc, end_utc)
        seen: set[tuple[str, str]] = set()
        sums: list[tuple[int, pl.DataFrame]] = []
        for first, behind in pieces:
            bounds = (_later(start_utc, first * step_s - step_s), _earlier(end_utc, behind * step_s + step_s))
            devices = self._devices(chosen, bounds)
            seen |= set(devices)
            of_piece = [_of_piece(frame, step_s, (first, behind)) for frame in devices.values()]
            if of_piece and all(frame.height for frame, _ in of_piece):
                total = totals.by_tick([frame for frame, _ in of_piece], [tick for _, tick in of_piece])
                sums.append((len(devices), total.select("ts_utc", "power_w")))
        return timeline.thinned([total for devices, total in sums if devices == len(seen)], points)

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
        """Return the powers of each device in order of time; of one that only counts, the means between its readings."""
        named: dict[tuple[str, str], list[pl.DataFrame]] = {}
        quantities = ("power_w", "energy_counter_j") if self.tells("energy_counter_j") else ("power_w",)
        for row, frame in zip(chosen.iter_rows(named=True), self._channels(chosen, quantities, bounds), strict=True):
            known = totals.told(frame)
            if known.is_empty() and frame.height and "energy_counter_j" in quantities:
                known = totals.told(counter_power.with_power(frame.with_columns(device=pl.lit(row["device"]))))
            known = known.select("ts_utc", "power_w")
            if known.height:
                load = pl.lit(None, pl.Float64).alias("utilization_ratio")
                named.setdefault((row["host"], row["device"]), []).append(known.with_columns(load))
        return {d: f[0] if len(f) == 1 else pl.concat(f).sort("ts_utc", maintain_order=True) for d, f in named.items()}


def _later(start_utc: datetime | None, seconds: float) -> datetime | None:
    own = datetime.fromtimestamp(seconds, UTC) if math.isfinite(seconds) else start_utc
    return own if start_utc is None or own is None else max(start_utc, own)


def _earlier(end_utc: datetime | None, seconds: float) -> datetime | None:
    own = datetime.fromtimestamp(seconds, UTC) if math.isfinite(seconds) else end_utc
    return own if end_utc is None or own is None else min(end_utc, own)


def _of_piece(frame: pl.DataFrame, step_s: float, ticks: tuple[float, float]) -> tuple[pl.DataFrame, Ticks]:
    """Return the readings of one device that lie in a piece, and the tick of each."""
    tick = np.floor(frame["ts_utc"].to_physical().to_numpy() / 1e6 / step_s)
    first, behind = (int(i) for i in np.searchsorted(tick, ticks))
    return frame.slice(first, behind - first), tick[first:behind].astype(np.int64)
