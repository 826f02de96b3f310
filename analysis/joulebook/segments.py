"""Stretches of a power log that are one thing: warm-up, stable work, stall, idle, or none of these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from joulebook import levels, segment_log, serial, states, totals, trust, warmup
from joulebook.findings import Finding, Severity
from joulebook.schema import TABLES
from joulebook.segment_log import Log
from joulebook.wording import counted

MIN_STABLE_S: Final = 60.0
"""Shortest stable segment [s]."""

CV_LIMIT: Final = 0.25
"""Coefficient of variation above which a segment is not stable; 0.05 to 0.2 is usual in training."""

JOB_BREAK_S: Final = 60.0
"""Idle stretches at least this long separate jobs [s]."""

COLUMNS: Final = ("device", "ts_utc", "power_w", "span_s", "utilization_ratio")
"""Columns that are looked at."""

SCHEMA: Final = {c.name: c.dtype for t in TABLES if t.name == "segments" for c in t.columns if c.name != "run_id"}
"""Columns of the result."""


@dataclass(frozen=True)
class Segments:
    """Segments of a power log.

    Parameters
    ----------
    frame
        One row a segment, in time order per device: ``device``, ``scope``, ``kind``, ``start_utc``, ``end_utc``, ``n``,
        ``mean_w``, ``mean_lo``, ``mean_hi``, ``sd_w`` [W], ``cv_ratio``, ``slope_w_per_s``, ``reason``. Stalls lie
        inside the stable segment that they interrupt, whose numbers leave them out.
    findings
        Doubts about sensors, and devices without a stable segment.
    """

    frame: pl.DataFrame
    findings: tuple[Finding, ...] = field(default=())

    def of(self, kind: str) -> pl.DataFrame:
        """Return the rows of one kind."""
        return self.frame.filter(pl.col("kind") == kind)

    def _repr_html_(self) -> str:
        return self.frame._repr_html_() + "".join(f._repr_html_() for f in self.findings)


@dataclass(frozen=True)
class _Piece:
    """Readings first to end (exclusive), of which only those of one state count."""

    kind: str
    first: int
    end: int
    reason: str


def _stretches(mask: npt.NDArray[np.bool_], breaks: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield first index and end of every stretch of true, cut at breaks."""
    for first, end in zip(*trust.runs(mask), strict=True):
        cuts = first + np.flatnonzero(breaks[first:end])
        yield from pairwise([int(first), *(int(c) for c in cuts if c > first), int(end)])


def _jobs(log: Log) -> Iterator[tuple[int, int]]:
    """Yield the stretches of work, stalls and short idle dips included."""
    rest = log.state == states.IDLE
    for first, end in _stretches(rest, log.gap_before):
        inside = first > 0 and end < rest.size
        if inside and log.seconds[end] - log.seconds[first] < JOB_BREAK_S:
            rest[first:end] = False
    yield from _stretches(~rest, log.gap_before)


def _work(log: Log, first: int, end: int, limits: tuple[float, float]) -> Iterator[_Piece]:
    """Yield warm-up, stable and transient pieces of one job."""
    mine = log.counted(first, end, states.BUSY)
    if mine.watts.size < 3:
        yield _Piece("transient", first, end, f"has only {counted(mine.watts.size, 'usable reading')}")
        return
    stamps = log.stamps[first:end] if mine.at is None else log.stamps.gather(mine.at)
    start = warmup.along(stamps, mine.watts, interval=False)
    begin = first
    if start.is_steady and start.start_utc is not None and start.kind is not warmup.Kind.STEADY:
        begin = int(np.searchsorted(log.seconds, (start.start_utc - log.stamps[0]).total_seconds() - 1e-9))
        yield _Piece("warmup", first, begin, start.reason)
        mine = mine.from_place(begin)
    n = mine.watts.size
    for a, b in levels.find(mine.watts) if n > 2 else [(0, n)]:
        left = begin if a == 0 else mine.place(a)
        right = mine.place(b - 1) + 1 if b == n else mine.place(b)
        seconds, watts = mine.seconds[a:b], mine.watts[a:b]
        kind, reason = levels.judge(seconds, watts, min_stable_s=limits[0], cv_limit=limits[1])
        yield _Piece(kind, left, right, reason)


def _pieces(log: Log, limits: tuple[float, float]) -> list[_Piece]:
    out = [
        _Piece(kind, a, b, reason)
        for kind, state, reason in (
            ("idle", states.IDLE, "power at the idle level"),
            ("stall", states.STALL, "power dips below work and above idle"),
        )
        for a, b in _stretches(log.state == state, log.gap_before)
    ]
    for first, end in _jobs(log):
        out.extend(_work(log, first, end, limits))
    begins, stops = trust.runs(~log.usable)
    long = stops - begins >= trust.STUCK_READINGS
    reason = "repeats one value, or is zero"
    out.extend(_Piece("transient", int(a), int(b), reason) for a, b in zip(begins[long], stops[long], strict=True))
    return sorted((p for p in out if p.end > p.first), key=lambda p: (p.first, -p.end))


