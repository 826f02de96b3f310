"""Two clocks before and after alignment."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from joulebook.clock_maps import corrected
from joulebook.plots import style as look
from joulebook.plots import thinning

WINDOW_S = 180.0
"""Time around the chosen edge that is drawn [s], at least."""
_STEP_S = 5.0
"""Time over which the steepest edge is looked for [s]."""


@look.styled
def alignment(reference: pl.DataFrame, other: pl.DataFrame, fit: pl.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the steepest edge by two clocks: as stamped, as aligned, and what is left between them.

    Parameters
    ----------
    reference
        Readings on the reference clock: ``device``, ``ts_utc``, ``power_w`` [W].
    other
        Readings on the clock in question, as stamped.
    fit
        One row of table ``alignments``.
    ax
        Axes to draw on; divided into three panels.

    Returns
    -------
    Axes
        The host axes; its panels are ``ax.child_axes``.

    Raises
    ------
    ValueError
        ``fit`` has no row, or a column is missing.

    Examples
    --------
    >>> from datetime import datetime, timedelta, timezone
    >>> from joulebook import schema
    >>> t0 = datetime(2026, 1, 1, tzinfo=timezone.utc)
    >>> t = [t0 + timedelta(seconds=i) for i in range(600)]
    >>> a = pl.DataFrame({"device": "node", "ts_utc": t, "power_w": [100.0 + 900 * (i > 300) for i in range(600)]})
    >>> b = a.with_columns(pl.col("ts_utc") + timedelta(seconds=30))
    >>> row = schema.conform(pl.DataFrame({"clock": ["b"], "anchor_utc": [t0], "offset_s": [30.0], "offset_lo": [29.0],
    ...     "offset_hi": [31.0], "drift_ppm": [0.0], "status": ["aligned"]}), "alignments")
    >>> alignment(a, b, row).get_title("left")
    'b runs 30.0 s ahead [29.0, 31.0]'
    """
    ax = look.axes_or_new(ax, height_in=5.2)
    if fit.is_empty():
        raise ValueError("fit: no row; it must be one row of the table alignments")
    row: dict[str, Any] = fit.row(0, named=True)
    if row["offset_s"] is None:
        return look.empty(ax, f"{row['clock']}: {row['status']} – {row['reason'] or 'no offset'}")
    still, moving = (thinning.summed(frame) for frame in (reference, other))
    aligned = moving.with_columns(corrected(pl.col("ts_utc"), row).alias("ts_utc"))
    middle = _steepest(still, aligned)
    if middle is None:
        return look.empty(ax, f"{row['clock']}: no time in common to draw")
    half_s = max(WINDOW_S / 2, abs(row["offset_s"]) * 1.4)
    before, after, rest = look.panels(ax, (1, 1, 0.7))
    for panel, frame, word in ((before, moving, "as stamped"), (after, aligned, "aligned")):
        panel.text(0.01, 0.97, word, transform=panel.transAxes, va="top", fontsize=9, weight="bold", color=look.INK)
        _edges(panel, {"reference": still, row["clock"]: frame}, middle, half_s)
    _residual(rest, still, aligned, middle, half_s)
    ax.set_title(_title(row), pad=8)
    return ax


def _title(row: dict[str, Any]) -> str:
    seconds = abs(row["offset_s"])
    lo, hi = row["offset_lo"], row["offset_hi"]
    half = (hi - lo) / 2 if lo is not None and hi is not None else 0.05
    digits = int(np.clip(1 - np.floor(np.log10(half)) if half > 0 else 3, 1, 3))
    ends = "" if lo is None or hi is None else sorted((abs(lo), abs(hi)) if lo * hi > 0 else (lo, hi))
    interval = f" [{ends[0]:.{digits}f}, {ends[1]:.{digits}f}]" if ends else ""
    side = "ahead" if row["offset_s"] >= 0 else "behind"
    against = f"{' of' * (side == 'ahead')} {row['reference_clock']}" if row["reference_clock"] else ""
    return f"{row['clock']} runs {seconds:.{digits}f} s {side}{against}{interval}"


def _scaled(frame: pl.DataFrame) -> tuple[np.ndarray[Any, Any], float, float]:
    y = frame["power_w"].to_numpy()
    low, high = (float(q) for q in np.quantile(y, (0.01, 0.99)))
    return y, low, max(high - low, 1e-9)


def _steepest(still: pl.DataFrame, moving: pl.DataFrame) -> datetime | None:
    """Return the middle of the largest change of the reference within the common time.

    By time, not by rows: devices whose stamps lie a millisecond apart have two rows a tick.
    """
    if still.is_empty() or moving.is_empty():
        return None
    common = still.filter(pl.col("ts_utc").is_between(moving["ts_utc"].min(), moving["ts_utc"].max()))
    if common.height < 3:
        return None
    t, y = common["ts_utc"].dt.epoch("us").to_numpy() / 1e6, common["power_w"].to_numpy()
    before, after = (np.interp(t + side * _STEP_S / 2, t, y) for side in (-1.0, 1.0))
    found: datetime = common["ts_utc"][int(np.argmax(np.abs(after - before)))]
    return found


def _edges(ax: Axes, frames: dict[str, pl.DataFrame], middle: datetime, half_s: float) -> None:
    look.dress(ax)
    window = (middle - timedelta(seconds=half_s), middle + timedelta(seconds=half_s))
    ends = []
    for (name, frame), colour in zip(frames.items(), (look.ORANGE, look.BLUE), strict=True):
        _, low, height = _scaled(frame)
        near = frame.filter(pl.col("ts_utc").is_between(*window)).with_columns(pl.lit("").alias("device"))
        thin = thinning.outline(near) if not near.is_empty() else near
        if thin.is_empty():
            continue
        t = ((thin["ts_utc"] - middle).dt.total_microseconds() / 1e6).to_numpy()
        y = (thin["power_w"].to_numpy() - low) / height
        ax.plot(t, y, color=colour, linewidth=1.1, drawstyle="steps-post")
        ends.append((float(t[-1]), float(y[-1]), name, colour))
    ax.set_xlim(-half_s, half_s)
    ax.set_ylim(-0.15, 1.25)
    ax.set_yticks([0, 1])
    ax.set_ylabel("power, scaled\n[0 to 1]", fontsize=9)
    look.label_ends(ax, ends)


def _residual(ax: Axes, still: pl.DataFrame, aligned: pl.DataFrame, middle: datetime, half_s: float) -> None:
    look.dress(ax)
    t = np.linspace(-half_s, half_s, 400)
    drawn = []
    for frame in (still, aligned):
        y, low, height = _scaled(frame)
        at = ((frame["ts_utc"] - middle).dt.total_microseconds() / 1e6).to_numpy()
        drawn.append((np.interp(t, at, y, left=np.nan, right=np.nan) - low) / height)
    ax.axhline(0.0, color=look.MUTED, linewidth=0.8)
    ax.plot(t, drawn[1] - drawn[0], color=look.BLUE, linewidth=1.0)
    ax.set_ylabel("difference\n[0 to 1]", fontsize=9)
    ax.set_xlabel("time from the steepest edge [s]")
