"""The main job on the sample study: a rerun with nothing changed against the first run."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.bench

RUN = """
import sys, time, pathlib
from joulebook_pipelines import config, run
study, out_folder = config.load(pathlib.Path(sys.argv[1])), pathlib.Path(sys.argv[2])
out = {}
began = time.perf_counter()
run.analyse(study, out_folder)
out["seconds"] = time.perf_counter() - began
"""


def test_a_rerun_is_nearly_free(bench, tmp_path):
    sample = ROOT / "sample_data" / "node"
    first = bench.process(RUN, sample, tmp_path / "out")
    again = bench.process(RUN, sample, tmp_path / "out")
    ratio = again["seconds"] / first["seconds"]
    bench.row(
        "analysis of the sample study again with nothing changed, over the first time", "≤ 5 %", f"{100 * ratio:.1f} %"
    )
    assert ratio <= 0.05
