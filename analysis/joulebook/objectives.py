"""What a sweep is asked for: least energy, least time, or a trade between the two.

Every objective is a cost of energy [J] and time [s], either to the target loss or per token; the least cost wins.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Basis = Literal["target", "token"]


@dataclass(frozen=True)
class Objective:
    """A cost that a setting should make least.

    Parameters
    ----------
    name
        Name for the column ``objective``; ends in its unit where it has one.
    basis
        ``"target"``: energy and time to the target loss; ``"token"``: per token.
    cost
        Function of energy [J] and time [s] arrays with settings along the last axis; infinite where not allowed.
    about_time
        Whether the cost needs the time beside the energy.
    """

    name: str
    basis: Basis
    cost: Callable[[Array, Array], Array]
    about_time: bool = True


def _energy(energy_j: Array, time_s: Array) -> Array:
    return energy_j


def _time(energy_j: Array, time_s: Array) -> Array:
    return time_s


ENERGY_TO_TARGET = Objective("energy_to_target_j", "target", _energy, about_time=False)
ENERGY_PER_TOKEN = Objective("energy_per_token_j", "token", _energy, about_time=False)
TIME_TO_TARGET = Objective("time_to_target_s", "target", _time)
TIME_PER_TOKEN = Objective("time_per_token_s", "token", _time)

_NAMED = {o.name: o for o in (ENERGY_TO_TARGET, ENERGY_PER_TOKEN, TIME_TO_TARGET, TIME_PER_TOKEN)}


def named(name: str) -> Objective:
    """Return the objective of that name.

    Parameters
    ----------
    name
        ``energy_to_target_j``, ``energy_per_token_j``, ``time_to_target_s`` or ``time_per_token_s``.

    Raises
    ------
    ValueError
        There is no such objective.

    Examples
    --------
    >>> named("energy_to_target_j").basis
    'target'
    """
    if name not in _NAMED:
        near = difflib.get_close_matches(name, _NAMED, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"objective {name!r} is not one of {', '.join(_NAMED)}{hint}")
    return _NAMED[name]


def energy_within(slowdown_ratio: float, *, basis: Basis = "target") -> Objective:
    """Return the least energy among settings at most so much slower than the fastest.

    Parameters
    ----------
    slowdown_ratio
        Longest time allowed over the least time, at least 1.
    basis
        Energy and time to the target or per token.

    Raises
    ------
    ValueError
        The ratio is below 1.

    Examples
    --------
    >>> energy_within(1.1).name
    'energy_to_target_within_1.1x_time_j'
    """
    if not slowdown_ratio >= 1:
        raise ValueError(f"slowdown_ratio = {slowdown_ratio}: at least 1 is allowed (longest over least time)")

    def cost(energy_j: Array, time_s: Array) -> Array:
        allowed = time_s <= slowdown_ratio * np.nanmin(time_s, axis=-1, keepdims=True)
        return np.where(allowed, energy_j, np.inf)

    least = ENERGY_TO_TARGET if basis == "target" else ENERGY_PER_TOKEN
    return Objective(f"{least.name.removesuffix('_j')}_within_{slowdown_ratio:g}x_time_j", basis, cost)


def eta_cost(eta_ratio: float, *, max_power_w: float, basis: Basis = "target") -> Objective:
    """Return the cost of Zeus: eta · energy + (1 − eta) · maximum power · time.

    Parameters
    ----------
    eta_ratio
        Weight of energy, 0 (only time) to 1 (only energy).
    max_power_w
        Power that puts time on the scale of energy: the highest power limit [W].
    basis
        Energy and time to the target or per token.

    Raises
    ------
    ValueError
        A weight outside 0 to 1, or a power that is not positive.

    References
    ----------
    You, Chung, Chowdhury, Zeus, NSDI 2023, arXiv:2208.06102.

    Examples
    --------
    >>> eta_cost(0.5, max_power_w=250).name
    'eta_cost_0.5_j'
    """
    if not 0 <= eta_ratio <= 1:
        raise ValueError(f"eta_ratio = {eta_ratio}: 0 to 1 is allowed")
    if not max_power_w > 0:
        raise ValueError(f"max_power_w = {max_power_w}: a positive power [W] is allowed")

    def cost(energy_j: Array, time_s: Array) -> Array:
        return eta_ratio * energy_j + (1 - eta_ratio) * max_power_w * time_s

    return Objective(f"eta_cost_{eta_ratio:g}_j", basis, cost, about_time=eta_ratio < 1)


def priced(*, price_per_kwh: float, price_per_hour: float, basis: Basis = "target") -> Objective:
    """Return the money that energy and time cost together.

    Parameters
    ----------
    price_per_kwh
        Price of energy [currency/kWh].
    price_per_hour
        Price of the machine's time, all devices of the run together [currency/h].
    basis
        Energy and time to the target or per token.

    Raises
    ------
    ValueError
        A price that is negative or not finite.

    Examples
    --------
    >>> priced(price_per_kwh=0.12, price_per_hour=2.0).name
    'cost'
    """
    for name, price in (("price_per_kwh", price_per_kwh), ("price_per_hour", price_per_hour)):
        if not (math.isfinite(price) and price >= 0):
            raise ValueError(f"{name} = {price}: a price of at least 0 is allowed")

    def cost(energy_j: Array, time_s: Array) -> Array:
        return energy_j / 3.6e6 * price_per_kwh + time_s / 3600 * price_per_hour

    return Objective("cost", basis, cost, about_time=price_per_hour > 0)
