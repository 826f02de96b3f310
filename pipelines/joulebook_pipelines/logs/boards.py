"""What is known of accelerator boards' power sensors: over which window ``power.draw`` averages, by model.

Source: the vendor's management-library documentation (one-second average on Ampere and newer except GA100) and the
measurements of Yang, Adamek and Armour, arXiv 2312.02741.
"""

from __future__ import annotations

import re

_INSTANT = re.compile(
    r"\b(A100|A30|A800|V100|P100|P40|P4|T4|K80|K20|TITAN|GTX|Quadro|RTX 20\d\d|M40|M60)", re.IGNORECASE
)
_SECOND = re.compile(
    r"\b(RTX (30|40|50)\d\d|RTX A\d|RTX \d000|A10|A16|A2|A40|L4|L40S?|H100|H200|H800|H20|GH200|B100|B200|B300|GB200)",
    re.IGNORECASE,
)

ONE_SECOND_S = 1.0


def power_window_s(model: str, power_field: str) -> float | None:
    """Return the averaging window of a board's power reading [s], ``None`` where it is instantaneous or not known.

    Parameters
    ----------
    model
        Name as the driver gives it.
    power_field
        The field that was logged, e.g. ``power.draw`` or ``power.draw.instant``.
    """
    if power_field.endswith(".instant"):
        return None
    if power_field.endswith(".average"):
        return ONE_SECOND_S
    if _INSTANT.search(model):
        return None
    return ONE_SECOND_S if _SECOND.search(model) else None
