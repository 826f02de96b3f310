"""The slower log beside what the faster one says it should be, before and after alignment."""

from __future__ import annotations

import numpy as np
import polars as pl

from joulebook import align_curve
from joulebook.align_model import Fit
from joulebook.align_signal import COUNTER, Floats, Signal

NONE = pl.DataFrame(
    schema={
        "ts_utc": pl.Datetime("us", "UTC"),
        "measured_w": pl.Float64,
        "before_w": pl.Float64,
        "after_w": pl.Float64,
        "residual_w": pl.Float64,
    }
)


def beside(fast: Signal, slow: Signal, fit: Fit) -> pl.DataFrame:
    """Return the slower log beside what the faster one says it should be, before and after alignment.

    Parameters
    ----------
    fast, slow
        The logs.
    fit
        The map between their clocks.

    Returns
    -------
    pl.DataFrame
        ``ts_utc`` on the faster log's clock, ``measured_w``, ``before_w``, ``after_w``, ``residual_w`` [W].
    """
    curve = align_curve.curve(fast, fit.sensor)
    x = slow.time_s - fit.anchor_s
    u = slow.time_s + fit.shift_s + fit.drift * x
    measured, stamps = slow.value, u
    before = align_curve.predict(curve, slow, fit.sensor, slow.time_s)
    after = align_curve.predict(curve, slow, fit.sensor, curve.bent(u, fit.bend_s)[0])
    if slow.kind == COUNTER:
        step = np.diff(slow.time_s)
        measured, before, after = (np.diff(v) / step for v in (measured, before, after))
        stamps = u[1:]
    known = np.isfinite(after)
    level = float(np.mean(measured[known]) - fit.gain * np.mean(after[known])) if known.any() else 0.0
    before, after = fit.gain * before + level, fit.gain * after + level
    return pl.DataFrame(
        {
            "ts_utc": pl.Series(np.rint(stamps * 1e6).astype(np.int64) + slow.epoch_us).cast(NONE.schema["ts_utc"]),
            "measured_w": _nulls(measured),
            "before_w": _nulls(before),
            "after_w": _nulls(after),
            "residual_w": _nulls(measured - after),
        }
    )


def _nulls(a: Floats) -> pl.Series:
    """Return a series with null for ``nan``."""
    return pl.Series(a).fill_nan(None)
