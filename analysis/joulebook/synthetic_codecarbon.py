"""What CodeCarbon would have written of the runs of a made-up record, in the columns and meanings of its versions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from joulebook.synthetic_meter import JOULE_PER_KWH
from joulebook.synthetic_truth import Truth
from joulebook.synthetic_witness import UTC_CLOCK, Clock, lines, shifted

_V1 = (
    "timestamp", "experiment_id", "project_name", "duration", "emissions", "energy_consumed", "country_name",
    "country_iso_code", "region", "on_cloud", "cloud_provider", "cloud_region",
)  # fmt: skip
_V2 = (
    "timestamp", "project_name", "run_id", "duration", "emissions", "emissions_rate", "cpu_power", "gpu_power",
    "ram_power", "cpu_energy", "gpu_energy", "ram_energy", "energy_consumed", "country_name", "country_iso_code",
    "region", "cloud_provider", "cloud_region", "os", "python_version", "cpu_count", "cpu_model", "gpu_count",
    "gpu_model", "longitude", "latitude", "ram_total_size", "tracking_mode", "on_cloud",
)  # fmt: skip


def _with(columns: tuple[str, ...], after: str, *new: str) -> tuple[str, ...]:
    at = columns.index(after) + 1
    return (*columns[:at], *new, *columns[at:])


_V2_2_0 = _with(_V2, "python_version", "codecarbon_version")
_V2_2_3 = (*_V2_2_0, "pue")
_V2_7_0 = _with(_V2_2_3, "run_id", "experiment_id")
_V3_0_8 = (*_with(_V2_7_0, "energy_consumed", "water_consumed"), "wue")
_V3_2_1 = _with(
    _V3_0_8, "tracking_mode", "cpu_utilization_percent", "gpu_utilization_percent", "ram_utilization_percent",
    "ram_used_gb",
)  # fmt: skip

COLUMNS = {
    (1, 0, 0): _V1, (2, 0, 0): _V2, (2, 2, 0): _V2_2_0, (2, 2, 3): _V2_2_3, (2, 7, 0): _V2_7_0, (3, 0, 8): _V3_0_8,
    (3, 2, 1): _V3_2_1,
}  # fmt: skip
"""Columns from each version on that changed them."""

MEAN_POWER_FROM = (3, 1, 2)
"""Power columns are the last sample before this version, and the mean over samples from it on."""

POWER_WITH_PUE_FROM = (3, 3, 1)
"""Power columns include PUE from this version on; energies always do."""

SLOT_MODEL_FROM = (3, 0, 0)
"""Memory power is 3 W for each 8 GB before this version, and 5 W a slot from it on."""

SAMPLE_S = 15.0
"""How often CodeCarbon samples power [s]."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """What CodeCarbon is told of the place.

    Parameters
    ----------
    carbon_kg_per_kwh
        Grid intensity [kg/kWh].
    pue
        Facility over IT energy, as configured in the tracker.
    country_name, country_iso_code
        Country.
    """

    carbon_kg_per_kwh: float = 0.581
    pue: float = 1.0
    country_name: str = "China"
    country_iso_code: str = "CHN"


def columns(version: str) -> tuple[str, ...]:
    """Return the columns that a version writes.

    Raises
    ------
    ValueError
        The version is older than 1.0.0 or no version.

    Examples
    --------
    >>> [len(columns(v)) for v in ("1.2.0", "2.1.4", "2.2.1", "2.3.5", "2.8.3", "3.0.8", "3.3.2")]
    [12, 29, 30, 31, 32, 34, 38]
    """
    number = _number(version)
    if number < (1, 0, 0):
        raise ValueError(f"version is {version!r}; it must be 1.0.0 or later")
    return COLUMNS[max(v for v in COLUMNS if v <= number)]


def emissions_csv(
    truth: Truth,
    *,
    version: str = "3.3.2",
    project: str = "pretraining",
    site: Site | None = None,
    clock: Clock = UTC_CLOCK,
    ram_gb: float = 1024.0,
    ram_slots: int = 16,
    seed: int = 0,
) -> str:
    """Return emissions.csv with one row a run.

    Parameters
    ----------
    truth
        What happened.
    version
        Version of CodeCarbon, which decides on columns and on what the power columns mean.
    project
        Name of the project.
    site
        What the tracker was told of the place.
    clock
        Clock of the host; stamps are local, without an offset, and taken at the end of the run.
    ram_gb, ram_slots
        Memory that its model of memory power assumes [GB], and its slots.
    seed
        Seed of the identifiers.

    Returns
    -------
    str
        The file's text. Energies [kWh] of processors and boards are true; that of the memory follows the version's
        model, not the truth.

    Raises
    ------
    ValueError
        The version is older than 1.0.0 or no version.

    Examples
    --------
    >>> from joulebook import synthetic
    >>> print(emissions_csv(synthetic.node(1), version="1.2.0").splitlines()[1][:19])
    2026-11-02T01:24:57
    """
    site = site or Site()
    names = columns(version)
    rows = [
        _row(truth, run_id, version=version, project=project, site=site, ram_gb=ram_gb, ram_slots=ram_slots)
        for run_id in truth.runs["run_id"]
    ]
    ends = shifted(truth, truth.runs["end_utc"], clock=clock).dt.strftime("%Y-%m-%dT%H:%M:%S")
    idents = _identifiers(len(rows) + 1, seed=seed)
    table = pl.DataFrame(rows, infer_schema_length=None).with_columns(
        pl.Series("timestamp", ends),
        pl.Series("run_id", idents[1:]),
        pl.Series("experiment_id", [idents[0]] * len(rows)),
    )
    return ",".join(names) + "\n" + lines(table.select(names), ",")


def _number(version: str) -> tuple[int, ...]:
    parts = version.split(".")
    if len(parts) != 3 or not all(p.isdigit() for p in parts):
        raise ValueError(f"version is {version!r}; it must be three numbers, e.g. '3.3.2'")
    return tuple(int(p) for p in parts)


def _row(
    truth: Truth, run_id: str, *, version: str, project: str, site: Site, ram_gb: float, ram_slots: int
) -> dict[str, str]:
    """Return the cells of a run, all that any version knows."""
    number = _number(version)
    grid = truth.node.filter(pl.col("run_id") == run_id)
    seconds = grid.height * truth.cell_s
    ram_w = 5.0 * ram_slots if number >= SLOT_MODEL_FROM else ram_gb * 3.0 / 8.0
    mean_w = {"cpu": truth.energy_j(run_id, "package") / seconds, "gpu": truth.energy_j(run_id, "board") / seconds}
    last_at = max(0, int((seconds // SAMPLE_S) * SAMPLE_S / truth.cell_s) - 1)
    last_w = {"cpu": float(grid["cpu_power_w"][last_at]), "gpu": float(grid["board_power_w"][last_at])}
    shown_w = mean_w if number >= MEAN_POWER_FROM else last_w
    on_power = site.pue if number >= POWER_WITH_PUE_FROM else 1.0
    kwh = {part: w * seconds / JOULE_PER_KWH * site.pue for part, w in {**mean_w, "ram": ram_w}.items()}
    total_kwh = sum(kwh.values())
    emissions_kg = total_kwh * site.carbon_kg_per_kwh
    cells = {
        "project_name": project, "duration": seconds, "emissions": emissions_kg,
        "emissions_rate": emissions_kg / seconds, "cpu_power": shown_w["cpu"] * on_power,
        "gpu_power": shown_w["gpu"] * on_power, "ram_power": ram_w * on_power, "cpu_energy": kwh["cpu"],
        "gpu_energy": kwh["gpu"], "ram_energy": kwh["ram"], "energy_consumed": total_kwh, "water_consumed": 0.0,
        "country_name": site.country_name, "country_iso_code": site.country_iso_code, "region": "",
        "cloud_provider": "", "cloud_region": "", "os": "Linux", "python_version": "3.11.7",
        "codecarbon_version": version, "cpu_count": 64, "cpu_model": "made up", "gpu_count": truth.machine.boards,
        "gpu_model": f"{truth.machine.boards} x {truth.machine.model}", "longitude": "", "latitude": "",
        "ram_total_size": ram_gb, "tracking_mode": "machine", "cpu_utilization_percent": 61.0,
        "gpu_utilization_percent": 88.0, "ram_utilization_percent": 21.0, "ram_used_gb": ram_gb * 0.21,
        "on_cloud": "N", "pue": site.pue, "wue": 0.0,
    }  # fmt: skip
    return {name: f"{v:.12g}" if isinstance(v, float) else str(v) for name, v in cells.items()}


def _identifiers(n: int, *, seed: int) -> list[str]:
    """Return identifiers in the form of UUIDs."""
    rng = np.random.Generator(np.random.PCG64([seed, 15]))
    made = [rng.bytes(16).hex() for _ in range(n)]
    return [f"{h[:8]}-{h[8:12]}-4{h[13:16]}-8{h[17:20]}-{h[20:]}" for h in made]
