"""Marginal energy: what a run drew beyond the idle machine, beside all that it drew."""

from __future__ import annotations

from dataclasses import dataclass

from joulebook import estimates
from joulebook.findings import Estimate, Finding, Severity


@dataclass(frozen=True)
class Marginal:
    """Energy of a run, split at the idle power.

    Parameters
    ----------
    absolute
        All that was drawn [J]: for the bill.
    marginal
        (mean power − idle power) · time [J]: for comparing algorithms.
    idle
        What the idle machine would have drawn in that time [J].
    share
        marginal / absolute.
    findings
        What the reader should know.
    """

    absolute: Estimate
    marginal: Estimate
    idle: Estimate
    share: Estimate
    findings: tuple[Finding, ...] = ()


def of_power(mean_power: Estimate, idle_power: Estimate, *, duration_s: float) -> Marginal:
    """Return absolute and marginal energy from a mean power and an idle power.

    Parameters
    ----------
    mean_power, idle_power
        Of one scope [W].
    duration_s
        Length of the run [s].

    Raises
    ------
    ValueError
        The duration is not positive.

    Examples
    --------
    >>> m = of_power(Estimate(415.0, unit="W"), Estimate(125.0, unit="W"), duration_s=4.2 * 3600)
    >>> round(m.marginal.value / 3.6e6, 3), round(m.share.value, 3)
    (1.218, 0.699)
    """
    _positive("duration_s", duration_s)
    absolute = estimates.scaled(mean_power, duration_s, unit="J", method="mean power · time")
    return of_energy(absolute, idle_power, duration_s=duration_s)


def of_energy(absolute: Estimate, idle_power: Estimate, *, duration_s: float) -> Marginal:
    """Return absolute and marginal energy from an energy and an idle power.

    Parameters
    ----------
    absolute
        Energy of the run [J].
    idle_power
        Idle power of the same scope [W].
    duration_s
        Time that the energy covers [s].

    Raises
    ------
    ValueError
        The duration is not positive.

    Examples
    --------
    >>> of_energy(Estimate(1000.0, 990.0, 1010.0), Estimate(40.0, 39.0, 41.0), duration_s=10.0).marginal.value
    600.0
    """
    _positive("duration_s", duration_s)
    idle = estimates.scaled(idle_power, duration_s, unit="J", method="idle power · time")
    how = "energy − idle power · time"
    marginal = estimates.combine(lambda e, i: e - i, absolute, idle, unit="J", method=how)
    share = estimates.combine(lambda e, i: 1 - i / e, absolute, idle, method="marginal / absolute")
    return Marginal(absolute, marginal, idle, share, _findings(marginal))


def _findings(marginal: Estimate) -> tuple[Finding, ...]:
    if marginal.value is None or marginal.value >= 0:
        return ()
    message = (
        "The run drew less than the idle machine: the idle power is of another scope, or it was measured under load."
    )
    evidence = {"marginal_energy_j": marginal.value}
    return (Finding("marginal-negative", Severity.WARNING, "marginal energy", message, evidence),)


def duration_s(absolute: Estimate, marginal: Estimate, idle_power: Estimate) -> Estimate:
    """Return how long a run took whose absolute and marginal energy are known [s].

    Parameters
    ----------
    absolute, marginal
        Energies of the run [J].
    idle_power
        Idle power of the same scope [W].

    Examples
    --------
    >>> time = duration_s(Estimate(2.1 * 3.6e6), Estimate(1.5 * 3.6e6), Estimate(280.0))
    >>> round(time.value / 3600, 3), round(2.1 * 3.6e6 / time.value)
    (2.143, 980)
    """
    return estimates.combine(
        lambda a, m, p: (a - m) / p, absolute, marginal, idle_power, unit="s", method="idle energy / idle power"
    )


def _positive(name: str, value: float) -> None:
    if not value > 0:
        raise ValueError(f"{name}: {value} is not positive")
