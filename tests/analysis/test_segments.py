from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from joulebook import schema, segments

START = datetime(2026, 11, 2, 1, tzinfo=UTC)
STUDY = Path(__file__).resolve().parents[2].parent / "shared" / "studies" / "node"


def frame(watts, period_s=1.0, device="gpu:0", **columns):
    stamps = [START + timedelta(seconds=k * period_s) for k in range(len(watts))]
    return pl.DataFrame({"device": device, "ts_utc": stamps, "power_w": np.asarray(watts, dtype=float)} | columns)


def levels(values, lengths, seed=0, sd=3.0):
    watts = np.repeat(np.array(values, dtype=float), lengths)
    return watts + np.random.default_rng(seed).normal(0.0, sd, watts.size)


def kinds(found):
    return found.frame["kind"].to_list()


def test_the_columns_are_those_of_the_table():
    table = next(t for t in schema.TABLES if t.name == "segments")
    found = segments.find(frame(levels([60, 500], [200, 300])), scope="board")
    assert found.frame.columns == [c.name for c in table.columns if c.name != "run_id"]
    assert found.frame["scope"].unique().to_list() == ["board"]
    assert set(kinds(found)) <= set(schema.SEGMENT_KINDS)


def test_idle_work_stall_idle():
    found = segments.find(frame(levels([60, 500, 200, 500, 60], [300, 300, 4, 300, 300])))
    assert kinds(found) == ["idle", "stable", "stall", "idle"]
    stable, stall = found.of("stable"), found.of("stall")
    assert stable["n"].item() == 600
    assert stable["mean_w"].item() == pytest.approx(500.0, abs=1.0)
    assert stable["mean_lo"].item() < 500.0 < stable["mean_hi"].item()
    assert stable["cv_ratio"].item() == pytest.approx(3.0 / 500.0, rel=0.2)
    assert stall["start_utc"].item() == START + timedelta(seconds=600)
    assert stall["end_utc"].item() == START + timedelta(seconds=604)


def test_readings_over_a_span_end_at_their_stamp():
    power = frame(levels([60, 500, 60], [300, 300, 300]), span_s=1.0)
    stable = segments.find(power).of("stable")
    assert stable["start_utc"].item() == START + timedelta(seconds=299)
    assert stable["end_utc"].item() == START + timedelta(seconds=599)


def test_a_gap_ends_every_segment():
    power = frame(levels([500], [600]))
    power = power.filter(
        (pl.col("ts_utc") < START + timedelta(seconds=200)) | (pl.col("ts_utc") >= START + timedelta(seconds=300))
    )
    stable = segments.find(power).of("stable")
    assert stable.height == 2
    assert stable["end_utc"][0] == START + timedelta(seconds=200)


def test_warmup_comes_before_stable():
    watts = levels([60], [300]).tolist() + (500.0 - 250.0 * np.exp(-np.arange(1500) / 40.0)).tolist()
    found = segments.find(frame(np.array(watts) + np.random.default_rng(1).normal(0.0, 3.0, 1800)))
    assert kinds(found) == ["idle", "warmup", "stable"]
    # Within 1 % of the level after 40 ln(250 / 5) = 156 s.
    lasts = found.of("warmup").select(pl.col("end_utc") - pl.col("start_utc")).item().total_seconds()
    assert 60.0 < lasts < 260.0


def test_unstable_stretches_keep_their_reason():
    rising = np.linspace(300.0, 400.0, 1200) + np.random.default_rng(2).normal(0.0, 2.0, 1200)
    found = segments.find(frame(rising))
    assert not found.of("stable").height
    assert all(found.of("transient")["reason"].str.len_chars() > 0)
    (told,) = found.findings
    assert told.code == "no-stable-segment"
    longest = found.of("transient").sort(pl.col("end_utc") - pl.col("start_utc")).row(-1, named=True)
    assert longest["reason"].partition("; ")[0] in told.message
    assert "Let the load run longer" in told.message


def test_wild_power_is_not_stable():
    wild = np.random.default_rng(3).uniform(100.0, 500.0, 600)
    found = segments.find(frame(wild))
    assert not found.of("stable").height
    assert "variation" in found.frame["reason"][0]


