from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulebook import campaign, decomposition

PHASES = ("forward", "backward", "data_wait")


def study(
    seed: int, *, share_b: list[float], power_b: list[float], speed_b: float
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return runs and phases of two variants; the first has shares .3/.5/.2 at 300/400/120 W."""
    rng = np.random.default_rng(seed)
    runs, phases = [], []
    for i in range(8):
        after = i >= 4
        share = np.array(share_b if after else [0.3, 0.5, 0.2]) * np.exp(0.01 * rng.standard_normal(3))
        share /= share.sum()
        power = np.array(power_b if after else [300.0, 400, 120]) * np.exp(0.004 * rng.standard_normal(3))
        per_token = (0.01 / speed_b if after else 0.01) * np.exp(0.003 * rng.standard_normal())
        runs.append((f"r{i}", "new" if after else "old", per_token * float(share @ power), per_token))
        phases += [(f"r{i}", p, s, w) for p, s, w in zip(PHASES, share, power, strict=True)]
    return (
        pl.DataFrame(runs, schema=["run_id", "variant", "value", "time_per_token_s"], orient="row"),
        pl.DataFrame(phases, schema=["run_id", "phase", "share_ratio", "power_w"], orient="row"),
    )


def parts(runs: pl.DataFrame, phases: pl.DataFrame | None) -> tuple[dict[str, float], float]:
    done = campaign.effects(runs, order=["old", "new"])
    split = decomposition.split(done, phases=phases)
    return dict(split.parts.select("part", "effect_ratio").iter_rows()), done.changes["effect_ratio"][0]


@settings(deadline=None, max_examples=15)
@given(
    st.integers(0, 1000),
    st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3),
    st.lists(st.floats(80, 500), min_size=3, max_size=3),
    st.floats(0.7, 1.5),
)
def test_parts_add_up(seed: int, share: list[float], power: list[float], speed: float) -> None:
    got, effect = parts(*study(seed, share_b=share, power_b=power, speed_b=speed))
    assert set(got) == {"duration", "power-level", "phase-mix"}
    assert sum(got.values()) == pytest.approx(effect, abs=1e-12)


def test_each_cause_lands_in_its_part() -> None:
    same = {"share_b": [0.3, 0.5, 0.2], "power_b": [300.0, 400, 120], "speed_b": 1.0}
    for change, part in (
        ({"speed_b": 1.25}, "duration"),
        ({"power_b": [270.0, 360, 108]}, "power-level"),
        ({"share_b": [0.375, 0.625, 0.0001]}, "phase-mix"),
    ):
        got, effect = parts(*study(0, **(same | change)))  # type: ignore[arg-type]
        assert got[part] == pytest.approx(effect, abs=0.01), part
        assert abs(effect) > 0.08


def test_phase_that_vanishes_is_mix() -> None:
    runs, phases = study(0, share_b=[0.375, 0.625, 0.0], power_b=[300.0, 400, 120], speed_b=1.0)
    got, effect = parts(runs, phases.filter(pl.col("share_ratio") > 0))
    assert sum(got.values()) == pytest.approx(effect, abs=1e-12)
    assert got["phase-mix"] == pytest.approx(effect, abs=0.01)


def test_rest_of_a_run_is_a_phase_of_its_own() -> None:
    runs, phases = study(0, share_b=[0.375, 0.625, 0.0001], power_b=[300.0, 400, 120], speed_b=1.0)
    got, effect = parts(runs, phases.filter(pl.col("phase") != "data_wait"))
    assert sum(got.values()) == pytest.approx(effect, abs=1e-12)
    assert got["phase-mix"] == pytest.approx(effect, abs=0.01)


def test_without_phases_power_is_one_part() -> None:
    runs, _ = study(0, share_b=[0.3, 0.5, 0.2], power_b=[270.0, 360, 108], speed_b=1.1)
    done = campaign.effects(runs, order=["old", "new"])
    split = decomposition.split(done)
    assert split.parts["part"].to_list() == ["duration", "power-level"]
    assert split.parts["effect_ratio"].sum() == pytest.approx(done.changes["effect_ratio"][0])
    assert [f.code for f in split.findings] == ["decomposition-without-phases"]


def test_refused_changes_have_no_parts() -> None:
    runs, phases = study(0, share_b=[0.3, 0.5, 0.2], power_b=[300.0, 400, 120], speed_b=1.0)
    done = campaign.effects(runs.head(6), order=["old", "new"])
    assert decomposition.split(done, phases=phases).parts.height == 0


def test_wrong_calls_are_errors() -> None:
    runs, phases = study(0, share_b=[0.3, 0.5, 0.2], power_b=[300.0, 400, 120], speed_b=1.0)
    with pytest.raises(ValueError, match="no column time_per_token_s"):
        decomposition.split(campaign.effects(runs.drop("time_per_token_s"), order=["old", "new"]))
    with pytest.raises(ValueError, match="phases has no column power_w"):
        decomposition.split(campaign.effects(runs, order=["old", "new"]), phases=phases.drop("power_w"))
