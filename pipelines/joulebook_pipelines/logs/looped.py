"""Tools that are asked again and again and print no time: their lines, under the times of a collector or laid one after the other."""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from joulebook.findings import Finding
from joulebook_pipelines.logs import damage, stamp_lines, table, untimed
from joulebook_pipelines.logs.contract import Block, Log
from joulebook_pipelines.logs.stamp_lines import StampLines


def lines(block: Block, *, ends: tuple[str, ...] = ()) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Return ``line, text`` of the lines of a block that hold anything, and what is rejected of them.

    Parameters
    ----------
    block
        The block.
    ends
        How a whole line ends; a last one without line end is cut unless it ends so.
    """
    block, nul = damage.without_nul(block)
    rejects = [nul]
    held = block.filled("text")
    if not block.terminated and held.height and not (ends and held["text"][-1].rstrip().endswith(ends)):
        rejects.append(table.whole_lines(held.tail(1).rename({"text": "raw"}), damage.CUT))
        held = held.head(held.height - 1)
    return held, rejects


@dataclass
class Times:
    """When each round of a loop was printed; carried from block to block."""

    clock: StampLines | untimed.Steps | untimed.Moment
    stamp: str | None = None
    passed: int = 0

    @classmethod
    def find(cls, log: Log, tool: str | re.Pattern[str], *, rounds: int, cure: str) -> Times:
        """Return the times of a log: a collector's, else those that study.toml lays.

        Parameters
        ----------
        log
            The log.
        tool
            How lines of the tool itself begin, which are no stamps.
        rounds
            Rounds at the beginning of the file.
        cure
            What to do about a log without times.

        Raises
        ------
        LogRefusedError
            Several rounds have no time, and nothing says how far apart they are.
        """
        collector = stamp_lines.find(log, re.compile(tool), of_day=True)
        return cls(collector or untimed.of_dumps(log, rounds, cure))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is not known of the times."""
        return () if isinstance(self.clock, StampLines) else self.clock.findings

    def under(self, held: pl.DataFrame, begins: pl.Expr, *, tool: str | None = None) -> pl.DataFrame:
        """Return lines with ``rest``, what stands behind a stamp; ``own``, whether it is nothing; and ``ts_utc``.

        Parameters
        ----------
        held
            ``line, text``.
        begins
            Whether ``rest`` is the first line of a round, which counts where there are no stamps.
        tool
            Lines of this pattern are never read as stamps.
        """
        if not isinstance(self.clock, StampLines):
            held = held.with_columns(rest="text", own=pl.lit(value=False))
            number = held.select(begins.fill_null(value=False).cast(pl.Int64).cum_sum() + self.passed).to_series()
            self.passed = int(number[-1]) if held.height else self.passed
            return held.with_columns(self.clock.at(number.clip(lower_bound=1)).alias("ts_utc"))
        stamp, rest, _ = self.clock.split(pl.col("text"))
        if tool is not None:
            of_tool = pl.col("text").str.contains(tool)
            stamp, rest = pl.when(~of_tool).then(stamp), pl.when(of_tool).then("text").otherwise(rest)
        held = held.with_columns(stamp=stamp, rest=rest)
        held = held.with_columns(
            pl.col("stamp").forward_fill().fill_null(pl.lit(self.stamp, pl.String)),
            own=pl.col("stamp").is_not_null() & (pl.col("rest").str.strip_chars() == ""),
        )
        self.stamp = held["stamp"][-1] if held.height else self.stamp
        return held.with_columns(self.clock.utc(held, pl.col("stamp")))