@pytest.mark.parametrize("tail", [[412.34] * 40, [0.0] * 40])
def test_stuck_and_zero_readings_are_never_stable(tail):
    found = segments.find(frame(np.concatenate((levels([400], [300]), tail))))
    assert found.of("stable")["n"].sum() <= 300
    assert found.of("stable")["mean_w"].item() == pytest.approx(400.0, abs=1.0)
    assert {f.code for f in found.findings} & {"stuck-sensor", "zero-power"}


def test_a_flat_sensor_has_no_stable_segment():
    found = segments.find(frame(np.full(600, 250.0)))
    assert not found.of("stable").height


def test_spikes_do_not_move_the_mean():
    watts = levels([400], [600])
    watts[::97] = 5000.0
    stable = segments.find(frame(watts)).of("stable")
    assert stable["mean_w"].item() == pytest.approx(400.0, abs=1.0)


def test_step_ripple_is_one_segment():
    t = np.arange(1800.0)
    ripple = np.where((t % 4.55) < 3.0, 540.0, 440.0) + np.random.default_rng(4).normal(0.0, 4.0, t.size)
    stable = segments.find(frame(ripple)).of("stable")
    assert stable["n"].max() > 1500


def test_devices_are_apart_and_missing_power_is_left_out():
    a = frame(levels([500], [300]))
    b = frame(levels([60], [300]), device="gpu:1").with_columns(
        power_w=pl.when(pl.int_range(pl.len()) % 50 == 0).then(None).otherwise("power_w")
    )
    found = segments.find(pl.concat([a, b]))
    assert found.frame["device"].unique(maintain_order=True).to_list() == ["gpu:0", "gpu:1"]
    assert found.frame.filter(pl.col("device") == "gpu:1")["n"].sum() == 294


def test_an_empty_log_has_no_segments():
    assert segments.find(frame([])).frame.height == 0
    assert segments.find(frame([5.0])).frame.height == 1


def test_the_argument_is_not_changed():
    power = frame(levels([60, 500], [200, 200]))
    before = power.clone()
    segments.find(power)
    assert power.equals(before)


def test_a_frame_without_stamps_is_the_callers_mistake():
    with pytest.raises(ValueError, match="ts_utc"):
        segments.find(pl.DataFrame({"device": ["x"], "power_w": [1.0]}))


def test_it_shows_itself():
    assert "table" in segments.find(frame(levels([60, 500], [200, 200])))._repr_html_()


def node_study():
    raw = pl.read_csv(STUDY / "gpu.csv", infer_schema=False)
    raw.columns = [name.strip() for name in raw.columns]
    text = pl.col(raw.columns).str.strip_chars()
    raw = raw.select(text)

    def number(name, unit):
        return pl.col(name).str.strip_suffix(unit).cast(pl.Float64, strict=False)

    stamp = pl.col("timestamp").str.to_datetime("%Y/%m/%d %H:%M:%S%.f", time_unit="us", strict=False)
    return raw.select(
        device="gpu:" + pl.col("index"),
        ts_utc=stamp.dt.replace_time_zone("Asia/Shanghai").dt.convert_time_zone("UTC"),
        span_s=pl.lit(1.0),
        power_w=number("power.draw [W]", " W"),
        utilization_ratio=number("utilization.gpu [%]", " %") / 100.0,
    )


@pytest.mark.skipif(not STUDY.exists(), reason="the study is not here")
def test_a_training_run_with_stalls_and_checkpoints():
    found = segments.find(node_study(), scope="board")
    run = datetime(2026, 11, 2, 1, 11, 17, tzinfo=UTC)
    for device in ("gpu:0", "gpu:1"):
        mine = found.frame.filter(pl.col("device") == device)
        assert mine["kind"][0] == "idle" and mine["kind"][-1] == "idle"
        stable = mine.filter(pl.col("kind") == "stable").sort("n")
        begins = (stable["start_utc"][-1] - run).total_seconds()
        assert 30.7 <= begins <= 240.0
        assert 0.05 < stable["cv_ratio"][-1] < 0.15
        stalls = mine.filter(pl.col("kind") == "stall")
        lasts = stalls.select((pl.col("end_utc") - pl.col("start_utc")).dt.total_seconds()).to_series()
        # 28 waits of 3.3 s and three checkpoints of 15 s, two of which a wait follows at once.
        assert 27 <= stalls.height <= 34
        assert (lasts >= 13).sum() == 3
