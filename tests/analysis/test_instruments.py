import polars as pl
import pytest

from joulebook import instruments

BASE = {
    "run_id": "r",
    "host": "node",
    "clock": "node",
    "n": 100,
    "period_s": 1.0,
    "coverage_ratio": 1.0,
    "adapter": "a",
    "family": "sensor",
}


def _chosen(*rows):
    frame = pl.DataFrame([BASE | {"source_id": i + 1} | r for i, r in enumerate(rows)])
    return instruments.choose(frame)


def test_a_meter_is_used_before_the_bmc_and_a_tracker():
    choice = _chosen(
        {"scope": "node", "device": "node", "adapter": "ipmitool"},
        {"scope": "node", "device": "node", "adapter": "meter-csv", "family": "meter", "clock": "meter"},
        {"scope": "node", "device": "node", "adapter": "codecarbon", "family": "model"},
    )
    assert choice.filter("chosen")["source_id"].to_list() == [2]
    assert all(choice["reason"].str.len_chars() > 0)


def test_a_meter_that_covers_half_of_the_run_yields():
    choice = _chosen(
        {"scope": "node", "device": "node", "adapter": "ipmitool"},
        {"scope": "node", "device": "node", "adapter": "meter-csv", "family": "meter", "coverage_ratio": 0.5},
    )
    assert choice.filter("chosen")["source_id"].to_list() == [1]


def test_cards_are_summed_and_a_total_is_not_added_to_its_parts():
    cards = _chosen({"scope": "board", "device": "gpu:0"}, {"scope": "board", "device": "gpu:1"})
    assert cards["chosen"].to_list() == [True, True]
    supplies = _chosen(
        {"scope": "node", "device": "node", "source_id": 1},
        {"scope": "node", "device": "psu:1", "source_id": 1},
        {"scope": "node", "device": "psu:2", "source_id": 1},
    )
    assert supplies.filter("chosen")["device"].to_list() == ["node"]


def test_rotated_parts_are_joined_and_copies_are_not():
    parts = _chosen(
        {"scope": "board", "device": "gpu:0", "coverage_ratio": 0.5},
        {"scope": "board", "device": "gpu:0", "coverage_ratio": 0.5},
    )
    assert parts["chosen"].to_list() == [True, True]
    copies = _chosen({"scope": "board", "device": "gpu:0", "n": 100}, {"scope": "board", "device": "gpu:0", "n": 90})
    assert copies["chosen"].to_list() == [True, False]


def test_an_earlier_flush_of_a_run_is_no_part_of_it_and_a_file_that_fills_a_hole_is():
    hour = {"scope": "components", "device": "components", "begin_s": 0.0, "end_s": 3600.0, "filled_ratio": 1.0}
    half = hour | {"end_s": 1800.0, "coverage_ratio": 0.5, "n": 50}
    flush = _chosen(hour, half)
    assert flush.filter("chosen")["source_id"].to_list() == [1]
    assert "another file" in flush.filter(pl.col("source_id") == 2)["reason"][0]
    holed = hour | {"filled_ratio": 0.5, "coverage_ratio": 0.5}
    filler = half | {"begin_s": 900.0, "end_s": 2700.0}
    assert _chosen(holed, filler).filter("chosen")["source_id"].to_list() == [1, 2]


def _logs(*spans):
    """Return the choice between logs of one card that each saw a stretch of an hour."""
    rows = [
        {
            "scope": "board",
            "device": "gpu:0",
            "begin_s": a,
            "end_s": b,
            "filled_ratio": 1.0,
            "coverage_ratio": (b - a) / 3600,
            "n": n,
        }
        for a, b, n in spans
    ]
    return _chosen(*rows)


def test_logs_that_saw_a_card_over_much_of_the_same_time_are_not_joined():
    assert _logs((0.0, 2520.0, 2520), (1080.0, 3600.0, 2530))["chosen"].to_list() == [False, True]
    # Rotation repeats the last lines of a file in the next one.
    assert _logs((0.0, 1860.0, 1860), (1800.0, 3600.0, 1800))["chosen"].to_list() == [True, True]


