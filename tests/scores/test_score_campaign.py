"""Campaigns held against simulated truth, published pairs and the study with known effects."""

from __future__ import annotations

import json
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
import pytest

from joulebook import ancova, campaign, decomposition

pytestmark = pytest.mark.score

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
STUDY = SHARED / "studies" / "campaign"
PAIRS = SHARED / "real" / "labelled" / "mlperf_power_v1.1"
T0 = datetime(2026, 1, 1, tzinfo=UTC)


class Score(Protocol):
    def row(self, topic: str, case: str, demand: str, measured: str) -> None: ...


def one_pair(order: str, rng: np.random.Generator, *, drift_c: float = 0.0, effect: float = 0.0) -> pl.DataFrame:
    """Return runs of two variants in the order of the letters: run sd 0.5 %, 0.5 % per °C of inlet."""
    n = len(order)
    inlet = 22 + drift_c * np.arange(n) + 0.5 * rng.standard_normal(n)
    after = np.array([letter == "B" for letter in order])
    log_value = 0.005 * rng.standard_normal(n) + 0.005 * (inlet - 22) + after * np.log1p(effect)
    return pl.DataFrame(
        {
            "run_id": [f"r{i}" for i in range(n)], "variant": list(order), "value": np.exp(log_value),
            "log_value": log_value, "inlet_c": inlet.round(1), "hours": np.arange(n) / 6,
        }
    )  # fmt: skip


