"""What a run yields for its energy and its hardware: tokens per joule and model FLOP utilisation."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from joulebook import estimates
from joulebook.findings import Estimate, Finding, Severity
from joulebook.power_shares import Share

FLOPS_PER_PARAMETER = 6.0
"""Forward (2) and backward (4) pass of one token through one parameter (Kaplan et al. 2020, arXiv:2001.08361)."""

ATTENTION_FACTOR = 12.0
"""Attention scores and their use, forward and backward, per layer, hidden unit and token of context (PaLM, appendix B,
arXiv:2204.02311)."""

RECOMPUTATION_FACTOR = 4 / 3
"""Full activation recomputation runs the forward pass twice: three units of work become four."""

DIVERGENCE = 0.05
"""Changes of two metrics that differ by more than this tell different stories: day-to-day spread is a few per cent."""


@dataclass(frozen=True)
class Divergence:
    """Metrics by day, and where they tell different stories.

    Parameters
    ----------
    frame
        The days with the change of each metric since the first (``…_change_ratio``).
    findings
        One for each day and pair of metrics that diverge.
    """

    frame: pl.DataFrame
    findings: tuple[Finding, ...]


def tokens_per_j(tokens: float | Estimate, energy: Estimate) -> Estimate:
    """Return tokens per joule of the energy's scope.

    Parameters
    ----------
    tokens
        Tokens processed.
    energy
        Energy [J].

    Examples
    --------
    >>> tokens_per_j(1000.0, Estimate(4000.0, 3900.0, 4100.0)).value
    0.25
    """
    return estimates.combine(lambda n, e: n / e, _count(tokens), energy, unit="1/J", method="tokens / energy")


def energy_per_token_j(tokens: float | Estimate, energy: Estimate) -> Estimate:
    """Return the energy of a token [J].

    Parameters
    ----------
    tokens
        Tokens processed.
    energy
        Energy [J].

    Examples
    --------
    >>> energy_per_token_j(1000.0, Estimate(4000.0, 3900.0, 4100.0)).lo
    3.9
    """
    return estimates.combine(lambda n, e: e / n, _count(tokens), energy, unit="J", method="energy / tokens")


def tokens_per_s(tokens: float | Estimate, duration_s: float | Estimate) -> Estimate:
    """Return tokens per second [1/s].

    Examples
    --------
    >>> tokens_per_s(1000.0, 4.0).value
    250.0
    """
    return estimates.combine(lambda n, t: n / t, _count(tokens), _count(duration_s), unit="1/s", method="tokens / time")


def _count(value: float | Estimate) -> Estimate:
    return value if isinstance(value, Estimate) else estimates.exactly(float(value))


def flops_per_token(
    parameters: float, *, layers: int = 0, hidden: int = 0, sequence_length: int = 0, recomputation: bool = False
) -> float:
    """Return the FLOP that training spends on a token.

    Parameters
    ----------
    parameters
        Parameters of the model (those that a token passes).
    layers, hidden, sequence_length
        Shape, for the attention term; without all three it is left out, which is far too low at long sequences.
    recomputation
        Count full activation recomputation: the hardware's work (HFU), not the model's (MFU).

    Raises
    ------
    ValueError
        A number is negative, or the shape is given in part.

    References
    ----------
    Kaplan et al. 2020, arXiv:2001.08361; Chowdhery et al. 2022, arXiv:2204.02311, appendix B.

    Examples
    --------
    >>> f"{flops_per_token(70e9):.2g}", flops_per_token(1e9, layers=10, hidden=1000, sequence_length=50_000) / 6e9
    ('4.2e+11', 2.0)
    """
    shape = (layers, hidden, sequence_length)
    if parameters <= 0 or min(shape) < 0:
        raise ValueError(f"parameters, layers, hidden, sequence_length: {parameters}, {shape}; none may be negative")
    if any(shape) and not all(shape):
        raise ValueError(f"layers, hidden, sequence_length: {shape}; give all three or none")
    model = FLOPS_PER_PARAMETER * parameters + ATTENTION_FACTOR * layers * hidden * sequence_length
    return model * (RECOMPUTATION_FACTOR if recomputation else 1.0)


def mfu_ratio(tokens_rate: Estimate, *, token_flops: float, peak_flops: float, name: str = "MFU") -> Share:
    """Return FLOP utilisation: what arithmetic reached of the peak of all devices; that of the model is its MFU.

    Parameters
    ----------
    tokens_rate
        Tokens per second of all devices together [1/s].
    token_flops
        FLOP a token: without recomputation for the model's, with it for the hardware's.
    peak_flops
        Peak of all devices together [FLOP/s].
    name
        What it is called where it is impossible.

    Raises
    ------
    ValueError
        A number is not positive.

    Examples
    --------
    >>> round(mfu_ratio(Estimate(380952.0), token_flops=4.2e11, peak_flops=400e15).ratio.value, 3)
    0.4
    """
    if not (token_flops > 0 and peak_flops > 0):
        raise ValueError(f"token_flops, peak_flops: {token_flops}, {peak_flops}; both must be positive")
    ratio = estimates.combine(
        lambda r: r * token_flops / peak_flops, tokens_rate, method="tokens/s · FLOP/token / peak FLOP/s"
    )
    if ratio.value is None or ratio.value <= 1:
        return Share(ratio, ())
    message = (
        f"{name} is {ratio.value:.3g}: more than the hardware can do. Check peak FLOP/s, devices, parameters, tokens."
    )
    metric, code = f"{name.lower()}_ratio", f"{name.lower()}-above-one"
    return Share(ratio, (Finding(code, Severity.ERROR, metric, message, {metric: ratio.value}),))


def divergence(days: pl.DataFrame, *, limit_ratio: float = DIVERGENCE) -> Divergence:
    """Return how metrics changed since the first day, and where they tell different stories.

    MFU, tokens per joule and PUE answer different questions. MFU that rises while tokens per joule does not means that
    something outside of the accelerators, commonly the fans, ate the gain.

    Parameters
    ----------
    days
        ``day`` and at least two of ``mfu_ratio``, ``tokens_per_j``, ``pue``, one row a day.
    limit_ratio
        Difference of two changes that is reported.

    Returns
    -------
    Divergence
        The days with changes, and findings.

    Raises
    ------
    ValueError
        ``day`` or two metrics are missing.

    Examples
    --------
    >>> days = pl.DataFrame({"day": ["a", "b"], "mfu_ratio": [0.40, 0.46], "tokens_per_j": [0.20, 0.206]})
    >>> [f.code for f in divergence(days).findings]
    ['efficiency-diverges']
    """
    metrics = [m for m in ("mfu_ratio", "tokens_per_j", "pue") if m in days.columns]
    if "day" not in days.columns or len(metrics) < 2:
        raise ValueError(
            f"days: it has {', '.join(days.columns)}; day and two of mfu_ratio, tokens_per_j, pue are needed"
        )
    changes = [(pl.col(m) / pl.col(m).drop_nulls().first() - 1).alias(f"{m}_change_ratio") for m in metrics]
    frame = days.sort("day").with_columns(changes)
    found = []
    for row in frame.iter_rows(named=True):
        mfu, tokens = (row.get(f"{m}_change_ratio") for m in ("mfu_ratio", "tokens_per_j"))
        pue = row.get("pue_change_ratio")
        # PUE improves downwards.
        pairs = (
            ("MFU", mfu, "tokens/J", tokens),
            ("PUE, lower is better,", None if pue is None else -pue, "tokens/J", tokens),
        )
        for first, a, second, b in pairs:
            if a is None or b is None or abs(a - b) <= limit_ratio:
                continue
            message = (
                f"{first} changed by {100 * (-a if 'PUE' in first else a):+.3g} % since the first day, {second} by "
                f"{100 * b:+.3g} %: look at what lies between them (fans, host, cooling) before calling it a gain."
            )
            evidence = {"mfu_change_ratio": mfu, "tokens_per_j_change_ratio": tokens, "pue_change_ratio": pue}
            found.append(Finding("efficiency-diverges", Severity.WARNING, str(row["day"]), message, evidence))
    return Divergence(frame, tuple(found))
