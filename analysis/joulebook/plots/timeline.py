"""Power over time, with what happened under it."""

from __future__ import annotations

from typing import Any

import matplotlib.dates as mdates
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.legend import Legend
from matplotlib.patches import Patch

from joulebook.plots import style as look
from joulebook.plots import thinning

STRIP_BINS = 400
"""Bins of the phase strip: narrower ones are thinner than a pixel."""
_FEW, _PER_BIN = 100, 20
"""More phases than the first are shown as shares of bins that hold about as many as the second, so that steps a little
longer than a bin do not flicker."""
_NAMED_FROM = 0.07
"""Share of the axis from which a block has room for its name."""


@look.styled
def timeline(
    power: pl.DataFrame,
    *,
    segments: pl.DataFrame | look.HasFrame | None = None,
    phases: pl.DataFrame | None = None,
    idle_w: float | None = None,
    gaps: pl.DataFrame | None = None,
    events: pl.DataFrame | None = None,
    timezone: str = "UTC",
    ax: Axes | None = None,
) -> Axes:
    """Draw power over time: a line per device or scope, thinned so that every extreme stays.

    Parameters
    ----------
    power
        Readings with ``device``, ``ts_utc``, ``power_w`` [W] and optionally ``scope``; or bands with ``ts_utc``,
        ``lo_w``, ``hi_w``, ``mean_w`` [W] and optionally ``scope``.
    segments
        Intervals with ``kind``, ``start_utc``, ``end_utc`` (table ``segments``), or a result that carries them.
    phases
        Intervals with ``phase``, ``start_utc``, ``end_utc`` (table ``phases``).
    idle_w
        Level of the idle machine [W].
    gaps
        Intervals without readings: ``start_utc``, ``end_utc``. Hatched.
    events
        Instants: ``ts_utc``, ``label``.
    timezone
        Zone of the time axis; it is named there.
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
    >>> from datetime import datetime, timedelta, timezone
    >>> t = [datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=i) for i in range(60)]
    >>> ax = timeline(pl.DataFrame({"device": "gpu:0", "ts_utc": t, "power_w": [300.0] * 60}), idle_w=60.0)
    >>> ax.get_ylabel()
    'power [W]'
    """
    ax = look.axes_or_new(ax)
    bands = "mean_w" in power.columns
    look.need(power, ("ts_utc", "lo_w", "hi_w", "mean_w") if bands else ("device", "ts_utc", "power_w"), "power")
    if power.is_empty():
        return look.empty(ax, "no readings to draw")
    look.dress(ax)
    top_w = max(float(power["hi_w" if bands else "power_w"].max() or 0.0), idle_w or 0.0)  # pyrefly: ignore[bad-argument-type]
    scale, unit = look.power_unit(top_w)
    lines = _bands(ax, power, scale, timezone) if bands else _lines(ax, power, scale, timezone)
    start, end = power["ts_utc"].min(), power["ts_utc"].max()
    ax.set_ylim(bottom=0.0, top=max(top_w / scale * 1.06, 1e-9))
    left, right = _days(pl.Series([start, end], dtype=power.schema["ts_utc"]), timezone)
    ax.set_xlim(left, max(right, left + 1e-5))
    if gaps is not None:
        _hatch(ax, gaps, timezone)
    if events is not None:
        _marks(ax, events, timezone)
    if idle_w is not None:
        ax.axhline(idle_w / scale, color=look.MUTED, linestyle=(0, (5, 3)), linewidth=1.0)
        lines.append((ax.get_xlim()[1], idle_w / scale, f"idle {idle_w / scale:.3g} {unit}", look.MUTED))
    _above(ax, look.frame_of(segments), phases, timezone)
    look.label_ends(ax, lines)
    ax.set_ylabel(f"power [{unit}]")
    _time_axis(ax, timezone)
    return ax


def _above(ax: Axes, segments: pl.DataFrame | None, phases: pl.DataFrame | None, timezone: str) -> None:
    """Draw the strips over the axes: segments, and phases above them."""
    level = 1.03
    if segments is not None and not segments.is_empty():
        _blocks(ax, segments, timezone, level)
        level += 0.10
    if phases is not None and not phases.is_empty():
        _strip(ax, phases, timezone, level)


