"""Accounting of Slurm: ``sacct -o JobID,JobName,Start,End,ConsumedEnergyRaw`` (``-P`` with bars, or columns of fixed width)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import cells, damage, local_time, stamps, table
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.table import Field

ORIGIN = "Slurm accounting"

_ENERGIES = ("ConsumedEnergyRaw", "ConsumedEnergy")
_SUFFIX_J = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
"""Joules, with the suffixes of sacct's manual page."""

_DASHES = re.compile(r"^-{2,}(?: -{2,})+\s*$")
_LABELS = {
    "JobName": "job_name",
    "State": "state",
    "NodeList": "nodes",
    "Partition": "partition",
    "AllocNodes": "node_count",
}


@dataclass(frozen=True)
class _Header:
    """Titles, the sign between columns (``""`` for fixed widths), where columns begin and end, and the line of the titles."""

    titles: tuple[str, ...]
    separator: str
    slices: tuple[tuple[int, int], ...]
    line: int


def _header(head: Head) -> _Header | None:
    for at, line in enumerate(head.lines[:20]):
        if "JobID" not in line or not any(e in line for e in _ENERGIES):
            continue
        for separator in "|,;\t":
            titles = tuple(t.strip() for t in line.split(separator))
            if len(titles) > 2 and "JobID" in titles and set(titles) & set(_ENERGIES):
                return _Header(titles, separator, (), at + 1)
        rule = head.lines[at + 1] if at + 1 < len(head.lines) else ""
        if _DASHES.match(rule):
            slices = tuple((m.start(), m.end()) for m in re.finditer(r"-+", rule))
            return _Header(tuple(line[a:b].strip() for a, b in slices), "", slices, at + 1)
    return None


def _parse(log: Log) -> Iterator[Part]:
    header = _header(log.head)
    if header is None:
        raise LogRefusedError(f"{log.name}: has no header of sacct with JobID and ConsumedEnergyRaw")
    missing = [t for t in ("JobID", "Start", "End") if t not in header.titles]
    missing += [] if set(_ENERGIES) & set(header.titles) else ["ConsumedEnergyRaw"]
    if missing:
        raise LogRefusedError(
            f"{log.name}: lacks {' and '.join(missing)}; export it again with sacct -P -o JobID,JobName,Start,End,ConsumedEnergyRaw"
        )
    parts = [_split(block, header) for block in log.blocks()]
    rows, rejects = pl.concat([r for r, _ in parts]), [r for _, r in parts]
    is_step = pl.col("JobID").str.contains(".", literal=True)
    jobs, inside = rows.filter(~is_step), rows.filter(is_step).height
    jobs, more = _timed(log, jobs)
    rejects += more
    _refuse_overlaps(log, jobs)
    energy = Field("energy", _energy(header), "energy_j", required=True)
    value = pl.col("energy").str.extract(r"^([\d.]+)([KMGT]?)$", 1).cast(pl.Float64, strict=False)
    suffix = pl.col("energy").str.extract(r"^([\d.]+)([KMGT]?)$", 2)
    factor = suffix.replace_strict(_SUFFIX_J, default=None, return_dtype=pl.Float64)
    device, scope = log.options.device or "node", log.options.scope or ""
    jobs = jobs.with_columns(energy_j=value * factor, device=pl.lit(device))
    # A cluster without an energy plugin writes 0, or no energy at all.
    rule = pl.when(pl.col("energy_j") == 0).then(pl.lit("zero-energy")).otherwise(cells.why_null(pl.col("energy")))
    good = (pl.col("energy_j") > 0).fill_null(value=False)
    rejects.append(table.cell_rejects(jobs.filter(~good), energy, rule))
    span_s = (pl.col("end_utc") - pl.col("start_utc")).dt.total_microseconds() / 1e6
    readings = jobs.filter(good).select("line", "device", ts_utc="end_utc", span_s=span_s, energy_j="energy_j")
    channels = (Channel(device, scope, kind="energy"),) if readings.height else ()
    yield Part(
        log.passed.lines,
        readings,
        pl.concat(rejects),
        runs=_runs(log, jobs),
        channels=channels,
        findings=_findings(log, inside),
    )


