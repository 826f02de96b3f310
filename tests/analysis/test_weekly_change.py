import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from joulebook import distributions, iso_weeks, weekly_change, weekly_drift, weekly_means

WEEK = "2026-W47"
BEFORE = iso_weeks.before(WEEK, 8)


def frame(values, metric="energy_per_token_j", kind="k", scope="node", **more):
    """Rows from {week: [values of its runs]}."""
    rows = [
        {"run_id": f"{week}-{i}", "week": week, "kind": kind, "scope": scope, "metric": metric, "value": v, **more}
        for week, runs in values.items()
        for i, v in enumerate(runs)
    ]
    schema = {
        "run_id": pl.String,
        "week": pl.String,
        "kind": pl.String,
        "scope": pl.String,
        "metric": pl.String,
        "value": pl.Float64,
    }
    return pl.DataFrame(rows, schema_overrides=schema)


def one(rows, **options):
    return weekly_change.compare(rows, week=WEEK, **options).frame.row(0, named=True)


def test_with_earlier_weeks_the_effect_is_the_students_t_of_their_means():
    means = [1.0, 1.02, 0.99, 1.01, 1.0, 0.98, 1.0, 1.01]
    found = one(frame({**{w: [m] for w, m in zip(BEFORE, means, strict=True)}, WEEK: [1.10]}))
    logs = np.log(means)
    half = stats.t.ppf(0.975, 7) * logs.std(ddof=1) * math.sqrt(1 + 1 / 8)
    effect = math.log(1.10) - logs.mean()
    assert found["effect_ratio"] == pytest.approx(math.exp(effect) - 1)
    assert found["effect_lo"] == pytest.approx(math.exp(effect - half) - 1)
    assert found["effect_hi"] == pytest.approx(math.exp(effect + half) - 1)
    assert found["band_hi"] == pytest.approx(math.exp(logs.mean() + half))
    assert found["verdict"] == "regression"
    assert (found["runs_now"], found["runs_before"], found["weeks_before"]) == (1, 8, 8)


def test_with_one_earlier_week_it_is_welch_on_the_runs():
    a, b = [1.0, 1.01, 0.985, 1.0], [1.05, 1.06, 1.07]
    found = one(frame({BEFORE[-1]: a, WEEK: b}))
    welch = stats.ttest_ind(np.log(b), np.log(a), equal_var=False)
    lo, hi = welch.confidence_interval(0.95)
    assert found["effect_lo"] == pytest.approx(math.exp(lo) - 1)
    assert found["effect_hi"] == pytest.approx(math.exp(hi) - 1)
    assert found["p_value"] == pytest.approx(welch.pvalue)
    assert found["verdict"] == "regression"
    assert "too few" in found["reason"]


@pytest.mark.parametrize(("metric", "verdict"), [("tokens_per_j", "improved"), ("energy_per_token_j", "regression")])
def test_the_direction_is_that_of_the_metric(metric, verdict):
    assert one(frame({BEFORE[-1]: [1.0, 1.01, 0.99], WEEK: [1.2, 1.21, 1.19]}, metric))["verdict"] == verdict


def test_a_sure_but_small_change_is_no_regression():
    found = one(frame({BEFORE[-1]: [1.0, 1.0001, 0.9999], WEEK: [1.01, 1.0101, 1.0099]}))
    assert found["verdict"] == "indistinguishable"
    assert "below 2 %" in found["reason"]
    assert (
        one(frame({BEFORE[-1]: [1.0, 1.0001, 0.9999], WEEK: [1.01, 1.0101, 1.0099]}), threshold_ratio=0.005)["verdict"]
        == "regression"
    )


def test_runs_without_any_spread_are_judged_by_the_threshold():
    rows = {w: [5.0] for w in BEFORE}
    assert one(frame({**rows, WEEK: [5.0]}))["verdict"] == "indistinguishable"
    assert one(frame({**rows, WEEK: [6.0]}))["verdict"] == "regression"