def _time_axis(ax: Axes, timezone: str) -> None:
    ax.set_xlabel(f"time of day ({timezone})")
    locator = mdates.AutoDateLocator(minticks=4, maxticks=9)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator))


def _days(stamps: pl.Series, timezone: str) -> np.ndarray[Any, Any]:
    """Return local times as matplotlib counts them: days since 1970."""
    local = stamps.dt.convert_time_zone(timezone).dt.replace_time_zone(None)
    return local.dt.epoch("us").to_numpy() / 86_400e6


def _named(scope: str, device: str) -> str:
    return " ".join(part for part in (scope, device) if part) or "power"


def _lines(ax: Axes, power: pl.DataFrame, scale: float, timezone: str) -> list[tuple[float, float, str, str]]:
    thin = thinning.outline(power)
    ends = []
    groups = thin.partition_by("scope", "device", maintain_order=True)
    for i, rows in enumerate(groups):
        scope, device = rows["scope"][0], rows["device"][0]
        alone = thin.filter(pl.col("scope") == scope)["device"].n_unique() == 1
        colour = look.SCOPE_COLOURS.get(scope if alone else "", look.CYCLE[i % len(look.CYCLE)])
        t, y = _days(rows["ts_utc"], timezone), rows["power_w"].to_numpy() / scale
        ax.plot(t, y, color=colour, linewidth=0.9, rasterized=False)
        ends.append((float(t[-1]), float(y[-1]), _named(scope, device), colour))
    return ends if len(ends) <= len(look.CYCLE) else [(*ends[0][:2], f"{len(ends)} devices", ends[0][3])]


def _bands(ax: Axes, power: pl.DataFrame, scale: float, timezone: str) -> list[tuple[float, float, str, str]]:
    rows = power if "scope" in power.columns else power.with_columns(pl.lit("").alias("scope"))
    ends = []
    for i, known in enumerate(rows.sort("ts_utc").partition_by("scope", maintain_order=True)):
        of = _broken(known)
        colour = look.SCOPE_COLOURS.get(known["scope"][0], look.CYCLE[i % len(look.CYCLE)])
        t = _days(of["ts_utc"], timezone)
        low, high, mean = (of[c].to_numpy() / scale for c in ("lo_w", "hi_w", "mean_w"))
        ax.fill_between(t, low, high, color=colour, alpha=0.28, linewidth=0)
        ax.plot(t, mean, color=colour, linewidth=1.0)
        finite = mean[np.isfinite(mean)]
        if finite.size:
            ends.append((float(t[-1]), float(finite[-1]), _named(known["scope"][0], ""), colour))
    return ends


def _broken(band: pl.DataFrame) -> pl.DataFrame:
    """Return a band with a row of nulls in each gap, so that no line crosses it."""
    step = pl.col("ts_utc").diff()
    limit = pl.max_horizontal(step.median() * thinning.BREAK_PERIODS, pl.duration(seconds=thinning.BREAK_S))
    middle = band.select(pl.col("ts_utc") - step / 2, step.alias("step"), limit.alias("limit"))
    breaks = middle.filter(pl.col("step") > pl.col("limit")).select(pl.col("ts_utc").cast(band.schema["ts_utc"]))
    return pl.concat([band, breaks], how="diagonal").sort("ts_utc")


def _hatch(ax: Axes, gaps: pl.DataFrame, timezone: str) -> None:
    look.need(gaps, ("start_utc", "end_utc"), "gaps")
    for start, end in zip(_days(gaps["start_utc"], timezone), _days(gaps["end_utc"], timezone), strict=True):
        ax.axvspan(start, end, facecolor="none", edgecolor=look.MUTED, hatch="////", linewidth=0.0, zorder=0.5)


def _marks(ax: Axes, events: pl.DataFrame, timezone: str) -> None:
    look.need(events, ("ts_utc", "label"), "events")
    at = _days(events["ts_utc"], timezone)
    ax.plot(at, np.full(len(at), 0.985), "v", color=look.INK, markersize=4, transform=ax.get_xaxis_transform())
    for x, label in zip(at, events["label"], strict=True):
        if len(at) <= 12:  # more names than that overlap
            ax.text(x, 0.95, f" {label}", transform=ax.get_xaxis_transform(), fontsize=8, color=look.INK, va="top")


