"""Result logs of MLPerf whose window of power cannot be read."""

import json

import pytest

from joulebook_pipelines import recognise
from joulebook_pipelines.logs import text
from joulebook_pipelines.logs.contract import Log, LogRefusedError, Options


@pytest.mark.parametrize("said", [{}, {"value": "soon"}], ids=["no value", "no time"])
def test_a_window_without_times_is_refused_with_the_cure(tmp_path, said):
    keys = ("effective_scenario", {"value": "Offline"}), ("power_begin", said), ("power_end", said)
    path = tmp_path / "mlperf_log_detail.txt"
    lines = (":::MLLOG " + json.dumps({"key": k, "time_ms": 0.1, "metadata": {}} | more) for k, more in keys)
    path.write_text("\n".join(lines) + "\n")
    log = Log(path, text.head(path, path.name), Options(timezone="UTC"))
    with pytest.raises(LogRefusedError, match=r"no times; give the window as \[\[run\]\]"):
        list(recognise.named("mlperf-results").parse(log))
