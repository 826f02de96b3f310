"""A meter whose readings trail, by how much nobody said, on a clock of its own: energy uses offset and trail together."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from joulebook_pipelines import config, open_store, run

T0 = datetime(2026, 3, 2, 10, tzinfo=UTC)
BEGIN_S, END_S, LOG_S, MEAN_S, LATE_S = 300, 1500, 1800, 5, 37.4
RUN = f'[[run]]\nid = "r"\nstart = {T0 + timedelta(seconds=BEGIN_S):%FT%TZ}\nend = {T0 + timedelta(seconds=END_S):%FT%TZ}\n'


def load(seed: int, *, steady: bool) -> np.ndarray:
    """Return the power of a board every 0.1 s: idle, then levels that change at random or stay, then idle."""
    rng = np.random.default_rng(seed)
    levels = np.full(400, 500.0) if steady else rng.uniform(250.0, 600.0, 400)
    work = np.repeat(levels, rng.integers(20, 80, 400))[: (END_S - BEGIN_S) * 10]
    return np.concatenate([np.full(BEGIN_S * 10, 60.0), work, np.full((LOG_S - END_S) * 10, 60.0)])


def study(
    folder: Path, board: np.ndarray, node: np.ndarray, *, late_s: float = LATE_S, clock: str = "meter"
) -> pl.DataFrame:
    """Write a board each second and a meter that tells means of 5 s on a late clock; analyse; return results at the node."""
    rng = np.random.default_rng(1)
    first = f"{T0:%Y/%m/%d}"
    lines = ["timestamp, index, name, power.draw.instant [W]"]
    lines += [
        f"{first} {T0 + timedelta(seconds=s):%T}.000, 0, A100, {board[10 * s] + rng.normal(0, 1):.2f} W"
        for s in range(LOG_S)
    ]
    (folder / "gpu.csv").write_text("\n".join(lines) + "\n")
    rows = ["time,power_w"]
    for s in range(MEAN_S, LOG_S, MEAN_S):
        at = T0 + timedelta(seconds=s + late_s)
        rows.append(f"{at:%FT%T}.{at.microsecond // 1000:03d}Z,{node[10 * (s - MEAN_S) : 10 * s].mean():.1f}")
    (folder / "meter.csv").write_text("\n".join(rows) + "\n")
    (folder / "study.toml").write_text(
        '[study]\ntimezone = "UTC"\nreference_clock = "node"\n[[source]]\npath = "gpu.csv"\n'
        f'[[source]]\npath = "meter.csv"\nscope = "node"\nclock = "{clock}"\n{RUN}'
    )
    with open_store(run.analyse(config.load(folder), folder / "out").store) as store:
        found = store.results().filter(scope="node", device="", phase="").join(
            store.table("trails").select("trail_s").head(1), how="cross"
        ) if store.table("trails").height else store.results().filter(scope="node", device="", phase="")  # fmt: skip
        return found.with_columns(status=pl.lit(store.table("alignments").filter(clock=clock)["status"][0]))


def test_the_trail_that_was_found_with_the_offset_is_used(tmp_path: Path) -> None:
    board = load(3, steady=False)
    node = 1.15 * board + 200.0
    truth_j = float(node[10 * BEGIN_S : 10 * END_S].sum()) / 10
    found = study(tmp_path, board, node).row(by_predicate=pl.col("metric") == "energy_j", named=True)
    assert found["status"] == "aligned"
    assert found["trail_s"] == pytest.approx(MEAN_S / 2, abs=0.3)
    assert found["value"] == pytest.approx(truth_j, rel=6e-4)  # untold, 2.5 s at both ends would be 0.13 %
    assert found["lo"] <= truth_j <= found["hi"]
    assert "as found with the clock's offset" in found["method"]


def test_a_meter_on_the_clock_of_the_machine_trails_as_far(tmp_path: Path) -> None:
    board = load(5, steady=False)
    node = 1.15 * board + 200.0
    truth_j = float(node[10 * BEGIN_S : 10 * END_S].sum()) / 10
    found = study(tmp_path, board, node, late_s=0.3, clock="node").row(
        by_predicate=pl.col("metric") == "energy_j", named=True
    )
    assert found["status"] == "reference"
    assert found["trail_s"] == pytest.approx(MEAN_S / 2 + 0.3, abs=0.3)
    assert "as found with the clock's offset" in found["method"]
    assert found["lo"] <= truth_j <= found["hi"]


def test_an_energy_on_a_clock_that_was_not_found_reaches_as_far_as_the_log_allows(tmp_path: Path) -> None:
    """The node draws what the board does not: nothing aligns them, and the run may lie anywhere in the meter's log."""
    node = 900.0 + load(9, steady=False)[::-1]
    found = study(tmp_path, load(3, steady=False), np.roll(node, 4321)).row(
        by_predicate=pl.col("metric") == "energy_j", named=True
    )
    assert found["status"] == "refused"
    length = 10 * (END_S - BEGIN_S)
    total = np.concatenate([[0.0], np.cumsum(np.roll(node, 4321))]) / 10
    windows = total[length:] - total[:-length]
    assert found["lo"] <= windows.min() * 1.002
    assert found["hi"] >= windows.max() * 0.998
    assert found["lo"] > 0.95 * windows.min()
    assert found["hi"] < 1.05 * windows.max()
