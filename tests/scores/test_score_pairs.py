"""Real pairs of instruments: clocks with measured offsets, gains against published ones, and refusals with a reason."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from joulebook import align, calibrate

REAL = Path(__file__).resolve().parents[2].parent / "shared" / "real"
PAIRED, MLPERF = REAL / "paired", REAL / "labelled" / "mlperf_power_v1.1"
TRAIN = ("mlperf_train_v4.0_smc_1xh100_bert", "mlperf_train_v4.0_smc_1xh100_llama2lora")

pytestmark = [pytest.mark.score, pytest.mark.skipif(not REAL.exists(), reason="the public sets are not here")]


def log(seconds: np.ndarray, watts: np.ndarray) -> pl.DataFrame:
    """Make a frame of times since 1970 [s] and powers [W]."""
    stamps = pl.Series(np.rint(np.asarray(seconds) * 1e6).astype(np.int64)).cast(pl.Datetime("us", "UTC"))
    return pl.DataFrame({"ts_utc": stamps, "power_w": watts})


def recording(run: Path, phase: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the meter's times [s] and powers [W], and when [s] and by how much [s] the other clock was ahead."""
    client, server = (json.loads((run / f"{who}.json").read_text())["phases"][phase] for who in ("client", "server"))
    raw = pl.read_csv(run / f"{phase}_spl.txt", has_header=False, infer_schema=False)
    names = raw.columns
    stamp = pl.col(names[1]).str.to_datetime("%m-%d-%Y %H:%M:%S%.3f", time_unit="us")
    rows = raw.select(t=stamp.dt.epoch("us") / 1e6, w=pl.col(names[3]).cast(pl.Float64)).filter(pl.col("w") > 0)
    at = np.array([s[0] for s in server])
    # the meter's stamps are local times of a zone that is not written: whole quarters of an hour
    zone = round((at.mean() - rows["t"].mean()) / 900) * 900
    return (
        rows["t"].to_numpy() + zone,
        rows["w"].to_numpy(),
        at,
        np.array([c[0] - s[0] for c, s in zip(client, server, strict=True)]),
    )


