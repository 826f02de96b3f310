"""The best setting of a sweep with an interval for its place, or why none can be named."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from joulebook import objectives, pareto, sweep_points
from joulebook.findings import Finding, Severity
from joulebook.objectives import ENERGY_TO_TARGET, Objective
from joulebook.schema import table
from joulebook.sweep_points import Array, Points
from joulebook.sweet_spot_rules import AS_GOOD_RATIO, Verdict, judge

Mask = npt.NDArray[np.bool_]

SET_LEVEL = 0.95
DRAWS = 4000
"""Draws: 0.3 points of standard error on a 95 % bound."""


@dataclass(frozen=True)
class SweetSpot:
    """The best setting of a sweep for one objective.

    Parameters
    ----------
    row
        One row of table ``sweet_spots`` without ``sweep``.
    settings
        One row a setting: ``x``, ``repeats``, ``value`` (the objective), ``value_lo``, ``value_hi``, ``p_best``
        (probability to be the least), ``in_best_set`` (95 % set), ``as_good`` (within 3 % of the least), ``energy_j``,
        ``time_s`` and ``on_front`` (energy-time front; null without power).
    findings
        Doubts about it.
    """

    row: pl.DataFrame
    settings: pl.DataFrame
    findings: tuple[Finding, ...] = ()

    @property
    def status(self) -> str:
        """``found``, ``flat``, ``edge``, ``too-few`` or ``refused``."""
        return str(self.row["status"][0])


def find(runs: pl.DataFrame, *, objective: Objective | str = ENERGY_TO_TARGET, seed: int = 0) -> SweetSpot:
    """Return the setting that makes the objective least, with an interval for its place.

    Means of energy, tokens and power are redrawn with the spread of their runs; the setting that wins in each draw
    gives the chance of each to be best. Where the curve is smooth around its minimum, the place between the settings
    follows from a cubic in log x through the nearest five. No optimum is claimed at the end of the range, among too
    few settings or repeats, or where more than half of the settings may be best.

    Parameters
    ----------
    runs
        One row a run, as for ``sweep.curves``. A setting that lacks what the objective needs is left out (a setting
        that never reached the target loss is none).
    objective
        What to make least; a name or one of ``joulebook.objectives``.
    seed
        Of the draws; the same seed gives the same result.

    Returns
    -------
    SweetSpot
        With ``status``: ``found``; ``flat`` (any setting from x_lo to x_hi is as good); ``edge`` (x is the end of the
        range or may be: extend the sweep); ``too-few`` (settings or repeats); ``refused``.

    Raises
    ------
    ValueError
        ``x`` is missing, a quantity is not positive, or the objective has no such name.

    References
    ----------
    You, Chung, Chowdhury, Zeus: Understanding and Optimizing GPU Energy Consumption of DNN Training, NSDI 2023,
    arXiv:2208.06102.

    Examples
    --------
    >>> x = [8.0, 16, 32, 64, 128] * 3
    >>> energy = [(1 + (i // 5 - 1) / 200) * (b / 32 + 32 / b) for i, b in enumerate(x)]
    >>> spot = find(pl.DataFrame({"x": x, "energy_per_token_j": energy}), objective="energy_per_token_j")
    >>> spot.status, round(spot.row["x"][0])
    ('found', 32)
    """
    goal = objectives.named(objective) if isinstance(objective, str) else objective
    checked = sweep_points.check(runs)
    energy, time = _drawn(checked, goal, seed)
    n = _repeats(checked, goal)
    usable = np.isfinite(energy.mean)
    if goal.about_time:
        usable &= np.isfinite(time.mean)
    if usable.sum() == 0:
        return SweetSpot(_row(goal, _refused(goal)), _no_settings(), _finding(goal, _refused(goal)))
    x = energy.x[usable]
    with np.errstate(invalid="ignore"):
        mean = goal.cost(np.exp(energy.mean[usable]), np.exp(time.mean[usable]))
        costs = goal.cost(np.exp(energy.sample[:, usable]), np.exp(time.sample[:, usable]))
    error = np.fmax(energy.se, time.se)[usable] if goal.about_time else energy.se[usable]
    known_spread = np.isfinite(error)
    settings = _settings(x, n[usable], mean, costs, known_spread)
    settings = settings.with_columns(
        energy_j=pl.Series(np.exp(energy.mean[usable])), time_s=pl.Series(np.exp(time.mean[usable])).fill_nan(None)
    )
    settings = pareto.front(settings, energy="energy_j", time="time_s")
    judged = judge(settings, costs, known_spread, error)
    return SweetSpot(_row(goal, judged), settings, _finding(goal, judged))


@dataclass(frozen=True)
class _Draws:
    x: Array
    mean: Array
    se: Array
    sample: Array


def _drawn(runs: pl.DataFrame, goal: Objective, seed: int) -> tuple[_Draws, _Draws]:
    """Return draws of log energy and log time per setting on the objective's basis.

    Tokens to target are drawn once and enter both, so that a setting's energy and time move together.
    """
    rng = np.random.default_rng(seed)
    # Repeats show all of the error that differs between settings; what their measurement intervals hold beyond it is
    # the instrument's, moves all settings alike and must not blur which is best.
    repeated = runs.height > runs["x"].n_unique()
    unknown = pl.lit(None, pl.Float64)

    def noise(name: str) -> pl.Expr:
        return unknown if repeated else sweep_points.noise_of(name)

    energy = sweep_points.of(runs, pl.col("energy_per_token_j"), noise("energy_per_token_j"))
    per_token = pl.col("energy_per_token_j") / pl.col("mean_power_w")
    spread = (noise("energy_per_token_j").pow(2) + noise("mean_power_w").pow(2)).sqrt()
    time = sweep_points.of(runs, per_token, spread)
    parts = [energy, time]
    samples = [p.draws(DRAWS, rng) for p in parts]
    means, errors = [p.mean for p in parts], [p.se for p in parts]
    if goal.basis == "target":
        tokens = sweep_points.of(runs, pl.col("tokens_to_target"), noise("tokens_to_target"))
        shared = tokens.draws(DRAWS, rng)
        if _same(tokens):
            # The knob (a cap, a clock) does not touch learning and the same trainings stand behind every setting:
            # their spread moves all settings together.
            shared, tokens = shared[:, :1], replace(tokens, se=np.where(np.isfinite(tokens.se), 0.0, np.nan))
        samples = [s + shared for s in samples]
        means = [m + tokens.mean for m in means]
        # One of the two may be known without a spread: tokens given from elsewhere, or a power measured once.
        neither = [np.isnan(e) & np.isnan(tokens.se) for e in errors]
        errors = [np.hypot(np.nan_to_num(e), np.nan_to_num(tokens.se)) for e in errors]
        errors = [np.where(n, np.nan, e) for n, e in zip(neither, errors, strict=True)]
    made = [_Draws(energy.x, m, e, s) for m, e, s in zip(means, errors, samples, strict=True)]
    return made[0], made[1]


def _same(tokens: Points) -> bool:
    """Return whether every setting has the very same tokens to target."""
    return bool(
        tokens.x.size > 1 and np.ptp(tokens.mean) < 1e-12 and np.ptp(tokens.se) < 1e-12 and np.ptp(tokens.n) == 0
    )


def _repeats(runs: pl.DataFrame, goal: Objective) -> npt.NDArray[np.int64]:
    """Return how many independent runs stand behind each setting: of the quantity with the most, energy or tokens.

    A training to the target loss is often repeated with seeds while its power was measured once; the seeds are the
    repeats then.
    """
    counted: list[Points] = [sweep_points.of(runs, pl.col("energy_per_token_j"), pl.lit(None, pl.Float64))]
    if goal.basis == "target":
        counted.append(sweep_points.of(runs, pl.col("tokens_to_target"), pl.lit(None, pl.Float64)))
    return np.asarray(np.max([p.n for p in counted], axis=0), dtype=np.int64)


def _settings(x: Array, n: npt.NDArray[np.int64], mean: Array, costs: Array, known: Mask) -> pl.DataFrame:
    """Return the settings with interval, chance to be best and sets of equals."""
    best = np.bincount(np.argmin(costs, axis=1), minlength=x.size) / costs.shape[0]
    with np.errstate(invalid="ignore"):
        lo, hi = np.quantile(costs, [0.025, 0.975], axis=0, method="nearest")
    order = np.argsort(-best, kind="stable")
    before = np.cumsum(best[order]) - best[order]
    in_set = np.zeros(x.size, dtype=bool)
    in_set[order[before < SET_LEVEL]] = True
    return pl.DataFrame(
        {
            "x": x, "repeats": n, "value": mean,
            "value_lo": np.where(known, lo, np.nan), "value_hi": np.where(known, hi, np.nan),
            "p_best": best, "in_best_set": in_set, "as_good": mean <= (1 + AS_GOOD_RATIO) * mean.min(),
        }
    ).with_columns(pl.col("value_lo", "value_hi").fill_nan(None))  # fmt: skip


def _refused(goal: Objective) -> Verdict:
    needs = ["energy_per_token_j", *(["mean_power_w"] if goal.about_time else [])]
    needs += ["tokens_to_target"] if goal.basis == "target" else []
    why = f"no setting has what {goal.name} needs: {', '.join(needs)}"
    return Verdict(None, None, None, None, "refused", why)


def _row(goal: Objective, judged: Verdict) -> pl.DataFrame:
    schema = {c: t for c, t in table("sweet_spots").schema.items() if c != "sweep"}
    row = (goal.name, judged.x, judged.lo, judged.hi, judged.value, judged.status, judged.reason)
    return pl.DataFrame([row], schema=schema, orient="row")


def _no_settings() -> pl.DataFrame:
    names = ("value", "value_lo", "value_hi", "p_best")
    schema: dict[str, type[pl.DataType]] = {"x": pl.Float64, "repeats": pl.Int64}
    for column in (*names, "in_best_set", "as_good", "energy_j", "time_s", "on_front"):
        schema[column] = pl.Boolean if column in {"in_best_set", "as_good", "on_front"} else pl.Float64
    return pl.DataFrame(schema=schema)


def _finding(goal: Objective, judged: Verdict) -> tuple[Finding, ...]:
    if judged.status == "found":
        return ()
    severity = (
        Severity.ERROR if judged.status == "refused" else Severity.NOTE if judged.status == "flat" else Severity.WARNING
    )
    evidence = {"x": judged.x, "value": judged.value}
    return (Finding(f"sweet-spot-{judged.status}", severity, goal.name, judged.reason, evidence),)
