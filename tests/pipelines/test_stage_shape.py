"""How power goes within a run, seen by the instrument that can see it."""

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from joulebook_pipelines import config, run
from joulebook_pipelines.store import open_store

TRACKED = (
    "timestamp,project_name,run_id,experiment_id,duration,emissions,emissions_rate,cpu_power,gpu_power,ram_power,cpu_energy,"
    "gpu_energy,ram_energy,energy_consumed,country_name,country_iso_code,region,on_cloud,cloud_provider,cloud_region,os,"
    "python_version,codecarbon_version,cpu_count,cpu_model,gpu_count,gpu_model,longitude,latitude,ram_total_size,"
    "tracking_mode,pue\n"
    "2026-11-02T01:10:00,p,r,,600.0,0.03,0.00005,100.0,400.0,10.0,0.0166667,{kwh:.7f},0.0016667,0.085,China,CHN,,N,,,Linux,"
    "3.11.7,2.8.0,64,sim,1,1 x NVIDIA H100,,,512,machine,1.0\n"
)


def test_a_log_with_a_gap_shows_what_one_row_a_run_cannot(tmp_path):
    start, rng = datetime(2026, 11, 2, 1, tzinfo=UTC), np.random.default_rng(4)
    seconds = np.arange(600)
    watts = np.where(seconds < 60, 250.0, 400.0) + rng.normal(0.0, 4.0, 600)
    kept = (seconds < 300) | (seconds >= 390)
    lines = "".join(f"{start + timedelta(seconds=int(s)):%Y/%m/%d %H:%M:%S}.000, 0, {w:.2f} W, 99 %\n"
                    for s, w in zip(seconds[kept], watts[kept], strict=True))  # fmt: skip
    (tmp_path / "gpu.csv").write_text("timestamp, index, power.draw [W], utilization.gpu [%]\n" + lines)
    (tmp_path / "emissions.csv").write_text(TRACKED.format(kwh=watts.sum() / 3.6e6))
    (tmp_path / "study.toml").write_text(
        '[study]\ntimezone = "UTC"\n[[source]]\npath = "gpu.csv"\n[[source]]\npath = "emissions.csv"\n[[run]]\nid = "r"\n'
        "start = 2026-11-02T01:00:00Z\nend = 2026-11-02T01:10:00Z\n"
    )
    with open_store(run.analyse(config.load(tmp_path), tmp_path / "out").store) as store:
        board = store.results("r").filter(pl.col("scope") == "board", pl.col("device") == "", pl.col("phase") == "")
        codes = store.findings()["code"].to_list()
    value = dict(board.select("metric", "value").iter_rows())
    assert "shape-from-second-instrument" in codes
    assert value["energy_j"] == pytest.approx(watts.sum(), rel=0.002)
    assert 55 <= value["warmup_s"] <= 70
    assert value["stable_power_w"] == pytest.approx(400.0, abs=1.0)
