"""Energy of windows as EEMBC's runner prints it for MLPerf Tiny: ``Energy data for window 2 at time 2.74 for 11.49 sec.:``."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from joulebook_pipelines.logs import damage, entries, relative, step_log, table
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.stamps import StampForm

ORIGIN = "energy window"

_WINDOW = r"\bEnergy data for window (\d+) at time ([\d.]+) for ([\d.]+) sec"
_ENERGY = r"\bEnergy\s*:\s*(\S+)\s*([num]?J)\b"
_POWER = r"\bPower\s*:\s*(\S+)\s*([num]?W)\b"
_RUNNER = r"^\d+\.\d+ [\w-]+:"
_OTHER = r"\bEnergy/Inf"


def _sniff(head: Head) -> bool:
    return (
        "Energy data for window" in head.text
        and re.search(_WINDOW, head.text) is not None
        and re.search(_ENERGY, head.text) is not None
    )


def _parse(log: Log) -> Iterator[Part]:
    clock = _clock(log)
    device, scope = log.options.device or "meter", log.options.scope or ""
    window: tuple[str | None, ...] = (None, None, None)
    told = False
    for block in log.blocks():
        lines = _under_windows(block, window)
        window = tuple(lines.select("window", "at", "length").row(-1)) if lines.height else window
        last = pl.col("line") == block.cut_line
        cut, mine = lines.filter(last), lines.filter(~last)
        frames = [
            _cells(mine, pattern, quantity, header).with_columns(device=pl.lit(device))
            for pattern, quantity, header in ((_ENERGY, "energy_j", "Energy"), (_POWER, "reported_power_w", "Power"))
        ]
        cells = pl.concat(frames).sort("line")
        end = cells.select(
            (pl.col("at").cast(pl.Float64, strict=False) + pl.col("length").cast(pl.Float64, strict=False))
            .cast(pl.String)
            .alias("t")
        )
        cells = cells.with_columns(clock.utc(end, pl.col("t")))
        spans = cells.select("row", span_s=pl.col("length").cast(pl.Float64, strict=False)).unique("row")
        known = cells.select("line", "row").unique("line")
        readings, rejects = entries.gather(
            cells.select(list(entries.SCHEMA)), {device: scope or "facility"}, never_zero=False
        )
        readings = readings.join(known, on="line", how="left").join(spans, on="row", how="left")
        odd = [
            table.whole_lines(cut.select("line", "raw"), damage.CUT),
            table.whole_lines(_foreign(mine), "foreign-line"),
        ]
        channels = (Channel(device, scope, kind="energy"),) if readings.height and not told else ()
        told = told or readings.height > 0
        yield Part(
            block.count, readings.drop("row"), pl.concat([*odd, rejects]), runs=_runs(log, readings), channels=channels
        )
    yield Part(findings=clock.findings)


def _clock(log: Log) -> relative.Stamping:
    """Return what turns the seconds of the runner into moments."""
    first = next(((i, m) for i, line in enumerate(log.head.lines, 1) if (m := re.search(_WINDOW, line))), None)
    if first is None:
        raise LogRefusedError(f"{log.name}: holds no line of a window with its energy")
    return relative.stamping(log, StampForm("relative", aware=True, unit_us=1e6), first[0], first[1][2])


def _under_windows(block: Block, window: tuple[str | None, ...]) -> pl.DataFrame:
    """Return the lines of a block with the window that they are about."""
    lines = block.filled()
    return lines.with_columns(
        pl.col("raw").str.extract(_WINDOW, i).forward_fill().fill_null(pl.lit(window[i - 1], pl.String)).alias(n)
        for i, n in enumerate(("window", "at", "length"), 1)
    )


def _cells(lines: pl.DataFrame, pattern: str, quantity: str, header: str) -> pl.DataFrame:
    found = lines.with_columns(value=pl.col("raw").str.extract(pattern, 1), unit=pl.col("raw").str.extract(pattern, 2))
    return found.filter(pl.col("value").is_not_null() & ~pl.col("raw").str.contains(_OTHER)).select(
        "line", "at", "length", "unit", row=pl.col("window").cast(pl.Int64, strict=False), quantity=pl.lit(quantity), header=pl.lit(header),
        raw="value",
    )  # fmt: skip


def _foreign(lines: pl.DataFrame) -> pl.DataFrame:
    """Return the lines that the runner did not write."""
    return lines.filter(~pl.col("raw").str.contains(_RUNNER)).select("line", "raw")


def _runs(log: Log, readings: pl.DataFrame) -> pl.DataFrame | None:
    """Return each window as a run: the benchmark repeats itself in them."""
    mine = readings.filter(pl.col("energy_j").is_not_null()) if "energy_j" in readings.columns else readings.head(0)
    if mine.is_empty():
        return None
    length = pl.duration(microseconds=(pl.col("span_s") * 1e6).round().cast(pl.Int64))
    return mine.select(
        run_id=pl.format("{}-{}", pl.lit(step_log.run_of(log)), "row"), host=pl.lit(log.options.host), start_utc=pl.col("ts_utc") - length,
        end_utc="ts_utc", origin=pl.lit(ORIGIN), labels=pl.lit("{}"),
    )  # fmt: skip


ADAPTER = Adapter(
    name="eembc-energy",
    title="EEMBC's energy runner (MLPerf Tiny): energy of each window",
    yields="energy and printed power of each window, one run a window",
    sniff=_sniff,
    parse=_parse,
    family="meter",
)