DESIGNS = {
    "ABABABABAB": ("ABABABABAB", 0.0),
    "AAAAABBBBB, room drifts 0.4 °C a run": ("AAAAABBBBB", 0.4),
    "ABBABAABBA, room drifts 0.4 °C a run": ("ABBABAABBA", 0.4),
    "three an arm": ("ABABAB", 0.0),
    "three an arm in blocks": ("AAABBB", 0.0),
    "four an arm in blocks, room drifts": ("AAAABBBB", 0.4),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_false_alarms(name: str, score: Score) -> None:
    order, drift_c = DESIGNS[name]
    rng = np.random.default_rng(1)
    alarms, half = [], []
    for _ in range(1000):
        runs = one_pair(order, rng, drift_c=drift_c)
        contrast = ancova.contrast(runs, "A", "B", design=ancova.choose(runs))
        assert contrast is not None
        alarms.append(contrast.p_value < 0.05)
        half.append(contrast.half)
    rate = float(np.mean(alarms))
    score.row("before/after", name, "false alarms 0.03-0.07", f"{rate:.3f}, half width {100 * np.median(half):.2f} %")
    assert 0.03 <= rate <= 0.07


def test_power_for_one_per_cent(score: Score) -> None:
    rng = np.random.default_rng(2)
    seen = []
    for _ in range(400):
        runs = one_pair("ABBABAABBA", rng, effect=-0.01)
        seen.append(
            campaign.effects(runs.drop("log_value", "hours"), order=["A", "B"]).changes["verdict"][0] == "saves"
        )
    score.row("before/after", "1 % effect, 5 + 5 runs, sd 0.5 %", "power >= 0.5", f"{np.mean(seen):.3f}")
    assert np.mean(seen) >= 0.5


def test_two_runs_an_arm_are_refused(score: Score) -> None:
    rng = np.random.default_rng(3)
    verdicts = {
        campaign.effects(one_pair("ABAB", rng).drop("log_value", "hours"), order=["A", "B"]).changes["verdict"][0]
        for _ in range(50)
    }
    score.row("before/after", "two runs an arm", "always refused", ", ".join(verdicts))
    assert verdicts == {"refused"}


def simulated(seed: int, *, repeats: int = 4, noise: float = 0.01) -> tuple[list[str], np.ndarray, pl.DataFrame]:
    """Return a campaign of five changes in blocks, in a room that swings; every second one without inlet logged."""
    rng = np.random.default_rng(seed)
    real = rng.choice([-1.0, 1.0], 3) * rng.uniform(0.04, 0.16, 3)
    effect = rng.permutation(np.array([0.0, rng.choice([-0.03, 0.03]), *real]))
    order = [f"v{i}" for i in range(6)]
    arm = np.repeat(np.arange(6), repeats)
    turns = 2 * np.pi * np.arange(arm.size) / rng.uniform(5, 9)
    inlet = 22 + rng.uniform(0.5, 2) * np.sin(rng.uniform(0, 6.28) + turns) + 0.3 * rng.standard_normal(arm.size)
    logged = seed % 2 == 0
    log_value = np.concatenate([[0], np.cumsum(np.log1p(effect))])[arm] + noise * rng.standard_normal(arm.size)
    log_value += logged * rng.uniform(0, 0.01) * (inlet - 22)
    runs = pl.DataFrame(
        {
            "run_id": [f"r{i}" for i in range(arm.size)], "variant": [order[a] for a in arm],
            "value": np.exp(log_value), "start_utc": [T0 + timedelta(minutes=8 * i) for i in range(arm.size)],
            "inlet_c": inlet.round(1),
        }
    )  # fmt: skip
    return order, effect, runs if logged else runs.drop("inlet_c")


def test_campaigns_with_random_truth(score: Score) -> None:
    false, seen, covered = [], [], []
    for seed in range(400):
        order, effect, runs = simulated(seed)
        changes = campaign.effects(runs, order=order).changes
        verdict = changes["verdict"].to_list()
        false.append(any(v in {"saves", "costs"} for v, e in zip(verdict, effect, strict=True) if e == 0))
        at = int(np.argmin(np.abs(np.abs(effect) - 0.03)))
        seen.append(verdict[at] == ("saves" if effect[at] < 0 else "costs"))
        rows = changes.with_columns(truth=pl.Series(effect)).filter(pl.col("verdict") != "refused")
        covered += rows.select(pl.col("truth").is_between("effect_lo", "effect_hi")).to_series().to_list()
    case = "400 campaigns of five changes, 4 repeats, 1 % noise"
    score.row("campaign", case, "false verdicts on nulls <= 0.05 a campaign", f"{np.mean(false):.3f}")
    score.row("campaign", case, "power for 3 % >= 0.90", f"{np.mean(seen):.3f}")
    score.row("campaign", case, "95 % intervals cover 0.93-0.97", f"{np.mean(covered):.3f}")
    assert np.mean(false) <= 0.05
    assert np.mean(seen) >= 0.90
    assert 0.93 <= np.mean(covered) <= 0.97


def mean_power(run: str, kind: str) -> float:
    """Return the mean power inside the load window; the meter's zone is found from the window."""
    window = json.loads((PAIRS / run / "server.json").read_text())["phases"][kind]
    begin, end = window[1][0], window[2][0]
    lines = (PAIRS / run / f"{kind}_spl.txt").read_text(errors="replace").splitlines()
    cells = [c for c in (line.split(",") for line in lines) if len(c) > 3 and c[2] == "Watts"]
    log = pl.DataFrame({"at": [c[1] for c in cells], "power_w": [float(c[3]) for c in cells]}).with_columns(
        s=pl.col("at").str.to_datetime("%m-%d-%Y %H:%M:%S%.3f", time_unit="us").dt.timestamp("us") / 1e6
    )
    zone = round((float(log["s"].median()) - (begin + end) / 2) / 1800) * 1800  # type: ignore[arg-type]
    inside = log.filter((pl.col("s") - zone > begin) & (pl.col("s") - zone < end) & (pl.col("power_w") > 0))
    assert inside.height > 60
    return float(inside["power_w"].mean())  # type: ignore[arg-type]


@pytest.mark.skipif(not PAIRS.exists(), reason="the published pairs are not here")
def test_same_workload_twice(score: Score) -> None:
    table = pl.read_csv(PAIRS / "runs.csv").with_columns(system=pl.col("path").str.split("/").list.get(3))
    rows = [
        {"run_id": f"{run}-{kind}", "system": system, "variant": kind, "block": run, "value": mean_power(run, kind)}
        for run, system in table.select("run", "system").iter_rows()
        for kind in ("ranging", "testing")
    ]
    verdicts = []
    for _, runs in pl.DataFrame(rows).group_by("system", maintain_order=True):
        changes = campaign.effects(runs, order=["ranging", "testing"], metric="mean_power_w").changes
        verdicts += changes["verdict"].to_list() * (runs.height // 2)
    changed = float(np.mean([v in {"saves", "costs"} for v in verdicts]))
    case = f"{len(verdicts)} published A/A pairs, grouped by system"
    measured = f"{changed:.2f} ({verdicts.count('refused')} refused: fewer than three pairs of a system)"
    score.row("before/after", case, "at most 0.07 called changed", measured)
    assert len(verdicts) == 13
    assert changed <= 0.07


def study_runs() -> pl.DataFrame:
    """Return energy per token of each run at board and at node, by the plainest arithmetic."""
    truth = json.loads((STUDY / "truth.json").read_text())
    stamp = {"time_unit": "us", "time_zone": "UTC"}
    meter = pl.read_csv(STUDY / "meter.csv").select(
        ts=pl.col("time").str.to_datetime("%Y-%m-%d %H:%M:%S%.3f", **stamp)
        - pl.duration(microseconds=round(truth["meter_offset"] * 1e6)),
        power_w="power_w",
    )
    inlet = pl.read_csv(STUDY / "inlet.csv").with_columns(
        ts=pl.col("time").str.to_datetime("%Y-%m-%dT%H:%M:%SZ", **stamp)
    )
    board = pl.read_csv(STUDY / "gpu.csv")
    board.columns = [c.strip() for c in board.columns]
    board = board.select(
        ts=pl.col("timestamp").str.strip_chars().str.to_datetime("%Y/%m/%d %H:%M:%S%.3f", **stamp),
        # Two boards tick together: the sum is twice the mean.
        power_w=2 * pl.col("power.draw [W]").str.extract(r"([\d.]+)").cast(pl.Float64),
    )
    rows = []
    for run in tomllib.loads((STUDY / "study.toml").read_text())["run"]:
        inside = (pl.col("ts") >= run["start"]) & (pl.col("ts") < run["end"])
        per_token = (run["end"] - run["start"]).total_seconds() / run["tokens"]
        for scope, log in (("board", board), ("node", meter)):
            power = log.filter(inside)["power_w"].mean()
            rows.append(
                {
                    "run_id": run["id"], "variant": run["labels"]["variant"], "scope": scope, "start_utc": run["start"],
                    "inlet_c": inlet.filter(inside)["inlet_c"].mean(), "time_per_token_s": per_token,
                    "value": None if power is None else float(power) * per_token,  # type: ignore[arg-type]
                }
            )  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


@pytest.mark.skipif(not STUDY.exists(), reason="the study is not here")
def test_study_with_known_effects(score: Score) -> None:
    truth = json.loads((STUDY / "truth.json").read_text())
    order = ["baseline", *truth["changes"]]
    done = campaign.effects(study_runs(), order=order)
    node = done.changes.filter(pl.col("scope") == "node")
    worst = 0.0
    for row in node.iter_rows(named=True):
        if row["change"] in truth["refused_at_node"]:
            assert row["verdict"] == "refused" and "covered by readings at node" in row["reason"]
            continue
        effect = truth["changes"][row["change"]]["effect_at_equal_inlet"]
        want = "indistinguishable" if row["change"] in truth["null"] else "saves" if effect < 0 else "costs"
        worst = max(worst, abs(row["effect_ratio"] - effect))
        assert row["verdict"] == want
        assert row["effect_lo"] - 0.005 <= effect <= row["effect_hi"] + 0.005
        assert row["effect_hi"] - row["effect_lo"] < 0.02
    score.row(
        "campaign",
        "study with known effects",
        "verdicts right, effects within 1 point",
        f"worst {100 * worst:.2f} points",
    )
    assert worst <= 0.01
    parts = decomposition.split(done).parts.group_by("scope", "change").agg(pl.col("effect_ratio").sum().alias("sum"))
    both = done.changes.join(parts, on=["scope", "change"])
    assert both.height == 9
    assert (both["sum"] - both["effect_ratio"]).abs().max() < 1e-12  # type: ignore[operator]
