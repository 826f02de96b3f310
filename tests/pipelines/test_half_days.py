"""Clocks of twelve hours: 10 in the evening is 22:00, whoever wrote it."""

from datetime import UTC, datetime, timedelta

import pytest

from joulebook_pipelines import ingest
from joulebook_pipelines.logs.contract import Options
from joulebook_pipelines.store import open_store

EVENING = datetime(2026, 3, 13, 23, 59, 50, tzinfo=UTC)
STAMPS = [EVENING + timedelta(seconds=10 * i) for i in range(4)]
READINGS = {
    "slashed, between dumps": (None, "{t:%m/%d/%Y %I:%M:%S %p}\nPwr Consumption | 100 Watts | ok"),
    "ISO, between dumps": (None, "{t:%Y-%m-%d %I:%M:%S %p}\nPwr Consumption | 100 Watts | ok"),
    "PowerShell, between dumps": (None, "\n{t:%A, %B %d, %Y %I:%M:%S %p}\n\nPwr Consumption | 100 Watts | ok"),
    "in text": (None, "{t:%m/%d/%Y %I:%M:%S %p} GPU 0: 100.0 W"),
    "before rows": ("[2026-03-13 11:59:40 PM] index, power.draw [W]", "[{t:%Y-%m-%d %I:%M:%S %p}] 0, 100.00 W"),
    "in a table": ("Time,Power (W)", "{t:%m/%d/%Y %I:%M:%S %p},100"),
    "JavaScript": ("Time,Power (W)", '"{t:%m/%d/%Y, %I:%M:%S %p}",100'),
    "Chinese": ("时间,功率(W)", "{t:%Y/%m/%d} {half_zh} {t:%I:%M:%S},100"),
    "Chinese, behind": ("时间,功率(W)", "{t:%Y}年{t:%m}月{t:%d}日 {t:%I:%M:%S} {half_zh},100"),
    "Korean": ("time,power_w", "{t:%Y-%m-%d} {half_ko} {t:%I:%M:%S},100"),
    "Spanish": ("Fecha;Potencia (W)", "{t:%d/%m/%Y %I:%M:%S} {half_es};100"),
}
STEPS = {
    "slashed": "{t:%m/%d/%Y %I:%M:%S %p} step {i} loss: 2.5",
    "ISO": "{t:%Y-%m-%d %I:%M:%S %p} step {i} loss: 2.5",
}


def written(row, t):
    late = t.hour >= 12
    return row.format(
        t=t,
        half_zh="下午" if late else "上午",
        half_ko="오후" if late else "오전",
        half_es="p. m." if late else "a. m.",
    )


def taken(tmp_path, text, table):
    path = tmp_path / "log.txt"
    path.write_text(text)
    source = ingest.SourceFile(path, path.name, "node", options=Options(scope="node", timezone="UTC"))
    with open_store(tmp_path / "s.duckdb", read_only=False) as store:
        (outcome,) = ingest.ingest((source,), store)
        assert outcome.status == "read", outcome.reason
        return store.table(table)


@pytest.mark.parametrize("where", READINGS)
def test_readings_over_midnight(tmp_path, where):
    head, row = READINGS[where]
    lines = [*([head] if head else []), *(written(row, t) for t in STAMPS)]
    found = taken(tmp_path, "\n".join(lines) + "\n", "readings")
    assert found.sort("line")["ts_utc"].to_list() == STAMPS
    assert found["power_w"].to_list() == [100.0] * 4


@pytest.mark.parametrize("where", STEPS)
def test_steps_over_midnight(tmp_path, where):
    text = "".join(STEPS[where].format(t=t, i=10 * i) + "\n" for i, t in enumerate(STAMPS, 1))
    found = taken(tmp_path, text, "steps").sort("step")
    assert found["step"].to_list() == [10, 20, 30, 40]
    assert found["end_utc"].to_list() == STAMPS


def test_phases_over_midnight(tmp_path):
    text = "2026-03-13 11:59:50 PM train start\n2026-03-14 12:00:20 AM train end\n"
    (row,) = taken(tmp_path, text, "phases").select("phase", "start_utc", "end_utc").rows()
    assert row == ("train", STAMPS[0], STAMPS[3])