_COUNTED: Final = {"idle": states.IDLE, "stall": states.STALL}


def _row(log: Log, piece: _Piece, scope: str) -> dict[str, float | int | str | datetime | None]:
    mine = log.counted(piece.first, piece.end, _COUNTED.get(piece.kind, states.BUSY))
    watts = mine.watts
    mean = serial.mean_interval(watts)
    sd = float(watts.std(ddof=1)) if watts.size > 1 else None
    # Readings label the end of their span: the segment ends where the next reading begins, unless there is a gap.
    meets = piece.end < log.watts.size and not log.gap_before[piece.end]
    return {
        "device": log.device,
        "scope": scope,
        "kind": piece.kind,
        "start_utc": log.begins(piece.first),
        "end_utc": log.begins(piece.end) if meets else log.ends(piece.end - 1),
        "n": int(watts.size),
        "mean_w": mean.value,
        "mean_lo": mean.lo,
        "mean_hi": mean.hi,
        "sd_w": sd,
        "cv_ratio": sd / mean.value if sd and mean.value else None,
        "slope_w_per_s": levels.slope(mine.seconds, watts) if watts.size > 2 else None,
        "reason": "; ".join(r for r in (piece.reason, mean.reason) if r),
    }


def find(
    power: pl.DataFrame,
    *,
    scope: str = "",
    idle_w: float | None = None,
    min_stable_s: float = MIN_STABLE_S,
    cv_limit: float = CV_LIMIT,
) -> Segments:
    """Cut the power of each device into segments.

    Parameters
    ----------
    power
        Power frame: ``device``, ``ts_utc``, ``power_w`` [W], perhaps ``span_s`` [s] and ``utilization_ratio``.
    scope
        Boundary of the readings, copied to the result.
    idle_w
        Idle power of a device, where it is known from elsewhere [W].
    min_stable_s
        Shortest stable segment [s].
    cv_limit
        Coefficient of variation above which a segment is not stable.

    Returns
    -------
    Segments
        Rows in time order per device; those that are not stable carry the reason.

    Raises
    ------
    ValueError
        Where ``power`` lacks a column.

    Examples
    --------
    >>> import numpy as np
    >>> from datetime import UTC, datetime, timedelta
    >>> stamps = [datetime(2026, 11, 2, tzinfo=UTC) + timedelta(seconds=s) for s in range(900)]
    >>> watts = np.repeat([60.0, 500.0, 60.0], 300) + np.random.default_rng(2).normal(0.0, 3.0, 900)
    >>> find(pl.DataFrame({"device": "gpu:0", "ts_utc": stamps, "power_w": watts})).frame["kind"].to_list()
    ['idle', 'stable', 'idle']
    """
    totals.check(power)
    power = power.select(n for n in COLUMNS if n in power.columns)
    finite = power["power_w"].is_finite()
    known = power if finite.null_count() == 0 and finite.all() else power.filter(finite)
    rows: list[dict[str, float | int | str | datetime | None]] = []
    findings: list[Finding] = []
    for device, frame in totals.by_device(known):
        in_order = frame if frame["ts_utc"].is_sorted() else frame.sort("ts_utc")
        log, doubts = segment_log.load(in_order, device, idle_w=idle_w)
        findings.extend(doubts)
        mine = [_row(log, piece, scope) for piece in _pieces(log, (min_stable_s, cv_limit))]
        rows.extend(mine)
        if not any(row["kind"] == "stable" for row in mine):
            text = (
                f"No stretch of power is steady enough for a steady power: {unsteady(_frame(mine, power))}. Let the load run longer "
                "at one level, or look for what moves its power."
            )
            findings.append(Finding("no-stable-segment", Severity.WARNING, device, text))
    return Segments(_frame(rows, power).sort("device", "start_utc", maintain_order=True), tuple(findings))


def unsteady(frame: pl.DataFrame) -> str:
    """Return why no segment is stable: the reason of the longest that is none.

    Parameters
    ----------
    frame
        Segments of one device.
    """
    others = frame.filter(pl.col("kind") == "transient").sort(pl.col("end_utc") - pl.col("start_utc"), descending=True)
    if others.is_empty():
        return "there is no work in the log"
    reason = others["reason"][0].partition("; ")[0]
    return reason if others.height == 1 else f"{reason} (the longest of {others.height} stretches)"


def _frame(rows: list[dict[str, float | int | str | datetime | None]], power: pl.DataFrame) -> pl.DataFrame:
    stamp = power.schema["ts_utc"]
    return pl.DataFrame(rows, schema={k: stamp if k.endswith("_utc") else v for k, v in SCHEMA.items()}, orient="row")
