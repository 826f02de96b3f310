import polars as pl
import pytest

from joulebook import instrument_parts, instruments

CARD = {
    "run_id": "r", "host": "n", "scope": "board", "clock": "n", "family": "sensor", "device": "gpu:0", "period_s": 1.0, "kind": "instant",
    "spanned": False, "filled_ratio": 1.0,
}  # fmt: skip
PATHS = {1: "a", 2: "b", 3: "c"}


def _judged(*rows):
    """Return channels of a run of 100 s that saw it from one second to another."""
    made = [
        CARD | {"source_id": i, "adapter": PATHS[i], "begin_s": float(a), "end_s": float(b), "n": b - a,
                "coverage_ratio": (b - a) / 100} | more
        for i, (a, b, more) in enumerate(rows, 1)
    ]  # fmt: skip
    return instruments.judged(pl.DataFrame(made))


def _used(judged):
    columns = ("source_id", "passed_from_s", "passed_until_s")
    return instruments.shown(judged).filter("chosen").select(columns).rows()


def _found(judged, elsewhere=None):
    other = judged.clear() if elsewhere is None else elsewhere
    return instrument_parts.find(judged, PATHS, other)


def test_what_came_before_and_after_is_taken_from_the_others_and_the_middle_only_once():
    judged = _judged((0, 40, {}), (20, 80, {}), (70, 100, {}))
    assert _used(judged) == [(1, 20.0, 80.0), (2, None, None), (3, 0.0, 80.0)]
    (told,) = _found(judged)
    assert told.code == "sources-joined"
    assert told.evidence == {"scope": "board", "devices": ["gpu:0"], "used": "b", "added": "a, c"}
    assert "covers 60 % of the run" in told.message


def test_what_adds_next_to_nothing_is_no_second_instrument():
    assert _used(_judged((0, 100, {}), (99, 100, {}))) == [(1, None, None)]
    assert _used(_judged((0, 97, {"adapter": "z"}), (60, 97, {}))) == [(1, None, None)]


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"family": "model"}, "an instrument of another kind"),
        ({"kind": "counter"}, "its values are of another kind"),
        ({"kind": "mean", "spanned": True}, "its values are of another kind"),
    ],
)
def test_what_is_not_of_one_kind_is_told_and_not_added(other, why):
    judged = _judged((0, 60, {}), (60, 100, other))
    assert _used(judged) == [(1, None, None)]
    (told,) = _found(judged)
    assert (told.code, told.evidence["adds_ratio"]) == ("missing-part-elsewhere", pytest.approx(0.4))
    assert told.message.startswith("b has gpu:0 over 40 % of the run beyond the time of a.")
    assert why in told.message


def test_counters_of_two_tools_are_not_one_counter():
    counter = {"kind": "counter"}
    assert len(_used(_judged((0, 60, counter), (60, 100, counter)))) == 1


def test_a_log_of_another_host_is_named_only_where_it_goes_on_after_the_first():
    judged = _judged((0, 60, {}))
    other = pl.DataFrame([CARD | {"source_id": 2, "adapter": "a", "host": "m", "coverage_ratio": 0.4, "n": 40}])
    after = other.with_columns(begin_s=60.0, end_s=100.0)
    (told,) = _found(judged, after)
    assert "another host" in told.message
    assert _found(judged, after.with_columns(begin_s=0.0)) == []


def test_devices_that_the_first_one_lacks_are_not_joined():
    judged = _judged((0, 60, {}), (60, 100, {"device": "gpu:1"}))
    assert _used(judged) == [(1, None, None)]
