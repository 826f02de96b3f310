"""Lines read at once say the same as lines read one by one, whatever stands between them."""

import json

import polars as pl
import pytest

from joulebook_pipelines import recognise
from joulebook_pipelines.logs import json_columns, json_records, text
from joulebook_pipelines.logs.contract import Log, Options

ODD_ONES = (
    '{"t": 1, "note": "a \\"quoted\\" : 5", "p": 2}', '{"t": 1, "p": NaN}', '{"t": 1, "p": 1.2.3}', '{"t": 1, "p": 5', "[1, 2]", "nonsense",
    '{"t": 1, "list": ["x: 5", 7], "p": 2}', '{"a: 3": 4, "p": 2}', '{"t": 1, "p": 5, "p": 6}',
    '{"t": 1, "deep": {"p": null, "on": true}},',
    '{"line": 3, "p": 5}', '{"t": 1, "gpus": [{"index": 1, "p": 7}]}',
)  # fmt: skip


def _lines():
    out = []
    for i in range(60):
        out.append(
            json.dumps({"t": i, "gpus": [{"index": i % 2, "p": 200.5 + i}, {"index": 1 - i % 2, "p": None}], "s": "ok"})
        )
        out.append(json.dumps({"t": i, "deep": {"p": i / 4, "on": i % 3 == 0}, "s": "x: 5, y"}))
        out += ODD_ONES if i % 7 == 0 or i > 40 else ()
    return out


def test_lines_read_at_once_say_what_each_says_alone(tmp_path):
    path = tmp_path / "log.jsonl"
    lines = _lines()
    path.write_text("\n".join(lines) + "\n")
    ((columns, odd, count),) = json_columns.of_lines(Log(path, text.head(path, path.name)))
    expected, damaged = {}, []
    for number, line in enumerate(lines, 1):
        try:
            found = json.loads(line.rstrip(","))
        except ValueError:
            found = None
        if isinstance(found, dict):
            cells = json_records.flat(found)
            expected[number] = {("" if n == "line" else n): v for n, v in cells.items()}
        else:
            damaged.append((number, line))
    said = {row.pop("line"): {n: v for n, v in row.items() if v is not None} for row in columns.iter_rows(named=True)}
    assert said == expected
    assert (odd, count) == (damaged, len(lines))
    assert columns["line"].is_sorted() and columns.schema["line"] == pl.Int64


def test_a_unit_behind_each_number_is_the_unit(tmp_path):
    path = tmp_path / "log.json"
    rows = [{"timestamp": f"2026-03-02T10:00:0{i}Z", "power_draw": f"{700 + i} mW", "load": "55 %"} for i in range(4)]
    path.write_text(json.dumps(rows))
    head = text.head(path, path.name)
    parts = list(recognise.adapter_for(head).parse(Log(path, head, Options(scope="board"))))
    readings = pl.concat([p.readings for p in parts if p.readings is not None])
    assert readings["power_w"].to_list() == pytest.approx([0.700, 0.701, 0.702, 0.703])
