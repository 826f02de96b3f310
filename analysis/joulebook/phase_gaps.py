"""Time of each phase that no reading speaks for: its energy is not in the phase's number, only in its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from joulebook import bridges, occupancy
from joulebook.occupancy import Series
from joulebook.phase_parts import Part
from joulebook.phase_regression import Fit, Sensor
from joulebook.phase_timeline import Floats, Timeline


@dataclass(frozen=True, slots=True)
class Unseen:
    """What readings leave open.

    Parameters
    ----------
    start_s, end_s
        Holes of each device [s] after the start of the window.
    seconds
        Open time, one row a device, one column a label of the timeline [s].
    most_w
        Highest reading of each device [W].
    """

    start_s: tuple[Floats, ...]
    end_s: tuple[Floats, ...]
    seconds: Floats
    most_w: Floats

    def energy_j(self, data: Sequence[Series], late_s: float) -> float:
        """Return what straight lines over the holes would add [J]."""
        return float(sum(
            (occupancy.energy_at(d, b + late_s) - occupancy.energy_at(d, a + late_s)).sum()
            for d, a, b in zip(data, self.start_s, self.end_s, strict=True) if a.size
        ))  # fmt: skip


def late_s(sensor: Sensor) -> float:
    """Return by how much readings trail what they speak of [s]: a window mean stands for the middle of its window."""
    return sensor.shift_s + sensor.window_s / 2 + sensor.lag_s


def find(data: Sequence[Series], line: Timeline, sensor: Sensor) -> Unseen:
    """Return the holes in the readings: steps that are too long to be bridged, as in the energy of a window.

    Parameters
    ----------
    data
        Readings by device.
    line
        Phases.
    sensor
        How readings follow power.

    Returns
    -------
    Unseen
    """
    length, late = float(line.breaks_s[-1]), late_s(sensor)
    starts, ends, rows = [], [], []
    for one in data:
        t = np.concatenate(
            [[min(one.t_s[0] - one.period_s, late)], one.t_s, [max(one.t_s[-1] + one.period_s, length + late)]]
        )
        step = np.diff(t)
        limit = bridges.paced_limits_s(step, bridges.limit_s(one.period_s))
        hole = np.flatnonzero(step > limit + bridges.STAMP_TOLERANCE_S)
        a, b = (np.clip(t[at] - late, 0.0, length) for at in (hole, hole + 1))
        keep = b > a
        starts.append(a[keep])
        ends.append(b[keep])
        rows.append(_spent(line, a[keep], b[keep]))
    return Unseen(tuple(starts), tuple(ends), np.array(rows), np.array([d.power_w.max() for d in data]))


def _spent(line: Timeline, a: Floats, b: Floats) -> Floats:
    """Return the time with each label within intervals that follow each other [s]."""
    spent = np.zeros(len(line.names))
    for begin, end in zip(a.tolist(), b.tolist(), strict=True):
        spent += occupancy.share(line, np.array([end]), window_s=end - begin)[0] * (end - begin)
    return spent


def without(parts: tuple[Part, ...], fit: Fit, unseen: Unseen, line: Timeline) -> tuple[Part, ...]:
    """Return the parts with the energy of the time that was seen; the rest, at most at the highest power, is told beside.

    Parameters
    ----------
    parts
        Parts with the energy of all of their time.
    fit
        Powers by label.
    unseen
        What readings leave open.
    line
        Phases.
    """
    if not unseen.seconds.any():
        return parts
    return tuple(
        _seen(p, fit, unseen, np.isin(np.array(line.names, dtype=object)[fit.columns], p.names), line) for p in parts
    )


def _seen(part: Part, fit: Fit, unseen: Unseen, mine: NDArray[np.bool_], line: Timeline) -> Part:
    columns = fit.columns[mine]
    whole_s, open_s = line.seconds[columns], unseen.seconds[:, columns]
    whole_j = float((fit.power_w[:, mine] @ whole_s).sum())
    open_j = float((fit.power_w[:, mine] * open_s).sum())
    share = 1.0 - open_j / whole_j if whole_j > 0 else 1.0 - float(open_s.mean(axis=0).sum() / whole_s.sum())
    most_j = float((unseen.most_w[:, None] * open_s).sum())
    return replace(part, energy_j=part.energy_j * share, seconds=part.seconds * share, open_j=most_j)
