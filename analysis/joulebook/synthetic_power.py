"""The machine under a made-up run: from load to board power, heat, fans and the power at the wall."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter, lfiltic

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A node with accelerator boards, as far as its power goes.

    The defaults describe a two-board server with 700 W boards; none is a measurement of a particular product.

    Parameters
    ----------
    boards
        Number of boards.
    model
        Name of the boards, as tools print it.
    idle_w, peak_w
        Power of a cool board at rest and at full load [W].
    board_spread_ratio
        Standard deviation between boards of the same model, relative.
    leakage_w_per_c
        Further board power per degree above rest, under load [W/°C].
    heating_c_per_w, heating_s
        How far [°C/W] and how fast [s, time constant] a board heats.
    noise_ratio, idle_noise_w, noise_s
        Fluctuation of board power: standard deviation relative to the load, and at rest [W]; correlation time [s].
    cpu_idle_w, cpu_busy_w
        Power of the processors at rest and while the node trains [W].
    dram_w
        Power of the memory [W].
    rest_w
        Disks, network, board of the node [W].
    fan_floor_w, fan_full_w, fan_s
        Fans at their lowest and highest speed [W], and how fast they follow [s].
    psu_rated_w
        Rated output of the power supplies [W].
    """

    boards: int = 2
    model: str = "NVIDIA H100 80GB HBM3"
    idle_w: float = 68.0
    peak_w: float = 640.0
    board_spread_ratio: float = 0.012
    leakage_w_per_c: float = 0.9
    heating_c_per_w: float = 0.058
    heating_s: float = 22.0
    noise_ratio: float = 0.008
    idle_noise_w: float = 0.25
    noise_s: float = 1.5
    cpu_idle_w: float = 78.0
    cpu_busy_w: float = 148.0
    dram_w: float = 32.0
    rest_w: float = 74.0
    fan_floor_w: float = 28.0
    fan_full_w: float = 260.0
    fan_s: float = 30.0
    psu_rated_w: float = 3000.0


def lagged(values: Floats, time_constant_s: float, *, cell_s: float) -> Floats:
    """Return the values as a first-order lag follows them, settled on the first value at the start.

    Examples
    --------
    >>> lagged(np.array([0.0, 1.0, 1.0]), 1.0, cell_s=1.0).round(3).tolist()
    [0.0, 0.632, 0.865]
    """
    keep = float(np.exp(-cell_s / time_constant_s))
    start = lfiltic([1.0 - keep], [1.0, -keep], y=[float(values[0])])
    followed: Floats = np.asarray(lfilter([1.0 - keep], [1.0, -keep], values, zi=start)[0], dtype=np.float64)
    return followed


def correlated_noise(n: int, correlation_s: float, *, cell_s: float, rng: np.random.Generator) -> Floats:
    """Return noise of unit variance whose correlation falls to 1/e within ``correlation_s``, shape (n,)."""
    keep = float(np.exp(-cell_s / correlation_s))
    white = rng.standard_normal(n) * np.sqrt(1.0 - keep**2)
    if n:
        white[0] /= np.sqrt(1.0 - keep**2)
    noise: Floats = np.asarray(lfilter([1.0], [1.0, -keep], white), dtype=np.float64)
    return noise


@dataclass(frozen=True)
class Board:
    """One board over time, one value a cell.

    Parameters
    ----------
    power_w, temperature_c, sm_clock_hz
        Power [W], temperature [°C] and clock of the compute units [Hz].
    """

    power_w: Floats
    temperature_c: Floats
    sm_clock_hz: Floats


