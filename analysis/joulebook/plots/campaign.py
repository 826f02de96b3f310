"""What each change of a campaign did, as a waterfall per boundary."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from joulebook.plots import style as look

_MINUS = str.maketrans("-", "−")
_LINES = 4
"""Lines of a reason that fit a bar."""


@look.styled
def campaign(changes: pl.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw each change from its value before to its value after, with the interval of the effect.

    Refused changes are hollow and say why.

    Parameters
    ----------
    changes
        Rows of table ``changes`` of one campaign; several scopes stand side by side.
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
    >>> rows = schema.conform(pl.DataFrame({"campaign": ["november"], "position": [1], "change": ["placement"],
    ...     "scope": ["node"], "metric": ["energy_per_token_j"], "before": [2.0], "after": [1.8],
    ...     "effect_ratio": [-0.1], "effect_lo": [-0.12], "effect_hi": [-0.08], "verdict": ["saves"]}), "changes")
    >>> campaign(rows).get_title("left")
    'november'
    """
    look.need(changes, ("campaign", "position", "change", "scope", "before", "after", "effect_ratio"), "changes")
    steps = changes["position"].n_unique()
    ax = look.axes_or_new(ax, height_in=0.62 * max(steps, 2) + 1.3)
    if changes.is_empty():
        return look.empty(ax, "no changes")
    if changes["campaign"].n_unique() > 1:
        raise ValueError(f"changes: rows of {', '.join(sorted(changes['campaign'].unique()))}; choose one")
    parts = changes.sort("position").partition_by("scope", maintain_order=True)
    ax.set_axis_off()
    width = (1.0 - 0.05 * (len(parts) - 1)) / len(parts)
    for i, rows in enumerate(parts):
        panel = ax.inset_axes((i * (width + 0.05), 0.0, width, 1.0))
        _waterfall(panel, rows, names=i == 0, reason_length=56 // len(parts))
    ax.set_title(changes["campaign"][0], pad=26)
    return ax


def _waterfall(ax: Axes, rows: pl.DataFrame, *, names: bool, reason_length: int) -> None:
    look.dress(ax, grid="x")
    rows, label = _readable(rows)
    known = [v for v in (*rows["before"].to_list(), *rows["after"].to_list()) if v is not None]
    if not known:
        ax.set_xticks([])
    right = max(known, default=1.0) or 1.0
    left = min(known, default=0.0)
    room = max((right - left) * 0.08, right * 0.01)
    for y, row in enumerate(rows.iter_rows(named=True)):
        _bar(ax, y, row, (left, right, reason_length), room)
    ax.set_ylim(rows.height - 0.4, -0.6)
    ax.set_xlim(left - 4 * room, right + 9 * room)
    ax.set_yticks(range(rows.height), [f"{r['position']}  {r['change']}" for r in rows.iter_rows(named=True)])
    ax.tick_params(labelleft=names, length=0)
    ax.set_title(rows["scope"][0], fontsize=10)
    ax.set_xlabel(label)


def _readable(rows: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """Return the rows in the unit of the axis, and its label."""
    name = rows["metric"][0] or ""
    if name != "energy_per_token_j":
        return rows, name.replace("_", " ")
    return rows.with_columns(pl.col("before", "after") / look.WH_PER_MILLION), "energy per million tokens [Wh]"


def _bar(ax: Axes, y: int, row: dict[str, Any], place: tuple[float, float, int], room: float) -> None:
    """Draw one change; ``place`` is the range of hollow bars and how long a reason may be."""
    verdict = row["verdict"] or "refused"
    before, after = row["before"], row["after"]
    hollow = verdict == "refused" or before is None or after is None
    colour = look.VERDICT_COLOURS.get(verdict, look.GREY)
    if before is None or after is None:
        before, after = place[:2]
    ax.barh(
        y, after - before, left=before, height=0.8 if hollow else 0.5, facecolor="none" if hollow else colour,
        edgecolor=look.MUTED if hollow else colour, linestyle="--" if hollow else "-", linewidth=1.2,
    )  # fmt: skip
    end = max(before, after)
    if hollow:
        text = f"refused: {row['reason'] or 'no number'}"
        lines = textwrap.wrap(text, place[2], max_lines=_LINES, placeholder=" …")
        ax.text(min(before, after) + room * 0.4, y, "\n".join(lines), va="center", fontsize=7.5, color=look.INK)
        return
    low, high = row["effect_lo"], row["effect_hi"]
    if low is not None and high is not None:
        ends = np.array([before * (1 + low), before * (1 + high)])
        ax.plot(ends, [y, y], color=look.INK, linewidth=1.3, marker="|", markersize=7)
        end = max(end, float(ends.max()))
    text = f"{100 * row['effect_ratio']:+.1f} %".translate(_MINUS)
    text += " (not distinguishable)" if verdict == "indistinguishable" else ""
    ax.text(end + room * 0.6, y, text, va="center", fontsize=8.5, color=look.INK)
