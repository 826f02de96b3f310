"""The page and the JSON of a study, from a store filled by hand."""
# ruff: noqa: E501 (rows of tables read better on one line)

import json
import re
import shutil
import subprocess
import tempfile
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from joulebook import schema
from joulebook_pipelines import metrics, report, shown
from joulebook_pipelines.report import blocks, footnotes
from joulebook_pipelines.report.sections import advice, energy_split, findings, sureness
from joulebook_pipelines.report.source import Source

T0 = datetime(2026, 11, 2, 1, 0, tzinfo=UTC)
NASTY = '<script>alert("x")</script><img src=x onerror=alert(1)>'


class FakeStore:
    """Tables by name, and power drawn from a formula."""

    def __init__(self, tables=None, study=None):
        self.tables = {t.name: t.empty() for t in schema.TABLES}
        for name, rows in (tables or {}).items():
            self.tables[name] = schema.conform(pl.DataFrame(rows, infer_schema_length=None), name)
        self.study = study if study is not None else {"study.name": "node-11", "study.timezone": "Asia/Shanghai"}

    def table(self, name):
        return self.tables[name]

    def rejects_by_rule(self):
        rows = self.tables["rejects"].join(self.tables["sources"].select("source_id", "path"), on="source_id")
        first = pl.col("raw").sort_by("line").first()
        return rows.group_by("path", "column_name", "rule").agg(
            cells=pl.len(), first_line=pl.col("line").min(), example=first
        )

    def _levels(self, scope):
        s = np.arange(0, 3000, 1.0)
        work = (s > 300) & (s < 2700)
        base, gain = {"board": (125.0, 860.0), "node": (403.0, 1000.0)}.get(scope, (50.0, 100.0))
        return s, base + work * (gain + 60 * np.sin(s / 3.0))

    def _readings(self, scope, shift=0.0):
        s, watts = self._levels(scope)
        stamps = [T0 + timedelta(seconds=float(x) + shift) for x in s]
        frame = pl.DataFrame({"device": scope, "ts_utc": stamps, "power_w": watts})
        return frame.with_columns(pl.col("ts_utc").cast(schema.UTC))

    def measured_power(self, channels, start_utc=None, end_utc=None):
        meter = 2 in channels["source_id"]
        return self._readings("node" if meter else "board", -68.0 if meter else 0.0)

    def aligned_runs(self):
        return self.tables["runs"]

    def timeline(self, scope, points=2000, start_utc=None, end_utc=None):
        rows = self._readings(scope).filter(
            ~pl.col("ts_utc").is_between(T0 + timedelta(seconds=1500), T0 + timedelta(seconds=1600))
        )
        if start_utc:
            rows = rows.filter(pl.col("ts_utc").is_between(start_utc, end_utc))
        return rows.select(
            "ts_utc", (pl.col("power_w") - 30).alias("lo_w"), (pl.col("power_w") + 30).alias("hi_w"), mean_w="power_w"
        )


def result(metric, value, scope="node", run="train-1", half=0.001, **more):
    ends = {} if value is None else {"lo": value * (1 - half), "hi": value * (1 + half)}
    row = {"run_id": run, "scope": scope, "device": "", "phase": "", "metric": metric, "value": value, "n": 2400,
           "coverage_ratio": 0.998, "method": "trapezoid on real stamps", "reason": ""}  # fmt: skip
    return row | ends | more


def at(seconds):
    return T0 + timedelta(seconds=seconds)


