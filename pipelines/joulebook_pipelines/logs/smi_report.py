"""The full report of ``nvidia-smi -q``, as text or XML: its names on both sides of the driver's renaming, and its cards.

Names are folded (lower case, blanks for underscores), which makes most of them the same in both spellings. Driver 535
renamed ``power_readings`` to ``gpu_power_readings``; later ones say ``average`` and ``instant`` instead of one draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import boards, cells, entries
from joulebook_pipelines.logs.contract import Channel, Log, LogRefusedError

_BOARD = ("power readings", "gpu power readings")

POWERS = {
    f"{section}/{name}": field_
    for section in _BOARD
    for name, field_ in (
        ("power draw", "power.draw"), ("average power draw", "power.draw.average"),
        ("instantaneous power draw", "power.draw.instant"), ("instant power draw", "power.draw.instant"),
    )
}  # fmt: skip
"""Readings of board power, and the query field that each is; a card's main one is the first of these with a value."""

_PREFERRED = ("power.draw", "power.draw.average", "power.draw.instant")

PARTS = {
    "module power readings/power draw": "module", "module power readings/average power draw": "module",
    "module power readings/instantaneous power draw": "module/instant", "module power readings/instant power draw": "module/instant",
    "gpu memory power readings/average power draw": "memory", "gpu memory power readings/instantaneous power draw": "memory/instant",
    "gpu memory power readings/instant power draw": "memory/instant",
}  # fmt: skip
"""Power of the memory inside a card, and of the module that a card is part of: shown, never added to the cards."""

OTHERS = {
    **{f"{s}/{n}": ("power_limit_w", "W") for s in _BOARD for n in ("enforced power limit", "current power limit")},
    "utilization/gpu": ("utilization_ratio", "%"), "utilization/gpu util": ("utilization_ratio", "%"),
    "utilization/memory": ("memory_utilization_ratio", "%"), "utilization/memory util": ("memory_utilization_ratio", "%"),
    "fb memory usage/used": ("memory_used_bytes", "MiB"), "memory usage/used": ("memory_used_bytes", "MiB"),
    "temperature/gpu current temp": ("temperature_c", "C"), "temperature/gpu temp": ("temperature_c", "C"),
    "temperature/memory current temp": ("memory_temperature_c", "C"), "temperature/memory temp": ("memory_temperature_c", "C"),
    "clocks/sm": ("sm_clock_hz", "MHz"), "clocks/sm clock": ("sm_clock_hz", "MHz"),
    "clocks/memory": ("memory_clock_hz", "MHz"), "clocks/mem clock": ("memory_clock_hz", "MHz"),
    "fan speed": ("fan_ratio", "%"), "performance state": ("performance_state", ""),
}  # fmt: skip

KNOWN = frozenset({*POWERS, *PARTS, *OTHERS})

NAMING = {"product name": "model", "gpu uuid": "uuid", "uuid": "uuid"}
"""Entries that say which card it is."""

SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "card": pl.Int64,
    "line": pl.Int64,
    "bus": pl.String,
    "ts_utc": pl.Datetime("us", "UTC"),
    "key": pl.String,
    "raw": pl.String,
}
"""One entry of a report: ``card`` counts the reports on cards through the file."""


