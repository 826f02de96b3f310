"""How much of the variance of power goes with what."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from joulebook.plots import style as look

NAMES = {
    "utilization_ratio": "utilisation",
    "memory_utilization_ratio": "memory traffic",
    "temperature_c": "temperature",
    "memory_temperature_c": "memory temperature",
    "sm_clock_hz": "compute clock",
    "memory_clock_hz": "memory clock",
    "power_limit_w": "power limit",
    "unexplained": "not explained",
}
"""Drivers in words."""
_COLUMNS = 3


@look.styled
def drivers(shares: pl.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the share of the variance of each driver with its interval, a panel per device, what is left last.

    Parameters
    ----------
    shares
        Rows of table ``drivers``; devices without a share are left out.
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
    >>> rows = pl.DataFrame({"run_id": "r1", "device": "gpu:0", "driver": ["utilization_ratio", "unexplained"],
    ...     "share_ratio": [0.8, 0.2], "share_lo": [0.7, 0.1], "share_hi": [0.9, 0.3]})
    >>> drivers(rows).child_axes[0].get_title("left")
    'r1, gpu:0'
    """
    look.need(shares, ("run_id", "device", "driver", "share_ratio"), "shares")
    rows = shares.drop_nulls("share_ratio")
    parts = rows.partition_by("run_id", "device", maintain_order=True)
    lines = max(-(-len(parts) // _COLUMNS), 1)
    ax = look.axes_or_new(ax, height_in=1.9 * lines + 0.4)
    if not parts:
        return look.empty(ax, "no share of the variance is known")
    ax.set_axis_off()
    columns = min(_COLUMNS, len(parts))
    width, height = (1.0 - 0.2 * (columns - 1)) / columns, (1.0 - 0.3 * (lines - 1)) / lines
    for i, part in enumerate(parts):
        line, column = divmod(i, columns)
        _bars(ax.inset_axes((column * (width + 0.2), 1.0 - height - line * (height + 0.3), width, height)), part)
    return ax


def _bars(ax: Axes, rows: pl.DataFrame) -> None:
    look.dress(ax, grid="x")
    order = rows.sort(pl.col("driver") == "unexplained", -pl.col("share_ratio"))
    y, share = np.arange(order.height), 100.0 * order["share_ratio"].to_numpy()
    colours = [look.GREY if d == "unexplained" else look.BLUE for d in order["driver"]]
    ax.barh(y, share, height=0.6, color=colours, linewidth=0)
    if {"share_lo", "share_hi"} <= set(order.columns):
        for at, low, high in zip(y, order["share_lo"], order["share_hi"], strict=True):
            if low is not None and high is not None:
                ax.plot((100.0 * low, 100.0 * high), (at, at), color=look.INK, linewidth=1.1, marker="|", markersize=5)
    ax.set_yticks(y, [NAMES.get(d, d.replace("_", " ")) for d in order["driver"]], fontsize=8)
    ax.set_ylim(order.height - 0.4, -0.6)
    ax.set_xlim(0.0, 100.0)
    ax.set_xlabel("share of the variance of power [%]", fontsize=8)
    ax.set_title(f"{order['run_id'][0]}, {order['device'][0]}", fontsize=9)
