"""Tables with a row per value: which column is the time, the value and the name of the series, and what a series measures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from joulebook_pipelines.logs import cells, device_places, meter_titles, prometheus_names
from joulebook_pipelines.logs.contract import Options

_SETS = (
    # time, value, what names the series; all in lower case
    ("_time", "_value", ("_measurement", "_field")),
    ("last_changed", "state", ("entity_id",)),
    ("last_updated", "state", ("entity_id",)),
    ("time", "value", ("series",)),
    ("timestamp", "value", ("__name__",)),
    ("time", "value", ("__name__",)),
    ("timestamp", "metricvalue", ("metricid",)),
    ("timestamp", "value", ("metric",)),
    ("time", "value", ("metric",)),
    ("timestamp", "value", ("metric_name",)),
    ("timestamp", "value", ("key",)),
    ("timestamp", "value", ("field",)),
    ("time", "value", ("field",)),
)
"""Titles of exports: InfluxDB, Home Assistant, Grafana, Prometheus, iDRAC telemetry, MLflow, and plain ones."""

_NOT_ABOUT = {
    "", "result", "table", "_start", "_stop", "unit", "unit_of_measurement", "step", "run_id", "context", "attributes", "job", "uuid",
    "last_updated", "last_changed", "friendly_name", "id", "timestamp", "modelname", "pci_bus_id", "driver_version", "device",
}  # fmt: skip
_HEADER = re.compile(r"(?i)\b(?:_value|state|value|metricvalue)\b")


@dataclass(frozen=True)
class Columns:
    """Places of the columns, from 0; ``about`` are tags such as the host."""

    time: int
    value: int
    names: tuple[int, ...]
    unit: int | None
    about: tuple[int, ...]


def may_be_header(line: str) -> bool:
    """Tell quickly whether a line may hold titles."""
    return _HEADER.search(line) is not None


def columns(titles: Sequence[str]) -> Columns | None:
    """Return where an export has time, value and series; ``None`` where the titles are not those of one.

    Examples
    --------
    >>> columns(["entity_id", "state", "last_changed"])
    Columns(time=2, value=1, names=(0,), unit=None, about=())
    """
    folded = [t.strip().strip("#").strip().casefold() for t in titles]
    if "resource_kind" in folded:  # Alumet's own table, which has its own reader
        return None
    for time, value, names in _SETS:
        if not {time, value, names[-1]} <= set(folded):
            continue
        unit = next((folded.index(u) for u in ("unit", "unit_of_measurement") if u in folded), None)
        named = tuple(folded.index(n) for n in names if n in folded)
        taken = {folded.index(time), folded.index(value), *named}
        about = tuple(i for i, t in enumerate(folded) if i not in taken and t not in _NOT_ABOUT)
        return Columns(folded.index(time), folded.index(value), named, unit, about)
    return None


@dataclass
class Told:
    """What the series of a file measure.

    Parameters
    ----------
    frame
        ``name, about, device, quantity, unit`` (unit of the numbers) of the series that are read.
    scopes
        Boundary of each device.
    counters
        Devices whose energies count on.
    without_unit
        Series of power or energy that do not say their unit.
    on_change
        A line stands only where the value changed.
    intervals
        Series of energies that do not count on, which are not read.
    """

    frame: pl.DataFrame
    scopes: dict[str, str]
    unread: tuple[str, ...]
    without_unit: tuple[str, ...] = ()
    missing_units: str = ""
    on_change: bool = False
    counters: list[str] = field(default_factory=list)
    intervals: list[str] = field(default_factory=list)

    def of_counters(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows with energies that only grow as counters, without those that do not: they are of the interval before."""
        energies = rows.filter(pl.col("quantity") == "energy_j")
        if energies.is_empty():
            return rows
        number = energies["raw"].str.extract(r"([\d.]+)").cast(pl.Float64, strict=False)
        falls = (
            energies.with_columns(n=number).sort("ts_utc", maintain_order=True)  # some exports begin with the newest
            .group_by("device").agg(falls=(pl.col("n").drop_nulls().diff() < 0).mean())
        )  # fmt: skip
        self.counters = falls.filter(pl.col("falls").fill_null(0.0) < 0.05)["device"].to_list()
        counts = (pl.col("quantity") == "energy_j") & pl.col("device").is_in(self.counters)
        rows = rows.with_columns(
            pl.when(counts).then(pl.lit("energy_counter_j")).otherwise("quantity").alias("quantity")
        )
        self.intervals = rows.filter(pl.col("quantity") == "energy_j")["name"].unique(maintain_order=True).to_list()
        return rows.filter(pl.col("quantity") != "energy_j")