def full_tables():
    phases = [("forward", 676914.7), ("backward", 1280035.6), ("grad_sync", 245662.0), ("optimizer", 96080.5), ("data_wait", 45858.6),
              ("checkpoint", 15334.5)]  # fmt: skip
    results = [
        result("energy_j", 3360972.4), result("energy_j", 2359885.8, "board", half=0.003),
        result("energy_j", 431000.0, "package", half=0.01), result("mean_power_w", 1400.88), result("mean_power_w", 983.6, "board"),
        result("duration_s", 2399.2, half=0.0), result("idle_power_w", 403.5, half=0.004), result("marginal_energy_j", 2392824.5),
        result("stable_power_w", 1403.0), result("energy_per_token_j", 0.016188), result("tokens_per_j", 61.77),
        result("mfu_ratio", None, reason="peak_flops_per_device is not set"), result("residual_power_w", 237.0),
        result("facility_energy_j", 4369264.2, "facility"), result("carbon_kg", 0.70515, "facility"), result("cost", 0.1456, "facility"),
        result("stall_energy_j", 45858.6, "board"), result("checkpoint_energy_j", 15334.5, "board"),
        *(result("energy_j", 2359885.8 / 2, "board", device=f"gpu:{i}") for i in (0, 1)),
        *(result("phase_energy_j", e, "board", phase=p) for p, e in phases),
        *(result("phase_share_ratio", e / 2359885.8, "board", phase=p) for p, e in phases),
    ]  # fmt: skip
    steps = np.arange(300, 2700, 4.5)
    return {
        "sources": [
            {"source_id": 1, "path": "gpu.csv", "sha256": "ab" * 32, "adapter": "nvidia-smi-csv", "host": "node", "clock": "node",
             "timezone": "Asia/Shanghai", "lines": 6001, "readings": 6000, "rejects": 3},
            {"source_id": 2, "path": f"meter {NASTY}.csv", "sha256": "cd" * 32, "adapter": "meter-csv", "host": "node",
             "clock": "meter", "timezone": "UTC", "lines": 3001, "readings": 3000, "rejects": 0},
        ],
        "channels": [
            {"source_id": 1, "device": "gpu:0", "scope": "board", "model": "H100", "period_s": 1.0, "n": 3000, "gaps": 1,
             "coverage_ratio": 0.97, "kind": "instant"},
            {"source_id": 2, "device": "node", "scope": "node", "period_s": 1.0, "n": 3000, "gaps": 0, "coverage_ratio": 1.0,
             "kind": "mean"},
        ],
        "rejects": [
            {"source_id": 1, "line": 17 + i, "device": "gpu:0", "column_name": "power.draw [W]", "rule": "not-a-number", "raw": NASTY}
            for i in range(3)
        ],
        "runs": [{"run_id": "train-1", "host": "node", "start_utc": at(300), "end_utc": at(2700), "origin": "study.toml",
                  "tokens": 207618048.0, "labels": "{}"}],
        "phases": [
            {"run_id": "train-1", "phase": p, "start_utc": at(float(s + a)), "end_utc": at(float(s + b)), "origin": "phases.csv"}
            for s in steps for p, a, b in (("forward", 0, 1.3), ("backward", 1.3, 3.5), ("grad_sync", 3.5, 4.2), ("optimizer", 4.2, 4.5))
        ],
        "alignments": [
            {"clock": "node", "status": "reference"},
            {"clock": "meter", "reference_clock": "node", "anchor_utc": at(1500), "offset_s": -68.0, "offset_lo": -68.12,
             "offset_hi": -67.88, "drift_ppm": 9.0, "drift_lo": 5.0, "drift_hi": 13.0, "residual_s": 0.04, "status": "aligned"},
            {"clock": "bmc", "reference_clock": "node", "status": "refused", "reason": "no common edge"},
        ],
        "calibrations": [
            {"host": "node", "scope": "board", "reference_scope": "node", "gain": 1.163, "gain_lo": 1.15, "gain_hi": 1.176,
             "offset_w": 258.0, "offset_lo": 250.0, "offset_hi": 266.0, "range_lo_w": 125.0, "range_hi_w": 985.0, "points": 4,
             "status": "calibrated", "reason": ""}],
        "segments": [
            {"run_id": run, "device": "", "scope": scope, "kind": kind, "start_utc": at(a), "end_utc": at(b), "n": int(b - a),
             "mean_w": w, "mean_lo": w - 3, "mean_hi": w + 3, "sd_w": 40.0, "cv_ratio": 0.04, "reason": ""}
            for scope, idle, work in (("board", 125.0, 985.0), ("node", 403.5, 1403.0))
            for run, kind, a, b, w in (("", "idle", 0, 298, idle), ("train-1", "warmup", 300, 390, work * 0.93),
                                       ("train-1", "stable", 390, 2690, work))
        ],
        "results": results,
        "uncertainties": [
            {"run_id": "train-1", "scope": "node", "device": "", "metric": "energy_j", "part": p, "lo": v, "hi": v}
            for p, v in (("noise", 900.0), ("alignment", 2900.0), ("edges", 400.0))
        ],
        "findings": [
            {"run_id": "", "source_id": 1, "stage": "ingest", "code": "cell-rejected", "severity": "warning", "subject": "gpu.csv",
             "message": f"3 cells are not numbers, e.g. {NASTY}; mend the logger.", "evidence": json.dumps({"lines": [17, 18, 19]})},
            {"run_id": "train-1", "source_id": 1, "stage": "energy", "code": "gap-not-bridged", "severity": "warning",
             "subject": "gpu:0", "message": "100 s without readings; the interval holds what may have been used.",
             "evidence": json.dumps({"scope": "board", "seconds": 100.0})},
            {"run_id": "", "source_id": None, "stage": "align", "code": "clock-refused", "severity": "error", "subject": "bmc",
             "message": "No edge is seen by both clocks; log a load step.", "evidence": "{}"},
            *({"run_id": "", "source_id": 2, "stage": "ingest", "code": "odd", "severity": "note", "subject": f"line {i}",
               "message": "odd", "evidence": "not json"} for i in range(5000)),
        ],
        "stage_log": [{"stage": "ingest", "fingerprint": "f" * 64, "code_version": "0.1.0", "started_utc": T0, "seconds": 1.0, "rows_out": 9000}],
    }  # fmt: skip


