"""Parts that add up to a whole, as one bar with the remainder drawn."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from joulebook.plots import style as look

_NAMED_FROM = 0.05
"""Share of the bar from which a part has room for a name at all."""
_CHARACTER = 0.0115
"""Width of a character as a share of the bar, in the widest of the fonts that may be used."""
TOLERANCE = 1e-3
"""Share of the whole below which a rest is rounding."""


@look.styled
def energy_bar(
    parts: pl.DataFrame,
    *,
    total_j: float | None = None,
    total: str = "total",
    remainder: str = "rest",
    ax: Axes | None = None,
) -> Axes:
    """Draw parts of an energy side by side on a bar from zero, the rest of the total hatched.

    Parameters
    ----------
    parts
        ``part`` (name) and ``energy_j`` [J], in the order in which they are drawn; optionally ``colour``.
    total_j
        The whole [J]; what the parts leave of it is drawn hatched, what they exceed it by is marked.
    total, remainder
        Names of the whole and of the rest.
    ax
        Axes to draw on.

    Returns
    -------
    Axes
        The axes.

    Raises
    ------
    ValueError
        A column is missing.

    Examples
    --------
    >>> rows = pl.DataFrame({"part": ["boards", "CPUs"], "energy_j": [2.0e6, 0.5e6]})
    >>> energy_bar(rows, total_j=3.0e6, total="node").get_xlabel()
    'energy [kWh]'
    """
    look.need(parts, ("part", "energy_j"), "parts")
    ax = look.axes_or_new(ax, height_in=1.5)
    rows = parts.drop_nulls("energy_j")
    summed = float(rows["energy_j"].sum())
    whole = max(summed, total_j or 0.0)
    if whole <= 0:
        return look.empty(ax, "no energy known")
    look.dress(ax, grid="x")
    scale, unit = look.energy_unit(whole)
    left, names = 0.0, []
    for i, (name, energy_j) in enumerate(rows.select("part", "energy_j").iter_rows()):
        colour = rows["colour"][i] if "colour" in rows.columns else _colour(name, i)
        ax.barh(0, energy_j / scale, left=left, height=0.62, color=colour, alpha=0.75, linewidth=0)
        names.append((name, left + energy_j / scale / 2, energy_j / whole))
        left += energy_j / scale
    if total_j is not None:
        rest = total_j / scale - left
        if rest > whole / scale * TOLERANCE:
            ax.barh(0, rest, left=left, height=0.62, fc="none", ec=look.MUTED, hatch="////", linewidth=0.8)
            names.append((remainder, left + rest / 2, rest * scale / whole))
        ax.plot([total_j / scale] * 2, [-0.42, 0.42], color=look.INK, linewidth=1.6)
        over = " – the parts exceed it" if rest < -whole / scale * TOLERANCE else ""
        ax.text(
            total_j / scale, -0.47, f"{total}{over}", ha="right", va="bottom", fontsize=9, weight="bold", color=look.INK
        )
    _write(ax, names, whole / scale)
    ax.set_ylim(0.8, -0.75)
    ax.set_xlim(0.0, whole / scale * 1.005)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(f"energy [{unit}]")
    return ax


def _colour(name: str, i: int) -> str:
    return look.PHASE_COLOURS.get(name) or look.SCOPE_COLOURS.get(name) or look.CYCLE[i % len(look.CYCLE)]


def _write(ax: Axes, names: list[tuple[str, float, float]], whole: float) -> None:
    """Write each name (name, middle, share) inside its part where it fits, else below, moved apart, with a line."""
    outside = []
    for name, middle, share in names:
        if share >= max(_NAMED_FROM, _CHARACTER * len(name)):
            ax.text(middle, 0, name, ha="center", va="center", fontsize=9, color=look.INK)
        elif share > 0:
            outside.append((name, middle, _CHARACTER * 0.8 * len(name) * whole))
    for (name, middle, _), at in zip(outside, _spread(outside, whole), strict=True):
        # The line ends above the names, so that it crosses none of them however far its own was moved.
        ax.plot([middle, at], [0.31, 0.45], color=look.MUTED, linewidth=0.7)
        ax.text(at, 0.47, name, ha="center", va="top", fontsize=8, color=look.INK)


def _spread(names: list[tuple[str, float, float]], whole: float) -> list[float]:
    """Return where names (name, middle, width) stand: near their middles, apart, within the bar."""
    if not names:
        return []
    middles, widths = (np.array([n[i] for n in names], dtype=float) for i in (1, 2))
    steps = np.concatenate([[0.0], np.cumsum((widths[1:] + widths[:-1]) / 2 + _CHARACTER * whole)])
    # pushed right from the left, pushed left from the right: the mean keeps the distances and lies between
    free = middles - steps
    free = (np.maximum.accumulate(free) + np.minimum.accumulate(free[::-1])[::-1]) / 2
    free = np.clip(free, widths[0] / 2, max(whole - widths[-1] / 2 - steps[-1], widths[0] / 2))
    return [float(x) for x in free + steps]
