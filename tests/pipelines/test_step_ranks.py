"""Training logs that several processes write into: a step counts once, micro-steps and repeated steps stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl

from joulebook_pipelines.logs import step_ranks

BEGIN = datetime(2026, 11, 2, 9, tzinfo=UTC)


def _told(rows):
    frame = pl.DataFrame(rows, schema=["step", "second", "tokens"], orient="row")
    return frame.select(
        line=pl.int_range(1, pl.len() + 1), run_id=pl.lit("a"), step="step",
        at=pl.lit(BEGIN) + pl.duration(milliseconds=(pl.col("second") * 1000).cast(pl.Int64)),
        tokens=pl.col("tokens").cast(pl.Float64), loss=pl.lit(2.0), batch_size=pl.lit(None, pl.Float64),
    )  # fmt: skip


def test_four_processes_that_write_each_step_make_one_step_of_it():
    rows = [(s, 10 * s + 0.1 * r, 512) for s in range(1, 21) for r in range(4)]
    kept, extra, processes = step_ranks.once(_told(rows))
    assert processes == 4
    assert (kept.height, extra.height) == (20, 60)
    assert kept["tokens"].sum() == 20 * 512
    assert kept["at"][0] == BEGIN + timedelta(seconds=10.3)


def test_lines_of_processes_may_come_a_little_late():
    rows = [(s, 10 * s + 0.1 * r, 512) for s in range(1, 21) for r in range(2)]
    rows[3], rows[4] = rows[4], rows[3]
    assert step_ranks.once(_told(rows))[2] == 2


def test_micro_steps_spread_over_a_step_all_count():
    rows = [(s, 10 * s + 2.5 * m, 512) for s in range(1, 21) for m in range(4)]
    kept, extra, processes = step_ranks.once(_told(rows))
    assert (kept.height, extra.height, processes) == (80, 0, 1)


def test_steps_done_again_after_a_restart_all_count():
    rows = [(s, 10 * s, 512) for s in range(1, 21)] + [(s, 300 + 10 * (s - 15), 512) for s in range(15, 31)]
    kept, extra, processes = step_ranks.once(_told(rows))
    assert (kept.height, extra.height, processes) == (36, 0, 1)


def test_a_restart_of_several_processes_keeps_both_executions_of_a_step():
    rows = [(s, 10 * s + 0.1 * r, 512) for s in range(1, 21) for r in range(2)]
    rows += [(s, 300 + 10 * (s - 15) + 0.1 * r, 512) for s in range(15, 31) for r in range(2)]
    kept, _, processes = step_ranks.once(_told(rows))
    assert (kept.height, processes) == (36, 2)
