"""Series and tables in JSON, as dashboards, databases and pandas write them: the same powers in every form."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import ingest, recognise
from joulebook_pipelines.logs import json_pairs, json_records, json_tables, text
from joulebook_pipelines.logs.contract import LogRefusedError, Options
from joulebook_pipelines.store import Store

BEGIN = datetime(2026, 3, 2, 10, tzinfo=UTC)
AT = [int(BEGIN.timestamp()) + i for i in range(12)]
ISO = [datetime.fromtimestamp(t, UTC).isoformat() for t in AT]
W = [200.0 + 7 * i % 31 for i in range(12)]

FORMS = {
    "pairs": {"gpu0_power_w": [[t, w] for t, w in zip(AT, W, strict=True)]},
    "graphite": [{"target": "gpu 0 power W", "datapoints": [[w, t] for t, w in zip(AT, W, strict=True)]}],
    "grafana": [{"target": "gpu0 (W)", "datapoints": [[w, 1000 * t] for t, w in zip(AT, W, strict=True)]}],
    "dated": {"data": {"gpu0_power_w": [[t, w] for t, w in zip(ISO, W, strict=True)]}},
    "plotly": {"data": [{"x": ISO, "y": W, "name": "GPU 0 power (W)", "type": "scatter"}], "layout": {}},
    "influx": {"results": [{"series": [{"name": "gpu0_w", "columns": ["time", "mean"], "values": [*zip(ISO, W, strict=True)]}]}]},
    "split": {"columns": ["time", "gpu0_power_w"], "index": [*range(12)], "data": [*zip(AT, W, strict=True)]},
    "columns": {"time": {str(i): t for i, t in enumerate(AT)}, "gpu0_power_w": {str(i): w for i, w in enumerate(W)}},
    "index": {str(i): {"time": t, "gpu0_power_w": w} for i, (t, w) in enumerate(zip(AT, W, strict=True))},
    "series": {"gpu0_power_w": dict(zip(ISO, W, strict=True)), "gpu0_temp_c": dict.fromkeys(ISO, 55)},
    "frame": {
        "schema": {"fields": [{"name": "Time"}, {"name": "gpu power_w", "labels": {"gpu": "0"}}]},
        "data": {"values": [[1000 * t for t in AT], W]},
    },
    "nested": {"run": {"gpu": {"0": {"power_w": [*zip(AT, W, strict=True)]}}}},
}  # fmt: skip


def taken(store: Store, folder: Path, document: object, **said: object) -> tuple[pl.DataFrame, list[str], str]:
    path = folder / "export.json"
    path.write_text(json.dumps(document))
    options = Options(timezone="UTC", **said)  # type: ignore[arg-type]
    (outcome,) = ingest.ingest((ingest.SourceFile(path, path.name, "h", options=options),), store)
    rows = store.table("readings").sort("ts_utc", "device")
    return rows, store.table("rejects")["rule"].to_list(), outcome.reason or ""


@pytest.mark.parametrize("form", FORMS)
def test_powers_of_every_form(store: Store, tmp_path: Path, form: str) -> None:
    readings, rejects, reason = taken(store, tmp_path, FORMS[form])
    assert (reason, rejects) == ("", [])
    assert readings["power_w"].to_list() == W
    assert readings["ts_utc"].dt.epoch("s").to_list() == AT
    assert store.table("channels")["scope"].to_list() == ["board"]


def test_series_with_their_own_times_lack_nothing(store: Store, tmp_path: Path) -> None:
    document = [
        {"target": "gpu0 (W)", "datapoints": [[w, t] for t, w in zip(AT, W, strict=True)]},
        {
            "target": "gpu1 (W)",
            "datapoints": [[None if w == W[3] else 2 * w, t + 0.5] for t, w in zip(AT, W, strict=True)],
        },
    ]
    readings, rejects, _ = taken(store, tmp_path, document)
    assert readings.filter(pl.col("device") == "gpu:0")["power_w"].to_list() == W
    assert readings.filter(pl.col("device") == "gpu:1").height == 12 - W.count(W[3])
    assert rejects == ["empty"] * W.count(W[3])


def test_hosts_are_told_by_their_tags(store: Store, tmp_path: Path) -> None:
    series = [
        {"name": "ipmi", "tags": {"host": h}, "columns": ["time", "power_w"], "values": [*zip(ISO, W, strict=True)]}
        for h in ("n1", "n2")
    ]
    readings, rejects, _ = taken(store, tmp_path, {"results": [{"series": series}]})
    assert rejects == []
    assert dict(readings.group_by("device").len().rows()) == {"n1": 12, "n2": 12}


def test_pairs_without_a_name_need_one(store: Store, tmp_path: Path) -> None:
    pairs = [*zip(AT, W, strict=True)]
    _, _, reason = taken(store, tmp_path, pairs)
    assert 'columns = { time = "time", power_w = "…" }' in reason
    said = {"columns": {"time": "time", "power_w": "value"}, "units": {"power_w": "W"}, "scope": "node"}
    readings, _, reason = taken(store, tmp_path, pairs, **said)
    assert (reason, readings["power_w"].to_list()) == ("", W)


def test_a_long_series_is_known_by_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "long.json"
    path.write_text(json.dumps({"power_w": [[AT[0] + i, 200 + i % 7] for i in range(6000)]}))
    head = text.head(path, path.name)
    assert not head.complete
    assert recognise.adapter_for(head).name == "meter-json"


@pytest.mark.parametrize(
    "document",
    [
        {"bins": [[0, 5], [10, 3]], "mass": [[1, 2.5], [2, 2.4]]}, {"columns": ["a", "b"], "values": [[1, 2], [3]]},
        {"0": {"power_w": 1, "temp_c": 2}, "1": {"power_w": 1, "temp_c": 2}}, [[1, 2], [1]],
        {"schema": {"fields": 7}, "data": {"values": 3}},
    ],
)  # fmt: skip
def test_what_is_no_series_is_refused(tmp_path: Path, document: object) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document))
    with pytest.raises(LogRefusedError):
        recognise.adapter_for(text.head(path, path.name))


def test_a_row_by_number_is_no_card() -> None:
    cards = {"0": {"time": AT[0], "power_w": 1.0}, "1": {"time": AT[0], "power_w": 2.0}}
    assert json_tables.rows(cards) == []
    assert json_pairs.closed('{"a": "x,y", "b": [1') == {"a": "x,y"}
    assert json_pairs.closed("{") is None


def test_cards_by_number_are_elements_and_other_numbers_names() -> None:
    assert json_records.flat({"gpus": {"1": {"power_w": 2}}, "dps": {"19": 2505}}) == {
        "gpu 1.power_w": "2",
        "dps.19": "2505",
    }
