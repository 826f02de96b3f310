"""How an instrument sees the truth: when it looks, over what window, and what its clock says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from joulebook.synthetic_truth import Truth

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Clock:
    """A clock that is off and runs fast or slow.

    True time = clock time − offset_s − drift_ppm · 1e-6 · (clock time − anchor), with the anchor in the middle of the
    record.

    Parameters
    ----------
    offset_s
        Clock minus true time in the middle of the record [s].
    drift_ppm
        Rate error [1e-6].
    zone
        Zone of its stamps.
    """

    offset_s: float = 0.0
    drift_ppm: float = 0.0
    zone: str = "UTC"

    def reads(self, after_s: Floats, *, duration_s: float) -> Floats:
        """Return what the clock shows, in seconds after the true start of a record.

        Parameters
        ----------
        after_s
            True times [s after the start].
        duration_s
            Length of the record [s].

        Returns
        -------
        array
            Same shape [s after the start].

        Examples
        --------
        >>> float(Clock(offset_s=-60.0).reads(np.array([100.0]), duration_s=200.0)[0])
        40.0
        """
        anchor_s = duration_s / 2.0
        shown: Floats = anchor_s + (after_s - anchor_s + self.offset_s) / (1.0 - 1e-6 * self.drift_ppm)
        return shown


UTC_CLOCK = Clock()
"""A right clock that shows UTC."""


def ticks_s(truth: Truth, *, period_s: float, jitter_s: float = 0.0, first_s: float = 0.0, seed: int = 0) -> Floats:
    """Return when an instrument looks [s after the start]: every period, each look late by a little.

    Raises
    ------
    ValueError
        The period is not positive.

    Examples
    --------
    >>> from joulebook import synthetic
    >>> ticks_s(synthetic.node(1), period_s=600.0).tolist()
    [0.0, 600.0, 1200.0]
    """
    if period_s <= 0:
        raise ValueError(f"period_s is {period_s}; it must be positive")
    rng = np.random.Generator(np.random.PCG64([seed, 11]))
    at = np.arange(first_s, truth.duration_s, period_s)
    late: Floats = at + np.abs(jitter_s * rng.standard_normal(at.size))
    return late[late < truth.duration_s]


def mean_before(values: pl.Series, at_s: Floats, *, window_s: float, cell_s: float) -> Floats:
    """Return the mean of a truth over the window that ends at each time; the value at that time for window 0.

    Parameters
    ----------
    values
        One value a cell.
    at_s
        Times [s after the start].
    window_s
        Length of the window [s]; cut at the start of the record.
    cell_s
        Length of a cell [s].

    Returns
    -------
    array
        One value a time.

    Examples
    --------
    >>> mean_before(pl.Series([1.0, 3.0]), np.array([2.0]), window_s=2.0, cell_s=1.0).tolist()
    [2.0]
    """
    cells = values.to_numpy()
    if window_s == 0:
        index = np.clip((at_s / cell_s + 1e-6).astype(np.int64), 0, cells.size - 1)
        seen: Floats = cells[index]
        return seen
    edges = np.arange(cells.size + 1) * cell_s
    total = np.concatenate([[0.0], np.cumsum(cells) * cell_s])
    end = np.maximum(at_s, min(cell_s, window_s))
    begin = np.maximum(end - window_s, 0.0)
    mean: Floats = (np.interp(end, edges, total) - np.interp(begin, edges, total)) / (end - begin)
    return mean


def energy_before(values: pl.Series, at_s: Floats, *, cell_s: float) -> Floats:
    """Return the energy from the start of the record to each time [J], from powers a cell [W]."""
    edges = np.arange(len(values) + 1) * cell_s
    total = np.concatenate([[0.0], np.cumsum(values.to_numpy()) * cell_s])
    energy: Floats = np.interp(at_s, edges, total)
    return energy


def stamps(truth: Truth, at_s: Floats, *, clock: Clock) -> pl.Series:
    """Return what a clock shows at true times [s after the start], in the clock's zone.

    Returns
    -------
    pl.Series
        ``Datetime("us", zone)``.
    """
    shown = clock.reads(at_s, duration_s=truth.duration_s)
    micros = np.rint(shown * 1e6).astype(np.int64)
    start = pl.Series([truth.start_utc]).cast(pl.Datetime("us", "UTC"))
    return (start + pl.Series(micros).cast(pl.Duration("us"))).dt.convert_time_zone(clock.zone)


def shifted(truth: Truth, times_utc: pl.Series, *, clock: Clock) -> pl.Series:
    """Return what a clock shows at true times given as stamps, in the clock's zone."""
    after = (times_utc - truth.start_utc).dt.total_microseconds().to_numpy() * 1e-6
    return stamps(truth, after, clock=clock)


def decimal(column: str, decimals: int) -> pl.Expr:
    """Return an expression that writes a column with a fixed number of decimals, never in exponents.

    Examples
    --------
    >>> pl.DataFrame({"x": [62.4, -0.05, 7.999]}).select(decimal("x", 2))["x"].to_list()
    ['62.40', '-0.05', '8.00']
    """
    scaled = (pl.col(column) * 10**decimals).round().cast(pl.Int64)
    digits = scaled.abs().cast(pl.String).str.zfill(decimals + 1)
    point = "." if decimals else ""
    whole = digits.str.head(-decimals) if decimals else digits
    sign = pl.when(scaled < 0).then(pl.lit("-")).otherwise(pl.lit(""))
    fraction = digits.str.tail(decimals)
    return pl.concat_str(sign, whole, pl.lit(point), fraction).alias(column)


def lines(frame: pl.DataFrame, separator: str, *, end: str = "\n") -> str:
    """Return the rows of a frame of texts as lines, each with its end; nothing for no rows."""
    if frame.is_empty():
        return ""
    joined = frame.select(pl.concat_str(pl.all(), separator=separator).str.join(end))
    return f"{joined.item()}{end}"
