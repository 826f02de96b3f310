"""The curves of a sweep on one axis, and where the best setting lies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from joulebook.plots import style as look

_WIDE = 50.0
"""Ratio of greatest to least from which a curve needs a log axis."""
CURVES = (
    ("step_time_s", "step time [s]", look.GREEN),
    ("energy_per_token_j", "energy per\n10⁶ tokens\n[Wh]", look.BLUE),
    ("tokens_to_target", "tokens to\ntarget", look.PURPLE),
    ("energy_to_target_j", "energy to target", look.VERMILLION),
)


@look.styled
def sweet_spot(
    sweep: pl.DataFrame,
    spots: pl.DataFrame | None = None,
    *,
    objective: str = "energy_to_target_j",
    ax: Axes | None = None,
) -> Axes:
    """Draw the curves of one sweep, the product below, and the interval of the optimum shaded.

    Parameters
    ----------
    sweep
        Rows of table ``sweeps`` of one sweep.
    spots
        Rows of table ``sweet_spots`` of that sweep.
    objective
        Which optimum is shaded.
    ax
        Axes to draw on; divided into a panel per known curve.

    Returns
    -------
    Axes
        The host axes; its panels are ``ax.child_axes``.

    Raises
    ------
    ValueError
        A column is missing, or the rows are of several sweeps.

    Examples
    --------
    >>> from joulebook import schema
    >>> rows = schema.conform(pl.DataFrame({"sweep": ["batch"] * 3, "knob": ["batch_size"] * 3,
    ...     "x": [16.0, 32.0, 64.0], "energy_per_token_j": [3.0, 2.0, 2.5]}), "sweeps")
    >>> sweet_spot(rows).get_title("left")
    'batch'
    """
    look.need(sweep, ("sweep", "knob", "x"), "sweep")
    if sweep["sweep"].n_unique() > 1:
        raise ValueError(f"sweep: rows of {', '.join(sorted(sweep['sweep'].unique()))}; choose one")
    rows = sweep.drop_nulls("x").sort("x")
    known = [c for c in CURVES if c[0] in rows.columns and rows[c[0]].is_not_null().any()]
    ax = look.axes_or_new(ax, height_in=1.3 * max(len(known), 2) + 0.8, width_in=7.5)
    if not known:
        return look.empty(ax, "no setting of this sweep has a number")
    made = look.panels(ax, [1.6 if c[0] == objective else 1.0 for c in known], gap=0.05)
    for panel, (column, label, colour) in zip(made, known, strict=True):
        _curve(panel, rows, column, label, colour)
    spot = None if spots is None else spots.filter(pl.col("objective") == objective)
    if spot is not None and not spot.is_empty():
        _optimum(made, rows, spot.row(0, named=True))
    x = rows["x"].to_numpy()
    if (x > 0).all():
        made[-1].set_xscale("log")
    made[-1].xaxis.set_major_locator(FixedLocator([float(v) for v in np.unique(x)]))
    made[-1].xaxis.set_minor_locator(NullLocator())
    made[-1].xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    made[-1].set_xlabel(_axis_name(rows["knob"][0]))
    ax.set_title(rows["sweep"][0], pad=8)
    return ax


def _axis_name(knob: str) -> str:
    units = {"batch_size": "batch size [samples]", "power_cap_w": "power cap [W]", "power_limit_w": "power limit [W]"}
    return units.get(knob, knob.replace("_", " "))


def _curve(ax: Axes, rows: pl.DataFrame, column: str, label: str, colour: str) -> None:
    look.dress(ax, grid="both")
    some = rows.drop_nulls(column)
    y, scale = some[column].to_numpy(), 1.0
    if column == "energy_to_target_j":
        scale, unit = look.energy_unit(float(np.max(y)))
        label = f"{label} [{unit}]"
    if column == "tokens_to_target" and np.max(y) >= 1e6:
        scale, label = (1e9, f"{label} [10⁹]") if np.max(y) >= 1e9 else (1e6, f"{label} [10⁶]")
    if column == "energy_per_token_j":
        scale = look.WH_PER_MILLION
    bars: dict[str, Any] = {}
    if {f"{column}_lo", f"{column}_hi"} <= set(some.columns):
        low, high = some[f"{column}_lo"].to_numpy(), some[f"{column}_hi"].to_numpy()
        bars["yerr"] = np.nan_to_num(np.clip(np.stack([y - low, high - y]), 0.0, None)) / scale
    ax.errorbar(some["x"], y / scale, **bars, fmt="o-", color=colour, markersize=4, linewidth=1.3, capsize=2)
    ax.set_ylabel(label, fontsize=9)
    ax.yaxis.set_label_coords(-0.075, 0.5)
    if (y > 0).all() and y.max() / y.min() > _WIDE:
        ax.set_yscale("log")
        ax.yaxis.set_minor_locator(NullLocator())


def _optimum(made: list[Axes], rows: pl.DataFrame, spot: dict[str, Any]) -> None:
    """Shade the interval of the optimum; name a flat region; draw an arrow where it lies at or beyond an edge."""
    panel, x, status = made[-1], spot["x"], spot["status"]
    if x is None:
        panel.text(
            0.5,
            0.93,
            f"{status}: {spot['reason'] or ''}",
            transform=panel.transAxes,
            ha="center",
            va="top",
            fontsize=8,
            color=look.INK,
        )
        return
    low, high = spot["x_lo"], spot["x_hi"]
    for each in made:
        if low is not None and high is not None and math.isfinite(low) and math.isfinite(high):
            each.axvspan(low, high, color=look.ORANGE, alpha=0.20, linewidth=0, zorder=0.2)
        each.axvline(x, color=look.ORANGE, linewidth=1.4, linestyle="-" if status == "found" else (0, (4, 3)))
    words = {"found": f"best near {x:.3g}", "flat": "flat: no setting here is better", "edge": "at the edge"}
    panel.annotate(
        words.get(status, status), (x, 0.95), (5, 0), fontsize=9, color=look.INK, va="top",
        xycoords=panel.get_xaxis_transform(), textcoords="offset points",
    )  # fmt: skip
    if status == "edge":
        right = abs(x - float(rows["x"].max() or x)) < abs(x - float(rows["x"].min() or x))  # pyrefly: ignore[bad-argument-type]
        panel.annotate(
            "", (1.0 if right else 0.0, 0.55), (0.90 if right else 0.10, 0.55), xycoords="axes fraction",
            textcoords="axes fraction", arrowprops={"arrowstyle": "->", "color": look.INK, "linewidth": 1.5},
        )  # fmt: skip
