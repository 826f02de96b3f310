"""Teads' turbostress: turbostat means for each step of a load test, below what the machine says of itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import polars as pl

from joulebook import schema
from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import damage, table, untimed
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.table import Field

ORIGIN = "run table"

TITLES = ("test", "threads", "load", "PkgWatt", "RAMWatt", "PkgTmp")
_HEADER = ",".join(TITLES)
_CPUINFO = re.compile(r"^processor\s*:\s*\d+$")

_PACKAGE = (
    Field("PkgWatt", "PkgWatt", "power_w", "W", required=True),
    Field("PkgTmp", "PkgTmp", "temperature_c", "C"),
)
_MEMORY = (Field("RAMWatt", "RAMWatt", "power_w", "W", required=True),)


def _sniff(head: Head) -> bool:
    first = next((line.strip() for line in head.lines if line.strip()), "")
    return _HEADER in (line.strip() for line in head.lines) or (
        _CPUINFO.match(first) is not None and "model name" in head.text
    )


def _parse(log: Log) -> Iterator[Part]:
    model = re.search(r"^model name\s*:\s*(.+)$", log.head.text, re.MULTILINE)
    name = model[1].strip() if model else ""
    steps = untimed.Steps(log)
    yield Part(channels=(Channel("cpu", "package", name, kind="mean"), Channel("dram", "dram", kind="mean")))
    begun, seen = False, 0
    for block in log.blocks():
        part, begun = _read(log, block, begun, seen, steps)
        seen += part.runs.height if part.runs is not None else 0
        yield part
    if not begun:
        raise LogRefusedError(
            f"{log.name}: has no line {_HEADER!r}: the load test did not come to its table of results"
        )
    sums = Finding(
        "package-sum", Severity.NOTE, log.name,
        "turbostat's line over all packages: the power of every socket together, and of all memory.",
    )  # fmt: skip
    yield Part(findings=(sums, *steps.findings))


def _read(log: Log, block: Block, begun: bool, seen: int, steps: untimed.Steps) -> tuple[Part, bool]:
    """Return what a block says, and whether the table has begun by its end."""
    block, nul = damage.without_nul(block)
    rejects = [nul]
    split = table.split(block, TITLES, ",")
    odd, raw = split.odd, split.frame
    title = pl.col("test").str.strip_chars() == TITLES[0]
    from_line = block.first_line if begun else None
    if from_line is None and (starts := raw.filter(title)).height:
        from_line = int(starts["line"][0])
    if from_line is None:
        return Part(lines=block.count, rejects=_joined(rejects)), False
    raw = raw.filter((pl.col("line") >= from_line) & ~title)
    odd = odd.filter((pl.col("line") >= from_line) & ~pl.col("raw").str.starts_with("#"))
    rejects.append(damage.odd_lines(block, odd, "tool-message"))
    if raw.height and raw["line"][-1] == block.cut_line:
        # The last cell of a line without end may lack digits.
        cut = raw.tail(1).select("line", raw=pl.concat_str(TITLES, separator=","))
        rejects.append(table.whole_lines(cut, damage.CUT))
        raw = raw.head(raw.height - 1)
    part = _rows(log, raw, seen, steps, block.count)
    rejects.append(part.rejects if part.rejects is not None else table.no_rejects())
    return Part(lines=block.count, readings=part.readings, rejects=_joined(rejects), runs=part.runs), True


def _joined(rejects: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([table.no_rejects(), *rejects])


def _rows(log: Log, raw: pl.DataFrame, seen: int, steps: untimed.Steps, lines: int) -> Part:
    stamps = steps.next(raw.height)
    frames, rejects = [], []
    for device, scope, fields in (("cpu", "package", _PACKAGE), ("dram", "dram", _MEMORY)):
        mine = raw.with_columns(device=pl.lit(device))
        values, bad = table.convert(mine, fields)
        values, judged = table.judge(values, mine, fields, scope)
        frames.append(table.kept(values.with_columns(stamps, span_s=pl.lit(steps.step_s))))
        rejects += [bad, judged]
    end = stamps.cast(schema.UTC)
    runs = pl.DataFrame({
        "run_id": [f"{seen + i:03d}-{t.strip()}-{n.strip()}-{p.strip()}" for i, (t, n, p) in enumerate(_of(raw), 1)],
        "host": [log.options.host] * raw.height, "start_utc": end, "end_utc": end,
        "origin": [ORIGIN] * raw.height,
        "labels": [json.dumps({"test": t.strip(), "threads": n.strip(), "load_percent": p.strip()}) for t, n, p in _of(raw)],
    }, schema_overrides={"run_id": pl.String, "host": pl.String, "origin": pl.String, "labels": pl.String})  # fmt: skip
    runs = runs.with_columns(start_utc=pl.col("end_utc") - pl.duration(microseconds=round(steps.step_s * 1e6)))
    return Part(lines, pl.concat(frames, how="diagonal").sort("line", maintain_order=True), pl.concat(rejects), runs)


def _of(raw: pl.DataFrame) -> list[tuple[str, str, str]]:
    """Return test, threads and load of each row; a load test has some dozens."""
    return [(t or "", n or "", p or "") for t, n, p in raw.select("test", "threads", "load").iter_rows()]


ADAPTER = Adapter(
    name="turbostress",
    title="Teads turbostress (turbostat means per load step)",
    yields="power of the processor packages and of memory, package temperature, one run per load step",
    sniff=_sniff,
    parse=_parse,
)