def tell(rows: pl.DataFrame, options: Options) -> Told:
    """Return what the series of rows with ``name, about, unit`` measure."""
    kinds = rows.select("name", "about", "unit").unique(maintain_order=True)
    found, unread, lacking, wanted = [], [], [], {}
    scopes: dict[str, str] = {}
    tags: dict[str, str] = {}
    for name, about, unit in kinds.iter_rows():  # one turn a series, not a row
        meant = _meaning(name, about, unit, options)
        if meant is None:
            unread.append(name)
            continue
        device, scope, quantity, said = meant
        if not said:
            lacking.append(name)
            wanted["power_w" if quantity == "power_w" else "energy_counter_j"] = "W" if quantity == "power_w" else "kWh"
            continue
        number = device.rpartition(":")[2]
        tags[f"{name} {about}"] = " ".join(w for w in about.split(" ") if w != number)
        scopes[device] = scope if scopes.get(device, "part") == "part" else scopes[device]
        found.append((name, about, unit, device, quantity, said))
    if len(set(tags.values())) > 1:  # several hosts in one file
        found = [(n, a, u, f"{d}@{t}" if (t := tags[f"{n} {a}"]) else d, q, s) for n, a, u, d, q, s in found]
        scopes |= {d: scopes[d.partition("@")[0]] for _, _, _, d, _, _ in found}
    names = ("name", "about", "unit", "device", "quantity", "said")
    frame = pl.DataFrame(found, schema=dict.fromkeys(names, pl.String), orient="row")
    frame = frame.unique(["name", "about"], keep="first", maintain_order=True).select(
        "name", "about", "device", "quantity", pl.col("said").alias("unit_said")
    )
    missing = ", ".join(f'{k} = "{v}"' for k, v in wanted.items())
    on_change = any("." in n and re.match(r"^[a-z_]+\.[a-z0-9_]+$", n) for n in kinds["name"].head(50).to_list())
    frame = frame.rename({"unit_said": "unit"})
    return Told(frame, scopes, tuple(dict.fromkeys(unread)), tuple(dict.fromkeys(lacking)), missing, on_change)


def _meaning(name: str, about: str, unit: str, options: Options) -> tuple[str, str, str, str] | None:
    """Return device, scope, quantity and unit of a series; unit ``""`` where nothing says it."""
    labels = {}
    bare = name.rsplit(" ", maxsplit=1)[-1]
    if match := re.match(r"^(\w+)\{(.*)\}$", name):
        bare = match[1]
        labels = dict(re.findall(r'(\w+)=\\?"?([^",}\\]*)', match[2]))
    if prometheus_names.looks_known(bare):
        numbers = re.findall(r"\b\d{1,2}\b", about)
        told = prometheus_names.classify(bare, {"gpu": numbers[0] if numbers else "0", **labels})
        if told:
            device = told[0].device
            if device.endswith(":"):
                device += labels.get("gpu") or (numbers[0] if numbers else "0")
            return device, told[0].scope, told[0].quantity, told[0].unit
    plain = re.sub(r"^(?:sensor|number|input_number)\.", "", name)
    meant = meter_titles.meaning(re.sub(r"[^\w %()\[\]./-]+", " ", plain)[:60], unit)
    if meant.role != "quantity" or meant.quantity == "power_limit_w":
        return None
    key = "energy_counter_j" if meant.quantity == "energy_j" else meant.quantity
    said = meant.unit or options.units.get(key, "") or options.units.get(meant.quantity, "")
    if not said and meant.quantity not in {"power_w", "energy_j"}:
        return None
    if said and cells.factor(meant.quantity, said) is None:
        return None
    device, scope = device_places.of(meant.place, options)
    power = meant.quantity in {"power_w", "energy_j"}
    return device, scope if power else "part", meant.quantity, said