SETTINGS = {
    "study.name": "node-11", "study.timezone": "Asia/Shanghai", "site.pue": 1.3, "site.carbon_kg_per_kwh": 0.581,
    "site.price_per_kwh": 0.12, "site.currency": "USD",
}  # fmt: skip


def sweep_tables(runs=24):
    x = np.repeat([16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0], runs // 8)
    names = [f"bs{int(v)}-r{i}" for i, v in enumerate(x)]
    table = full_tables()
    settings = np.unique(x)
    energy, tokens = 3.0 / settings**0.4 + 0.4, 4.5e8 * (1 + settings / 300)
    return table | {
        "runs": [{"run_id": n, "start_utc": at(60 * i), "end_utc": at(60 * i + 50), "labels": "{}"} for i, n in enumerate(names)],
        "phases": [],
        "results": [row for i, n in enumerate(names) for row in (
            result("energy_j", 3e5 + 1e4 * i, "board", n), result("mean_power_w", 900.0 + i, "board", n),
            result("energy_per_token_j", None if i == 3 else 0.02 + i * 1e-3, "board", n, reason="no tokens" if i == 3 else ""))],
        "sweeps": [
            {"sweep": "batch", "knob": "batch_size", "x": v, "repeats": 3, "step_time_s": 0.2 + v / 500, "energy_per_token_j": e,
             "energy_per_token_j_lo": e * 0.98, "energy_per_token_j_hi": e * 1.02, "tokens_to_target": t,
             "energy_to_target_j": e * t, "energy_to_target_j_lo": e * t * 0.97, "energy_to_target_j_hi": e * t * 1.03}
            for v, e, t in zip(settings, energy, tokens, strict=True)],
        "sweet_spots": [
            {"sweep": "batch", "objective": "energy_to_target_j", "x": 128.0, "x_lo": 64.0, "x_hi": 256.0, "value": 4.5e8, "status": "found",
             "reason": ""},
            {"sweep": "batch", "objective": "energy_per_token_j", "x": 2048.0, "value": 0.54, "status": "edge", "reason": "still falling"},
            {"sweep": "batch", "objective": "energy_delay", "status": "refused", "reason": "no step time at 3 settings"}],
        "changes": [
            {"campaign": "november", "position": i + 1, "change": c, "scope": s, "metric": "energy_per_token_j", "before": b,
             "after": a, "effect_ratio": None if a is None else a / b - 1, "effect_lo": None if a is None else a / b - 1.02,
             "effect_hi": None if a is None else a / b - 0.98, "p_value": None if a is None else 0.01, "verdict": v,
             "reason": "" if a else "runs at two scopes"}
            for s, k in (("board", 1.0), ("node", 1.4))
            for i, (c, b, a, v) in enumerate((
                ("data-pipeline", 2.0 * k, 1.8 * k, "saves"), ("placement", 1.8 * k, None, "refused"),
                ("recompute", 1.8 * k, 1.81 * k, "indistinguishable"), ("fp8", 1.81 * k, 1.95 * k, "costs")))],
        "decompositions": [
            {"campaign": "november", "position": 1, "change": "data-pipeline", "scope": s, "part": p, "effect_ratio": e, "effect_lo": e - 0.01,
             "effect_hi": e + 0.01} for s in ("board", "node") for p, e in (("duration", -0.16), ("power-level", 0.06))],
    }  # fmt: skip


def more_tables():
    """Two days, a shared machine, drivers, loss against energy and other hours."""
    tables = full_tables()
    share = {
        "host": "node",
        "scope": "node",
        "start_utc": at(300),
        "end_utc": at(2700),
        "method": "by what the boards of each run drew",
    }
    days = [("2026-11-02", 0.30, 60.0, 0.0, 0.0), ("2026-11-03", 0.36, 54.0, 0.2, -0.1)]
    return tables | {
        "rejects": [{"source_id": 1, "line": 17 + i, "device": "", "column_name": "Volts", "rule": "not-applicable", "raw": "-1.0"} for i in range(900)],
        "drivers": [
            {"run_id": "train-1", "scope": "board", "device": f"gpu:{g}", "driver": d, "share_ratio": s, "share_lo": s - 0.05, "share_hi": s + 0.05}
            for g in (0, 1) for d, s in (("utilization_ratio", 0.62), ("temperature_c", 0.11), ("unexplained", 0.27))]
        + [{"run_id": "train-1", "scope": "board", "device": "gpu:2", "driver": "unexplained", "reason": "they move together"}],
        "convergence": [
            {"run_id": "train-1", "scope": "node", "step": 50 * i, "end_utc": at(300 + 120 * i), "energy_j": 1.68e5 * i, "loss": 2.5 + 3.0 / i,
             "marginal_j": None if i == 1 else 5e4 * i**2, "marginal_lo": None if i == 1 else 4e4 * i**2,
             "marginal_hi": None if i in (1, 20) else 7e4 * i**2} for i in range(1, 21)],
        "shares": [share | {"run_id": r, "energy_j": e, "energy_lo": 0.99 * e, "energy_hi": 1.01 * e, "share_ratio": e / 3.36e6} for r, e in (("train-1", 2.2e6), ("train-2", 0.9e6), ("idle", 0.26e6))],
        "what_if": [{"run_id": "train-1", "metric": "carbon_kg", "shift_h": float(h), "value": 0.7 + 0.02 * h, "lo": 0.65 + 0.02 * h, "hi": 0.75 + 0.02 * h} for h in range(-5, 6)],
        "days": [
            {"day": d, "scope": s, "runs": 2, "mfu_ratio": m, "tokens_per_j": t, "pue": 1.3, "mfu_ratio_change_ratio": dm,
             "tokens_per_j_change_ratio": dt} for d, m, t, dm, dt in days for s in ("board", "package", "node")],
        "findings": [
            *({"run_id": f"train-{i}", "source_id": None, "stage": "steady", "code": "no-steady-state", "severity": "warning",
               "subject": f"train-{i} at board", "message": "No steady state.", "evidence": "{}"} for i in range(40)),
            {"run_id": "", "source_id": None, "stage": "days", "code": "efficiency-diverges", "severity": "warning", "subject": "2026-11-03",
             "message": "MFU rose by 20 % while tokens per joule fell by 10 %.", "evidence": "{}"},
            {"run_id": "train-1", "source_id": None, "stage": "convergence", "code": "marginal-energy-rises", "severity": "note", "subject": "loss",
             "message": "From step 150 on each unit of loss costs more.", "evidence": json.dumps({"step": 150, "energy_j": 504000.0, "ratio": 9.0})}],
    }  # fmt: skip


class Page(HTMLParser):
    """Ids, links and the nesting of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.hrefs, self.tags, self.text = [], [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.hrefs += [attrs[k] for k in ("href", "src", "xlink:href") if attrs.get(k)]

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    stores = {
        "full": FakeStore(full_tables(), SETTINGS),
        "many": FakeStore(sweep_tables(), SETTINGS),
        "more": FakeStore(more_tables(), SETTINGS),
        "empty": FakeStore({}, {}),
    }
    made = {}
    for name, store in stores.items():
        out = folder / f"{name}.html"
        notebooks = [folder / "notebooks" / "first-look.ipynb"] if name == "full" else []
        assert report.render(store, out, notebooks) == out
        made[name] = out
    return made


def read(path):
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["full", "many", "more", "empty"])
def test_asks_nothing_of_the_network_and_anchors_are_sound(pages, name):
    text = read(pages[name])
    page = Page(text)
    assert len(text.encode()) < 3_000_000
    assert len(page.ids) == len(set(page.ids))
    assert all(h.startswith("#") or h.startswith("notebooks/") or h == "data:," for h in page.hrefs)
    assert {h[1:] for h in page.hrefs if h.startswith("#")} <= set(page.ids)
    assert not re.findall(r"url\((?!#)", text)
    assert "@import" not in text
    names = {h for h in re.findall(r"https?://[^\s\"'<>)]+", text)}
    assert names <= {"http://www.w3.org/1999/xlink", "http://www.w3.org/2000/svg"}
    assert [i for i in page.ids if i in {"cost", "sure", "trust", "energy", "advice", "measured"}] == [
        "cost", "sure", "trust", "energy", "advice", "measured"
    ]  # fmt: skip


def test_first_section_answers_with_the_rows_of_the_store(pages):
    page = Page(read(pages["full"]))
    for words in (
        "0.93360",
        "at the node",
        "4.4967 ± 0.0045 Wh",
        "0.93360 ± 0.00093 kWh",
        "kWh",
        "0.70515",
        "kg CO2e",
        "0.581",
        "site.carbon_kg_per_kwh",
        "USD",
    ):
        assert words in page.text.replace(",", ""), words


def test_text_of_logs_is_escaped(pages):
    text = read(pages["full"])
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "&lt;script&gt;alert" in text


def test_findings_are_counted_not_repeated(pages):
    text = read(pages["full"])
    assert "× 5000" in text
    assert text.count("<b>line ") == footnotes.EXAMPLES
    assert f"{4999 - footnotes.SUBJECTS} more" in text


def test_sections_stand_where_their_table_has_rows(pages):
    known = {"loss", "drivers", "days", "shares", "hours"}
    assert known <= set(Page(read(pages["more"])).ids)
    assert not known & set(Page(read(pages["full"])).ids)


def section(pages, name, anchor):
    text = read(pages[name])
    found = re.search(rf'<section id="{anchor}".*?</section>', text, re.DOTALL)[0]
    return Page(re.sub(r"<svg.*?</svg>", "", found, flags=re.DOTALL)).text


def test_sections_show_rows_of_the_store(pages):
    drivers = section(pages, "more", "drivers")
    assert all(w in drivers for w in ("utilisation", "62.0", "not explained", "27.0", "they move together"))
    loss = section(pages, "more", "loss")
    assert all(w in loss for w in ("150", "0.1400", "never cheaper again"))  # 504 kJ
    days = section(pages, "more", "days")
    assert all(w in days for w in ("2026-11-03", "+20.00", "−10.00", "MFU rose by 20 %"))
    assert "package" not in days
    shares = section(pages, "more", "shares")
    assert all(w in shares for w in ("train-2", "idle", "26.79", "by what the boards"))
    hours = section(pages, "more", "hours")
    assert all(w in hours for w in ("5 h earlier", "0.600", "5 h later", "0.800", "0.050", "facility energy"))


def test_parts_of_the_uncertainty_are_columns_with_both_ends_where_they_differ():
    tables = full_tables()
    tables["uncertainties"] += [
        {"run_id": "train-1", "scope": "node", "device": "", "metric": "energy_j", "part": p, "lo": lo, "hi": hi}
        for p, lo, hi in (("unknown time", 0.0, 7200.0), ("aliasing", 0.0, 0.0))
    ]
    (table,) = sureness._parts(Source(FakeStore(tables, SETTINGS)))
    assert [c.title for c in table.columns] == ["run", "boundary", "alignment", "edges", "noise", "unknown time"]
    assert table.columns[2].unit == "± Wh"
    assert [getattr(c, "text", c) for c in table.rows[0]] == ["train-1", "node", "0.81", "0.11", "0.25", "−0 +2.0"]


def test_effect_stands_beside_its_parts(pages):
    text = section(pages, "many", "changes")
    assert "of it: time taken" in text
    assert "of it: power drawn" in text
    assert "of it: mix of phases" not in text
    assert "−16.0" in text


def test_equal_findings_of_many_runs_are_one_entry_with_their_subjects(pages):
    text = read(pages["more"])
    assert text.count("No steady state.") == 1
    assert "× 40" in text
    assert "the same for train-1 at board, train-2 at board" in text
    assert f"and {39 - footnotes.SUBJECTS} more" in text


def test_cells_that_the_format_leaves_out_do_not_alarm(pages):
    tile = re.search(r'class="tile (\w+)" id="check-rejects".*?class="brief">(.*?)<', read(pages["more"]), re.DOTALL)
    assert tile[1] == "good"
    assert "900 cells marked as not applicable" in tile[2]


def test_doubtful_number_carries_a_mark_to_its_finding():
    source = Source(FakeStore(full_tables(), SETTINGS))
    gap = next(g for g in source.footnotes.groups if g.code == "gap-not-bridged")
    assert source.footnotes.marks(result("energy_j", 1.0, "board")) == [gap]
    assert source.footnotes.marks(result("energy_j", 1.0, "node")) == []


@pytest.mark.parametrize(
    ("subject", "evidence", "touched"),
    [
        ("gpu:0", {}, {"board"}),
        ("train-1 at node (run)", {}, {"node"}),
        ("all devices", {"coverage_ratio": 0.97}, {"board"}),
        ("a run", {}, {"board", "node"}),
        ("gpu:0", {"scope": "node"}, {"node"}),
    ],
)
def test_a_finding_marks_numbers_of_its_own_boundary_only(subject, evidence, touched):
    tables = full_tables()
    tables["findings"] = [{"run_id": "train-1", "stage": "energy", "code": "odd", "severity": "warning", "subject": subject,
                           "message": "Odd.", "evidence": json.dumps(evidence)}]  # fmt: skip
    source = Source(FakeStore(tables, SETTINGS))
    rows = {s: result("energy_j", 1.0, s, coverage_ratio=c) for s, c in (("board", 0.97), ("node", 1.0))}
    assert {s for s, row in rows.items() if source.footnotes.marks(row)} == touched


def test_cards_processors_and_memory_are_told_side_by_side(tmp_path):
    tables = full_tables()
    energies = [result("energy_j", e, s) for s, e in (("board", 3.6e6), ("package", 7.2e5), ("dram", 1.8e5))]
    tables = {"results": energies} | {t: tables[t] for t in ("sources", "channels", "runs")}
    page = report.render(FakeStore(tables, {}), tmp_path / "page.html")
    text = re.sub(r"<[^>]+>", "", section({"x": page}, "x", "cost"))
    assert (
        "took 1.0000 ± 0.0010 kWh at the board, 0.20000 ± 0.00020 kWh at the package and 50.000 ± 0.050 Wh at the dram"
        in text
    )
    drawn = read(page)
    assert "board 1.00; package 0.200; dram 0.0500; the whole: 1.250 kWh" in drawn
    assert "hatched the" not in drawn
    assert "in grey what" not in drawn


def test_power_of_phases_stands_in_the_unit_of_its_column():
    """Kilowatts under a title that says watts would be a thousand times too little."""
    tables = full_tables()
    tables["results"] += [
        result("phase_power_w", 46_250.0, "board", phase="forward"),
        result("phase_power_w", 900.0, "board", phase="backward"),
    ]
    table = energy_split._phases(Source(FakeStore(tables, SETTINGS)))
    column = next(i for i, c in enumerate(table.columns) if c.title == "mean power")
    shown_w = {row[2]: row[column] for row in table.rows if row[1] == "board"}
    assert table.columns[column].unit == "kW"
    assert (shown_w["forward"].plain, shown_w["backward"].plain) == ("46.250 kW", "0.90000 kW")


def test_a_file_is_named_once_where_the_message_begins_with_it():
    tables = full_tables()
    told = [("a.csv", "a.csv: is empty"), ("b.csv", "b.csv:7: is odd"), ("c.csv", "Odd.")]
    tables["findings"] = [
        {"run_id": "", "stage": "ingest", "code": f"source-{i}", "severity": "error", "subject": s, "message": m, "evidence": "{}"}
        for i, (s, m) in enumerate(told)
    ]  # fmt: skip
    source = Source(FakeStore(tables, SETTINGS))
    text = " | ".join(str(i) for b in findings.blocks(source, source.footnotes.groups) for i in getattr(b, "items", ()))
    assert [re.sub("<[^>]+>", "", t) for t in text.split(" | ")] == [
        "a.csv: is empty",
        "b.csv:7: is odd",
        "c.csv: Odd.",
    ]


def test_a_refused_phase_is_no_doubt_about_files():
    assert footnotes.topic("phase-refused", "phases") == "other"
    assert footnotes.topic("source-refused", "recognise") == "sources"


def test_least_sure_is_the_part_of_a_shared_machine_not_the_whole():
    tables = more_tables()
    tables["shares"] = [
        s | {"energy_lo": 0.9 * s["energy_j"], "energy_hi": 1.1 * s["energy_j"]} for s in tables["shares"]
    ]
    text = re.sub(r"<[^>]+>", "", str(sureness.brief(Source(FakeStore(tables, SETTINGS)))))
    assert "± 10 %" in text  # the node's own energy is known to 0.1 %


def test_refused_number_shows_a_dash_and_its_reason(pages):
    text = read(pages["many"])
    assert re.search(r'<td class="n">–<sup class="marks"><a href="#table-cost-a">a</a></sup></td>', text)
    assert re.search(r'id="table-cost-a"><b>a</b> no tokens<', text)
    assert "runs at two scopes" in text


def test_many_runs_are_a_table_not_paragraphs(pages):
    text = read(pages["many"])
    first = text[text.index('<section id="cost"') : text.index('<section id="sure"')]
    assert "<table" in first
    assert "took <strong>" not in first
    assert first.count("<tr>") == 25


def test_comparisons_stand_only_where_there_are_some(pages):
    assert 'id="sweeps"' in read(pages["many"])
    assert 'id="changes"' in read(pages["many"])
    assert 'id="sweeps"' not in read(pages["full"])


def test_tiles_say_a_word_beside_the_colour(pages):
    text = read(pages["full"])
    tiles = dict(re.findall(r'class="tile (\w+)" id="check-(\w+)"', text))
    found = {topic: state for state, topic in re.findall(r'class="tile (\w+)" id="check-(\w+)"', text)}
    assert tiles
    assert found["clocks"] == "bad"
    assert found["rejects"] == "doubt"
    assert found["gaps"] == "doubt"
    assert found["calibration"] == found["idle"] == found["steady"] == "good"
    assert all(w in text for w in (">bad<", ">look<", ">good<"))


def test_every_picture_has_a_title_and_an_alternative(pages):
    text = read(pages["full"])
    pictures = re.findall(r"<svg[^>]*>", text)
    assert len(pictures) >= 5
    for picture in pictures:
        named = re.search(r'aria-labelledby="(\S+) (\S+)"', picture)
        assert f'<title id="{named[1]}">' in text
        assert f'<desc id="{named[2]}">' in text
    assert "#010101" not in text
    assert "DejaVu Sans'" not in text


def test_rendering_twice_gives_the_same_bytes(pages, tmp_path):
    again = report.render(
        FakeStore(full_tables(), SETTINGS),
        pages["full"].parent / "again.html",
        [pages["full"].parent / "notebooks" / "first-look.ipynb"],
    )
    assert read(again) == read(pages["full"])


def test_json_has_every_row_and_no_nan():
    tables = full_tables()
    tables["results"].append(result("cv_ratio", float("nan")))
    made = report.to_json(FakeStore(tables, SETTINGS))
    json.dumps(made, allow_nan=False)
    assert made["schema_version"] == 1
    assert made["study"] == "node-11"
    assert [len(made[t]) for t in ("results", "findings", "changes", "sweet_spots")] == [
        len(tables["results"]), len(tables["findings"]), 0, 0
    ]  # fmt: skip
    assert made["results"][-1]["value"] is None


@pytest.mark.parametrize(
    ("value", "lo", "hi", "unit", "text", "interval"),
    [
        (1743.21, 1731.0, 1755.4, metrics.Unit("W"), "1743", "[1731, 1755]"),
        (3360972.4, 3357611.0, 3364333.0, metrics.ENERGY[2], "0.93360", "[0.93267, 0.93454]"),
        (-68.1672, -68.29, -68.05, metrics.Unit("s"), "−68.17", "[−68.29, −68.05]"),
        (1234567.0, None, None, metrics.Unit(""), "1\u202f235\u202f000", ""),
        (0.0, -0.02, 0.03, metrics.Unit(""), "0.000", "[−0.020, 0.030]"),
        (0.0, None, None, metrics.Unit(""), "0", ""),
    ],
)
def test_digits_follow_the_interval(value, lo, hi, unit, text, interval):
    n = shown.number(value, lo, hi, unit=unit)
    assert (n.text, n.interval) == (text, interval)


def test_decimal_points_of_a_column_stand_in_one_line():
    column = shown.aligned([shown.number(v, unit=metrics.Unit("W")) for v in (1.5, 123.25, 10_000.0, None)])
    ends = {len(n.text + n.pad) - n.text.index(".") for n in column[:2]}
    assert len(ends) == 1
    assert column[2].pad == "\u2007\u2007\u2007\u2008"
    assert (column[3].text, column[3].pad) == ("–", "")


def test_open_interval_says_which_end_is_known():
    n = shown.number(1.684, 0.53, None)
    assert (n.text, n.interval) == ("1.7", "≥ 0.5")
    assert shown.number(1024.0, 1024.0, None).interval == "≥ 1024"


def test_what_all_numbers_of_a_column_share_is_marked_once():
    doubt, other = shown.Mark("2", "#finding-2"), shown.Mark("5", "#finding-5")
    numbers = [
        shown.number(1.0, marks=(doubt,)),
        shown.number(2.0, marks=(doubt, other)),
        shown.number(None, reason="no load"),
    ]
    table = blocks.Table([blocks.Column("energy")], [[n] for n in numbers], "", "t")
    assert table.heads() == [(doubt,)]
    assert [n.marks for (n,) in table.cells()] == [(), (other,), (shown.Mark("a", "#t-a"),)]
    assert table.notes() == [(shown.Mark("a", "#t-a"), "no load")]


def test_first_section_also_says_how_sure_what_is_wrong_and_what_to_do(pages):
    text = section(pages, "full", "cost")
    for words in ("± 0.1", "readings cover 99.80 %", "alignment", "bad", "clocks", "Feed the accelerators", "more"):
        assert words in text, words
    many = section(pages, "many", "cost")
    assert "24 runs took from" in many
    assert "Sweep batch: set batch size near" in many
    assert "Nothing is known: no file of the study could be read." in section(pages, "empty", "cost")


def test_advice_names_what_a_campaign_showed(pages):
    text = section(pages, "many", "advice")
    assert "Keep data-pipeline" in text
    assert "Think again about fp8" in text


def test_a_run_that_shared_its_machine_is_told_its_part(pages):
    text = section(pages, "more", "cost")
    assert "took 0.6111 ± 0.0061 kWh of the node that it shared with train-2" in text
    assert "Start at a better hour: 5 h earlier, run train-1 would have come to 0.6000 kg CO2e" in section(
        pages, "more", "advice"
    )


def test_an_unknown_energy_puts_the_data_first():
    tables = full_tables()
    tables["results"] = [result("energy_j", None, reason="no readings")]
    (first, *_) = advice.lines(Source(FakeStore(tables, SETTINGS)))
    assert first.startswith("Mend the data: No edge is seen by both clocks")


def test_the_energy_to_the_target_decides_which_setting_to_use():
    tables = full_tables()
    tables["sweeps"] = [{"sweep": "batch", "knob": "batch_size", "x": 32.0}]
    tables["sweet_spots"] = [
        {"sweep": "batch", "objective": "energy_to_target_j", "x": 32.0, "x_hi": 32.0, "value": 4.5e8, "status": "edge"},
        {"sweep": "batch", "objective": "energy_per_token_j", "x": 154.0, "x_lo": 143.0, "x_hi": 168.0, "value": 0.54, "status": "found"},
    ]  # fmt: skip
    text = " ".join(advice.lines(Source(FakeStore(tables, SETTINGS))))
    assert "Extend sweep batch below batch size 32" in text
    assert "154" not in text
    tables["sweet_spots"][0] |= {"value": None, "status": "refused"}
    assert "near <" in " ".join(advice.lines(Source(FakeStore(tables, SETTINGS))))


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
PROBE = """<script>addEventListener("load", () => { const d = document.documentElement;
const wide = [...document.querySelectorAll("main *")].filter((e) => !e.closest(".scroll") && e.getBoundingClientRect().right > innerWidth + 1);
document.title = JSON.stringify({scroll: d.scrollWidth, inner: innerWidth, wide: wide.slice(0, 3).map((e) => e.outerHTML.slice(0, 120))}); });
</script>"""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
@pytest.mark.parametrize("name", ["full", "many", "more"])
def test_no_horizontal_scroll_on_a_phone(pages, name, tmp_path):
    inner = tmp_path / "inner.html"
    inner.write_text(
        read(pages[name]).replace("</head>", PROBE + "</head>").replace("<details", "<details open"), encoding="utf-8"
    )
    # a headless window is at least 500 px wide: a frame is not
    frame = f'<iframe src="{inner.as_uri()}" width="390" height="800" onload="setTimeout(() => 0)"></iframe>'
    outer = tmp_path / "outer.html"
    outer.write_text(
        f"<!doctype html>{frame}<script>addEventListener('load', () => {{ document.title = document.querySelector('iframe').contentDocument.title; }})</script>"
    )
    with tempfile.TemporaryDirectory() as profile:
        command = [
            BROWSER,
            *FLAGS,
            "--allow-file-access-from-files",
            f"--user-data-dir={profile}",
            "--virtual-time-budget=4000",
            "--dump-dom",
            outer.as_uri(),
        ]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    found = json.loads(
        re.search(r"<title>(.*?)</title>", run.stdout)[1]
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
    )
    assert found["inner"] == 390
    assert found["wide"] == []
    assert found["scroll"] <= 390


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
def test_prints_to_pdf(pages, tmp_path):
    with tempfile.TemporaryDirectory() as profile:
        out = Path(tmp_path) / "page.pdf"
        command = [BROWSER, *FLAGS, f"--user-data-dir={profile}", f"--print-to-pdf={out}", pages["full"].as_uri()]
        subprocess.run(command, capture_output=True, timeout=60, check=True)
    assert out.read_bytes().startswith(b"%PDF")


def _luminance(colour):
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]


def test_contrast_of_text_is_at_least_aa():
    css = (Path(report.__file__).parent / "templates" / "page.css").read_text(encoding="utf-8")
    themes = [
        dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", block)) for block in re.findall(r":root[^{]*\{([^}]*)\}", css)
    ]
    assert len(themes) == 4  # light, dark by preference, dark by choice, print
    for theme in themes:
        for ink in ("ink", "muted", "link", "good", "doubt", "bad", "none"):
            for ground in ("paper", "panel"):
                low, high = sorted((_luminance(theme[ink]), _luminance(theme[ground])))
                assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, ground, theme[ink])
