"""The notebook templates run on any study, and papermill runs them with this interpreter's kernel."""
# ruff: noqa: E501 (rows of tables read better on one line)

import ast
import json
from contextlib import closing
from datetime import UTC, datetime, timedelta

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import polars as pl
import pytest

from joulebook import schema
from joulebook_pipelines import notebook_kernels, notebooks, open_store

T0 = datetime(2026, 11, 2, 1, 0, tzinfo=UTC)
NAMES = [t.name for t in notebooks.TEMPLATES]


def at(seconds):
    return T0 + timedelta(seconds=seconds)


def rows_of_everything():
    """One run with readings at two boundaries, and a row or more in every table that a template reads."""
    seconds = np.arange(0, 600.0)
    watts = np.where((seconds > 60) & (seconds < 540), 700.0, 60.0)
    readings = [
        pl.DataFrame({"source_id": i, "line": np.arange(2, 602), "device": device, "ts_utc": [at(s) for s in seconds], "power_w": watts * k})
        for i, device, k in ((1, "gpu:0", 1.0), (2, "node", 1.4))
    ]  # fmt: skip
    scopes = ((1, "gpu:0", "board"), (2, "node", "node"))
    result = {"run_id": "r1", "device": "", "phase": "", "n": 480, "coverage_ratio": 1.0, "method": "m", "reason": ""}
    return {
        "study": [{"key": "study.name", "value": '"s"'}, {"key": "study.timezone", "value": '"Asia/Shanghai"'}],
        "sources": [{"source_id": i, "path": f"{s}.csv", "adapter": "a", "host": "node", "clock": s} for i, _, s in scopes],
        "channels": [{"source_id": i, "device": d, "scope": s, "period_s": 1.0, "n": 600, "gaps": 0, "coverage_ratio": 1.0, "kind": "instant"}
                     for i, d, s in scopes],
        "readings": pl.concat(readings),
        "runs": [{"run_id": "r1", "host": "node", "start_utc": at(60), "end_utc": at(540), "tokens": 1e6, "labels": "{}"}],
        "instruments": [{"run_id": "r1", "scope": s, "source_id": i, "device": d, "chosen": True} for i, d, s in scopes],
        "steps": [{"run_id": "r1", "step": i, "start_utc": at(60 + 4 * i), "end_utc": at(64 + 4 * i), "loss": 3.0 / (1 + i / 20)} for i in range(120)],
        "phases": [{"run_id": "r1", "phase": p, "start_utc": at(a), "end_utc": at(b)} for p, a, b in (("forward", 60, 200), ("backward", 200, 540))],
        "alignments": [{"clock": "node", "reference_clock": "board", "anchor_utc": at(300), "offset_s": 0.5, "offset_lo": 0.4, "offset_hi": 0.6,
                        "drift_ppm": 0.0, "status": "aligned"}, {"clock": "x", "status": "refused", "reason": "no overlap"}],
        "calibrations": [{"host": "node", "scope": "board", "reference_scope": "node", "gain": 1.4, "gain_lo": 1.3, "gain_hi": 1.5, "offset_w": 0.0,
                          "range_lo_w": 60.0, "range_hi_w": 700.0, "status": "calibrated"}],
        "segments": [{"run_id": "r1", "device": "gpu:0", "scope": "board", "kind": "stable", "start_utc": at(70), "end_utc": at(540), "mean_w": 700.0,
                      "cv_ratio": 0.01}],
        "results": [result | {"scope": s, "metric": m, "value": v, "lo": v * 0.99, "hi": v * 1.01} for s in ("board", "node") for m, v in (
            ("energy_j", 336e3), ("idle_power_w", 60.0), ("energy_per_token_j", 0.3), ("stall_energy_j", 10.0))]
        + [result | {"scope": "board", "phase": p, "metric": "phase_energy_j", "value": v} for p, v in (("forward", 98e3), ("backward", 238e3))],
        "uncertainties": [{"run_id": "r1", "scope": "board", "device": "", "metric": "energy_j", "part": "noise", "lo": 1.0, "hi": 1.0}],
        "sweeps": [{"sweep": "b", "knob": "batch_size", "x": x, "repeats": 2, "energy_per_token_j": e, "energy_to_target_j": e * 1e6}
                   for x, e in ((16.0, 3.0), (32.0, 2.0), (64.0, 2.5))],
        "sweet_spots": [{"sweep": "b", "objective": "energy_to_target_j", "x": 32.0, "x_lo": 20.0, "x_hi": 50.0, "value": 2e6, "status": "found"}],
        "changes": [{"campaign": "c", "position": 1, "change": "p", "scope": "board", "metric": "energy_per_token_j", "before": 2.0, "after": 1.8,
                     "effect_ratio": -0.1, "effect_lo": -0.12, "effect_hi": -0.08, "verdict": "saves"}],
        "decompositions": [{"campaign": "c", "position": 1, "change": "p", "scope": "board", "part": p, "effect_ratio": e} for p, e in (("duration", -0.15), ("power-level", 0.05))],
        "drivers": [{"run_id": "r1", "scope": "board", "device": "gpu:0", "driver": d, "share_ratio": s} for d, s in (("utilization_ratio", 0.7), ("unexplained", 0.3))],
        "convergence": [{"run_id": "r1", "scope": "board", "step": 60 * i, "end_utc": at(240 * i), "energy_j": 168e3 * i, "loss": 3.0 / i, "marginal_j": 1e5 * i}
                        for i in (1, 2)],
        "findings": [{"run_id": "r1", "stage": "energy", "code": "gap-not-bridged", "severity": "warning", "subject": "gpu:0", "message": "m",
                      "evidence": "{}"}],
    }  # fmt: skip


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    made = {}
    for name, rows in (("full", rows_of_everything()), ("empty", {})):
        folder = tmp_path_factory.mktemp(name)
        with open_store(folder / "study.duckdb", read_only=False) as store:
            for table, some in rows.items():
                store.insert(table, schema.conform(pl.DataFrame(some, infer_schema_length=None), table))
        made[name] = folder / "study.duckdb"
    return made


