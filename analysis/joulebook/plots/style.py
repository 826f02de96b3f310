"""How every picture looks: palette, fixed settings, panels, units.

References
----------
Okabe and Ito, Color Universal Design (2008), the palette; Wong, Nature Methods 8, 441 (2011), doi:10.1038/nmeth.1618.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import wraps
from itertools import pairwise
from typing import Any, Literal, ParamSpec, Protocol, TypeVar

import matplotlib as mpl
import matplotlib.pyplot as plt
import polars as pl
from cycler import cycler
from matplotlib.axes import Axes

INK = "#010101"
"""Text and axes. A page may turn exactly this colour into its own text colour."""
MUTED = "#5c6166"
"""Second-rank text and lines; a page may turn it into its own."""
GRID = "#dcdfe2"
"""Grid lines; a page may turn it into its own."""

BLUE, ORANGE, GREEN, VERMILLION = "#0072b2", "#e69f00", "#009e73", "#d55e00"
SKY, PURPLE, YELLOW, GREY = "#56b4e9", "#cc79a7", "#f0e442", "#8a8f94"
CYCLE = (BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY, YELLOW, GREY)

SCOPE_COLOURS = {
    "board": BLUE,
    "package": GREEN,
    "dram": PURPLE,
    "components": SKY,
    "dc": YELLOW,
    "node": ORANGE,
    "rack": VERMILLION,
    "facility": GREY,
}
PHASE_COLOURS = {
    "startup": YELLOW,
    "warmup": YELLOW,
    "forward": SKY,
    "backward": BLUE,
    "grad_sync": PURPLE,
    "optimizer": GREEN,
    "checkpoint": ORANGE,
    "evaluation": "#b7d7a8",
    "data_wait": VERMILLION,
    "idle": GREY,
}
SEGMENT_COLOURS = {"stable": GREEN, "warmup": YELLOW, "stall": VERMILLION, "idle": GREY, "transient": PURPLE}
VERDICT_COLOURS = {"saves": GREEN, "costs": VERMILLION, "indistinguishable": GREY, "refused": GREY}

KILO_FROM_W = 2000.0
"""Power from which an axis counts in kilowatts [W]: four digits are hard to read."""

WH_PER_MILLION = 3.6e-3
"""Energy per token [J] that is 1 Wh per million tokens: a joule per token has too many zeros to read."""

_RC: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10.0,
    "axes.titlesize": 11.0,
    "axes.titlelocation": "left",
    "axes.prop_cycle": cycler(color=list(CYCLE)),
    "axes.facecolor": "none",
    "figure.facecolor": "white",
    "figure.figsize": (9.0, 3.8),
    "figure.dpi": 96.0,
    "savefig.bbox": "tight",
    "hatch.linewidth": 0.6,
    "hatch.color": MUTED,
    "svg.fonttype": "none",
    "svg.hashsalt": "joulebook",
    "path.simplify": True,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.edgecolor": MUTED,
    "figure.max_open_warning": 0,
}

P = ParamSpec("P")
R = TypeVar("R")


class HasFrame(Protocol):
    """The result of a method: it carries the frame behind it."""

    @property
    def frame(self) -> pl.DataFrame:
        """The rows."""


@contextmanager
def settings() -> Generator[None]:
    """Hold matplotlib to the settings of this project, whatever the user's own are.

    Examples
    --------
    >>> with settings():
    ...     plt.rcParams["svg.fonttype"]
    'none'
    """
    with mpl.rc_context(_RC):
        yield


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Make a drawing function draw in the project's style."""

    @wraps(draw)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        with settings():
            return draw(*args, **kwargs)

    return inner


def axes_or_new(ax: Axes | None, *, height_in: float = 3.8, width_in: float = 9.0) -> Axes:
    """Return the axes given, or those of a new figure."""
    return plt.subplots(figsize=(width_in, height_in))[1] if ax is None else ax


