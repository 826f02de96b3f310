"""The order of devices in a block of readings: pollers write them in turn, and then no line needs to be looked up."""

from __future__ import annotations

import polars as pl

MOST_IN_TURN = 256
"""Devices that are looked for in turn; a machine has fewer."""


def in_turn(device: pl.Series) -> list[str]:
    """Return the devices that a block's lines name in turn, in that order; none where they stand in another order.

    Examples
    --------
    >>> in_turn(pl.Series(["gpu:0", "gpu:1", "gpu:0", "gpu:1", "gpu:0"]))
    ['gpu:0', 'gpu:1']
    >>> in_turn(pl.Series(["gpu:0", "gpu:0", "gpu:1"]))
    []
    """
    first: list[str] = device.head(MOST_IN_TURN).to_list()
    turn = next((i for i, d in enumerate(first) if i and d == first[0]), len(first))
    if not turn or len(set(first[:turn])) < turn:
        return []
    rest = len(device) - turn
    return first[:turn] if rest <= 0 or bool((device.slice(turn) == device.head(rest)).all()) else []
