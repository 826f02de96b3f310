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


def in_blocks(device: pl.Series) -> list[str]:
    """Return the devices of lines that stand device by device, each as often as the others; none where they do not.

    Examples
    --------
    >>> in_blocks(pl.Series(["gpu:0", "gpu:0", "gpu:1", "gpu:1"]))
    ['gpu:0', 'gpu:1']
    >>> in_blocks(pl.Series(["gpu:0", "gpu:0", "gpu:1"]))
    []
    """
    if device.is_empty() or device[0] != device[len(device) // (MOST_IN_TURN + 1)]:
        return []
    length = (device != device[0]).arg_max() or len(device)
    if len(device) % length or len(device) // length > MOST_IN_TURN:
        return []
    blocks = [device.slice(at, length) for at in range(0, len(device), length)]
    names: list[str] = [block[0] for block in blocks]
    alone = len(set(names)) == len(names)
    return names if alone and all(bool((b == n).all()) for b, n in zip(blocks, names, strict=True)) else []
