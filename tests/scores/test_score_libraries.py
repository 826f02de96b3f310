"""Level shifts beside the libraries for them: time and F1 in one run, all given the noise scale that ours finds."""

import math
import time
from importlib import util
from pathlib import Path

import numpy as np
import pytest

from joulebook import changepoints

_spec = util.spec_from_file_location("level_shifts", Path(__file__).with_name("test_score_changepoints.py"))
level_shifts = util.module_from_spec(_spec)
_spec.loader.exec_module(level_shifts)

EASY, HARD = {}, {"steps_w": (3.0, 12.0)}
CASES = {
    "AR 0.7, n = 20,000": (20_000, 0.7, EASY, 4, 10),
    "AR 0.7, n = 100,000": (100_000, 0.7, EASY, 2, 10),
    "AR 0.7, n = 1,000,000": (1_000_000, 0.7, EASY, 1, 10),
    "steps .5-2 sd, AR 0.7, n = 20,000": (20_000, 0.7, HARD, 4, 50),
    "steps .5-2 sd, AR 0.95, drifting levels, n = 20,000": (20_000, 0.95, HARD | {"drift": 6.0}, 4, 50),
}


def kernel(scaled, penalty):
    ruptures = pytest.importorskip("ruptures")
    return np.array(ruptures.KernelCPD(kernel="linear", min_size=2).fit(scaled).predict(pen=penalty)[:-1])


def functional(scaled, penalty):
    detectors = pytest.importorskip("skchange.detectors")
    return changes(detectors.FPOP(penalty=penalty).fit(scaled[:, None]).predict(scaled[:, None]), scaled.size)


def seeded(scaled, penalty):
    detectors = pytest.importorskip("skchange.detectors")
    found = detectors.SeededBinarySegmentation(penalty=penalty).fit(scaled[:, None]).predict(scaled[:, None])
    return changes(found, scaled.size)


def sequential(scaled, penalty):
    segmentation = pytest.importorskip("fastcpd.segmentation")
    # its cost is half of the squared distance
    options = {"beta": penalty / 2, "cost_adjustment": "BIC", "variance_estimation": np.eye(1), "cp_only": True}
    return np.asarray(segmentation.detect_mean(scaled[:, None], **options).cp_set, dtype=np.int64)


def changes(found, n):
    """Take the places of changes from indices, or from one label a value."""
    found = np.asarray(found).ravel()
    return np.flatnonzero(np.diff(found)) + 1 if found.size == n else found.astype(np.int64)


LIBRARIES = {
    "skchange FPOP": (functional, 1_000_000),
    "skchange SeededBinarySegmentation": (seeded, 100_000),
    "fastcpd": (sequential, 100_000),
    "ruptures KernelCPD": (kernel, 20_000),
}


def timed(method, *arguments):
    begin = time.process_time()
    found = method(*arguments)
    return time.process_time() - begin, found


@pytest.mark.score
@pytest.mark.parametrize("library", LIBRARIES)
def test_beside_libraries(library, score):
    method, largest = LIBRARIES[library]
    warm, _ = level_shifts.made(3000, 0.0, np.random.default_rng(1))
    method(warm / changepoints.find(warm).noise_sd, 40.0)
    for case, (n, phi, kind, series, margin) in CASES.items():
        if n > largest:
            continue
        rng = np.random.default_rng(34)
        spent, right = np.zeros(2), np.zeros(2)
        for _ in range(series):
            x, places = level_shifts.made(n, phi, rng, **kind)
            ours_s, ours = timed(changepoints.find, x)
            penalty = changepoints.PENALTY_FACTOR * math.log(n)
            theirs_s, theirs = timed(method, (x - np.median(x)) / ours.noise_sd, penalty)
            spent += (ours_s, theirs_s)
            right += [level_shifts.f1(f, places, margin=margin) for f in (ours.indices, theirs)]
        right /= series
        score.row(
            "level shifts", f"{case}: {library}, given our noise scale",
            f"reported: F1@{margin} ours / theirs, time theirs / ours",
            f"{right[0]:.3f} / {right[1]:.3f}, {spent[1] / spent[0]:.1f} x",
        )  # fmt: skip
        assert right[0] >= right[1] - 0.05
