"""One week against the weeks before, one small picture per metric."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from joulebook.plots import style as look

WEEKS_BEFORE = 8
"""Weeks that make the band: two months, short enough to forget last season."""
_COLUMNS = 3


@look.styled
def weeks(history: pl.DataFrame, *, week: str, ax: Axes | None = None) -> Axes:
    """Draw each metric week by week, this week marked against the band of the eight before.

    Parameters
    ----------
    history
        ``week`` (e.g. ``2026-W47``), ``metric``, ``value``; optionally ``lo`` and ``hi``.
    week
        The week that is looked at.
    ax
        Axes to draw on; divided into small multiples.

    Returns
    -------
    Axes
        The host axes; its panels are ``ax.child_axes``.

    Raises
    ------
    ValueError
        A column is missing.

    Examples
    --------
    >>> rows = pl.DataFrame({"week": ["2026-W45", "2026-W46", "2026-W47"], "metric": "tokens_per_j",
    ...     "value": [0.30, 0.31, 0.28]})
    >>> weeks(rows, week="2026-W47").child_axes[0].get_title("left")
    'tokens_per_j'
    """
    look.need(history, ("week", "metric", "value"), "history")
    metrics = history["metric"].unique(maintain_order=True).to_list()
    lines = max(-(-len(metrics) // _COLUMNS), 1)
    ax = look.axes_or_new(ax, height_in=1.9 * lines + 0.4)
    if not metrics:
        return look.empty(ax, "no weeks yet")
    ax.set_axis_off()
    columns = min(_COLUMNS, len(metrics))
    width, height = (1.0 - 0.11 * (columns - 1)) / columns, (1.0 - 0.22 * (lines - 1)) / lines
    for i, metric in enumerate(metrics):
        line, column = divmod(i, columns)
        place = (column * (width + 0.11), 1.0 - height - line * (height + 0.22), width, height)
        _one(ax.inset_axes(place), history.filter(pl.col("metric") == metric).sort("week"), metric, week)
    return ax


def _one(ax: Axes, rows: pl.DataFrame, metric: str, week: str) -> None:
    look.dress(ax)
    x = np.arange(rows.height)
    before = rows.filter(pl.col("week") < week).tail(WEEKS_BEFORE)["value"].drop_nulls()
    if before.len():
        low, high = float(before.min()), float(before.max())  # pyrefly: ignore[bad-argument-type]
        ax.axhspan(low, high, color=look.SKY, alpha=0.25, linewidth=0)
    ax.plot(x, rows["value"].to_numpy(), color=look.MUTED, linewidth=1.0, marker=".", markersize=4)
    now = rows.with_row_index("at").filter(pl.col("week") == week).drop_nulls("value")
    if not now.is_empty():
        at, value = now["at"].to_numpy(), now["value"].to_numpy()
        bars = None
        if {"lo", "hi"} <= set(now.columns) and now["lo"].is_not_null().all():
            bars = np.stack([value - now["lo"].to_numpy(), now["hi"].to_numpy() - value])
        ax.errorbar(at, value, yerr=bars, fmt="o", color=look.VERMILLION, markersize=6, capsize=3)
    ax.set_title(metric, fontsize=9)
    shown = sorted({0, rows.height - 1})
    ax.set_xticks(shown, [rows["week"][i] for i in shown], fontsize=8)
    ax.margins(x=0.12)