def _blocks(ax: Axes, segments: pl.DataFrame, timezone: str, level: float) -> None:
    look.need(segments, ("kind", "start_utc", "end_utc"), "segments")
    whole: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "clip_on": False}
    left, right = ax.get_xlim()
    rows = segments.drop_nulls(["start_utc", "end_utc"]).sort("start_utc")
    named, unnamed = set[str](), dict[str, str]()
    ends = (np.clip(_days(rows[c], timezone), left, right) for c in ("start_utc", "end_utc"))
    for kind, a, b in zip(rows["kind"], *ends, strict=True):
        if b <= a:
            continue
        colour = look.SEGMENT_COLOURS.get(kind, look.GREY)
        ax.fill_between([a, b], level, level + 0.07, color=colour, alpha=0.45, linewidth=0, **whole)
        ax.axvspan(a, b, color=colour, alpha=0.07, linewidth=0, zorder=0.1)
        unnamed[kind] = colour
        if (b - a) / (right - left) >= _NAMED_FROM:
            ax.text((a + b) / 2, level + 0.033, kind, ha="center", va="center", fontsize=8, color=look.INK, **whole)
            named.add(kind)
    # what is too narrow for its name is named beside the strip
    beside = [Patch(color=c, alpha=0.45, label=kind, linewidth=0) for kind, c in unnamed.items() if kind not in named]
    if beside:
        # an artist of its own: the legend of the axes is that of the phases
        ax.add_artist(Legend(
            ax, beside, [str(p.get_label()) for p in beside], loc="lower left", bbox_to_anchor=(1.01, level - 0.01), frameon=False,
            fontsize=8, handlelength=1.0, handleheight=1.0, labelspacing=0.2, borderpad=0.0, borderaxespad=0.0, labelcolor=look.INK,
        ))  # fmt: skip


def _strip(ax: Axes, phases: pl.DataFrame, timezone: str, level: float) -> None:
    look.need(phases, ("phase", "start_utc", "end_utc"), "phases")
    left, right = ax.get_xlim()
    rows = phases.drop_nulls(["start_utc", "end_utc"])
    rows = rows.select(
        "phase", *(pl.Series(f"{c}_s", _days(rows[f"{c}_utc"], timezone) * 86_400.0) for c in ("start", "end"))
    ).filter((pl.col("end_s") > left * 86_400.0) & (pl.col("start_s") < right * 86_400.0))
    if rows.is_empty():
        return
    bins = STRIP_BINS if rows.height <= _FEW else int(np.clip(rows.height // _PER_BIN, 60, STRIP_BINS))
    edges = np.linspace(left, right, bins + 1)
    share = thinning.shares(rows, name="phase", edges_s=pl.Series(edges * 86_400.0))
    middle = np.repeat(edges, 2)[1:-1]
    base = np.zeros(2 * bins)
    order = sorted(share.columns, key=lambda p: list(look.PHASE_COLOURS).index(p) if p in look.PHASE_COLOURS else 99)
    spare = iter(look.CYCLE * 9)
    patches = []
    for phase in order:
        colour = look.PHASE_COLOURS.get(phase) or next(spare)
        top = np.minimum(base + np.repeat(share[phase].to_numpy(), 2), 1.0)
        ax.fill_between(
            middle, level + 0.09 * base, level + 0.09 * top, color=colour, linewidth=0,
            transform=ax.get_xaxis_transform(), clip_on=False,
        )  # fmt: skip
        patches.append(Patch(color=colour, label=phase, linewidth=0))
        base = top
    ax.legend(
        handles=patches, loc="lower left", bbox_to_anchor=(0.0, level + 0.10), ncols=min(len(patches), 7),
        frameon=False,
        fontsize=8, handlelength=1.0, handleheight=1.0, columnspacing=1.2, borderpad=0.0, borderaxespad=0.0,
        title="share of time per phase", title_fontsize=8, alignment="left", labelcolor=look.INK,
    )  # fmt: skip