def dress(ax: Axes, *, grid: Literal["x", "y", "both"] | None = "y") -> None:
    """Take away the frame, add a pale grid, keep the ticks legible."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(MUTED)
    ax.set_facecolor("none")
    ax.tick_params(colors=INK, labelsize=9, length=3)
    if grid:
        ax.grid(True, axis=grid, color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)


def panels(ax: Axes, heights: Sequence[float], *, gap: float = 0.09) -> list[Axes]:
    """Divide axes into panels of the given relative heights, top first, on one x axis."""
    ax.set_axis_off()
    usable = 1.0 - gap * (len(heights) - 1)
    top, made = 1.0, []
    for share in (h / sum(heights) * usable for h in heights):
        made.append(ax.inset_axes((0.0, top - share, 1.0, share)))
        top -= share + gap
    for panel in made[1:]:
        panel.sharex(made[0])
    for panel in made[:-1]:
        panel.tick_params(labelbottom=False)
    return made


def frame_of(rows: pl.DataFrame | HasFrame | None) -> pl.DataFrame | None:
    """Return the frame of a result, or the frame itself."""
    return rows if rows is None or isinstance(rows, pl.DataFrame) else rows.frame


def need(frame: pl.DataFrame, columns: Sequence[str], what: str) -> None:
    """Raise where a frame lacks columns.

    Raises
    ------
    ValueError
        A column is missing; the message names it and those that are there.
    """
    missing = [c for c in columns if c not in frame.columns]
    if missing:
        raise ValueError(f"{what}: no column {', '.join(missing)}; it has {', '.join(frame.columns)}")


def power_unit(largest_w: float) -> tuple[float, str]:
    """Return by what to divide watts, and the unit's name.

    Examples
    --------
    >>> power_unit(700.0), power_unit(5600.0)
    ((1.0, 'W'), (1000.0, 'kW'))
    """
    return (1000.0, "kW") if largest_w >= KILO_FROM_W else (1.0, "W")


def energy_unit(largest_j: float) -> tuple[float, str]:
    """Return by what to divide joules, and the unit's name: kWh from a tenth of one on.

    Examples
    --------
    >>> energy_unit(7.2e6), energy_unit(300.0)
    ((3600000.0, 'kWh'), (1.0, 'J'))
    """
    steps = ((3.6e9, "MWh", 3.6e10), (3.6e6, "kWh", 3.6e5), (3.6e3, "Wh", 360.0))
    return next(((size, unit) for size, unit, start in steps if largest_j >= start), (1.0, "J"))


def apart(positions: Sequence[float], least: float) -> list[float]:
    """Return label positions in the same order, moved until neighbours are ``least`` apart.

    Examples
    --------
    >>> apart([0.0, 0.1, 5.0], 1.0)
    [0.0, 1.0, 5.0]
    """
    order = sorted(range(len(positions)), key=lambda i: positions[i])
    moved = list(positions)
    for below, here in pairwise(order):
        moved[here] = max(moved[here], moved[below] + least)
    return moved


def label_ends(ax: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Write each line's name right of its end: (x, y, name, colour), moved apart where they would touch."""
    if not ends:
        return
    low, high = ax.get_ylim()
    height_pt = ax.get_window_extent().height / ax.figure.dpi * 72.0
    least = (high - low) * 12.0 / max(height_pt, 1.0)
    left, edge = ax.get_xlim()
    beside = edge + 0.02 * (edge - left)
    for (_, y, name, colour), at in zip(ends, apart([e[1] for e in ends], least), strict=True):
        ax.annotate(
            name, (edge, y), (beside, at), color=INK, fontsize=9, va="center", annotation_clip=False,
            arrowprops={
                "arrowstyle": "-", "color": colour, "linewidth": 1.4, "shrinkA": 1, "shrinkB": 0, "relpos": (0, 0.5),
            },
        )  # fmt: skip


def empty(ax: Axes, why: str) -> Axes:
    """Say in the axes that there is nothing to draw, and why."""
    ax.set_axis_off()
    ax.text(0.5, 0.5, why, transform=ax.transAxes, ha="center", va="center", color=MUTED)
    return ax