def code(name):
    book = nbformat.read(notebooks.template(name), as_version=4)
    return book, [c for c in book.cells if c.cell_type == "code"]


@pytest.mark.parametrize("name", NAMES)
def test_template_is_an_analysts_notebook(name):
    book, cells = code(name)
    nbformat.validate(book)
    tagged = [c for c in cells if "parameters" in c.metadata.get("tags", [])]
    assert len(tagged) == 1
    assert tagged[0].source.startswith("store_path = ")
    assert book.cells[0].cell_type == "markdown" and book.cells[0].source.startswith("# ")
    for cell in cells:
        tree = ast.parse(cell.source)
        long = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and f.end_lineno - f.lineno >= 10]
        assert not long
        if "plots." in cell.source:
            assert cell.source.rstrip().endswith("plt.show()")
        paths = [
            n
            for n in ast.walk(tree)
            if isinstance(n, ast.Constant) and isinstance(n.value, str) and ".duckdb" in n.value
        ]
        assert not paths or cell is tagged[0]
    assert "image/png" not in json.dumps(book)


@pytest.mark.parametrize("study", ["full", "empty"])
@pytest.mark.parametrize("name", NAMES)
def test_template_runs_on_any_study(name, study, stores, monkeypatch):
    drawn = []
    monkeypatch.setattr(plt, "show", lambda: (drawn.extend(plt.get_fignums()), plt.close("all")))
    space = {}
    for cell in code(name)[1]:
        exec(cell.source, space)
        if "parameters" in cell.metadata.get("tags", []):
            space["store_path"] = str(stores[study])
    space["store"].close()
    pictures = any("plt.show()" in c.source for c in code(name)[1])
    assert bool(drawn) == (pictures and study == "full")


def test_only_notebooks_with_rows_apply(stores):
    with open_store(stores["full"]) as store:
        assert notebooks.applicable(store) == NAMES
    with open_store(stores["empty"]) as store:
        assert notebooks.applicable(store) == ["first-look"]


def test_executes_with_this_interpreter_whatever_kernels_are_registered(stores, tmp_path, monkeypatch):
    kernel = tmp_path / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text(
        json.dumps({"argv": ["/nowhere/python"], "display_name": "broken", "language": "python"})
    )
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
    out = tmp_path / "notebooks" / "first-look.ipynb"
    with closing(notebooks.Kernels(out.parent)) as kernels:
        assert notebooks.execute_all(["first-look"], stores["empty"], out.parent, kernels) == [out]
    text = out.read_text(encoding="utf-8")
    assert str(stores["empty"].parent) not in json.dumps(nbformat.read(out, as_version=4).metadata)
    assert "papermill" not in json.loads(text)["metadata"]
    done = [c for c in nbformat.read(out, as_version=4).cells if c.cell_type == "code"]
    assert [c.execution_count for c in done] == list(range(1, len(done) + 1))


def test_a_failing_cell_is_named_and_nothing_reaches_the_next_notebook(tmp_path):
    for name, source in (("sets", "x = 1"), ("bad", "1 / 0"), ("asks", "globals().get('x')")):
        nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)]), tmp_path / f"{name}.ipynb")
    with notebook_kernels.Kernel() as kernel:
        for name in ("sets", "asks"):
            kernel.execute(tmp_path / f"{name}.ipynb", tmp_path / "out" / f"{name}.ipynb", {})
        with pytest.raises(notebooks.NotebookError, match=r"bad\.ipynb: ZeroDivisionError"):
            kernel.execute(tmp_path / "bad.ipynb", tmp_path / "out" / "bad.ipynb", {})
    (cell,) = nbformat.read(tmp_path / "out" / "asks.ipynb", as_version=4).cells
    assert cell.execution_count == 1
    assert not cell.outputs


def test_unknown_template_lists_those_there_are():
    with pytest.raises(FileNotFoundError, match="first-look"):
        notebooks.template("nothing")
