"""Columns of long frames as arrays, without more copies than it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def of(values: pl.Series) -> NDArray[Any]:
    """Return values for reading only, whether they had to be copied or not: compiled code is made once a kind of array."""
    pieces = [piece.to_numpy() for piece in values.get_chunks()]
    array = (pieces[0] if len(pieces) == 1 else np.concatenate(pieces)).view()
    array.flags.writeable = False
    return array


def seconds(stamps: pl.Series, origin_us: int) -> Floats:
    """Return stamps as seconds since an origin, which is in µs since 1970."""
    since_s, behind = np.empty(len(stamps)), 0
    for piece in stamps.cast(pl.Datetime("us", "UTC")).to_physical().get_chunks():
        _since(of(piece), origin_us, since_s[behind : behind + len(piece)])
        behind += len(piece)
    return since_s


@njit(cache=True, nogil=True)
def _since(stamp_us: NDArray[np.int64], origin_us: int, seconds: Floats) -> None:
    """Write the seconds since an origin, without a large array on the way: those cost more to make than to fill."""
    for i in range(stamp_us.size):
        seconds[i] = (stamp_us[i] - origin_us) / 1e6
