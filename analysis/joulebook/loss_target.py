"""Tokens that a run needed to reach a target loss, from the noisy loss of its steps."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import polars as pl

Array = npt.NDArray[np.float64]

WINDOW_SHARE_RATIO = 0.02
"""Share of a run's steps in the smoothing window: short against the fall of the loss, long against its noise."""
LEAST_WINDOW = 5
"""Least steps in the smoothing window."""
SETTLING_WINDOWS = 4
"""Windows after the first crossing within which a return above the target is noise and not a new course."""


def find(steps: pl.DataFrame, target_loss: float) -> pl.DataFrame:
    """Return the tokens after which each run's smoothed loss is at the target or below.

    The loss is averaged over a window of steps that is centred, so that it does not lag; the crossing is found between
    two steps by a straight line. One lucky step does not count: the smoothed loss has to cross, and returns above the
    target shortly after move the crossing later.

    Parameters
    ----------
    steps
        ``run_id``, ``step``, ``tokens`` (in the step), ``loss``; steps without a loss are passed over, their tokens
        count.
    target_loss
        Loss to reach, in the unit of ``loss``.

    Returns
    -------
    pl.DataFrame
        ``run_id``, ``tokens_to_target``, ``tokens_to_target_lo``, ``tokens_to_target_hi`` (95 %, from the scatter of
        the loss around its smooth course), ``reason`` (empty where all is known), by ``run_id``.

    Raises
    ------
    ValueError
        A column is missing, or the target is not finite.

    Examples
    --------
    >>> s = pl.DataFrame({"run_id": ["a"] * 200, "step": range(200), "tokens": [10] * 200,
    ...                   "loss": [4 - 0.01 * i for i in range(1, 201)]})
    >>> round(find(s, 3.0)["tokens_to_target"][0])
    1000
    """
    missing = [c for c in ("run_id", "step", "tokens", "loss") if c not in steps.columns]
    if missing:
        raise ValueError(f"steps has no column {', '.join(missing)}; it has {', '.join(steps.columns)}")
    if not math.isfinite(target_loss):
        raise ValueError(f"target_loss = {target_loss}: a finite loss is allowed")
    schema = {"run_id": pl.String, "tokens_to_target": pl.Float64, "tokens_to_target_lo": pl.Float64,
              "tokens_to_target_hi": pl.Float64, "reason": pl.String}  # fmt: skip
    # One pass a run, not a row: the work inside is on arrays.
    rows = []
    for (run_id,), part in steps.sort("run_id", "step").group_by("run_id", maintain_order=True):
        tokens = part["tokens"].cast(pl.Float64).fill_null(0.0).cum_sum().to_numpy()
        loss = part["loss"].cast(pl.Float64).fill_null(np.nan).to_numpy()
        known = np.isfinite(loss)
        rows.append((str(run_id), *_crossing(tokens[known], loss[known], target_loss)))
    return pl.DataFrame(rows, schema=schema, orient="row")


def _crossing(tokens: Array, loss: Array, target: float) -> tuple[float | None, float | None, float | None, str]:
    """Return tokens at the crossing with its interval, or the reason why there is none."""
    window = max(LEAST_WINDOW, round(WINDOW_SHARE_RATIO * loss.size))
    if loss.size < 2 * window:
        return None, None, None, f"too few steps with a loss: {loss.size}, at least {2 * window} are needed"
    kernel = np.full(window, 1 / window)
    smooth = np.convolve(loss, kernel, mode="valid")
    at = np.convolve(tokens, kernel, mode="valid")
    below = smooth <= target
    if not below.any():
        return None, None, None, f"target loss {target:g} not reached: the smoothed loss fell to {smooth.min():.4g}"
    first = int(np.argmax(below))
    if first == 0:
        return None, None, None, f"the loss starts at or below the target {target:g}: the crossing is not in the log"
    share = (smooth[first - 1] - target) / (smooth[first - 1] - smooth[first])
    value = float(at[first - 1] + share * (at[first] - at[first - 1]))
    # Noise makes the first crossing early. What the course spends above the target right after it belongs before the
    # crossing, so that ups and downs around the true place cancel.
    after = slice(first, first + SETTLING_WINDOWS * window)
    value += float(np.diff(at, append=at[-1])[after] @ ~below[after])
    half = _half(tokens, loss, value, window)
    if half is None:
        return value, None, None, "the loss hardly falls where it meets the target: no interval"
    return value, max(value - half, 0.0), value + half, ""


def _half(tokens: Array, loss: Array, value: float, window: int) -> float | None:
    """Return the half width of a crossing's interval: noise of the window's mean over the local slope of the loss."""
    centre = int(np.searchsorted(tokens, value))
    span = slice(max(centre - SETTLING_WINDOWS * window, 0), centre + SETTLING_WINDOWS * window)
    x, y = tokens[span] - value, loss[span]
    slope, level = np.polyfit(x, y, 1)
    rest = y - (slope * x + level)
    noise = float(np.std(rest, ddof=2)) / math.sqrt(window) if y.size > 3 else math.nan
    return 1.96 * noise / -float(slope) if slope < 0 and math.isfinite(noise) else None
