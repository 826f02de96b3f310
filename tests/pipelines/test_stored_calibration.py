import datetime as dt
import json

import polars as pl
import pytest

from joulebook import calibrate, calibration_record
from joulebook_pipelines import config, run
from joulebook_pipelines.config_errors import ConfigError
from joulebook_pipelines.store import open_store

ROWS = [(s, 0, f"{300 + s % 2}.0 W") for s in range(201)]
TOML = """[study]
timezone = "UTC"
[site]
pue = 1.5
[[source]]
path = "gpu.csv"
[[calibration]]
file = "node7.json"
scope = "board"
reference_scope = "node"
"""


def _record(watts=(100.0, 200.0, 300.0, 400.0)):
    """A machine that draws 1.2 times its boards and 150 W."""
    line = calibrate.fit(pl.DataFrame({"reading_w": watts, "reference_w": [1.2 * w + 150 for w in watts]}))
    return json.dumps(calibration_record.to_dict(
        calibration_record.Record(line, "node", "board", "node", "wall meter", dt.date(2026, 3, 1))
    ))  # fmt: skip


def _results(folder, out):
    result = run.analyse(config.load(folder), out)
    with open_store(result.store) as store:
        rows = store.results().filter((pl.col("device") == "") & (pl.col("phase") == ""))
        return {(r["scope"], r["metric"]): r for r in rows.iter_rows(named=True)}, store.findings()


def test_it_gives_the_node_and_the_facility_of_a_run_that_saw_boards_only(gpu_log, study_folder, tmp_path):
    found, _ = _results(study_folder({"gpu.csv": gpu_log(ROWS), "node7.json": _record()}, TOML), tmp_path / "out")
    node = found["node", "energy_j"]
    assert node["value"] == pytest.approx((1.2 * 300.5 + 150) * 200, rel=1e-3)
    assert node["lo"] <= node["value"] <= node["hi"]
    assert "node7.json" in node["method"]
    assert found["facility", "facility_energy_j"]["value"] == pytest.approx(1.5 * node["value"])


def test_it_is_not_stretched_beyond_its_range(gpu_log, study_folder, tmp_path):
    stored = _record((50.0, 80.0, 110.0, 140.0))
    found, _ = _results(study_folder({"gpu.csv": gpu_log(ROWS), "node7.json": stored}, TOML), tmp_path / "out")
    assert found["node", "energy_j"]["value"] is None
    assert found["node", "energy_j"]["reason"]


def test_a_file_that_is_none_is_named(gpu_log, study_folder, tmp_path):
    folder = study_folder({"gpu.csv": gpu_log(ROWS), "node7.json": "{}"}, TOML)
    with pytest.raises(ConfigError, match=r"node7\.json"):
        run.analyse(config.load(folder), tmp_path / "out")
