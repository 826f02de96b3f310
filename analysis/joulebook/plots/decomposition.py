"""What each effect of a campaign is made of."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from joulebook.plots import style as look

PARTS = {
    "duration": ("time taken", look.BLUE),
    "power-level": ("power drawn", look.ORANGE),
    "phase-mix": ("mix of phases", look.PURPLE),
}
"""Parts of an effect as the table names them, in words, with their colours."""


@look.styled
def decomposition(parts: pl.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the parts of each effect as bars from zero with their intervals, a panel per boundary.

    Parameters
    ----------
    parts
        Rows of table ``decompositions`` of one campaign.
    ax
        Axes to draw on; divided into a panel per scope.

    Returns
    -------
    Axes
        The host axes; its panels are ``ax.child_axes``.

    Raises
    ------
    ValueError
        A column is missing, or the rows are of several campaigns.

    Examples
    --------
    >>> from joulebook import schema
    >>> rows = schema.conform(pl.DataFrame({"campaign": ["november"] * 2, "position": [1, 1], "change": ["placement"] * 2,
    ...     "scope": ["node"] * 2, "part": ["duration", "power-level"], "effect_ratio": [-0.11, 0.03],
    ...     "effect_lo": [-0.12, 0.02], "effect_hi": [-0.10, 0.04]}), "decompositions")
    >>> len(decomposition(rows).child_axes)
    1
    """
    look.need(parts, ("campaign", "position", "change", "scope", "part", "effect_ratio"), "parts")
    rows = parts.drop_nulls("effect_ratio").sort("position")
    ax = look.axes_or_new(ax, height_in=0.62 * max(rows["position"].n_unique(), 2) + 1.3)
    if rows.is_empty():
        return look.empty(ax, "no effect could be split")
    if rows["campaign"].n_unique() > 1:
        raise ValueError(f"parts: rows of {', '.join(sorted(rows['campaign'].unique()))}; choose one")
    ax.set_axis_off()
    changes = list(rows.select("position", "change").unique(maintain_order=True).iter_rows())
    scopes = rows["scope"].unique(maintain_order=True).sort().to_list()
    width = (1.0 - 0.05 * (len(scopes) - 1)) / len(scopes)
    panels = [ax.inset_axes((i * (width + 0.05), 0.0, width, 1.0)) for i in range(len(scopes))]
    for i, (panel, scope) in enumerate(zip(panels, scopes, strict=True)):
        _panel(panel, rows.filter(pl.col("scope") == scope), [p for p, _ in changes])
        panel.set_yticks(range(len(changes)), [f"{p}  {c}" for p, c in changes])
        panel.tick_params(labelleft=i == 0, length=0)
        panel.set_title(scope, fontsize=10)
        if i:
            panel.sharex(panels[0])
    panels[0].legend(
        loc="lower left", bbox_to_anchor=(0.0, 1.14), ncols=len(PARTS), frameon=False, fontsize=9, handlelength=1.0,
        borderpad=0.0, borderaxespad=0.0, labelcolor=look.INK,
    )  # fmt: skip
    return ax


def _panel(ax: Axes, rows: pl.DataFrame, positions: list[int]) -> None:
    look.dress(ax, grid="x")
    known = [p for p in PARTS if p in set(rows["part"])]
    height = 0.72 / max(len(known), 1)
    for k, part in enumerate(known):
        some = rows.filter(pl.col("part") == part)
        y = np.array([positions.index(p) for p in some["position"]]) + (k - (len(known) - 1) / 2) * height
        share = 100.0 * some["effect_ratio"].to_numpy()
        name, colour = PARTS[part]
        ax.barh(y, share, height=0.85 * height, color=colour, label=name, linewidth=0)
        if {"effect_lo", "effect_hi"} <= set(some.columns):
            for at, low, high in zip(y, some["effect_lo"], some["effect_hi"], strict=True):
                if low is not None and high is not None:
                    ends = (100.0 * low, 100.0 * high)
                    ax.plot(ends, (at, at), color=look.INK, linewidth=1.1, marker="|", markersize=5)
    ax.axvline(0.0, color=look.MUTED, linewidth=1.0)
    ax.set_ylim(len(positions) - 0.4, -0.6)
    ax.locator_params(axis="x", nbins=6)
    ax.set_xlabel("part of the effect [%]")
