"""Where the effect of a change comes from: duration, power level and phase mix, in parts that add up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from joulebook import ancova, campaign_runs, distributions
from joulebook.campaign import Effects
from joulebook.findings import Finding, Severity

Array = npt.NDArray[np.float64]

LEAST_REST_RATIO = 1e-3
"""Share of a run outside of named phases below which no phase of its own is made of the rest."""
_SCHEMA: dict[str, type[pl.DataType]] = {
    "scope": pl.String, "position": pl.Int32, "change": pl.String, "part": pl.String,
    "effect_ratio": pl.Float64, "effect_lo": pl.Float64, "effect_hi": pl.Float64, "log_effect": pl.Float64,
}  # fmt: skip


@dataclass(frozen=True)
class Decomposition:
    """Parts of each change's effect.

    Parameters
    ----------
    parts
        ``scope``, ``position``, ``change``, ``part`` (``duration``, ``power-level``, ``phase-mix``), ``effect_ratio``,
        ``effect_lo``, ``effect_hi``, ``log_effect``. The parts of a change add up to its effect.
    findings
        Changes without phases.
    """

    parts: pl.DataFrame
    findings: tuple[Finding, ...] = ()


def split(effects: Effects, *, phases: pl.DataFrame | None = None) -> Decomposition:
    """Return how much of each effect is duration, power level and phase mix.

    Energy per token is time per token times mean power. Mean power changes because phases draw other powers (level)
    or because time moves between phases of different power (mix). Each run is taken apart against the mean of the two
    variants, and each part goes through the same model as the effect; so the parts add up, at equal inlet.

    Parameters
    ----------
    effects
        Effects of an energy per unit of work; its runs carry ``time_per_token_s`` (time per unit of work [s]).
    phases
        ``run_id``, ``phase``, ``share_ratio`` (of the run's time), ``power_w`` (mean in the phase [W]) and ``scope``
        where there is more than one. What phases leave of a run is a phase of its own. Without phases, mean power is
        not split and counts as level.

    Returns
    -------
    Decomposition
        Nothing for refused changes.

    Raises
    ------
    ValueError
        The runs have no ``time_per_token_s``, or the phases lack a column.

    References
    ----------
    Ang, The LMDI approach to decomposition analysis, Energy Policy 33 (2005) 867-871, doi:10.1016/j.enpol.2003.10.010.

    Examples
    --------
    >>> from joulebook import campaign
    >>> runs = pl.DataFrame({"run_id": list("abcdef"), "variant": ["base"] * 3 + ["new"] * 3,
    ...     "value": [1.0, 1.01, 0.99, 0.81, 0.82, 0.80], "time_per_token_s": [0.01] * 3 + [0.009] * 3})
    >>> done = split(campaign.effects(runs, order=["base", "new"]))
    >>> [(part, round(effect, 3)) for part, effect in done.parts.select("part", "effect_ratio").rows()]
    [('duration', -0.095), ('power-level', -0.095)]
    """
    runs = effects.runs
    if "time_per_token_s" not in runs.columns:
        raise ValueError(f"runs of the effects have no column time_per_token_s; they have {', '.join(runs.columns)}")
    frames, found = [], []
    for scope in runs["scope"].unique(maintain_order=True):
        at = runs.filter((pl.col("scope") == scope) & (pl.len().over("scope", "variant") >= campaign_runs.LEAST_RUNS))
        table = _of_scope(phases, scope)
        changes = effects.changes.filter((pl.col("scope") == scope) & (pl.col("verdict") != "refused"))
        for position, change, effect in changes.select("position", "change", "effect_ratio").iter_rows():
            before = effects.order[position - 1]
            frames.append(_parts(at, table, before, change, effect=effect, key=(scope, position)))
        if table is None and changes.height:
            message = "No phases are known, so a change of mean power is not split into power level and phase mix."
            found.append(Finding("decomposition-without-phases", Severity.NOTE, str(scope), message))
    empty = pl.DataFrame(schema=_SCHEMA)
    return Decomposition(pl.concat([empty, *frames]), tuple(found))


def _of_scope(phases: pl.DataFrame | None, scope: str) -> pl.DataFrame | None:
    """Return the phases of one scope, or None where there are none."""
    if phases is None:
        return None
    missing = [c for c in ("run_id", "phase", "share_ratio", "power_w") if c not in phases.columns]
    if missing:
        raise ValueError(f"phases has no column {', '.join(missing)}; it has {', '.join(phases.columns)}")
    table = phases.filter(pl.col("scope") == scope) if "scope" in phases.columns else phases
    return table if table.height else None


def _parts(
    runs: pl.DataFrame, phases: pl.DataFrame | None, before: str, change: str, *, effect: float, key: tuple[str, int]
) -> pl.DataFrame:
    """Return the parts of one change through the model of its effect."""
    design = ancova.choose(runs)
    power = (pl.col("value") / pl.col("time_per_token_s")).log()
    table = runs.with_columns(duration=pl.col("time_per_token_s").log(), power=power)
    names = {"duration": "duration", "power-level": "power"}
    known = phases is not None and set(runs["run_id"]) <= set(phases["run_id"])
    if phases is not None and known:
        pair = runs["variant"].is_in([before, change]).to_numpy()
        mix, level = _power_parts(table.select(pl.col("power").exp()).to_series().to_numpy(), runs, phases, pair)
        table = table.with_columns(mix=pl.Series(mix), level=pl.Series(level))
        names = {"duration": "duration", "power-level": "level", "phase-mix": "mix"}
    whole = ancova.contrast(runs, before, change, design=design)
    rows = []
    for part, column in names.items():
        c = ancova.contrast(table, before, change, design=design, response=column)
        if c is None or whole is None:
            continue
        # Log parts add up to the log effect; one common factor carries them over to parts of the ratio.
        scale = effect / whole.log_ratio if abs(whole.log_ratio) > 1e-12 else 1.0
        half = float(distributions.student_quantile(0.975, c.dof)) * c.se
        ends = (scale * (c.log_ratio - half), scale * (c.log_ratio + half))
        rows.append((*key, change, part, scale * c.log_ratio, *ends, c.log_ratio))
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _power_parts(
    mean_power: Array, runs: pl.DataFrame, phases: pl.DataFrame, pair: npt.NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Return what phase mix and phase power add to the log of each run's mean power, against the pair's mean."""
    share, power = _profiles(mean_power, runs["run_id"], phases)
    weight = np.where(np.isfinite(power), share, 0.0)
    filled = np.nan_to_num(power)

    def profile(rows: npt.NDArray[np.bool_]) -> Array:
        total = weight[rows].sum(axis=0)
        energy = (weight * filled)[rows].sum(axis=0)
        return np.asarray(np.divide(energy, total, out=np.full(total.size, np.nan), where=total > 0))

    reference_share = share[pair].mean(axis=0)
    everywhere = profile(np.ones(pair.size, dtype=bool))
    at_pair = profile(pair)
    reference_power = np.nan_to_num(np.where(np.isnan(at_pair), everywhere, at_pair))
    own = np.where(weight > 0, filled, reference_power)
    mix = ((reference_power + own) / 2 * (share - reference_share)).sum(axis=1)
    level = ((reference_share + share) / 2 * (own - reference_power)).sum(axis=1)
    reference = float(reference_share @ reference_power)
    change = mix + level
    ratio = 1 + change / reference
    # The logarithmic mean turns a difference of watts into one of logarithms without a rest.
    with np.errstate(divide="ignore", invalid="ignore"):
        log_mean = np.where(np.abs(ratio - 1) < 1e-12, reference, change / np.log(ratio))
    return mix / log_mean, level / log_mean


def _profiles(mean_power: Array, run_ids: pl.Series, phases: pl.DataFrame) -> tuple[Array, Array]:
    """Return share of time and power, shape (runs, phases), with the rest of each run as a last phase."""
    grid = pl.DataFrame({"run_id": run_ids, "__order": np.arange(len(run_ids))})

    def matrix(column: str) -> Array:
        wide = phases.pivot(on="phase", index="run_id", values=column, aggregate_function="sum", sort_columns=True)
        joined = grid.join(wide, on="run_id", how="left").sort("__order").drop("run_id", "__order")
        return joined.fill_null(0.0).to_numpy().astype(np.float64)

    share = matrix("share_ratio")
    energy = share * matrix("power_w")
    rest = 1 - share.sum(axis=1)
    rest_energy = mean_power - energy.sum(axis=1)
    # A rest of time with an energy that can be its own becomes a phase; else the phases are scaled to the mean power.
    is_phase = (rest > LEAST_REST_RATIO) & (rest_energy >= 0)
    scale = np.where(is_phase, 1.0, mean_power / energy.sum(axis=1))
    stretch = np.where(is_phase, 1.0, 1 / share.sum(axis=1))
    energy = np.column_stack([energy * scale[:, None], np.where(is_phase, rest_energy, 0.0)])
    share = np.column_stack([share * stretch[:, None], np.where(is_phase, rest, 0.0)])
    return share, np.divide(energy, share, out=np.full(share.shape, np.nan), where=share > 0)
