"""Records as scripts print them: dictionaries of Python and JSON, with a stamp before them, above them or inside of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import ingest
from joulebook_pipelines.logs import meter_columns
from joulebook_pipelines.logs.contract import Options
from joulebook_pipelines.store import Store

AT = [datetime(2026, 3, 2, 23, 59, 55, tzinfo=UTC) + timedelta(seconds=i) for i in range(10)]
W = [100 + 7 * i % 31 for i in range(10)]


def _dict(w: int) -> dict[str, object]:
    return {"voltage_mv": 230100, "power_mw": 1000 * w, "alias": None, "on": True}


FORMS = {
    "before": lambda t, w: f"{t:%Y-%m-%d %H:%M:%S} {_dict(w)}",
    "bracketed": lambda t, w: f"[{t:%Y-%m-%d %H:%M:%S}] {_dict(w)}",
    "above": lambda t, w: f"{t:%a %b %e %H:%M:%S UTC %Y}\n{_dict(w)}",
    "of day": lambda t, w: f"{t:%H:%M:%S} {_dict(w)}",
    "json": lambda t, w: f"{t:%Y-%m-%dT%H:%M:%S}Z: {json.dumps(_dict(w))}",
    "inside": lambda t, w: str({"time": int(t.timestamp()), "name": "Bob's plug"} | _dict(w)),
    "repr": lambda t, w: f"{{'time': {t.replace(tzinfo=None)!r}, 'power_w': np.float64({w}.0), 'temp': nan}}",
    "kasa": lambda t, w: f"{t:%Y-%m-%d %H:%M:%S} <EmeterStatus power={w}.0 voltage=230.1 current=0.9 total=0.13>",
}


def taken(store: Store, folder: Path, text: str) -> tuple[pl.DataFrame, pl.DataFrame, str]:
    path = folder / "plug.log"
    path.write_text(text)
    options = Options(scope="node", timezone="UTC", date="2026-03-02")
    (outcome,) = ingest.ingest((ingest.SourceFile(path, path.name, "h", options=options),), store)
    return store.table("readings").sort("line"), store.table("rejects"), outcome.reason or ""


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_the_same(store: Store, tmp_path: Path, form: str) -> None:
    lines = [FORMS[form](t, w) for t, w in zip(AT, W, strict=True)]
    readings, rejects, reason = taken(store, tmp_path, "\n".join(lines) + "\n")
    assert (reason, rejects.height) == ("", 0)
    assert readings["power_w"].to_list() == W
    assert readings["ts_utc"].to_list() == AT
    assert readings["line"].to_list() == [(i + 1) * (2 if form == "above" else 1) for i in range(10)]


def test_what_is_no_record_is_told(store: Store, tmp_path: Path) -> None:
    lines = [FORMS["before"](t, w) for t, w in zip(AT, W, strict=True)]
    lines[4] = "Timeout: plug did not answer"
    lines[6] = lines[6][:40]
    readings, rejects, _ = taken(store, tmp_path, "\n".join(lines) + "\n")
    assert readings["line"].to_list() == [1, 2, 3, 4, 6, 8, 9, 10]
    assert rejects.sort("line").select("line", "raw").rows() == [(5, lines[4]), (7, lines[6])]


def test_a_plug_that_counts_day_and_month_is_one_device() -> None:
    found = meter_columns.meanings(["local_time", "current_power", "today_energy", "month_energy"])
    assert [(m.quantity, m.place, m.unit) for m in found[1:]] == [
        ("power_w", "", "mW"),
        ("energy_j", "", "Wh"),
        ("", "", ""),
    ]