@dataclass
class Cards:
    """The cards of a file: numbered in the order in which they appear, which is the driver's."""

    log: Log
    names: dict[str, str] = field(default_factory=dict)
    main: dict[str, str] = field(default_factory=dict)
    renamed: dict[tuple[str, str, str], int] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    attached: int = 0

    def read(self, found: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, tuple[Channel, ...]]:
        """Return readings, rejects and new channels of entries (:data:`SCHEMA`), in file order."""
        for bus in found["bus"].unique(maintain_order=True):
            self.names.setdefault(bus, f"gpu:{len(self.names)}")
        found = found.with_columns(card_device=pl.col("bus").replace_strict(self.names, return_dtype=pl.String))
        self._choose(found)
        found = self._with_main(found)
        device, quantity, unit = self._meaning()
        known = found.filter(pl.col("key").is_in(KNOWN)).with_columns(device=device, quantity=quantity, unit=unit)
        row = pl.struct("card", "device").rank("dense").cast(pl.Int64)
        known = known.with_columns(row=row, header=pl.col("key"))
        scopes = {d: "board" if "/" not in d else "part" for d in known["device"].unique()}
        readings, rejects = entries.gather(known.select(list(entries.SCHEMA)), scopes)
        return readings, rejects, self._channels(found, known)

    def _choose(self, found: pl.DataFrame) -> None:
        """Settle which power of a new card is the main one: the first with a number."""
        fresh = found.filter(pl.col("key").is_in(list(POWERS)) & ~pl.col("card_device").is_in(list(self.main)))
        number = cells.with_own_unit(pl.col("raw"), "power_w").is_not_null()
        for (device,), mine in fresh.group_by("card_device", maintain_order=True):
            told = {POWERS[k] for k in mine.filter(number)["key"]} or {POWERS[k] for k in mine["key"]}
            self.main[str(device)] = next(p for p in _PREFERRED if p in told)

    def _with_main(self, found: pl.DataFrame) -> pl.DataFrame:
        """Return the entries with ``main``, the power field that is the card's in their report.

        A driver renewed in the middle of a log prints another name in place of the old one: from there on the card's power
        is under that name.
        """
        query = pl.col("key").replace_strict(POWERS, default=None, return_dtype=pl.String)
        usual = pl.col("card_device").replace_strict(self.main, default="power.draw", return_dtype=pl.String)
        found = found.with_columns(query=query, main=usual)
        number = cells.with_own_unit(pl.col("raw"), "power_w").is_not_null()
        has = {p: ((pl.col("query") == p) & number).any().over("card") for p in _PREFERRED}
        instead = pl.coalesce(*(pl.when(has[p]).then(pl.lit(p)) for p in _PREFERRED), "main")
        lacks = ~(pl.col("query") == pl.col("main")).any().over("card").fill_null(value=False)
        found = found.with_columns(now=pl.when(lacks).then(instead).otherwise("main"))
        other = found.filter(pl.col("now") != pl.col("main")).unique(["card_device", "main", "now"], keep="first")
        for device, old, new, line in other.select("card_device", "main", "now", "line").iter_rows():  # a few a file
            self.renamed.setdefault((device, old, new), line)
        return found.with_columns(main="now").drop("now")

    def _meaning(self) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
        """Return expressions for the device, quantity and unit of each entry."""
        query, main = pl.col("query"), pl.col("main")
        suffix = (
            pl.when(query.is_not_null() & (query != main)).then(query.str.replace("power.draw", "").str.replace(r"^\.", "/"))
            .otherwise(pl.lit("/") + pl.col("key").replace_strict(PARTS, default=None, return_dtype=pl.String))
        )  # fmt: skip
        suffix = pl.when(suffix == "").then(pl.lit("/draw")).otherwise(suffix).fill_null("")
        other = {k: q for k, (q, _) in OTHERS.items()}
        units = {k: u for k, (_, u) in OTHERS.items()}
        quantity = pl.col("key").replace_strict(other, default="power_w", return_dtype=pl.String)
        return (
            pl.col("card_device") + suffix,
            quantity,
            pl.col("key").replace_strict(units, default="W", return_dtype=pl.String),
        )

    def _channels(self, found: pl.DataFrame, known: pl.DataFrame) -> tuple[Channel, ...]:
        naming: dict[str, dict[str, str]] = {}
        told = found.filter(pl.col("key").is_in(list(NAMING))).unique(
            ["card_device", "key"], keep="first", maintain_order=True
        )
        for device, key, raw in told.select("card_device", "key", "raw").iter_rows():  # a few rows a card
            naming.setdefault(device, {}).setdefault(NAMING[key], raw)
        fresh = []
        for device in known["device"].unique(maintain_order=True):
            if device in self.seen:
                continue
            self.seen.add(device)
            card, _, part = device.partition("/")
            name = naming.get(card, {})
            if part:
                fresh.append(Channel(device, "part", name.get("model", ""), name.get("uuid", "")))
                continue
            window_s = self.log.options.window_s or boards.power_window_s(
                name.get("model", ""), self.main.get(card, "")
            )
            kind = "instant" if window_s is None else "mean"
            fresh.append(Channel(device, "board", name.get("model", ""), name.get("uuid", ""), kind, window_s))
        return tuple(fresh)

    def findings(self) -> tuple[Finding, ...]:
        """Return what the reader should know once the whole file is read."""
        found = []
        if self.attached > len(self.names):
            found.append(Finding(
                "cards-left-out", Severity.WARNING, self.log.name,
                f"The report lists {len(self.names)} of {self.attached} attached cards: gpu:0 is the first card listed, not the driver's, "
                "and the node's board power is more than this.", {"listed": len(self.names), "attached": self.attached},
            ))  # fmt: skip
        for (device, old, new), line in self.renamed.items():
            found.append(Finding(
                "power-field-changed", Severity.WARNING, self.log.name,
                f"From line {line} on, {device} reports {new} and no longer {old} (a driver was renewed): both are read as its power. They "
                "need not average over the same time: do not compare peaks, scatter or short phases across that line.",
                {"device": device, "line": line, "before": old, "after": new},
            ))  # fmt: skip
        if self.names and not self.main:
            found.append(Finding(
                "no-power-column", Severity.WARNING, self.log.name,
                "The report has no power readings (-d without POWER?): it says nothing about energy.",
            ))  # fmt: skip
        return tuple(found)


def refuse_empty(log: Log, stamps_: Sequence[str]) -> None:
    """Refuse a report without a time.

    Raises
    ------
    LogRefusedError
        There is no stamp in the file.
    """
    if not stamps_:
        raise LogRefusedError(f"{log.name}: the report has no timestamp line; without times there is no energy")


def no_entries() -> pl.DataFrame:
    """Return an empty frame of :data:`SCHEMA`."""
    return pl.DataFrame(schema=SCHEMA)


__all__ = ["KNOWN", "NAMING", "SCHEMA", "Cards", "no_entries", "refuse_empty"]
