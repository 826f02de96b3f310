"""Titles of tables that are names of series: what Prometheus, s-tui and power analysers call their columns."""

from __future__ import annotations

import re
from dataclasses import replace

from joulebook_pipelines.logs import prometheus_names
from joulebook_pipelines.logs.meter_titles import Meaning

_SENSOR = re.compile(r"Power:(package|dram|core|cores|uncore|psys)(?:-(\d+))?(?:,(\d+))?")
"""s-tui's RAPL sensors, in watts, with the number of the socket."""


_NVITOP = re.compile(r"(?:[^/]*/)*(?:cuda:\d+ )?\(?gpu:(\d+)\)?/(\w+) \(([^)]+)\)/(\w+)")
_NVITOP_READ = {("power_usage", "W", "mean"): "power_w", ("temperature", "C", "mean"): "temperature_c"}
"""nvitop's collectors write several statistics of each quantity; the mean is that of the interval."""


def meaning(title: str) -> Meaning | None:
    """Return what a title says that is a series of Prometheus, or a sensor of s-tui; ``None`` where it is neither.

    Examples
    --------
    >>> meaning("cuda:0 (gpu:2)/power_usage (W)/mean").place, meaning("cuda:0 (gpu:2)/power_usage (W)/max").place
    ('gpu 2', '')
    >>> meaning('DCGM_FI_DEV_POWER_USAGE{gpu="1"}').place, meaning("Power:dram,0").place
    ('gpu 1', 'dram 0')
    """
    if sensor := _SENSOR.fullmatch(title.strip()):
        number = sensor[2] or sensor[3] or ""
        return Meaning(
            "quantity",
            "power_w",
            "W",
            f"{sensor[1]} {number}".strip() if sensor[1] in {"package", "dram"} else sensor[1],
        )
    if re.fullmatch(r"[\w-]+/timestamp", title.strip()):
        return Meaning("time")  # nvitop's tag before it
    if card := _NVITOP.fullmatch(title.strip()):
        quantity = _NVITOP_READ.get((card[2], card[3], card[4]))
        return Meaning() if quantity is None else Meaning("quantity", quantity, card[3], f"gpu {card[1]}")
    match = re.fullmatch(r"(\w+)\s*(?:\{(.*)\})?", title.strip())
    if match is None or not prometheus_names.looks_known(match[1]):
        return None
    labels = dict(re.findall(r'(\w+)=\\?"*([^",}\\]*)', match[2] or ""))
    told = next(iter(prometheus_names.classify(match[1], labels)), None)
    if told is None or told.quantity not in {"power_w", "energy_j", "energy_counter_j"}:
        return Meaning()
    number = prometheus_names.card_key(labels)[1]
    device = (told.device + number).removesuffix(":") if told.device.endswith(":") else told.device
    counts = "counter" if told.quantity == "energy_counter_j" else ""
    quantity = "power_w" if told.quantity == "power_w" else "energy_j"
    return Meaning("quantity", quantity, told.unit, device.replace(":", " "), counts=counts)


def with_phases(found: list[Meaning]) -> list[Meaning]:
    """Return the meanings with an analyser's elements as phases; its only one is the whole meter."""
    numbers = {m[1] for f in found if (m := re.fullmatch(r"element (\d)", f.place))}
    if not numbers:
        return found
    return [
        replace(f, place="" if len(numbers) == 1 else f.place.replace("element", "phase"))
        if f.place.startswith("element ")
        else f
        for f in found
    ]
