"""Tokens of steps: of each, since the start, and of steps that were done again; worked out by hand."""

import polars as pl
import pytest

from joulebook_pipelines.logs import step_repeats, step_tokens

SCHEMA = {"tokens": pl.Float64, "tokens_seen": pl.Float64, "tokens_per_s": pl.Float64, "at": pl.Datetime("us", "UTC")}


def _of(steps, **told):
    columns = {c: told.get(c, [None] * len(steps)) for c in SCHEMA}
    frame = pl.DataFrame({"run_id": "r", "step": [float(s) for s in steps], **columns}, schema_overrides=SCHEMA)
    return step_tokens.of_steps(frame)


@pytest.mark.parametrize(
    ("counts", "of_each"),
    [
        ([1000, 2000, 3000, 4000, 5000], [1000, 1000, 1000, 1000, 1000]),
        ([1000, 2100, 3050, 4160, 5200], [1000, 1100, 950, 1110, 1040]),
        ([900_000 + 7 * i * i for i in range(1, 30)], [None, *(7 * (2 * i - 1) for i in range(2, 30))]),
    ],
    ids=["even", "uneven", "resumed, long"],
)
def test_counts_that_rise_with_every_step_are_of_the_start(counts, of_each):
    told, cumulative = _of(range(1, len(counts) + 1), tokens=[float(c) for c in counts])
    assert cumulative
    assert told["tokens"].to_list() == of_each


@pytest.mark.parametrize(
    "counts",
    [
        [1000] * 6,
        [1000, 990, 1010, 1005, 1001],
        [512, 1024, 2048, 4096, 8192],
        [1000, 1001, 1002, 1003, 1004],
        [1000, 2000],
    ],
    ids=["equal", "about equal", "doubled", "longer and longer", "two"],
)
def test_counts_of_single_steps_stay(counts):
    told, cumulative = _of(range(1, len(counts) + 1), tokens=[float(c) for c in counts])
    assert not cumulative
    assert told["tokens"].to_list() == counts


def test_what_a_step_makes_again_after_a_restart_is_what_it_made_before():
    steps = [1, 2, 3, 4, 3, 4, 5, 6]
    told, _ = _of(steps, tokens_seen=[1000.0 * s for s in steps])
    assert told["tokens"].to_list() == [1000.0] * 8
    counted, cumulative = _of(steps, tokens=[1000.0 * s for s in steps])
    assert cumulative
    assert counted["tokens"].to_list() == [1000.0] * 8


def test_a_step_counts_once_and_its_micro_steps_all():
    lines = pl.DataFrame(
        {"run_id": "r", "step": [1, 1, 2, 2, 3, 2, 2, 3, None], "tokens": [5, 5, 7, 7, 10, 8, 8, None, 1]}
    )
    # Of step 3 the first time alone tells what it made.
    assert step_repeats.totals(lines, ["tokens"]).rows() == [("r", 5 + 5 + 8 + 8 + 10 + 1)]


def test_a_total_that_no_line_tells_is_unknown():
    lines = pl.DataFrame(
        {"run_id": "r", "step": [1, 2], "samples": [None, None]}, schema_overrides={"samples": pl.Float64}
    )
    assert step_repeats.totals(lines, ["samples"]).rows() == [("r", None)]
