"""What damage leaves of lines: told by hand for each, with the lines that must stay as they are."""

import polars as pl
import pytest

from joulebook_pipelines.logs import damage, table
from joulebook_pipelines.logs.block import Block

NAMES = ("time", "power")


def block(*lines: str, ends: bool = True, first: int = 7) -> Block:
    return Block(first, "".join(f"{line}\n" for line in lines).encode(), terminated=ends)


def test_the_lines_of_a_block_have_the_numbers_of_the_file() -> None:
    one = block("a", "", " ", "d", ends=False)
    assert (one.last_line, one.cut_line, block("a").cut_line) == (10, 10, -1)
    assert one.numbered().rows() == [(7, "a"), (8, ""), (9, " "), (10, "d")]
    assert one.filled("text").rows() == [(7, "a"), (10, "d")]


def test_nul_bytes_leave_their_lines_and_are_counted() -> None:
    whole, rejects = damage.without_nul(block("a\x00\x00b", "c"))
    assert whole.lines == ["ab", "c"]
    assert rejects.select("line", "rule", "raw").rows() == [(7, "nul-bytes", "2 NUL bytes")]
    untouched = block("a")
    assert damage.without_nul(untouched)[0] is untouched


@pytest.mark.parametrize(
    ("lines", "ends", "cut"),
    [
        (("1,101.5", "2,102.5", "3,1"), False, [(9, "last-line-cut", "3,1")]),
        (("1,101.5", "2,102.5", "3,103.5"), False, []),
        (("1,101.5", "2,102.5", "3,1"), True, []),
        # The row before a line that is no row has its end, so it is whole however short it is.
        (("1,101.5", "2,98.5", "3"), False, []),
        (("1,1",), False, []),
    ],
)
def test_a_stump_is_cut_and_a_short_row_before_the_end_is_not(
    lines: tuple[str, ...], ends: bool, cut: list[tuple[int, str, str]]
) -> None:
    one = block(*lines, ends=ends)
    split = table.split(one, NAMES, ",")
    kept, rejects = damage.cut_last(one, split.frame, NAMES, ",")
    assert rejects.select("line", "rule", "raw").rows() == cut
    assert kept.height == split.frame.height - len(cut)


def test_of_lines_that_are_no_rows_the_one_without_end_was_cut() -> None:
    one = block("x", "1,2", "3", ends=False)
    odd = damage.odd_lines(one, table.split(one, NAMES, ",").odd, pl.lit("foreign-line"))
    assert odd.select("line", "rule").rows() == [(7, "foreign-line"), (9, "last-line-cut")]
