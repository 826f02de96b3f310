"""Efficiency day by day."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from joulebook.plots import style as look

_NAMED = 8
"""Days up to which each is named on the axis; of more, first and last."""


@look.styled
def days(board: pl.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw how MFU and tokens per joule changed since the first day, a line per number and boundary.

    Parameters
    ----------
    board
        Rows of table ``days``.
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
    >>> rows = pl.DataFrame({"day": ["2026-11-01", "2026-11-02"], "scope": "node",
    ...     "mfu_ratio_change_ratio": [0.0, 0.1], "tokens_per_j_change_ratio": [0.0, -0.1]})
    >>> days(rows).get_ylabel().split()
    ['change', 'since', 'the', 'first', 'day', '[%]']
    """
    look.need(board, ("day", "scope", "mfu_ratio_change_ratio", "tokens_per_j_change_ratio"), "board")
    ax = look.axes_or_new(ax, height_in=2.8)
    names = board["day"].unique().sort().to_list()
    if len(names) < 2:
        return look.empty(ax, "one day: nothing to compare")
    look.dress(ax)
    ax.axhline(0.0, color=look.MUTED, linewidth=1.0)
    ends = []
    for i, (scope, rows) in enumerate(
        (r["scope"][0], r) for r in board.sort("day").partition_by("scope", maintain_order=True)
    ):
        lines = [
            ("tokens_per_j_change_ratio", f"tokens per joule, {scope}", look.SCOPE_COLOURS.get(scope, look.GREY), "-")
        ]
        if i == 0:  # MFU is of the accelerators, whatever the boundary
            lines.append(("mfu_ratio_change_ratio", "MFU", look.PURPLE, "--"))
        for column, name, colour, stroke in lines:
            some = rows.drop_nulls(column)
            if some.is_empty():
                continue
            x = np.array([names.index(d) for d in some["day"]])
            y = 100.0 * some[column].to_numpy()
            ax.plot(x, y, stroke, color=colour, marker=".", linewidth=1.4)
            ends.append((float(x[-1]), float(y[-1]), name, colour))
    shown = range(len(names)) if len(names) <= _NAMED else (0, len(names) - 1)
    ax.set_xticks(list(shown), [names[i] for i in shown])
    look.label_ends(ax, ends)
    ax.set_ylabel("change since the\nfirst day [%]")
    ax.set_xlabel("day of the runs' start (UTC)")
    return ax
