"""How often the 95 % interval of a mean holds the truth, over processes of known autocorrelation."""

import numpy as np
import pytest
from scipy.signal import lfilter

from joulebook import serial

REPEATS = 1500

PROCESSES = {
    "white, n = 1000": (1000, 0.0, 0.0),
    "AR .5, n = 1000": (1000, 0.5, 0.0),
    "AR .9, n = 1000": (1000, 0.9, 0.0),
    "AR .9 + white, n = 1000": (1000, 0.9, 1.0),
    "AR .95, n = 3000": (3000, 0.95, 0.0),
    "AR .98, n = 5000": (5000, 0.98, 0.0),
}


def process(n, phi, white, rng):
    red = lfilter([1.0], [1.0, -phi], rng.normal(size=n + 500))[500:] * np.sqrt(1.0 - phi**2)
    return red + white * rng.normal(size=n)


@pytest.mark.score
@pytest.mark.parametrize("name", PROCESSES)
def test_coverage(name, score):
    n, phi, white = PROCESSES[name]
    rng = np.random.default_rng(20261)
    found = [serial.mean_interval(process(n, phi, white, rng)) for _ in range(REPEATS)]
    answered = [e for e in found if e.lo is not None]
    coverage = np.mean([e.lo <= 0.0 <= e.hi for e in answered])
    n_eff = np.median([e.n_eff for e in found])
    measured = f"{coverage:.3f} (n_eff {n_eff:.0f}, {len(answered)} of {REPEATS} answered)"
    score.row("interval of a mean", name, "covers 0.93 to 0.97", measured)
    assert len(answered) > 0.95 * REPEATS
    assert 0.93 <= coverage <= 0.97


@pytest.mark.score
def test_refusal_below_ten(score):
    rng = np.random.default_rng(20262)
    found = [serial.mean_interval(process(300, 0.98, 0.0, rng)) for _ in range(REPEATS)]
    refused = np.mean([e.lo is None for e in found])
    score.row("interval of a mean", "AR .98, n = 300 (n_eff 3)", "refused", f"{refused:.3f} refused")
    assert refused >= 0.95