def board(
    load: Floats, inlet_c: Floats, machine: Machine, *, gain: float, cell_s: float, rng: np.random.Generator | None
) -> Board:
    """Return the power, heat and clock of one board.

    Heat follows power with a lag and adds leakage, so power rises as an exponential after the load does.

    Parameters
    ----------
    load
        Load between idle (0) and peak (1), per cell.
    inlet_c
        Temperature of the air at the inlet [°C], per cell.
    machine
        The machine.
    gain
        How this board's dynamic power differs from its model's.
    cell_s
        Length of a cell [s].
    rng
        Source of noise; ``None`` for none.

    Returns
    -------
    Board
        One value a cell.
    """
    wobble = np.zeros(load.size)
    if rng is not None:
        wobble = correlated_noise(load.size, machine.noise_s, cell_s=cell_s, rng=rng)
    dynamic_w = (machine.peak_w - machine.idle_w) * load * gain * (1.0 + machine.noise_ratio * wobble)
    cool_w = machine.idle_w + dynamic_w + machine.idle_noise_w * wobble
    heat_c = machine.heating_c_per_w * lagged(cool_w, machine.heating_s, cell_s=cell_s)
    rest_c = machine.heating_c_per_w * machine.idle_w
    leakage_w = machine.leakage_w_per_c * (heat_c - rest_c) * np.minimum(load / 0.5, 1.0)
    temperature_c = inlet_c + 6.0 + heat_c
    # Boards step their clock down in 15 MHz notches as they heat.
    clock_mhz = 1980.0 - 15.0 * np.floor(np.maximum(temperature_c - 50.0, 0.0) / 4.0)
    return Board(cool_w + leakage_w, temperature_c, clock_mhz * 1e6)


@dataclass(frozen=True)
class Node:
    """The whole node over time, one value a cell.

    Parameters
    ----------
    power_w
        At the wall [W].
    cpu_power_w, dram_power_w, fan_power_w
        Parts of it [W].
    """

    power_w: Floats
    cpu_power_w: Floats
    dram_power_w: Floats
    fan_power_w: Floats


def node(
    board_w: Floats, busy: Floats, inlet_c: Floats, machine: Machine, *, cell_s: float, rng: np.random.Generator | None
) -> Node:
    """Return the power of the node at the wall, from that of its boards.

    Parameters
    ----------
    board_w
        Sum over the boards [W], per cell.
    busy
        How busy the processors are, 0 to 1, per cell.
    inlet_c
        Temperature of the air at the inlet [°C], per cell.
    machine
        The machine.
    cell_s
        Length of a cell [s].
    rng
        Source of noise; ``None`` for none.

    Returns
    -------
    Node
        One value a cell.

    Notes
    -----
    Fans follow the inlet temperature and the boards' heat; their power grows with the cube of their speed. The supplies
    lose a fixed part, a part in proportion and one with the square of the load, which puts their best point near half
    load.
    """
    wobble = np.zeros(board_w.size)
    if rng is not None:
        wobble = correlated_noise(board_w.size, 0.8, cell_s=cell_s, rng=rng)
    cpu_w = machine.cpu_idle_w + (machine.cpu_busy_w - machine.cpu_idle_w) * busy + (0.6 + 1.6 * busy) * wobble
    share = board_w / (machine.boards * machine.peak_w)
    duty = np.clip(0.32 + 0.020 * (inlet_c - 22.0) + 0.38 * share, 0.2, 1.0)
    speed = lagged(duty, machine.fan_s, cell_s=cell_s)
    fan_w = machine.fan_floor_w + (machine.fan_full_w - machine.fan_floor_w) * speed**3
    dram_w = machine.dram_w + 6.0 * busy
    dc_w = board_w + cpu_w + dram_w + machine.rest_w + fan_w
    loss_w = 24.0 + 0.022 * dc_w + 0.045 * dc_w**2 / machine.psu_rated_w
    return Node(dc_w + loss_w, cpu_w, dram_w, fan_w)


@dataclass(frozen=True)
class Physics:
    """Boards, node and air over time, one value a cell.

    Parameters
    ----------
    boards
        Each board.
    board_w
        Sum over the boards [W].
    node
        The node.
    inlet_c
        Temperature at the inlet [°C].
    """

    boards: tuple[Board, ...]
    board_w: Floats
    node: Node
    inlet_c: Floats
