"""Loss against the energy that it took."""

from __future__ import annotations

import polars as pl
from matplotlib.axes import Axes

from joulebook.plots import style as look
from joulebook.plots import thinning


@look.styled
def convergence(curve: pl.DataFrame | look.HasFrame, *, stop_j: float | None = None, ax: Axes | None = None) -> Axes:
    """Draw loss against cumulative energy, and what the last bit of loss cost below.

    Parameters
    ----------
    curve
        ``energy_j`` (cumulative) [J] and ``loss``; optionally ``loss_smooth`` and ``marginal_j_per_loss``.
    stop_j
        Energy at which stopping is worth discussing [J].
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
    marginal = "marginal_j_per_loss" in rows.columns and rows["marginal_j_per_loss"].is_not_null().any()
    ax = look.axes_or_new(ax, height_in=4.6 if marginal else 3.4, width_in=7.5)
    rows = rows.drop_nulls("energy_j").sort("energy_j")
    if rows.is_empty():
        return look.empty(ax, "no step has both a loss and an energy")
    every = max(-(-rows.height // thinning.POINTS), 1)
    rows = rows.gather_every(every)
    scale, unit = look.energy_unit(float(rows["energy_j"].max() or 0.0))  # type: ignore[arg-type]
    made = look.panels(ax, (2, 1) if marginal else (1,))
    for panel in made:
        look.dress(panel, grid="both")
        if stop_j is not None:
            panel.axvline(stop_j / scale, color=look.ORANGE, linewidth=1.4)
    x = rows["energy_j"].to_numpy() / scale
    smooth = "loss_smooth" in rows.columns
    made[0].plot(x, rows["loss"], color=look.BLUE, linewidth=0.8, alpha=0.4 if smooth else 1.0)
    if smooth:
        made[0].plot(x, rows["loss_smooth"], color=look.BLUE, linewidth=1.6)
    made[0].set_ylabel("training loss")
    if stop_j is not None:
        made[0].text(
            stop_j / scale,
            0.95,
            " worth discussing to stop",
            transform=made[0].get_xaxis_transform(),
            va="top",
            fontsize=8,
            color=look.INK,
        )
    if marginal:
        cost, cost_unit = look.energy_unit(float(rows["marginal_j_per_loss"].drop_nulls().max() or 0.0))  # type: ignore[arg-type]
        made[1].plot(x, rows["marginal_j_per_loss"].to_numpy() / cost, color=look.VERMILLION, linewidth=1.4)
        made[1].set_ylabel(f"marginal cost\n[{cost_unit} per\nunit of loss]", fontsize=9)
        made[1].set_ylim(bottom=0.0)
    made[-1].set_xlabel(f"cumulative energy [{unit}]")
    return ax
