"""The right answers to a made-up study, as JSON to lie beside its logs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta

import polars as pl

from joulebook.synthetic import Sweep
from joulebook.synthetic_campaign import Campaign
from joulebook.synthetic_truth import Truth
from joulebook.synthetic_witness import Clock

SCOPES = ("board", "node")

DIGITS = 9
"""Significant digits written: more than any reader can find, fewer than differ between machines."""


def node(truth: Truth, *, clocks: Mapping[str, Clock], shared: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """Return energies, powers, phases and warm-up of every run, the clocks, and how board and node relate.

    Parameters
    ----------
    truth
        What happened.
    clocks
        Clocks by name, other than the right one.
    shared
        Runs of the truth that are jobs side by side: names of the jobs with the board that each had.

    Returns
    -------
    str
        A JSON object.

    Examples
    --------
    >>> from joulebook import synthetic
    >>> sorted(json.loads(node(synthetic.node(1), clocks={})))
    ['calibration', 'clocks', 'idle_power_w', 'runs']
    """
    idle_w = _idle_power_w(truth)
    runs = {run_id: _run(truth, run_id, idle_w) for run_id in truth.runs["run_id"]}
    first = next(iter(runs.values()))["mean_power_w"]
    assert isinstance(first, dict)
    gain = (first["node"] - idle_w["node"]) / (first["board"] - idle_w["board"])
    return _text(
        {
            "runs": runs,
            **({"shared": {run_id: _shared(truth, run_id, jobs) for run_id, jobs in shared.items()}} if shared else {}),
            "idle_power_w": idle_w,
            "clocks": _clocks(truth, clocks),
            "calibration": {
                "between": "board and node, idle and mean of the first run",
                "gain": gain,
                "offset_w": idle_w["node"] - gain * idle_w["board"],
            },
        }
    )


def sweep(made: Sweep) -> str:
    """Return the curve over batch sizes and where it is least.

    Examples
    --------
    >>> from joulebook import synthetic
    >>> made = synthetic.sweep(1, batch_sizes=(32, 128, 512), repeats=1)
    >>> json.loads(sweep(made))["best_tested"]
    128
    """
    return _text(
        {
            "curve": {str(row.pop("batch_size")): row for row in made.curve.to_dicts()},
            "best_batch_size": made.best_batch_size,
            "best_tested": made.best_tested,
            "runs": {run_id: _energies(made.truth, run_id, scopes=("board",)) for run_id in made.truth.runs["run_id"]},
        }
    )


def campaign(made: Campaign, *, clocks: Mapping[str, Clock]) -> str:
    """Return the effect of every change, which of them do nothing, and which cannot be judged at the node.

    Examples
    --------
    >>> from joulebook.synthetic_campaign import campaign as make
    >>> json.loads(campaign(make(1, repeats=1), clocks={}))["refused_at_node"]
    ['low-precision']
    """
    effects = made.effects
    return _text(
        {
            "order": list(made.order),
            "changes": {
                row["change"]: {
                    "board_effect_ratio": row["board_effect_ratio"],
                    "node_effect_ratio": row["node_effect_ratio"],
                }
                for row in effects.to_dicts()
            },
            "null": effects.filter(pl.col("node_effect_ratio").abs() < 1e-9)["change"].to_list(),
            "refused_at_node": effects.filter(~pl.col("inlet_overlaps"))["change"].to_list(),
            "clocks": _clocks(made.truth, clocks),
            "runs": {run_id: _energies(made.truth, run_id, scopes=SCOPES) for run_id in made.truth.runs["run_id"]},
        }
    )


def _idle_power_w(truth: Truth) -> dict[str, float]:
    """Return the mean power before the first run, when nothing is warm yet [W]."""
    quiet = truth.node.filter(pl.col("ts_utc") < truth.runs["start_utc"][0])
    board, node = quiet.select(pl.col("board_power_w").mean(), pl.col("power_w").mean()).row(0)
    return {"board": float(board), "node": float(node)}


def _energies(truth: Truth, run_id: str, *, scopes: tuple[str, ...]) -> dict[str, object]:
    run = truth.runs.row(by_predicate=pl.col("run_id") == run_id, named=True)
    energy_j = {scope: truth.energy_j(run_id, scope) for scope in scopes}
    return {
        "tokens": run["tokens"],
        "energy_j": energy_j,
        "energy_per_token_j": {scope: e / run["tokens"] for scope, e in energy_j.items()},
    }


def _shared(truth: Truth, run_id: str, jobs: Mapping[str, str]) -> dict[str, object]:
    boards = {job: truth.energy_j(run_id, "board", device=device) for job, device in jobs.items()}
    return {"node_energy_j": truth.energy_j(run_id, "node"), "board_energy_j": boards}


def _run(truth: Truth, run_id: str, idle_w: Mapping[str, float]) -> dict[str, object]:
    run = truth.runs.row(by_predicate=pl.col("run_id") == run_id, named=True)
    seconds = (run["end_utc"] - run["start_utc"]) / timedelta(seconds=1)
    energy_j = {scope: truth.energy_j(run_id, scope) for scope in (*SCOPES, "package", "dram")}
    warm = truth.warmups.row(by_predicate=pl.col("run_id") == run_id, named=True)
    here = (pl.col("run_id") == run_id) & (pl.col("device") == "") & (pl.col("phase") != "")
    phases = {
        scope: {
            row["phase"]: {"energy_j": row["energy_j"], "duration_s": row["duration_s"]}
            for row in truth.energies.filter(here & (pl.col("scope") == scope)).to_dicts()
        }
        for scope in SCOPES
    }
    return {
        "start_utc": run["start_utc"].isoformat(),
        "end_utc": run["end_utc"].isoformat(),
        "tokens": run["tokens"],
        "energy_j": energy_j,
        "mean_power_w": {scope: e / seconds for scope, e in energy_j.items()},
        "marginal_energy_j": {scope: energy_j[scope] - idle_w[scope] * seconds for scope in SCOPES},
        "phases": phases,
        "setup_s": warm["setup_s"],
        "steady_after_s": [warm["steady_lo_s"], warm["steady_hi_s"]],
    }


def _clocks(truth: Truth, clocks: Mapping[str, Clock]) -> dict[str, object]:
    anchor = truth.start_utc + timedelta(seconds=truth.duration_s / 2)
    return {
        name: {"offset_s": c.offset_s, "drift_ppm": c.drift_ppm, "anchor_utc": anchor.isoformat()}
        for name, c in clocks.items()
    }


def _text(answers: Mapping[str, object]) -> str:
    return json.dumps(_short(answers), indent=1) + "\n"


def _short(value: object) -> object:
    """Return the value with its floats cut to ``DIGITS`` significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {k: _short(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_short(v) for v in value]
    return value