def means(seconds: np.ndarray, watts: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return means of every n readings, at the last one's time."""
    m = watts.size // n * n
    return seconds[n - 1 : m : n], watts[:m].reshape(-1, n).mean(axis=1)


PHASES = ("ranging", "testing")
RUNS = sorted(MLPERF.glob("r*/")) if MLPERF.exists() else []


@pytest.mark.parametrize("n", [5, 10])
def test_measured_offsets_of_two_hosts(n: int, score: Any) -> None:
    """A real load seen by a second, coarser instrument on the load generator's clock; its noise is simulated."""
    error, held, refused = [], 0, 0
    for i, run in enumerate(RUNS):
        for phase in PHASES:
            t, w, at, ahead = recording(run, phase)
            end, mean = means(t, w, n)
            mean = 1.1 * mean + 20 + np.random.default_rng([31, i]).normal(0, 0.005 * w.mean(), mean.size)
            found = align.estimate(log(end + np.interp(end, at, ahead), mean), log(t, w), reference_window_s=1.0)
            if found.offset_s is None or found.anchor_utc is None or found.offset_lo is None or found.offset_hi is None:
                refused += 1
                continue
            truth = float(np.interp(found.anchor_utc.timestamp(), at, ahead))
            error.append(found.offset_s - truth)
            held += found.offset_lo <= truth <= found.offset_hi
    size = np.abs(error)
    case = f"MLPerf v1.1, measured offsets, means of {n} s"
    score.row("alignment", f"{case}: offset, median / p95 [s]", "reported",
              f"{np.median(size):.3f} / {np.quantile(size, 0.95):.3f} ({size.size} accepted, {refused} refused)")  # fmt: skip
    score.row("alignment", f"{case}: interval holds the offset", "≥ 0.90", f"{held / size.size:.3f}")
    score.row(
        "alignment", f"{case}: accepted but wrong", f"0 off by > {max(1, n / 2):g} s", f"worst {size.max():.2f} s"
    )
    assert size.max() <= max(1.0, n / 2)
    assert held >= 0.9 * size.size


def test_meters_of_different_machines_are_refused(score: Any) -> None:
    """Real unrelated pairs: meters of different submitters' machines, put on top of each other.

    Runs of one submitter are no such pairs: the same program on the same board draws the same power again.
    """
    owner = dict(pl.read_csv(MLPERF / "runs.csv").select("run", pl.col("path").str.split("/").list.get(1)).iter_rows())
    refused, accepted = 0, []
    for one, two in combinations(RUNS, 2):
        if owner[one.name] == owner[two.name]:
            continue
        (t, w, *_), (s, v, *_) = recording(one, "testing"), recording(two, "testing")
        found = align.estimate(log(s - s[0] + t[0], v), log(t, w))
        refused += found.status == "refused"
        accepted += [] if found.status == "refused" else [f"{one.name} and {two.name}"]
    total = refused + len(accepted)
    shown = f"{refused} of {total}" + (f"; accepted {', '.join(accepted)}" if accepted else "")
    score.row("alignment", "MLPerf v1.1, meters of different machines: refused", "all", shown)
    assert not accepted


def train(path: Path) -> pl.DataFrame:
    """Read the power readings of a training log."""
    lines = [json.loads(x.split(":::MLLOG ")[1]) for x in path.read_text().splitlines() if "power_reading" in x]
    return log(np.array([x["time_ms"] / 1e3 for x in lines]), np.array([float(x["value"]) for x in lines])).sort(
        "ts_utc"
    )


@pytest.mark.parametrize("name", TRAIN)
def test_supply_input_against_output(name: str, score: Any) -> None:
    """Input and output of one node's supplies, read by one controller: the clocks agree, their ratio is published."""
    for ac_path in sorted((PAIRED / name / "ac").glob("*/node_0.txt")):
        ac, dc = train(ac_path), train(PAIRED / name / "dc" / ac_path.parent.name / "node_0.txt")
        clock = align.estimate(ac, dc)
        line = calibrate.fit(calibrate.by_bin(dc, ac, every_s=10))
        case = f"{name.removeprefix('mlperf_train_v4.0_smc_')} {ac_path.parent.name[-8:]}, AC against DC"
        shift = "refused: " + clock.reason if clock.offset_s is None else f"{clock.offset_s:+.2f} s, {clock.status}"
        score.row("alignment", f"{case}: offset", "within a reading (2 s) of 0, or refused", shift)
        ratio = "refused: " + line.reason
        if line.gain is not None and line.offset_w is not None:
            mean = float(dc["power_w"].mean())  # type: ignore[arg-type]
            of_line = line.gain + line.offset_w / mean
            ratio = f"{of_line:.4f} (gain {line.gain:.4f}, offset {line.offset_w:+.0f} W)"
            score.row("calibration", f"{case}: ratio at the mean load", "1.029 published, ± 0.01", ratio)
            assert of_line == pytest.approx(1.029, abs=0.01)
        else:
            score.row("calibration", f"{case}: ratio at the mean load", "1.029 published, or refused", ratio)
        assert clock.offset_s is None or abs(clock.offset_s) <= 2.0


def test_node_against_packages(score: Any) -> None:
    """A node's total against its two processors: values of unevenly long spans."""
    folder = PAIRED / "kepler_singlecpu"
    parts = pl.read_csv(folder / "package_power.csv").group_by("time").agg(pl.col("value").sum(), n=pl.len())
    parts = parts.filter(pl.col("n") == 2).sort("time")
    node = pl.read_csv(folder / "node_total_power.csv").sort("time")
    t0 = 1.7e9
    reading = log(parts["time"].to_numpy() + t0, parts["value"].to_numpy())
    whole = log(node["time"].to_numpy() + t0, node["value"].to_numpy())
    clock = align.estimate(whole, reading)
    shown = (
        clock.reason
        if clock.offset_s is None
        else f"{clock.offset_s:+.2f} s [{clock.offset_lo:.2f}, {clock.offset_hi:.2f}]"
    )
    score.row("alignment", "Kepler, node against packages: offset", "within a reading (3 s) of 0, or refused", shown)
    lines = {
        s: calibrate.fit(calibrate.by_bin(reading, whole, every_s=s), reading_scope="package", reference_scope="node")
        for s in (10, 30, 60)
    }
    for s, line in lines.items():
        result = (
            f"refused: {line.reason}"
            if line.gain is None
            else f"gain {line.gain:.2f} [{line.gain_lo:.2f}, {line.gain_hi:.2f}]"
        )
        score.row(
            "calibration", f"Kepler, node against packages, means of {s} s", "gain of 1 to 1.5, or refused", result
        )
        assert line.gain is None or 1.0 <= line.gain <= 1.5
    assert clock.offset_s is None or abs(clock.offset_s) <= 3.0


def test_wall_plug_against_counter_of_the_processor(score: Any) -> None:
    """Where a plug was there it rose less than the processor inside it (published so); elsewhere there was none."""
    paths = sorted((PAIRED / "codecarbon_cpu_load_profiling").glob("*/*.csv"))
    refused = 0
    for path in paths:
        rows = pl.read_csv(path).select(
            reading_w=pl.col("rapl_power").cast(pl.Float64), reference_w=pl.col("tapo_power").cast(pl.Float64)
        )
        line = calibrate.fit(rows, reading_scope="package", reference_scope="node")
        refused += line.status == "refused"
        plugged = bool((rows["reference_w"] > 0).any())
        if plugged:
            score.row(
                "calibration",
                f"CodeCarbon load profile, {path.parent.name} {path.name.split('-')[1]}",
                "refused: plug and processor contradict",
                line.reason,
            )
    score.row("calibration", "CodeCarbon load profiles: refused", "all", f"{refused} of {len(paths)}")
    assert refused == len(paths)
