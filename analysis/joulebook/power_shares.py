"""Shares of power that tell how hardware is loaded: of the nameplate, fans, power supplies, padding."""

from __future__ import annotations

from dataclasses import dataclass

from joulebook import estimates
from joulebook.findings import Estimate, Finding, Severity

TDP_LIGHT = 0.3
"""Below this share of TDP the load is light: an idle accelerator draws 10-20 % of it."""

FAN_LITTLE, FAN_MUCH = 0.10, 0.15
"""Fan share of node power below which liquid cooling gains little, and above which it is worth a study."""

PSU_LOW = 0.30
"""Load below which power supplies are markedly less efficient."""


@dataclass(frozen=True)
class Share:
    """A ratio with what it means.

    Parameters
    ----------
    ratio
        The estimate, 0 to 1.
    findings
        What follows from it.
    """

    ratio: Estimate
    findings: tuple[Finding, ...]


def tdp_ratio(mean_power: Estimate, *, tdp_w: float) -> Share:
    """Return measured mean power over nameplate power, with what far below and at or above 1 mean.

    Parameters
    ----------
    mean_power
        Mean power [W].
    tdp_w
        Nameplate power of the same devices [W].

    Raises
    ------
    ValueError
        TDP is not positive.

    Examples
    --------
    >>> [f.code for f in tdp_ratio(Estimate(720.0), tdp_w=700.0).findings]
    ['power-at-tdp']
    """
    ratio = _ratio(mean_power, tdp_w, "tdp_w", "mean power / TDP")
    v = ratio.value
    if v is None or TDP_LIGHT <= v < 1:
        return Share(ratio, ())
    evidence = {"tdp_ratio": v, "tdp_w": tdp_w}
    if v >= 1:
        message = f"Mean power is {v:.3g} of TDP: overclocked, in thermal trouble, or the TDP is of another model."
        return Share(ratio, (Finding("power-at-tdp", Severity.WARNING, "tdp_ratio", message, evidence),))
    message = f"Mean power is {v:.3g} of TDP: the load is light, or the TDP is of another model."
    return Share(ratio, (Finding("power-far-below-tdp", Severity.NOTE, "tdp_ratio", message, evidence),))


def _ratio(power: Estimate, whole_w: float | Estimate, name: str, method: str) -> Estimate:
    whole = whole_w if isinstance(whole_w, Estimate) else estimates.exactly(float(whole_w))
    if whole.value is not None and not whole.value > 0:
        raise ValueError(f"{name}: {whole.value} is not positive")
    return estimates.combine(lambda a, b: a / b, power, whole, method=method)


def fan_share(fan_power: Estimate, node_power: Estimate) -> Share:
    """Return the fans' share of node power, with what it says about cooling.

    Parameters
    ----------
    fan_power, node_power
        Mean powers over the same time [W].

    Raises
    ------
    ValueError
        Node power is not positive.

    Examples
    --------
    >>> [f.code for f in fan_share(Estimate(180.0), Estimate(1000.0)).findings]
    ['fans-draw-much']
    """
    ratio = _ratio(fan_power, node_power, "node_power", "fan power / node power")
    v = ratio.value
    if v is None or FAN_LITTLE <= v <= FAN_MUCH:
        return Share(ratio, ())
    if v > FAN_MUCH:
        message = f"Fans draw {100 * v:.3g} % of the node: over {100 * FAN_MUCH:.0f} %, other cooling is worth a study."
        return Share(ratio, (Finding("fans-draw-much", Severity.WARNING, "fans", message, {"fan_share_ratio": v}),))
    message = (
        f"Fans draw {100 * v:.3g} % of the node: under {100 * FAN_LITTLE:.0f} %, liquid cooling would gain little."
    )
    return Share(ratio, (Finding("fans-draw-little", Severity.NOTE, "fans", message, {"fan_share_ratio": v}),))


def psu_load(output_power: Estimate, *, rated_w: float) -> Share:
    """Return the load of power supplies: their power over the rated power of those that share it.

    Parameters
    ----------
    output_power
        Mean power of the supplies together [W].
    rated_w
        Rated power of all of them [W].

    Raises
    ------
    ValueError
        Rated power is not positive.

    Examples
    --------
    >>> [f.code for f in psu_load(Estimate(500.0), rated_w=6000.0).findings]
    ['supplies-lightly-loaded']
    """
    ratio = _ratio(output_power, rated_w, "rated_w", "power / rated power of the supplies")
    v = ratio.value
    if v is None or v >= PSU_LOW:
        return Share(ratio, ())
    message = (
        f"The supplies run at {100 * v:.3g} % of their rating; under {100 * PSU_LOW:.0f} % they waste markedly more."
    )
    return Share(ratio, (Finding("supplies-lightly-loaded", Severity.WARNING, "psu", message, {"load_ratio": v}),))


def padding_energy_j(energy: Estimate, *, padding_tokens: float, tokens: float) -> Estimate:
    """Return the energy spent on padding [J]: padding is paid like data.

    Parameters
    ----------
    energy
        Energy of all tokens [J].
    padding_tokens, tokens
        Tokens that are padding, and all tokens with padding.

    Raises
    ------
    ValueError
        There is more padding than tokens.

    Examples
    --------
    >>> padding_energy_j(Estimate(1000.0), padding_tokens=25.0, tokens=100.0).value
    250.0
    """
    if not 0 <= padding_tokens <= tokens or tokens <= 0:
        raise ValueError(f"padding_tokens: {padding_tokens} of {tokens} tokens; it must lie between 0 and all tokens")
    return estimates.scaled(energy, padding_tokens / tokens, unit="J", method="energy · padding share of tokens")
