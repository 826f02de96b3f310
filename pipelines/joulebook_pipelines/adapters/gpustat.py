"""``gpustat -P`` in a loop: a line with host and time, then a line a card."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from joulebook_pipelines.logs import damage, entries, local_time, stamps
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.stamp_lines import printed

_DAY, _MONTH = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)", r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_STAMP = rf"^\S+\s+({_DAY} {_MONTH}\s+\d{{1,2}} \d\d:\d\d:\d\d \d{{4}})"
_CARD = (
    r"^\[(\d+)\] ([^|]*?)\s*\|\s*(\d+|\?+)\s*[°']C,(?:[^,|]*,)*?\s*(\d+|\?+)\s*%\s*(?:\([^)]*\)\s*)?,"
    r"\s*(\d+|\?+)\s*(?:/\s*(\d+|\?+)\s*)?W\b"
)
"""Groups: number, model, temperature, utilisation, power, limit; a fan or an encoder may stand between."""

_VALUES = (
    ("temperature", "temperature_c", "C"), ("utilization", "utilization_ratio", "percent"), ("power", "power_w", "W"),
    ("limit", "power_limit_w", "W"),
)  # fmt: skip


def _sniff(head: Head) -> bool:
    return all(re.search(pattern, head.text, re.MULTILINE) for pattern in (_CARD, _STAMP))


def _parse(log: Log) -> Iterator[Part]:
    first = re.search(_STAMP, log.head.text, re.MULTILINE)
    if first is None:
        raise LogRefusedError(f"{log.name}: no line begins with a host and a time, as gpustat prints before its cards")
    clock = local_time.localiser(log, stamps.StampForm("printed", aware=False), 1, first[1])
    told: set[str] = set()
    mark: str | None = None
    for block in log.blocks():
        lines = _under_marks(block, mark)
        mark = lines["mark"][-1] if lines.height else mark
        odd = lines.filter(~pl.col("own") & pl.col("card").is_null())
        cards = lines.filter(pl.col("card").is_not_null() & ~pl.col("own"))
        utc = clock.utc(cards, printed(pl.col("mark")))
        cards = cards.with_columns(
            utc.alias("ts_utc"), device=pl.concat_str(pl.lit("gpu:"), "card"), row=pl.col("line")
        )
        frames = [
            cards.select(
                "row", "line", "device", "ts_utc", quantity=pl.lit(quantity), header=pl.lit(header), unit=pl.lit(unit),
                raw=pl.col("text").str.extract(_CARD, at),
            ).filter(pl.col("raw").is_not_null())
            for at, (header, quantity, unit) in enumerate(_VALUES, 3)
        ]  # fmt: skip
        readings, rejects = entries.gather(
            pl.concat(frames), dict.fromkeys(cards["device"].unique().to_list(), "board")
        )
        models = dict(cards.select("device", pl.col("text").str.extract(_CARD, 2)).iter_rows())
        fresh = entries.fresh(readings, told)
        yield Part(
            block.count, readings, pl.concat([damage.odd_lines(block, odd.select("line", raw="text"), "foreign-line"), rejects]),
            channels=tuple(Channel(d, "board", model=models.get(d) or "", window_s=log.options.window_s) for d in fresh),
        )  # fmt: skip


def _under_marks(block: Block, mark: str | None) -> pl.DataFrame:
    """Return the lines of a block with the stamp above them and the number of the card that they are about."""
    lines = block.filled("text")
    lines = lines.with_columns(mark=pl.col("text").str.extract(_STAMP, 1), card=pl.col("text").str.extract(_CARD, 1))
    own = pl.col("mark").is_not_null()
    return lines.with_columns(pl.col("mark").forward_fill().fill_null(pl.lit(mark, pl.String)), own=own)


ADAPTER = Adapter(
    name="gpustat",
    title="gpustat -P (text, looped)",
    yields="board power in whole watts, limit, utilisation and temperature per card",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
)
