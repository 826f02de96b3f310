"""What the stages say of sweeps whose best setting is known by hand."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from joulebook_pipelines import config, run
from joulebook_pipelines.store import open_store

BATCHES = (8, 16, 32, 64, 128)
SECONDS = (400.0, 200.0, 150.0, 130.0, 125.0)
KILOJOULES = (20.0, 18.0, 20.0, 23.0, 27.0)
REPEATS = (0.998, 1.0, 1.002)


def table() -> str:
    at, lines = datetime(2026, 3, 3, tzinfo=UTC), ["run_id,batch_size,start_utc,duration_s,gpu0_energy_kj,tokens"]
    for repeat in REPEATS:
        for batch, seconds, energy in zip(BATCHES, SECONDS, KILOJOULES, strict=True):
            lines.append(f"bs{batch}-{repeat},{batch},{at:%Y-%m-%dT%H:%M:%SZ},{seconds},{energy * repeat:.4f},100000")
            at += timedelta(seconds=600)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("limit", "best"),
    [
        (None, {"energy_per_token_j": 16}),
        # A tenth longer than 125 s is 137.5 s: 64 takes 130 s, 32 already 150 s.
        (1.1, {"energy_per_token_j": 16, "energy_per_token_within_1.1x_time_j": 64}),
        (2, {"energy_per_token_j": 16, "energy_per_token_within_2x_time_j": 16}),
    ],
)
def test_the_least_energy_within_a_slowdown_is_sought_where_it_is_asked_for(tmp_path, limit, best):
    (tmp_path / "runs.csv").write_text(table())
    asked = "" if limit is None else f"max_slowdown_ratio = {limit}\n"
    (tmp_path / "study.toml").write_text(
        f'[[source]]\npath = "runs.csv"\n[[sweep]]\nname = "batch"\nknob = "batch_size"\nscope = "board"\n{asked}'
    )
    with open_store(run.analyse(config.load(tmp_path), tmp_path / "out").store) as store:
        spots = store.table("sweet_spots").filter(pl.col("objective").str.ends_with("_j"))
    found = dict(spots.select("objective", "x").iter_rows())
    assert {name: min(BATCHES, key=lambda b: abs(b - x)) for name, x in found.items()} == best


CAPS = (200, 250, 300, 350)


def _capped(folder, caps):
    """Write a log of a card at one power limit after the other, a run of a minute each, and return the store's sweep."""
    at, lines, runs = datetime(2026, 3, 3, tzinfo=UTC), ["timestamp, index, power.draw [W], power.limit [W]"], []
    for i, cap in enumerate(caps):
        start, end = (f"{at + timedelta(minutes=m):%Y-%m-%dT%H:%M:%SZ}" for m in (0, 1))
        runs.append(f'[[run]]\nid = "r{i}"\nstart = {start}\nend = {end}\ntokens = 1e6\n')
        for second in range(60):
            limit = cap if isinstance(cap, int) else cap[second >= 30]
            lines.append(
                f"{at + timedelta(seconds=second):%Y/%m/%d %H:%M:%S}.000, 0, {0.9 * limit:.2f} W, {limit}.00 W"
            )
        at += timedelta(seconds=60)
    (folder / "gpu.csv").write_text("\n".join(lines) + "\n")
    (folder / "study.toml").write_text(
        '[study]\ntimezone = "UTC"\n[[source]]\npath = "gpu.csv"\n' + "".join(runs)
        + '[[sweep]]\nname = "cap"\nknob = "power_limit_w"\n'
    )  # fmt: skip
    with open_store(run.analyse(config.load(folder), folder / "out").store) as store:
        told = store.findings().filter(pl.col("code") == "sweep-without-setting")
        return store.table("sweeps").sort("x"), told.select("severity", "message").rows()


def test_a_power_limit_that_only_the_cards_log_tells_is_the_knob(tmp_path):
    curve, told = _capped(tmp_path, (*CAPS, (200, 350)))
    assert curve["x"].to_list() == list(CAPS)
    # 60 s at nine tenths of the limit, over a million tokens.
    assert curve["energy_per_token_j"].to_list() == pytest.approx([54e-6 * cap for cap in CAPS], rel=1e-3)
    ((severity, message),) = told
    assert severity == "note"
    assert "1 run (r4)" in message and "labels = { power_limit_w = … }" in message


def test_a_setting_whose_runs_reach_no_target_is_named(tmp_path):
    (tmp_path / "runs.csv").write_text(table())
    toml = '[[source]]\npath = "runs.csv"\n[[sweep]]\nname = "batch"\nknob = "batch_size"\nscope = "board"\n'
    for name, batch, start, seconds, *_ in (line.split(",") for line in table().splitlines()[1:]):
        end = datetime.fromisoformat(start) + timedelta(seconds=float(seconds))
        toml += f'[[run]]\nid = "{name}"\nstart = {start}\nend = {end:%Y-%m-%dT%H:%M:%SZ}\n'
        toml += "" if batch == "8" else "tokens_to_target = 5e8\n"
    (tmp_path / "study.toml").write_text(toml)
    with open_store(run.analyse(config.load(tmp_path), tmp_path / "out").store) as store:
        (told,) = store.findings().filter(pl.col("code") == "target-not-reached")["message"]
    assert told.startswith("At batch_size 8 no run reaches the target: tokens_to_target is not given")
