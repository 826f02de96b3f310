"""What is published of the power sensors of graphics cards."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """What is known of a card's own sensor: update period and averaging window [s]."""

    pattern: str
    field: str
    update_s: float
    window_s: float


CARDS = (
    Card("A100", "power.draw", 0.1, 0.025),
    Card("A100", "power.draw.instant", 0.1, 0.025),
    Card("A30", "power.draw", 0.1, 0.025),
    Card("H100", "power.draw", 0.1, 1.0),
    Card("H100", "power.draw.instant", 0.1, 0.025),
    Card("GH200", "power.draw", 0.1, 1.0),
    Card("GH200", "power.draw.instant", 0.1, 0.025),
    Card("V100", "power.draw", 0.02, 0.01),
    Card("P100", "power.draw", 0.02, 0.01),
    Card("RTX 30", "power.draw", 0.1, 1.0),
    Card("RTX 30", "power.draw.instant", 0.1, 0.1),
    Card("RTX 40", "power.draw", 0.1, 1.0),
    Card("RTX 40", "power.draw.instant", 0.1, 0.1),
    Card("L40", "power.draw", 0.1, 1.0),
    Card("A10 ", "power.draw", 0.1, 1.0),
    Card("A40", "power.draw", 0.1, 1.0),
)  # fmt: skip
"""Known sensors (Yang, Adamek, Armour, arXiv:2312.02741; NVML: from Ampere on, except GA100, ``power.draw`` is a mean
of one second). Cards not listed are measured, not guessed."""


def card(model: str, *, field: str = "power.draw") -> Card | None:
    """Return what is known of the sensor of a card, or nothing.

    Parameters
    ----------
    model
        Name as the driver prints it.
    field
        Field that was queried.

    Returns
    -------
    Card or None

    Examples
    --------
    >>> card("NVIDIA A100-SXM4-40GB").window_s
    0.025
    >>> card("Unheard Of 1") is None
    True
    """
    hits = [c for c in CARDS if c.pattern in f"{model} " and c.field == field]
    return max(hits, key=lambda c: len(c.pattern), default=None)
