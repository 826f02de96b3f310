"""A meter that is said to share the machine's clock, and does not, is told; one that does is not."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from joulebook_pipelines import config, open_store, run
from joulebook_pipelines.adapters import ADAPTERS
from joulebook_pipelines.run import fill
from joulebook_pipelines.stages import clocks, runs
from joulebook_pipelines.stages.context import Context

T0 = datetime(2026, 3, 2, 10, tzinfo=UTC)


def written(folder: Path, meter_ahead_s: int) -> None:
    """Write a board and a meter of one load whose changes never repeat themselves."""
    draw = random.Random(7)
    load: list[float] = []
    while len(load) < 900:
        load += [draw.choice((80.0, 200.0, 320.0, 400.0))] * draw.randint(15, 70)
    board = "".join(
        f"{T0 + timedelta(seconds=i):%Y/%m/%d %H:%M:%S.000}, 0, A100, {load[i] + draw.gauss(0, 2):.2f} W\n"
        for i in range(900)
    )
    meter = "".join(
        f"{T0 + timedelta(seconds=i + meter_ahead_s):%Y-%m-%dT%H:%M:%SZ},{1.1 * load[i] + 120 + draw.gauss(0, 2):.1f}\n"
        for i in range(900)
    )
    (folder / "gpu.csv").write_text("timestamp, index, name, power.draw [W]\n" + board)
    (folder / "meter.csv").write_text("timestamp,power_w\n" + meter)
    sources = '[[source]]\npath = "gpu.csv"\n[[source]]\npath = "meter.csv"\nscope = "node"\n'
    (folder / "study.toml").write_text('[study]\ntimezone = "UTC"\n' + sources)


@pytest.mark.parametrize(("meter_ahead_s", "told"), [(47, True), (0, False)])
def test_a_meter_on_a_shared_clock_is_tried(tmp_path: Path, meter_ahead_s: int, told: bool) -> None:
    written(tmp_path, meter_ahead_s)
    study = config.load(tmp_path, adapters=[a.name for a in ADAPTERS])
    filled = fill(study, tmp_path / "out", run.Told())
    with open_store(filled.store, read_only=False) as store:
        context = Context(store, study)
        runs.STAGE.work(context)
        found = [f for _, f in clocks.STAGE.work(context).findings if f.code == "clocks-differ"]
    assert bool(found) is told
    if told:
        assert found[0].evidence["offset_s"] == pytest.approx(meter_ahead_s, abs=1.5)
        assert "ahead" in found[0].message
