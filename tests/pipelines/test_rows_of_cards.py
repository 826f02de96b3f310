"""Rows of several cards without titles, and readings of which nothing says that they are of several; worked out by hand."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import ingest, source_doubts
from joulebook_pipelines.logs.contract import Options
from joulebook_pipelines.store import Store

DATED = Options(timezone="UTC", date="2026-03-02", scope="board")


def taken(store: Store, folder: Path, told: str, options: Options = DATED) -> tuple[dict[str, list[float]], set[str]]:
    """Return the powers by device and the codes of the findings."""
    path = folder / "power.log"
    path.write_text(told)
    (outcome,) = ingest.ingest((ingest.SourceFile(path, path.name, "n1", options=options),), store)
    readings = store.table("readings").sort("line")
    powers = {str(d): mine["power_w"].to_list() for (d,), mine in readings.group_by("device", maintain_order=True)}
    return powers, {f.code for f in outcome.findings} | ({outcome.reason} if outcome.reason else set())


STAMPS = [
    "2026-03-02T10:00:0{i}+00:00 ", "[2026-03-02 10:00:0{i}] ", "Mar  2 10:00:0{i} ", "2026-03-02 10:00:0{i}, ",
    "Mon Mar  2 10:00:0{i} UTC 2026, ", "Mon Mar  2 10:00:0{i} 2026, ",
]  # fmt: skip


@pytest.mark.parametrize("stamp", STAMPS)
def test_cards_in_turn_are_told_apart_whatever_stands_before_their_numbers(
    store: Store, tmp_path: Path, stamp: str
) -> None:
    told = "".join(
        f"{stamp.format(i=i)}{card}, {70 + i + 100 * card}.50 W, 55 %\n" for i in range(4) for card in (0, 1)
    )
    powers, codes = taken(store, tmp_path, told)
    assert list(powers.values()) == [[70.5, 71.5, 72.5, 73.5], [170.5, 171.5, 172.5, 173.5]]
    assert "lines-in-rounds" not in codes


def test_a_line_of_the_shell_before_the_rows_changes_nothing(store: Store, tmp_path: Path) -> None:
    told = "+ nvidia-smi --query-gpu=timestamp,index,power.draw --format=csv,noheader -l 1\n" + "".join(
        f"2026/03/02 10:00:{s:02d}.000, {card}, {70 + s + 100 * card}.50 W\n" for s in range(12) for card in (0, 1)
    )
    powers, _ = taken(store, tmp_path, told)
    assert list(powers.values()) == [[70.5 + s for s in range(12)], [170.5 + s for s in range(12)]]


def _of_two(rounds: int, apart: str) -> str:
    stamps = ((f"2026-03-02 10:00:{s:02d}.{apart[k]}00", 70 + s + 100 * k) for s in range(rounds) for k in (0, 1))
    return "".join(f"{t} {w}.0 W\n" for t, w in stamps)


@pytest.mark.parametrize("apart", ["00", "12"])
def test_two_lines_a_second_may_be_two_cards(store: Store, tmp_path: Path, apart: str) -> None:
    """Nothing tells the cards apart, so the sum of a round may be their power: twice what a mean says."""
    told = _of_two(20, apart).replace(".200 ", ".104 ")
    assert "lines-in-rounds" in taken(store, tmp_path, told)[1]


def test_who_says_that_it_is_one_device_is_believed(store: Store, tmp_path: Path) -> None:
    options = Options(timezone="UTC", scope="board", device="gpu:0")
    assert "lines-in-rounds" not in taken(store, tmp_path, _of_two(20, "00"), options)[1]


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([(3, 60), (1000, 19)], 4), ([(0, 20), (1000, 19)], 2), ([(0, 17), (1000, 22)], None), ([(500, 39)], None),
        ([(3, 8), (1000, 7)], None), ([(30, 20), (100, 19)], None),
    ],
)  # fmt: skip
def test_rounds_are_exact_and_far_apart(steps: list[tuple[int, int]], found: int | None) -> None:
    told = pl.DataFrame(steps, schema={"step_ms": pl.Int64, "count": pl.Int64}, orient="row")
    doubts = source_doubts.rounds("a.log", told.with_columns(device=pl.lit("meter")))
    assert [d.evidence["lines"] for d in doubts] == ([found] if found else [])


def test_sentences_that_name_the_card_may_have_commas(store: Store, tmp_path: Path) -> None:
    told = "".join(
        f"[2026-03-02 10:00:0{i}] GPU {card}: 55% util, {70 + i + 100 * card}.5W power, 60C, 1024/81920MiB\n"
        for i in range(4)
        for card in (0, 1)
    )
    powers, _ = taken(store, tmp_path, told)
    assert powers == {"gpu:0": [70.5, 71.5, 72.5, 73.5], "gpu:1": [170.5, 171.5, 172.5, 173.5]}
