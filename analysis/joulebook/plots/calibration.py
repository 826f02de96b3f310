"""A reading against its reference: points, line, what is left."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from joulebook.plots import style as look


@look.styled
def calibration(points: pl.DataFrame | None, fit: pl.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw a calibration: points with both error bars, the line with its band, its range, residuals below.

    Parameters
    ----------
    points
        ``reading_w`` and ``reference_w`` [W], optionally each with ``_lo`` and ``_hi`` (``reading_lo``,
        ``reference_hi`` …), the line with its band (``fitted_w``, ``fitted_lo``, ``fitted_hi``) and whether each was
        ``kept``, as in table ``calibration_points``; ``None`` draws the line alone.
    fit
        One row of table ``calibrations``.
    ax
        Axes to draw on; divided into two panels.

    Returns
    -------
    Axes
        The host axes; its panels are ``ax.child_axes``.

    Raises
    ------
    ValueError
        ``fit`` has no row, or a column of ``points`` is missing.

    Examples
    --------
    >>> from joulebook import schema
    >>> row = schema.conform(pl.DataFrame({"scope": ["board"], "reference_scope": ["node"], "gain": [1.1],
    ...     "offset_w": [300.0], "range_lo_w": [100.0], "range_hi_w": [1000.0], "status": ["calibrated"]}),
    ...     "calibrations")
    >>> calibration(None, row).get_title("left")
    'node = 1.100 · board + 300 W'
    """
    ax = look.axes_or_new(ax, height_in=5.2, width_in=7.0)
    if fit.is_empty():
        raise ValueError("fit: no row; it must be one row of the table calibrations")
    row: dict[str, Any] = fit.row(0, named=True)
    if points is not None:
        look.need(points, ("reading_w", "reference_w"), "points")
    if row["gain"] is None and row["offset_w"] is None:
        return look.empty(
            ax, f"{row['scope']} against {row['reference_scope']}: {row['status']} – {row['reason'] or ''}"
        )
    some = points is not None and not points.is_empty()
    panels = look.panels(ax, (3, 1) if some else (1,))
    for panel in panels:
        look.dress(panel, grid="both")
    _line(panels[0], row, points)
    if points is not None and some:
        panels[1].axhline(0.0, color=look.BLUE, linewidth=1.2)
        _points(panels[0], points, np.zeros(points.height))
        _points(panels[1], points, _at(row, points["reading_w"].to_numpy()))
        panels[1].set_ylabel("rest [W]")
    panels[0].set_ylabel(f"{row['reference_scope']} [W]")
    panels[-1].set_xlabel(f"{row['scope']} [W]")
    gain, offset = row["gain"] if row["gain"] is not None else 1.0, row["offset_w"] or 0.0
    sign = "+" if offset >= 0 else "−"
    ax.set_title(f"{row['reference_scope']} = {gain:.3f} · {row['scope']} {sign} {abs(offset):.4g} W", pad=8)
    return ax


def _at(row: dict[str, Any], x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the line at readings [W]."""
    gain = row["gain"] if row["gain"] is not None else 1.0
    return gain * x + (row["offset_w"] or 0.0)


def _line(ax: Axes, row: dict[str, Any], points: pl.DataFrame | None) -> None:
    low, high = row["range_lo_w"], row["range_hi_w"]
    known = [v for v in (low, high) if v is not None]
    known += points["reading_w"].drop_nulls().to_list() if points is not None else []
    left, right = (min(known), max(known)) if known else (0.0, 1.0)
    pad = 0.06 * max(right - left, 1.0)
    x = np.linspace(max(left - pad, 0.0), right + pad, 60)
    if low is not None and high is not None:
        ax.axvspan(low, high, color=look.BLUE, alpha=0.08, linewidth=0)
        ax.text(
            low,
            0.98,
            " holds in this range",
            transform=ax.get_xaxis_transform(),
            va="top",
            fontsize=8,
            color=look.MUTED,
        )
    if points is not None and {"fitted_lo", "fitted_hi"} <= set(points.columns):
        band = points.drop_nulls(["fitted_lo", "fitted_hi"]).sort("reading_w")
        ax.fill_between(
            band["reading_w"], band["fitted_lo"], band["fitted_hi"], color=look.BLUE, alpha=0.22, linewidth=0
        )
    elif row["gain_lo"] is not None and row["gain_hi"] is not None:
        # The intervals of gain and offset are strongly anticorrelated; about the middle of the range the band is that
        # of the gain alone, which is what is drawn.
        middle = (left + right) / 2
        spread = abs(row["gain_hi"] - row["gain_lo"]) / 2 * np.abs(x - middle)
        ax.fill_between(x, _at(row, x) - spread, _at(row, x) + spread, color=look.BLUE, alpha=0.22, linewidth=0)
    ax.plot(x, _at(row, x), color=look.BLUE, linewidth=1.4)
    ax.set_xlim(x[0], x[-1])


def _points(ax: Axes, points: pl.DataFrame, minus: np.ndarray[Any, Any]) -> None:
    x, y = points["reading_w"].to_numpy(), points["reference_w"].to_numpy() - minus
    bars: dict[str, Any] = {}
    for side, name, centre in (("xerr", "reading", x), ("yerr", "reference", y + minus)):
        if {f"{name}_lo", f"{name}_hi"} <= set(points.columns):
            low, high = points[f"{name}_lo"].to_numpy(), points[f"{name}_hi"].to_numpy()
            bars[side] = np.nan_to_num(np.clip(np.stack([centre - low, high - centre]), 0.0, None))
    ax.errorbar(x, y, **bars, fmt="none", color=look.VERMILLION, elinewidth=1.0, capsize=2)
    kept = points["kept"].fill_null(True).to_numpy() if "kept" in points.columns else np.ones(x.size, dtype=bool)
    for some, fill in ((kept, look.VERMILLION), (~kept, "none")):
        if some.any():
            ax.plot(x[some], y[some], "o", color=look.VERMILLION, markerfacecolor=fill, markersize=4)
