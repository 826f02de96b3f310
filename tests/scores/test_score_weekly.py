"""Weeks against the weeks before: false alarms, missed changes, and intervals, on simulated histories of known truth."""

import numpy as np
import polars as pl
import pytest

from joulebook import iso_weeks, weekly_change

pytestmark = pytest.mark.score
WEEK = "2026-W47"
STUDIES = 300
"""Histories per case: a share of one in twenty is known to ± 2.5 points."""


def judged(seed, *, weeks=8, runs=3, between=0.005, within=0.005, effect=0.0, metrics=1):
    """Judge simulated studies: week effects and run effects are normal, the last week is dearer by ``effect``."""
    rng = np.random.default_rng(seed)
    names = [*iso_weeks.before(WEEK, weeks), WEEK]
    frames = []
    for study in range(STUDIES):
        rows = []
        for metric in range(metrics):
            for week in names:
                level = rng.normal(0, between) + (np.log1p(effect) if week == WEEK and metric == 0 else 0)
                rows += [
                    (f"{week}-{r}", week, f"m{metric}_j", float(np.exp(level + rng.normal(0, within))))
                    for r in range(runs)
                ]
        frame = pl.DataFrame(rows, schema=["run_id", "week", "metric", "value"], orient="row")
        done = weekly_change.compare(frame.with_columns(kind=pl.lit(str(study)), scope=pl.lit("node")), week=WEEK)
        frames.append(done.frame)
    return pl.concat(frames)


def covers(frame, effect):
    held = (pl.col("effect_lo") <= effect) & (pl.col("effect_hi") >= effect)
    return frame.filter(pl.col("metric") == "m0_j").select(held.mean()).item()


@pytest.mark.parametrize(("runs", "between", "within"), [(1, 0.005, 0.005), (3, 0.01, 0.003), (10, 0.0, 0.02)])
def test_intervals_hold_the_truth(score, runs, between, within):
    share = covers(judged(1, runs=runs, between=between, within=within, effect=0.03), 0.03)
    case = f"{runs} runs a week, weeks ± {100 * between:g} %, runs ± {100 * within:g} %"
    score.row("weekly", case, "95 % interval holds the true effect in ≥ 92 %", f"{100 * share:.1f} %")
    assert share >= 0.92


def test_false_alarms_are_rare(score):
    found = judged(2, between=0.015, within=0.01, metrics=8)
    alarms = found.filter(pl.col("verdict") == "regression")["kind"].n_unique() / STUDIES
    score.row(
        "weekly",
        "8 numbers a study, nothing changed",
        "a study with a false regression in ≤ 5 %",
        f"{100 * alarms:.1f} %",
    )
    assert alarms <= 0.05


def test_real_changes_are_seen(score):
    found = judged(3, between=0.005, within=0.01, effect=0.05, metrics=8).filter(pl.col("metric") == "m0_j")
    seen = found.select((pl.col("verdict") == "regression").mean()).item()
    score.row("weekly", "+5 % in one of 8 numbers, weeks ± 0.5 %, runs ± 1 %", "seen in ≥ 90 %", f"{100 * seen:.1f} %")
    assert seen >= 0.90


def test_small_changes_are_not_called_regressions(score):
    found = judged(4, between=0.0005, within=0.0005, effect=0.01)
    called = found.select((pl.col("verdict") == "regression").mean()).item()
    score.row("weekly", "+1 %, weeks ± 0.05 %", "called a regression in ≤ 1 %", f"{100 * called:.1f} %")
    assert called <= 0.01