@pytest.mark.parametrize(
    ("values", "more", "said"),
    [
        ({BEFORE[-1]: [1.0, 1.0], WEEK: [2.0, 2.0, 2.0]}, {}, "2 in 1 earlier weeks"),
        ({WEEK: [2.0, 2.0, 2.0]}, {}, "no earlier run of this kind"),
        ({BEFORE[-1]: [1.0] * 3, WEEK: [None] * 3}, {}, "no value this week"),
        ({BEFORE[-1]: [None] * 3, WEEK: [1.0] * 3}, {}, "not measured at node"),
        ({"2025-W01": [1.0] * 3, WEEK: [1.0] * 3}, {}, "no earlier run of this kind"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_a_reason(values, more, said):
    found = one(frame(values, **more))
    assert found["verdict"] == "refused"
    assert said in found["reason"]
    assert found["effect_ratio"] is None


def test_other_kinds_and_scopes_are_never_compared():
    rows = pl.concat([
        frame({BEFORE[-1]: [1.0] * 3}, kind="bs64"), frame({WEEK: [2.0] * 3}, kind="bs128"),
        frame({BEFORE[-1]: [1.0] * 3}, kind="bs128", scope="board"),
    ])  # fmt: skip
    found = weekly_change.compare(rows, week=WEEK).frame
    assert found["kind"].to_list() == ["bs128"]
    assert found["verdict"].to_list() == ["refused"]


def test_the_energy_of_whole_runs_is_compared_only_for_the_same_work():
    values = {BEFORE[-1]: [1.0, 1.01, 0.99], WEEK: [2.0, 2.02, 1.98]}
    rows = frame(values, "energy_j", tokens=1e9)
    assert one(rows)["verdict"] == "regression"
    longer = rows.with_columns(tokens=pl.when(pl.col("week") == WEEK).then(2e9).otherwise(1e9))
    assert "different work" in one(longer)["reason"]
    assert "not known" in one(frame(values, "energy_j"))["reason"]
    assert one(frame(values, "energy_j", declared=True))["verdict"] == "regression"


def test_shares_may_be_nought_and_are_compared_by_difference():
    found = one(frame({**{w: [0.0] for w in BEFORE}, WEEK: [0.05]}, "waste_ratio"))
    assert found["effect_ratio"] == pytest.approx(0.05)
    assert found["before"] == 0.0
    assert found["verdict"] == "regression"


def test_p_values_are_corrected_for_the_number_of_comparisons():
    rng = np.random.default_rng(7)
    kinds = [
        frame({w: list(np.exp(rng.normal(0, 0.03, 3))) for w in [*BEFORE, WEEK]}, kind=f"k{i}") for i in range(300)
    ]
    found = weekly_change.compare(pl.concat(kinds), week=WEEK)
    plain = found.frame.filter((pl.col("effect_lo") > 0) | (pl.col("effect_hi") < 0)).height / 300
    assert 0.02 < plain < 0.09, "the plain 95 % interval misses nought in one of twenty"
    assert found.frame["verdict"].is_in(["regression", "improved"]).sum() <= 1


def test_fewer_runs_than_usual_widen_the_interval():
    rng = np.random.default_rng(3)
    many = {w: list(np.exp(rng.normal(0, 0.05, 10))) for w in BEFORE}
    narrow = one(frame({**many, WEEK: list(np.exp(rng.normal(0, 0.05, 10)))}))
    wide = one(frame({**many, WEEK: [1.0]}))
    assert wide["effect_hi"] - wide["effect_lo"] > 1.5 * (narrow["effect_hi"] - narrow["effect_lo"])


def test_a_week_effect_that_all_runs_share_is_no_news():
    rng = np.random.default_rng(11)
    rows = {w: list(np.exp(rng.normal(0, 0.04) + rng.normal(0, 0.001, 5))) for w in BEFORE}
    found = one(frame({**rows, WEEK: list(np.exp(0.05 + rng.normal(0, 0.001, 5)))}))
    assert found["verdict"] == "indistinguishable"


def test_findings_are_the_regressions():
    found = weekly_change.compare(frame({BEFORE[-1]: [1.0, 1.01, 0.99], WEEK: [1.2, 1.21, 1.19]}), week=WEEK)
    assert [f.code for f in found.findings] == ["weekly-regression"]
    assert found.regressions.height == 1
    assert weekly_change.worst(found.frame["verdict"].to_list()) == "regression"


@settings(max_examples=25, deadline=None)
@given(st.floats(0.1, 10.0), st.integers(0, 5))
def test_the_unit_of_a_metric_does_not_matter(scale, seed):
    rng = np.random.default_rng(seed)
    rows = frame({w: list(np.exp(rng.normal(0, 0.02, 2))) for w in [*BEFORE, WEEK]})
    a, b = one(rows), one(rows.with_columns(pl.col("value") * scale))
    assert a["effect_ratio"] == pytest.approx(b["effect_ratio"], abs=1e-9)
    assert a["verdict"] == b["verdict"]


def test_by_week_gives_the_spread_of_the_runs():
    found = weekly_means.by_week(frame({WEEK: [1.0, 1.1, 0.9], BEFORE[0]: [1.0]}))
    assert found["week"].to_list() == [BEFORE[0], WEEK]
    assert found["lo"].to_list()[0] is None
    logs = np.log([1.0, 1.1, 0.9])
    assert found["hi"].to_list()[1] == pytest.approx(
        math.exp(logs.mean() + stats.t.ppf(0.975, 2) * logs.std(ddof=1) / math.sqrt(3))
    )


def test_drift_is_the_slope_of_a_straight_line():
    weeks = [*BEFORE, WEEK]
    y = np.array([0.0, 0.011, 0.018, 0.031, 0.041, 0.049, 0.062, 0.069, 0.08])
    levels = pl.DataFrame(
        {"kind": "", "scope": "node", "metric": "idle_power_w", "week": weeks, "value": 100 * np.exp(y)}
    )
    found = weekly_drift.of_levels(levels, week=WEEK, weeks=8)
    line = stats.linregress(np.arange(9), y)
    half = stats.t.ppf(0.975, 7) * line.stderr
    row = found.frame.row(0, named=True)
    assert row["drift_lo"] == pytest.approx(math.exp(8 * (line.slope - half)) - 1)
    assert row["drift_hi"] == pytest.approx(math.exp(8 * (line.slope + half)) - 1)
    assert row["verdict"] == "drifts"
    assert [f.code for f in found.findings] == ["weekly-drift"]


def test_drift_is_refused_from_few_weeks_and_steady_without_trend():
    level = {"kind": "", "scope": "node", "metric": "idle_power_w"}
    few = pl.DataFrame({**level, "week": [*BEFORE[-2:], WEEK], "value": [1.0, 2.0, 3.0]})
    assert weekly_drift.of_levels(few, week=WEEK, weeks=8).frame["verdict"].item() == "refused"
    flat = pl.DataFrame({**level, "week": [*BEFORE, WEEK], "value": [100.0, 101.0] * 4 + [100.0]})
    assert weekly_drift.of_levels(flat, week=WEEK, weeks=8).frame["verdict"].item() == "steady"


def test_weeks_are_iso_weeks():
    assert iso_weeks.before("2027-W01", 1) == ["2026-W53"]
    for bad in ("2026-47", "2026-W54", "W47", "2026-W7"):
        with pytest.raises(ValueError, match="ISO week"):
            iso_weeks.monday(bad)


def test_a_missing_column_is_named():
    with pytest.raises(ValueError, match="scope"):
        weekly_change.compare(frame({WEEK: [1.0]}).drop("scope"), week=WEEK)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_p_values_among_many_are_those_of_benjamini_and_hochberg(p):
    assert distributions.among_many(np.array(p)) == pytest.approx(stats.false_discovery_control(p))