def _told(choice, uuids, kind="instant"):
    sources = pl.DataFrame(
        {"source_id": [1, 2], "path": ["n1/gpu.csv", "n2/gpu.csv"]}, schema_overrides={"source_id": pl.Int32}
    )
    channels = pl.DataFrame(
        {"source_id": [1, 2], "device": "gpu:0", "uuid": uuids, "kind": kind}, schema_overrides={"source_id": pl.Int32}
    )
    return instruments.in_several_files(choice, sources, channels)


@pytest.mark.parametrize(
    ("uuids", "severity"), [(["GPU-a", "GPU-b"], "error"), (["GPU-a", "GPU-a"], "warning"), (["", ""], "warning")]
)
def test_a_device_in_several_files_is_told(uuids, severity):
    (found,) = _told(_logs((0.0, 3600.0, 3600), (0.0, 3600.0, 3590)), uuids)
    assert (found.code, found.severity) == ("device-in-several-files", severity)
    assert found.evidence == {"devices": ["gpu:0"], "files": ["n2/gpu.csv"]}
    assert "host = " in found.message


def test_energies_of_runs_in_two_files_are_told_elsewhere():
    assert _told(_logs((0.0, 3600.0, 3600), (0.0, 3600.0, 3590)), ["", ""], kind="energy") == []


def test_parts_of_one_log_are_not_told():
    assert _told(_logs((0.0, 1800.0, 1800), (1800.0, 3600.0, 1800)), ["", ""]) == []


def test_what_belongs_to_no_boundary_is_never_used():
    choice = _chosen({"scope": "part", "device": "cpu:0/core"}, {"scope": "", "device": "meter"})
    assert not choice["chosen"].any()


CARD = {"scope": "board", "device": "gpu:0", "usual_w": 300.0, "kind": "instant"}


@pytest.mark.parametrize(
    ("better", "worse", "why"),
    [
        ({"grain_w": 0.01}, {"grain_w": 1.0}, "steps of 0.01 W, here 1.0 W"),
        ({"made_up": False}, {"made_up": True, "grain_w": 0.01}, "were laid at one distance"),
        ({"coverage_ratio": 1.0}, {"coverage_ratio": 0.96, "grain_w": 0.01}, "covers 1.0 of the run, this 0.96"),
        ({"period_s": 1.0, "grain_w": 1.0}, {"period_s": 10.0, "grain_w": 0.01}, "every 1.0 s, this every 10.0 s"),
        ({"kind": "mean", "grain_w": 0.1}, {"kind": "instant", "grain_w": 0.001}, "says what its values are"),
        ({"grain_w": 0.01, "kind": "instant"}, {"grain_w": 1.0, "kind": "mean"}, "steps of 0.01 W"),
        ({"family": "meter", "grain_w": 1.0}, {"family": "sensor", "grain_w": 0.01}, "is a meter, this a sensor"),
        ({}, {}, "but their names"),
    ],
)
def test_the_better_of_two_instruments_is_used_whatever_their_names(better, worse, why):
    for names in (("a", "b"), ("b", "a")) if better else (("a", "b"),):
        choice = _chosen(CARD | {"adapter": names[1]} | worse, CARD | {"adapter": names[0]} | better)
        assert choice.filter("chosen")["source_id"].to_list() == [2]
        assert why in choice.filter(~pl.col("chosen"))["reason"][0]


def test_an_instrument_of_all_cards_is_used_before_a_finer_one_of_some():
    one = CARD | {"adapter": "a", "grain_w": 0.01}
    both = CARD | {"adapter": "b", "grain_w": 1.0}
    choice = _chosen(one, both, both | {"device": "gpu:1", "source_id": 2})
    assert choice.filter("chosen")["source_id"].to_list() == [2, 2]
    assert "devices that lack here" in choice.filter(~pl.col("chosen"))["reason"][0]


def test_one_moment_of_all_cards_does_not_take_the_place_of_a_log_of_some():
    log, moment = CARD | {"adapter": "b"}, CARD | {"adapter": "a", "coverage_ratio": 0.001}
    choice = _chosen(log, moment, moment | {"device": "gpu:1", "source_id": 2})
    assert choice.filter("chosen")["source_id"].to_list() == [1]
