"""Calibration against truth: simulated lines, and a public set with meter readings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from joulebook import calibrate

pytestmark = pytest.mark.score

REAL = Path(__file__).resolve().parents[2].parent / "shared" / "real"
FISCHER = REAL / "labelled" / "fischer_codecarbon_vs_meter"
TRIALS = 2000


def points(x: np.ndarray, y: np.ndarray, sx: float, sy: float) -> pl.DataFrame:
    return pl.DataFrame(
        {"reading_w": x, "reference_w": y, "reading_se_w": np.full(x.size, sx), "reference_se_w": np.full(x.size, sy)}
    )


@pytest.mark.parametrize(
    ("name", "sx", "sy", "repeats", "outlier", "rms"),
    [
        ("sx 1, sy 3 W", 1, 3, 1, 0, None),
        ("sx 8, sy 3 W", 8, 3, 1, 0, None),
        ("3 repeats, one outlier of 40 W", 1, 3, 3, 40, 0.008),
    ],
)
def test_slope(name: str, sx: float, sy: float, repeats: int, outlier: float, rms: float | None, score: Any) -> None:
    rng = np.random.default_rng(21)
    x = np.repeat(np.linspace(60, 500, 6), repeats)
    error, hits = [], 0
    for _ in range(TRIALS):
        y = 15 + 1.08 * x + rng.normal(0, sy, x.size)
        y[rng.integers(x.size)] += outlier
        line = calibrate.fit(points(x + rng.normal(0, sx, x.size), y, sx, sy))
        if line.gain is not None and line.gain_lo is not None and line.gain_hi is not None:
            error.append(line.gain / 1.08 - 1)
            hits += line.gain_lo <= 1.08 <= line.gain_hi
    coverage, spread = hits / len(error), float(np.sqrt(np.mean(np.square(error))))
    score.row("calibration", f"{name}: interval holds the slope", "0.93 to 0.98", f"{coverage:.3f} of {len(error)}")
    score.row("calibration", f"{name}: slope, rms", f"≤ {rms:.1%}" if rms else "reported", f"{spread:.2%}")
    assert 0.93 <= coverage <= 0.98
    assert rms is None or spread <= rms


def test_refusals(score: Any) -> None:
    rng = np.random.default_rng(22)
    curved = two = beyond = 0
    for _ in range(200):
        x = np.repeat(np.linspace(60, 500, 6), 3)
        y = 15 + 1.08 * x + 18 * ((x - 280) / 220) ** 2 + rng.normal(0, 1, x.size)
        curved += calibrate.fit(points(x, y, 1, 1)).status == "refused"
        x = np.array([60.0, 500.0])
        two += calibrate.fit(points(x, 15 + 1.08 * x, 1, 1)).status == "refused"
        line = calibrate.fit(
            points(np.linspace(60, 500, 6), 15 + 1.08 * np.linspace(60, 500, 6) + rng.normal(0, 1, 6), 1, 1)
        )
        beyond += calibrate.predict(line, 560).value is None
    for name, count in (("two levels", two), ("curved by 18 W", curved), ("beyond the range by 12 %", beyond)):
        score.row("calibration", f"{name}: refused", "all", f"{count} of 200")
    assert (curved, two, beyond) == (200, 200, 200)


def session(stem: str) -> pl.DataFrame:
    """Mean power by software and by meter of each run of a session [W]."""
    runs = pl.read_csv(FISCHER / f"{stem}.csv", infer_schema_length=None)
    display = pl.read_csv(FISCHER / f"{stem}_image_analysis.csv", infer_schema_length=None)
    key = pl.col(display.columns[0]).str.extract(r"([0-9a-f]{32})_capture_")
    end = pl.col(display.columns[0]).str.extract(r"_capture_(\w+)\.jpg")
    kwh = display.select(key.alias("run_id"), end.alias("end"), pl.col("value").cast(pl.Float64, strict=False))
    kwh = kwh.unique(["run_id", "end"], keep="first").pivot("end", index="run_id", values="value")
    both = runs.join(kwh, on="run_id").with_columns(
        pl.col("metrics.running_time_total").alias("t"), ((pl.col("stop") - pl.col("start")) * 3.6e6).alias("j")
    )
    both = both.drop_nulls(["metrics.power_draw_total", "t", "j"]).filter((pl.col("j") > 0) & (pl.col("t") > 10))
    return both.select(
        (pl.col("metrics.power_draw_total") / pl.col("t")).alias("reading_w"),
        (pl.col("j") / pl.col("t")).alias("reference_w"),
        (0.01 * pl.col("metrics.power_draw_total") / pl.col("t")).alias("reading_se_w"),
        (3600 / np.sqrt(6) / pl.col("t")).alias("reference_se_w"),
        pl.lit(stem).alias("recording"),
        pl.col("t"),
    ).drop_nulls()  # fmt: skip


@pytest.mark.skipif(not FISCHER.exists(), reason="the public set is not here")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("imagenet_120_2025-09-12_02-10-43", "imagenet_120_2025-09-12_09-25-19"),
        ("ollama_900_2025-09-11_15-02-36", "ollama_900_2025-09-12_15-10-06"),
    ],
)
def test_another_session(first: str, second: str, score: Any) -> None:
    learned, new = session(first), session(second)
    line = calibrate.fit(learned)
    assert line.gain is not None, line.reason
    assert line.offset_w is not None
    t, x, y = (new[c].to_numpy() for c in ("t", "reading_w", "reference_w"))
    total = float(((line.gain * x + line.offset_w) * t).sum() / (y * t).sum() - 1)
    raw = float((x * t).sum() / (y * t).sum() - 1)
    score.row(
        "calibration", f"{first[:8]}: total energy of another session", "within 1 %", f"{total:+.2%} (raw {raw:+.1%})"
    )
    assert abs(total) <= 0.01
