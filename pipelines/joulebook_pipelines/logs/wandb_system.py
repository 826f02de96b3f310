"""Cards as the W&B agent samples them, in a history beside the steps: ``system/gpu.0.powerWatts`` and what goes with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import polars as pl

from joulebook_pipelines.logs import entries, stamps, wall_clock
from joulebook_pipelines.logs.contract import Channel, Log

_NAME = re.compile(r"^(?:system[./])?gpu\.(\d+)\.(\w+)$")
_QUANTITIES = {
    "powerWatts": ("power_w", "W"), "enforcedPowerLimitWatts": ("power_limit_w", "W"), "gpu": ("utilization_ratio", "%"),
    "temp": ("temperature_c", "C"), "memoryAllocatedBytes": ("memory_used_bytes", "B"), "smClock": ("sm_clock_hz", "MHz"),
    "memoryClock": ("memory_clock_hz", "MHz"),
}  # fmt: skip
"""Members of a card that the agent writes (https://docs.wandb.ai/models/ref/python/experiments/system-metrics), with units."""


def known(names: Iterable[str]) -> dict[str, tuple[str, str, str]]:
    """Return device, quantity and unit of the names that are of a card; nothing where none of them is a power.

    Examples
    --------
    >>> known(["_step", "system/gpu.0.powerWatts", "system.gpu.0.gpu", "system/gpu.process.0.gpu"])
    {'system/gpu.0.powerWatts': ('gpu:0', 'power_w', 'W'), 'system.gpu.0.gpu': ('gpu:0', 'utilization_ratio', '%')}
    """
    found = {
        n: (f"gpu:{m[1]}", *_QUANTITIES[m[2]]) for n in names if (m := _NAME.match(n.strip())) and m[2] in _QUANTITIES
    }
    return found if any(quantity == "power_w" for _, quantity, _ in found.values()) else {}


class System:
    """Reads the cards of a history, block by block.

    Parameters
    ----------
    log
        The file.
    names
        The names in the file that may be of cards.
    form
        Form of the stamps; without stamps nothing is read.
    """

    def __init__(self, log: Log, names: Sequence[str], form: stamps.StampForm | None) -> None:
        self.known = known(names) if form is not None else {}
        self._form = form
        self._clock = wall_clock.of(log, form) if form is not None else None
        self._told: set[str] = set()

    def read(
        self, raw: pl.DataFrame, of_steps: pl.DataFrame
    ) -> tuple[pl.DataFrame | None, pl.DataFrame, tuple[Channel, ...]]:
        """Return the readings of cards, rejects, and cards not seen before.

        Parameters
        ----------
        raw
            ``line, end_utc`` and a text column per name of a card.
        of_steps
            What was rejected of the same lines as steps: a line about cards alone is none, and no reject.
        """
        if not self.known or self._form is None or self._clock is None:
            return None, of_steps, ()
        rows = raw.filter(pl.any_horizontal([pl.col(n).fill_null("") != "" for n in self.known]))
        rows = rows.with_columns(self._clock.utc(rows, stamps.parse(pl.col("end_utc").fill_null(""), self._form)))
        frames = [
            rows.filter(pl.col(name).fill_null("") != "").select(
                "line", "ts_utc", row="line", device=pl.lit(device), quantity=pl.lit(quantity), header=pl.lit(name),
                unit=pl.lit(unit), raw=name,
            )
            for name, (device, quantity, unit) in self.known.items()
        ]  # fmt: skip
        told = pl.concat(frames).sort("line", "device", maintain_order=True)
        told = told.with_columns(row=pl.struct("line", "device").rle_id())
        told = told.select(pl.col(c).cast(t) for c, t in entries.SCHEMA.items())
        devices = told["device"].unique(maintain_order=True).to_list()
        readings, rejects = entries.gather(told, dict.fromkeys(devices, "board"))
        fresh = tuple(Channel(d, "board") for d in devices if d not in self._told)
        self._told.update(devices)
        about_cards = (pl.col("rule") == "not-a-training-step") & pl.col("line").is_in(rows["line"].implode())
        return readings, pl.concat([of_steps.filter(~about_cards), rejects]), fresh
