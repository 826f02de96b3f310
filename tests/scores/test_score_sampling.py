"""Sampling against a public set: an external 5 kHz power meter beside nvidia-smi."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from joulebook import calibrate, sampling

YANG = Path(__file__).resolve().parents[2].parent / "shared" / "real" / "paired" / "yang_gpu_power_benchmark"

pytestmark = [pytest.mark.score, pytest.mark.skipif(not YANG.exists(), reason="the public set is not here")]

TICKS_PER_S = 2933.5e3


def external(folder: Path) -> pl.DataFrame:
    """Decode the meter: per record a wrapping 16-bit tick and four pairs of voltage and current."""
    raw = np.fromfile(folder / "PMD_data.bin", dtype="<u2").reshape(-1, 9)
    tick = np.concatenate([[0], np.cumsum(np.diff(raw[:, 0].astype(np.int64)) % 65536)]) / TICKS_PER_S
    counts = (raw[:, 1:] >> 4).astype(float)
    # the currents are signed: a little below zero reads as 4095
    volts, amps = counts[:, 0::2] * 0.007568, (counts[:, 1::2] - 4096 * (counts[:, 1::2] > 2047)) * 0.0488
    watts = (volts * amps).sum(axis=1)
    start = int((folder / "PMD_start_ts.txt").read_text()) - 50_000
    stamps = pl.Series(start + np.rint(tick * 1e6).astype(np.int64)).cast(pl.Datetime("us", "UTC"))
    return pl.DataFrame({"ts_utc": stamps, "power_w": watts})


def card(folder: Path, column: str) -> pl.DataFrame:
    """Read nvidia-smi's log, which is in British summer time."""
    raw = pl.read_csv(folder / "gpudata.csv", infer_schema=False)
    raw = raw.rename({c: c.strip() for c in raw.columns})
    stamp = pl.col("timestamp").str.strip_chars().str.to_datetime("%Y/%m/%d %H:%M:%S%.3f", time_unit="us")
    return raw.select(
        stamp.dt.replace_time_zone("Europe/London").dt.convert_time_zone("UTC").alias("ts_utc"),
        pl.col(column).str.strip_chars().cast(pl.Float64, strict=False).alias("power_w"),
    ).drop_nulls()


@pytest.mark.parametrize(
    ("name", "column", "update_s", "window_s", "within"),
    [
        ("A100", "power.draw [W]", 0.1, 0.025, 0.6),
        ("3090", "power.draw [W]", 0.1, 1.0, 0.1),
        ("3090", "power.draw.instant [W]", 0.1, 0.1, 0.3),
    ],
)
def test_card(name: str, column: str, update_s: float, window_s: float, within: float, score: Any) -> None:
    log, meter = card(YANG / "5050" / name, column), external(YANG / "5050" / name)
    period = sampling.find(log).update_s
    window = sampling.window(log, meter)
    what = f"{name} {column.removesuffix(' [W]')}"
    score.row("sampling", f"{what}: update period [s]", f"{update_s} published", str(period))
    score.row("sampling", f"{what}: window [s]", f"{window_s} published, ± {within:.0%}", str(window))
    assert period.value == pytest.approx(update_s, rel=0.06)
    assert window.value == pytest.approx(window_s, rel=within)


@pytest.mark.parametrize(
    ("name", "gradient", "intercept_w"), [("A100", 0.954, -1.18), ("3090", 0.944, 4.58), ("K40m", 1.024, 0.81)]
)
def test_gain(name: str, gradient: float, intercept_w: float, score: Any) -> None:
    """Idle and one load of a card against the meter, from half seconds in which both stand still."""
    folder = YANG / "Transient_Response" / f"{name}_TR"
    log, meter = (
        f.group_by_dynamic("ts_utc", every="500ms").agg(pl.col("power_w").mean(), sd_w=pl.col("power_w").std())
        for f in (card(folder, "power.draw [W]"), external(folder))
    )
    steady = log.join(meter, on="ts_utc", suffix="_meter").filter((pl.col("sd_w") < 1) & (pl.col("sd_w_meter") < 6))
    x, y = steady["power_w_meter"].to_numpy(), steady["power_w"].to_numpy()
    high = x > x.mean()
    gain = float((np.median(y[high]) - np.median(y[~high])) / (np.median(x[high]) - np.median(x[~high])))
    offset = float(np.median(y[~high]) - gain * np.median(x[~high]))
    line = calibrate.fit(
        pl.DataFrame(
            {
                "reading_w": [np.median(y[~high]), np.median(y[high])],
                "reference_w": [np.median(x[~high]), np.median(x[high])],
            }
        ).cast(pl.Float64)
    )
    score.row(
        "calibration", f"{name}: gradient of the card over the meter", f"{gradient} published, ± 0.01", f"{gain:.3f}"
    )
    score.row("calibration", f"{name}: intercept [W]", f"{intercept_w} published", f"{offset:+.1f}")
    score.row(
        "calibration",
        f"{name}: calibration of two levels",
        "refused, or an offset only",
        f"{line.status}: {line.reason}",
    )
    assert gain == pytest.approx(gradient, abs=0.01)
    assert line.status in ("refused", "offset-only")
