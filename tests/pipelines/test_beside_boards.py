"""A machine on which another job, of which no log tells, comes and goes while a run lasts."""

from datetime import datetime, timedelta

import pytest

from joulebook_pipelines import config, run
from joulebook_pipelines.store import open_store

START = datetime(2026, 3, 3, 9, 0, 0)
IDLE_S, RUN_S = 700, 1200


def _logs(other):
    cards, meter = ["timestamp, index, power.draw [W], utilization.gpu [%]"], ["time,power_w"]
    for s in range(IDLE_S + RUN_S + 60):
        at = START + timedelta(seconds=s)
        work = IDLE_S <= s < IDLE_S + RUN_S
        card = (300.0 if s % 60 > 4 else 120.0) * work + 60.0 * (not work) + (s * 7 % 11) / 10
        cards.append(f"{at:%Y/%m/%d %H:%M:%S}.000, 0, {card:.2f} W, {95 * work} %")
        meter.append(f"{at:%Y-%m-%d %H:%M:%S},{150 + 1.2 * card + other(s) + (s * 5 % 7) / 10:.1f}")
    return {"gpu.csv": "\n".join(cards) + "\n", "meter.csv": "\n".join(meter) + "\n"}


def _marginal(folder, other):
    folder.mkdir()
    for name, text in _logs(other).items():
        (folder / name).write_text(text)
    begin, end = (START + timedelta(seconds=s) for s in (IDLE_S, IDLE_S + RUN_S))
    (folder / "study.toml").write_text(
        '[study]\ntimezone = "UTC"\n[[source]]\npath = "gpu.csv"\n[[source]]\npath = "meter.csv"\nscope = "node"\n'
        f'[[run]]\nid = "r"\nstart = {begin:%Y-%m-%dT%H:%M:%SZ}\nend = {end:%Y-%m-%dT%H:%M:%SZ}\n'
    )
    result = run.analyse(config.load(folder), folder / "out")
    with open_store(result.store) as store:
        row = store.results().filter(metric="marginal_energy_j", scope="node", device="").row(0, named=True)
        return row, set(store.findings()["code"])


def test_the_interval_holds_the_run_alone(tmp_path):
    alone, quiet = _marginal(tmp_path / "alone", lambda _: 0.0)
    shared, told = _marginal(tmp_path / "shared", lambda s: 250.0 if 1100 <= s < 1500 else 0.0)
    assert "marginal-other-draw" not in quiet
    assert "marginal-other-draw" in told
    # the run's own: 20 minutes, each with 5 s at 120 W and 55 s at 300 W, against 60 W at rest, times 1.2
    own = 1.2 * 20 * (5 * 60 + 55 * 240)
    assert alone["value"] == pytest.approx(own, rel=0.01)
    assert alone["lo"] > 0.95 * own
    assert shared["value"] == pytest.approx(own + 250 * 400, rel=0.01)
    assert shared["lo"] <= own <= shared["hi"]
    assert "beside the boards, up to 250" in shared["reason"]
