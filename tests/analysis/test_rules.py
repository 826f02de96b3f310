import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulebook import rules


def _frame(power, limit=None, temperature=None):
    return pl.DataFrame(
        {
            "line": range(2, 2 + len(power)), "device": ["gpu:0"] * len(power), "power_w": power,
            "power_limit_w": [limit] * len(power), "temperature_c": [temperature] * len(power),
        },
        schema_overrides={"power_w": pl.Float64, "power_limit_w": pl.Float64, "temperature_c": pl.Float64},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("watts", "limit", "rule"),
    [
        (287.6, 256.0, None),  # 12 % above the limit is a real excursion
        (71234.5, 256.0, "beyond-physical"),
        (400.0, 256.0, "beyond-limit"),
        (0.0, 256.0, "zero-power"),
        (-3.0, 256.0, "negative-power"),
        (4294967.295, None, "error-code"),
        (65535.0, None, "error-code"),
    ],
)
def test_a_board_reading_is_judged_by_the_first_rule_it_breaks(watts, limit, rule):
    good, broken = rules.judge(_frame([watts], limit), "board")
    assert good["power_w"].to_list() == ([watts] if rule is None else [None])
    assert broken["rule"].to_list() == ([] if rule is None else [rule])


@pytest.mark.parametrize(
    ("ratio", "kept"), [(0.0, True), (1.0, True), (1.04, True), (1.06, False), (-0.01, False), (57.0, False)]
)
def test_a_board_is_busy_for_nought_to_all_of_the_time(ratio, kept):
    frame = _frame([200.0]).with_columns(utilization_ratio=pl.lit(ratio), memory_utilization_ratio=pl.lit(0.5))
    good, broken = rules.judge(frame, "board")
    assert good["utilization_ratio"].to_list() == ([ratio] if kept else [None])
    assert good.select("power_w", "memory_utilization_ratio").row(0) == (200.0, 0.5)
    assert broken["rule"].to_list() == ([] if kept else ["impossible-ratio"])


def test_both_shares_of_time_are_judged_and_only_those_of_boards():
    frame = _frame([200.0]).with_columns(utilization_ratio=pl.lit(2.0), memory_utilization_ratio=pl.lit(-1.0))
    assert rules.judge(frame, "board")[1]["quantity"].to_list() == ["utilization_ratio", "memory_utilization_ratio"]
    assert rules.judge(frame, "package")[1].is_empty()


def test_a_plug_may_read_zero_and_a_host_power_may_not():
    assert rules.judge(_frame([0.0]), "node")[1].is_empty()
    assert rules.judge(_frame([0.0]), "node", never_zero=True)[1]["rule"].to_list() == ["zero-power"]


@given(st.lists(st.floats(-1e5, 1e7) | st.none(), min_size=1, max_size=30))
def test_each_power_is_kept_or_rejected_and_never_changed(watts):
    frame = _frame(watts)
    good, broken = rules.judge(frame, "board")
    assert good.height == frame.height
    for before, after, line in zip(frame["power_w"], good["power_w"], frame["line"], strict=True):
        rejected = line in broken["line"].to_list()
        assert (after == before) if not rejected else (after is None and before is not None)
