"""Level shifts: made series with known shifts, published human annotations, and load edges of real meter logs."""

import csv
import json
import re
import resource
import time
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import lfilter

from joulebook import changepoints

LABELLED = Path(__file__).resolve().parents[2].parent / "shared" / "real" / "labelled"
real = pytest.mark.skipif(not LABELLED.exists(), reason="the labelled data are not here")

LEVEL_SHIFTS = ("quality_control_1", "quality_control_2", "quality_control_3", "quality_control_4", "quality_control_5")
LEVEL_SHIFTS = (*LEVEL_SHIFTS, "nile", "well_log")


def noise(n, phi, rng, sd):
    return lfilter([1.0], [1.0, -phi], rng.normal(size=n + 300))[300:] * np.sqrt(1.0 - phi**2) * sd


def made(n, phi, rng, *, steps_w=(15.0, 320.0), sd=6.0, drift=0.0):
    shifts = min(n // 500, 2000)
    spacing = n // (shifts + 1)
    places = np.arange(1, shifts + 1) * spacing + rng.integers(-spacing // 3, spacing // 3 + 1, shifts)
    sizes = rng.uniform(*steps_w, shifts) * rng.choice([-1.0, 1.0], shifts)
    if steps_w[1] > 100.0:
        levels = [rng.uniform(80.0, 400.0)]
        while len(levels) <= shifts:
            level = rng.uniform(80.0, 400.0)
            if abs(level - levels[-1]) >= steps_w[0]:
                levels.append(level)
    else:
        levels = 200.0 + np.concatenate(([0.0], np.cumsum(sizes)))
    signal = np.repeat(levels, np.diff(np.concatenate(([0], places, [n]))))
    return signal + noise(n, phi, rng, sd) + drift * np.sin(np.arange(n) * 2.0 * np.pi / (8.0 * spacing)), places


def f1(found, true, margin=10):
    hits = sum(bool(np.any(np.abs(found - t) <= margin)) for t in true)
    right = sum(bool(np.any(np.abs(true - f) <= margin)) for f in found)
    precision, recall = right / max(found.size, 1), hits / max(true.size, 1)
    return 2.0 * precision * recall / max(precision + recall, 1e-9)


@pytest.mark.score
@pytest.mark.parametrize(
    ("n", "phi", "series"), [(3000, 0.0, 20), (3000, 0.7, 20), (100_000, 0.7, 6), (1_000_000, 0.7, 2)]
)
def test_made_series(n, phi, series, score):
    rng = np.random.default_rng(31)
    values = [f1(changepoints.find(x).indices, c) for x, c in (made(n, phi, rng) for _ in range(series))]
    score.row("level shifts", f"AR {phi:g}, n = {n:,}", "F1@10 >= 0.97", f"{np.mean(values):.4f}")
    assert np.mean(values) >= 0.97


@pytest.mark.score
def test_ten_million(score):
    rng = np.random.default_rng(32)
    values, places = made(10_000_000, 0.7, rng)
    changepoints.find(values[:2_000_000])
    begin = time.process_time()
    found = changepoints.find(values).indices
    spent = time.process_time() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    value = f1(found, places)
    measured = f"{value:.4f}, {spent:.2f} s, {memory:.2f} GB"
    score.row("level shifts", "AR 0.7, n = 10,000,000", "F1@10 >= 0.97, <= 5 s, <= 2 GB", measured)
    assert value >= 0.97
    assert spent <= 5.0
    assert memory <= 2.0


@pytest.mark.score
@pytest.mark.parametrize(
    ("case", "phi", "drift"),
    [("steps .5-2 sd, AR .7", 0.7, 0.0), ("steps .5-2 sd, AR .95, drifting levels", 0.95, 6.0)],
)
def test_hard_series(case, phi, drift, score):
    rng = np.random.default_rng(33)
    values = []
    for _ in range(10):
        x, places = made(20_000, phi, rng, steps_w=(3.0, 12.0), drift=drift)
        values.append(f1(changepoints.find(x).indices, places, margin=50))
    score.row("level shifts", case, "reported (F1@50)", f"{np.mean(values):.3f}")
    assert np.mean(values) >= 0.0


def matched(truth, found, margin):
    left, hits = set(found), 0
    for t in sorted(truth):
        near = sorted((abs(t - x), x) for x in left if abs(t - x) <= margin)
        if near:
            hits += 1
            left.discard(near[0][1])
    return hits


def annotated_f1(truth, found, margin=5):
    """F1 against several annotators: precision against any of them, recall the mean over them; 0 always counts."""
    sets = [set(v) | {0} for v in truth.values()]
    mine = set(found) | {0}
    precision = matched(set().union(*sets), mine, margin) / len(mine)
    recall = np.mean([matched(s, mine, margin) / len(s) for s in sets])
    return 2.0 * precision * recall / (precision + recall)


def covering(truth, found, n):
    def parts(changes):
        edges = [0, *sorted({c for c in changes if 0 < c < n}), n]
        return list(pairwise(edges))

    def overlap(a, b):
        inner = min(a[1], b[1]) - max(a[0], b[0])
        return max(inner, 0) / (max(a[1], b[1]) - min(a[0], b[0]))

    mine = parts(found)
    return np.mean(
        [sum((p[1] - p[0]) * max(overlap(p, q) for q in mine) for p in parts(v)) / n for v in truth.values()]
    )


def annotated(name, factor=changepoints.PENALTY_FACTOR):
    data = json.loads((LABELLED / "tcpd" / "datasets" / f"{name}.json").read_text())
    truth = json.loads((LABELLED / "tcpd" / "annotations.json").read_text())[name]
    values = np.array([np.nan if v is None else v for v in data["series"][0]["raw"]], dtype=float)
    places = np.flatnonzero(np.isfinite(values))
    found = places[changepoints.find(values[places], penalty_factor=factor).indices].tolist()
    return annotated_f1(truth, found), covering(truth, found, data["n_obs"])


@real
@pytest.mark.score
def test_annotated_level_shifts(score):
    values = np.mean([annotated(name) for name in LEVEL_SHIFTS], axis=0)
    score.row(
        "level shifts", "TCPD, 7 level-shift series", "F1 >= 0.88, cover >= 0.84", f"{values[0]:.3f}, {values[1]:.3f}"
    )
    assert values[0] >= 0.88
    assert values[1] >= 0.84


@real
@pytest.mark.score
def test_annotated_all(score):
    names = univariate()
    values = np.mean([annotated(name) for name in names], axis=0)
    case = f"TCPD, all {len(names)} univariate series"
    score.row("level shifts", case, "F1 >= 0.70, cover >= 0.62", f"{values[0]:.3f}, {values[1]:.3f}")
    assert values[0] >= 0.70
    assert values[1] >= 0.62


def meter_log(path, zone_s):
    rows = [line.split(",") for line in path.read_text().splitlines() if line.startswith("Time,")]
    stamps = np.array([datetime.strptime(r[1], "%m-%d-%Y %H:%M:%S.%f").timestamp() + zone_s for r in rows])
    watts = np.array([float(r[3]) for r in rows])
    good = watts >= 0.0
    return stamps[good], watts[good]


def load_window(path, offset_s):
    marks = {}
    for line in path.read_text().splitlines():
        found = re.search(r'"key": "(power_begin|power_end)", "value": "([^"]+)"', line)
        if found:
            marks[found[1]] = datetime.strptime(found[2], "%m-%d-%Y %H:%M:%S.%f").timestamp() - offset_s
    return marks["power_begin"], marks["power_end"]


def edges_of(folder, kind, offset_s, factor=changepoints.PENALTY_FACTOR):
    zone_s = float(json.loads((folder / "server.json").read_text())["timezone"])
    stamps, watts = meter_log(folder / f"{kind}_spl.txt", zone_s)
    begin, end = load_window(folder / f"{kind}_loadgen.txt", offset_s)
    if abs(begin - stamps[0]) > 900.0:
        stamps = stamps + round((begin - stamps[0]) / 3600.0) * 3600.0
    changes = changepoints.find(watts, penalty_factor=factor).indices
    # A reading is the mean over the second that ends at its stamp, so the change lies at the stamp before it.
    at = stamps[changes - 1]
    inside = (stamps > begin) & (stamps < end)
    first, last = at[np.argmin(np.abs(at - begin))], at[np.argmin(np.abs(at - end))]
    mine = (stamps > first) & (stamps < last)
    bias = abs(watts[mine].mean() / watts[inside].mean() - 1.0)
    return abs(first - begin), abs(last - end), bias


def load_edges(factor=changepoints.PENALTY_FACTOR, part=slice(None)):
    root = LABELLED / "mlperf_power_v1.1"
    with (root / "runs.csv").open() as lines:
        offsets = {r["run"]: float(r["clock_offset_client_minus_server_first"]) for r in csv.DictReader(lines)}
    runs = sorted(offsets)[part]
    found = [edges_of(root / run, kind, offsets[run], factor) for run in runs for kind in ("ranging", "testing")]
    return [np.array(x) for x in zip(*found, strict=True)]


def univariate():
    paths = sorted((LABELLED / "tcpd" / "datasets").glob("*.json"))
    return [p.stem for p in paths if json.loads(p.read_text())["n_dim"] == 1]


def quality(factor, part):
    """F1 and cover on a part of the level-shift series, and the share of load edges on a part of the meter logs."""
    begins, ends, _ = load_edges(factor, part)
    both = np.mean((begins <= 2.0) & (ends <= 2.0))
    return (*np.mean([annotated(name, factor) for name in LEVEL_SHIFTS[part]], axis=0), both)


@real
@pytest.mark.score
def test_penalty_chosen_on_one_half_and_reported_on_the_other(score):
    chosen = {k: float(np.mean(quality(k, slice(0, None, 2)))) for k in (2.0, 3.0, 4.0, 5.0, 6.0, 8.0)}
    best, mine = max(chosen, key=chosen.get), changepoints.PENALTY_FACTOR
    f1_other, cover, both = quality(mine, slice(1, None, 2))
    score.row(
        "level shifts", "penalty: every second level-shift series and MLPerf run to choose, the others to report",
        "within 0.01 of the best of six on the choosing half; F1 >= 0.88, edges >= 0.98 on the other",
        f"choosing half {chosen[mine]:.3f} at {mine:g}, best {chosen[best]:.3f} at {best:g}; "
        f"other half F1 {f1_other:.3f}, cover {cover:.3f}, edges {both:.3f}",
    )  # fmt: skip
    assert chosen[mine] >= chosen[best] - 0.01
    assert f1_other >= 0.88
    assert both >= 0.98


@real
@pytest.mark.score
def test_load_edges_of_meter_logs(score):
    begins, ends, bias = load_edges()
    within = [np.mean(begins <= 2.0), np.mean(ends <= 2.0), np.mean((begins <= 2.0) & (ends <= 2.0))]
    measured = (
        f"begin {within[0]:.3f}, end {within[1]:.3f}, both {within[2]:.3f}; worst {max(begins.max(), ends.max()):.2f} s"
    )
    score.row("level shifts", f"MLPerf load edges, {begins.size} meter logs", "within 2 s in >= 0.98", measured)
    score.row(
        "level shifts",
        "MLPerf load window, bias of its mean power",
        "p90 <= 0.5 %",
        f"{100 * np.quantile(bias, 0.9):.3f} %",
    )
    assert np.quantile(bias, 0.9) <= 0.005
    assert within[2] >= 0.98
