"""Loss against the energy that it took."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from joulebook.plots import style as look
from joulebook.plots import thinning

_WIDE = 20.0
"""Ratio of greatest to least marginal cost from which its axis is logarithmic."""
_FEW = 60
"""Points up to which each is marked."""


@look.styled
def convergence(curve: pl.DataFrame | look.HasFrame, *, stop_j: float | None = None, ax: Axes | None = None) -> Axes:
    """Draw loss against cumulative energy, and what the last bit of loss cost below.

    Parameters
    ----------
    curve
        ``energy_j`` (cumulative) [J] and ``loss``, as in table ``convergence`` of one run; optionally ``loss_smooth``,
        and ``marginal_j`` [J per unit of loss] with ``marginal_lo`` and ``marginal_hi``.
    stop_j
        Energy from which on the marginal cost keeps rising [J].
    ax
        Axes to draw on; divided in two where the marginal cost is known.

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
    >>> rows = pl.DataFrame({"energy_j": [1e6, 2e6, 3e6], "loss": [3.0, 2.5, 2.4]})
    >>> len(convergence(rows).child_axes)
    1
    """
    rows = look.frame_of(curve)
    assert rows is not None
    look.need(rows, ("energy_j", "loss"), "curve")
    marginal = "marginal_j" in rows.columns and rows["marginal_j"].is_not_null().any()
    ax = look.axes_or_new(ax, height_in=4.6 if marginal else 3.4, width_in=7.5)
    rows = rows.drop_nulls("energy_j").sort("energy_j")
    if rows.is_empty():
        return look.empty(ax, "no step has both a loss and an energy")
    every = max(-(-rows.height // thinning.POINTS), 1)
    rows = rows.gather_every(every)
    scale, unit = look.energy_unit(float(rows["energy_j"].max() or 0.0))  # pyrefly: ignore[bad-argument-type]
    made = look.panels(ax, (2, 1) if marginal else (1,))
    for panel in made:
        look.dress(panel, grid="both")
        if stop_j is not None:
            panel.axvline(stop_j / scale, color=look.ORANGE, linewidth=1.4)
    x = rows["energy_j"].to_numpy() / scale
    smooth = "loss_smooth" in rows.columns
    marker = "." if rows.height <= _FEW else ""
    made[0].plot(x, rows["loss"], color=look.BLUE, linewidth=0.9, marker=marker, alpha=0.4 if smooth else 1.0)
    if smooth:
        made[0].plot(x, rows["loss_smooth"], color=look.BLUE, linewidth=1.6)
    made[0].set_ylabel("training loss")
    if stop_j is not None:
        made[0].annotate(
            "from here on a unit of loss never got cheaper", (stop_j / scale, 0.95), (5, 0), fontsize=8, color=look.INK, va="top",
            xycoords=made[0].get_xaxis_transform(), textcoords="offset points",
        )  # fmt: skip
    if marginal:
        _marginal(made[1], rows, scale)
    made[-1].set_xlabel(f"cumulative energy [{unit}]")
    return ax


def _marginal(ax: Axes, rows: pl.DataFrame, scale: float) -> None:
    """Draw the marginal cost with its interval; a triangle where the loss may not have fallen at all."""
    some = rows.drop_nulls("marginal_j")
    cost, unit = look.energy_unit(float(some["marginal_j"].max() or 0.0))  # pyrefly: ignore[bad-argument-type]
    x, y = some["energy_j"].to_numpy() / scale, some["marginal_j"].to_numpy() / cost
    ax.plot(x, y, color=look.VERMILLION, linewidth=1.2, marker="." if some.height <= _FEW else "")
    if {"marginal_lo", "marginal_hi"} <= set(some.columns) and some.height <= _FEW:
        low, high = (some[c].to_numpy() / cost for c in ("marginal_lo", "marginal_hi"))
        opened = ~np.isfinite(high)
        ends = np.nan_to_num(np.clip(np.stack([y - low, np.where(opened, 0.0, high - y)]), 0.0, None))
        ax.errorbar(x, y, yerr=ends, fmt="none", ecolor=look.VERMILLION, elinewidth=0.9, capsize=2)
        ax.plot(x[opened], y[opened], marker="^", linestyle="", color=look.VERMILLION, markersize=7)
    ax.set_ylabel(f"marginal cost\n[{unit} per\nunit of loss]", fontsize=9)
    if (y > 0).all() and y.max() / y.min() > _WIDE:
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        ax.yaxis.set_minor_formatter(FuncFormatter(lambda _v, _: ""))
    else:
        ax.set_ylim(bottom=0.0)