def _energy(header: _Header) -> str:
    return next(e for e in _ENERGIES if e in header.titles)


def _split(block: Block, header: _Header) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the cells that are looked at, under their titles, and rejects of lines of another form."""
    lines = block.filled()
    lines = lines.filter((pl.col("line") > header.line) & ~pl.col("raw").str.contains(r"^-{2,}[ -]*$|^\s*JobID\b"))
    if header.separator:
        split = pl.col("raw").str.split(header.separator)
        whole = split.list.len() == len(header.titles)
        cut = {t: split.list.get(i, null_on_oob=True) for i, t in enumerate(header.titles) if t}
    else:
        width = header.slices[-1][0]
        whole = pl.col("raw").str.len_chars() > width
        cut = {t: pl.col("raw").str.slice(a, b - a) for t, (a, b) in zip(header.titles, header.slices, strict=True)}
    whole = whole & (pl.col("line") != block.cut_line)
    wanted = [t for t in ("JobID", "Start", "End", _energy(header), *_LABELS) if t in cut]
    rows = lines.filter(whole).select("line", "raw", *(cut[t].str.strip_chars().alias(t) for t in wanted))
    odd = damage.odd_lines(block, lines.filter(~whole), "wrong-number-of-fields")
    return rows.rename({_energy(header): "energy"}), odd


def _timed(log: Log, jobs: pl.DataFrame) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Return the jobs with start and end, and rejects of those that run still or never began."""
    samples = [t for t in jobs["Start"].to_list() if t and t[0].isdigit()]
    if not samples:
        raise LogRefusedError(f"{log.name}: no job has a start: nothing was measured")
    form = local_time.form(log, samples[:200])
    clock = local_time.localiser(log, form, int(jobs["line"][0]), samples[0])
    for title, name in (("Start", "start_utc"), ("End", "end_utc")):
        naive = jobs.select(stamps.parse(pl.col(title).fill_null(""), form).alias(name)).to_series()
        jobs = jobs.with_columns(clock.to_utc(naive))
    whole = (pl.col("end_utc") > pl.col("start_utc")).fill_null(value=False)
    return jobs.filter(whole), [table.whole_lines(jobs.filter(~whole).select("line", "raw"), "job-without-times")]


def _refuse_overlaps(log: Log, jobs: pl.DataFrame) -> None:
    """Refuse jobs that ran at the same time: of two energies of one stretch of time none is that of the host."""
    rows = jobs.sort("start_utc", maintain_order=True)
    late = rows.filter(pl.col("start_utc") < pl.col("end_utc").cum_max().shift(1))
    if late.height:
        raise LogRefusedError(
            f"{log.name}: job {late['JobID'][0]} began while another one ran; put the jobs of each node into a file of its own "
            "(sacct -N NODE …), with its host in [[source]]"
        )


def _runs(log: Log, jobs: pl.DataFrame) -> pl.DataFrame:
    known = [t for t in _LABELS if t in jobs.columns]
    rows = jobs.select("JobID", *known).iter_rows(named=True)  # one a job
    labels = [json.dumps({_LABELS[t]: row[t] for t in known if row[t]}, sort_keys=True) for row in rows]
    return jobs.select(
        run_id="JobID", host=pl.lit(log.options.host), start_utc="start_utc", end_utc="end_utc", origin=pl.lit(ORIGIN),
        labels=pl.Series(labels, dtype=pl.String),
    )  # fmt: skip


def _findings(log: Log, inside: int) -> tuple[Finding, ...]:
    """Say what the energies cover, and that steps are not added."""
    told = f"{inside} rows of job steps lie inside of their jobs and were not added. " if inside else ""
    return (Finding(
        "accounted-energy", Severity.NOTE, log.name,
        f"{told}Slurm accounts what its energy plugin measures (processors and memory, or the node) over all nodes of a job, also of jobs "
        "that shared them; say which with scope in this [[source]].", {"steps": inside},
    ),)  # fmt: skip


ADAPTER = Adapter(
    name="slurm-sacct",
    title="accounting of Slurm (sacct with JobID, Start, End and ConsumedEnergyRaw)",
    yields="one run a job, with its energy",
    sniff=lambda head: _header(head) is not None,
    parse=_parse,
    needs_zone=True,
)
