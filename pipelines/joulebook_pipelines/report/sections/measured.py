"""How it was measured: pictures, clocks, calibrations, sources, settings."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

import polars as pl
from markupsafe import Markup

from joulebook_pipelines import metrics, shown
from joulebook_pipelines.report import fit_pictures, pictures
from joulebook_pipelines.report.blocks import Block, Column, Fold, Items, Section, Table, Text
from joulebook_pipelines.report.methods import told
from joulebook_pipelines.report.pictures import Budget
from joulebook_pipelines.report.source import Source

ROWS_SHOWN = 60
"""Rows of a table on the page; the store has all."""
SEGMENTS_SHOWN = 30
"""Segments on the page, the longest."""
_HASH = 12
"""Digits of a hash that are shown; the copy has all."""


def build(source: Source, budget: Budget, notebooks: Iterable[Path], out: Path) -> Section:
    """Return pictures and tables of clocks, calibration, segments, sources, settings and notebooks."""
    blocks: list[Block] = [p for p in pictures.timelines(source, budget) if p]
    blocks += [*_clocks(source, budget), *_calibrations(source, budget)]
    for title, anchor, made in (
        ("Segments", "segments", _segments(source)),
        ("Instruments behind each number", "instruments", _instruments(source)),
        ("Methods", "methods", _methods(source)),
        ("Sources and their readings", "sources", _sources(source)),
        ("Settings in force", "settings", _settings(source)),
        ("Stages", "stages", _stages(source)),
    ):
        if made:
            blocks.append(Fold(title, made, anchor=anchor))
    links = [_link(path, out) for path in notebooks]
    if links:
        blocks += [Text("Executed notebooks", kind="h3"), Items(links)]
    return Section("measured", "How was it measured?", blocks or [Text("The store is empty.")])


def _link(path: Path, out: Path) -> Markup:
    target = path.resolve()
    folder = out.resolve().parent
    near = target.relative_to(folder) if target.is_relative_to(folder) else Path(path.name)
    return Markup('<a href="{}">{}</a>').format(quote(near.as_posix()), path.stem.replace("-", " "))


def _time(source: Source, value: object) -> str:
    series = pl.Series([value], dtype=pl.Datetime("us", "UTC")).dt.convert_time_zone(source.timezone)
    return series.dt.strftime("%Y-%m-%d %H:%M:%S")[0] or "–"


def _clocks(source: Source, budget: Budget) -> list[Block]:
    rows = source.rows("alignments")
    if rows.is_empty():
        return []
    made = []
    for r in rows.iter_rows(named=True):
        offset = shown.number(r["offset_s"], r["offset_lo"], r["offset_hi"], reason="–")
        drift = shown.number(r["drift_ppm"], r["drift_lo"], r["drift_hi"], reason="–")
        rest = shown.number(r["residual_s"], reason="–")
        made.append([r["clock"], r["status"], r["reference_clock"] or "", offset, drift, rest, r["reason"] or ""])
    columns = [
        Column("clock"), Column("status"), Column("against"), Column("runs ahead by", "s"), Column("drift", "10⁻⁶"),
        Column("scatter", "s"), Column("why"),
    ]  # fmt: skip
    table = Table(
        columns,
        made,
        "Clocks: how far each runs ahead of the reference, and by how much it drifts. Scatter is what is left of the edges once "
        "they are moved; the interval also holds what the window of an instrument hides.",
        "table-clocks",
    )
    return [*fit_pictures.alignments(source, budget), table]


def _calibrations(source: Source, budget: Budget) -> list[Block]:
    rows = source.rows("calibrations")
    if rows.is_empty():
        return []
    made = []
    for r in rows.iter_rows(named=True):
        made.append([
            r["host"], f"{r['scope']} → {r['reference_scope']}", r["status"],
            shown.number(r["gain"], r["gain_lo"], r["gain_hi"], reason="–"),
            shown.number(r["offset_w"], r["offset_lo"], r["offset_hi"], reason="–"),
            shown.number(r["range_lo_w"], reason="–"), shown.number(r["range_hi_w"], reason="–"),
            shown.exact(r["points"]), r["reason"] or "",
        ])  # fmt: skip
    columns = [
        Column("host"), Column("reading → reference"), Column("status"), Column("gain"), Column("offset", "W"),
        Column("holds from", "W"), Column("to", "W"), Column("points"), Column("why"),
    ]  # fmt: skip
    table = Table(columns, made, "Calibrations: reference = gain · reading + offset.", "table-calibrations")
    return [*fit_pictures.calibrations(source, budget), table]


def _segments(source: Source) -> list[Block]:
    rows = source.rows("segments")
    rows = rows.filter(pl.col("device") == "") if (rows["device"] == "").any() else rows
    # short ones by the hundred hide what was steady
    shown_rows = rows.filter(pl.col("kind") != "stall").with_row_index("_at")
    shown_rows = shown_rows.sort(pl.col("end_utc") - pl.col("start_utc"), "_at", descending=[True, False]).head(
        SEGMENTS_SHOWN
    )
    if shown_rows.is_empty():
        return []
    made = [
        [
            r["run_id"] or "–", r["scope"], r["device"] or "all", r["kind"],
            _time(source, r["start_utc"]), _time(source, r["end_utc"]),
            shown.number(r["mean_w"], r["mean_lo"], r["mean_hi"], unit=metrics.Unit("W"), reason="–"),
            shown.number(r["cv_ratio"], reason="–"), r["reason"] or "",
        ]
        for r in shown_rows.sort("_at").iter_rows(named=True)
    ]  # fmt: skip
    columns = [
        Column("run"), Column("boundary"), Column("device"), Column("kind"), Column("from", source.timezone),
        Column("to", source.timezone), Column("mean power", "W"), Column("CV"), Column("why"),
    ]  # fmt: skip
    rest = rows.height - shown_rows.height
    more = f" The {shown_rows.height} longest but for stalls; the table segments has all {rows.height}." if rest else ""
    caption = f"Segments of the whole scopes.{more}"
    return [Table(columns, made, caption, "table-segments")]


def _instruments(source: Source) -> list[Block]:
    rows = source.rows("instruments")
    if rows.is_empty():
        return []
    wanted = [c for c in ("run_id", "scope", "source_id", "device", "chosen", "reason") if c in rows.columns]
    paths = dict(source.rows("sources").select("source_id", "path").iter_rows())
    made = []
    for r in rows.head(ROWS_SHOWN).select(wanted).iter_rows(named=True):
        r["source_id"] = paths.get(r.get("source_id"), "")
        made.append(["" if v is None else "yes" if v is True else "no" if v is False else str(v) for v in r.values()])
    heads = {"run_id": "run", "source_id": "file", "scope": "boundary", "chosen": "used"}
    caption = (
        f"What each run's numbers were made from, and what was left out and why.{_more(rows.height, 'instruments')}"
    )
    return [Table([Column(heads.get(c, c)) for c in wanted], made, caption, "table-instruments")]


def _methods(source: Source) -> list[Block]:
    rows = source.rows("results").select("metric", "method").unique().drop_nulls().sort("metric", "method")
    rows = rows.filter(pl.col("method") != "")
    if rows.is_empty():
        return []
    made = [[metrics.of(m).label, told(how)] for m, how in rows.head(ROWS_SHOWN).iter_rows()]
    return [
        Table([Column("number"), Column("how it was made")], made, "Methods, as the store names them.", "table-methods")
    ]


def _sources(source: Source) -> list[Block]:
    rows = source.rows("sources")
    if rows.is_empty():
        return []
    made = []
    for r in rows.head(3 * ROWS_SHOWN).iter_rows(named=True):
        digest = Markup('<code class="num" data-copy="{}">{}</code>').format(
            r["sha256"] or "", (r["sha256"] or "")[:_HASH]
        )
        made.append([
            r["path"], r["adapter"], r["tool_version"] or "–", r["host"] or "", r["clock"] or "",
            r["timezone"] or "in the stamps",
            shown.exact(r["lines"]), shown.exact(r["readings"]), shown.exact(r["rejects"]), digest,
        ])  # fmt: skip
    heads = ("file", "read as", "tool", "host", "clock", "zone", "lines", "readings", "rejects", "SHA-256")
    caption = "Every number goes back to lines of these files: joulebook trace STUDY RUN METRIC."
    blocks: list[Block] = [Table([Column(h) for h in heads], made, caption, "table-sources")]
    channels = source.rows("channels").join(rows.select("source_id", "path"), on="source_id", how="left")
    lines = [
        [
            r["path"] or "", r["device"], r["scope"] or "", r["model"] or "–", r["kind"] or "",
            shown.number(r["period_s"], reason="–"), shown.exact(r["n"]), shown.exact(r["gaps"]),
            shown.number(r["coverage_ratio"], unit=metrics.Unit("%", 0.01), reason="–"),
        ]
        for r in channels.head(3 * ROWS_SHOWN).iter_rows(named=True)
    ]  # fmt: skip
    columns = [
        Column("file"), Column("device"), Column("boundary"), Column("model"), Column("kind"), Column("period", "s"),
        Column("readings"), Column("gaps"), Column("covered", "%"),
    ]  # fmt: skip
    if lines:
        blocks.append(Table(columns, lines, "What each file says about each device.", "table-channels"))
    return blocks


def _settings(source: Source) -> list[Block]:
    flat = {k: v for k, v in _flat(source.store.study) if v is not None and not k.startswith("source:")}
    if not flat:
        return []
    made = [[Markup("<code>{}</code>").format(k), str(v)[:200]] for k, v in flat.items()]
    return [Table([Column("setting"), Column("value")], made[: 3 * ROWS_SHOWN], "Settings in force.", "table-settings")]


def _flat(settings: object, before: str = "") -> list[tuple[str, object]]:
    if hasattr(settings, "items"):
        return [pair for k, v in settings.items() for pair in _flat(v, f"{before}.{k}" if before else str(k))]
    return [(before, settings)]


def _stages(source: Source) -> list[Block]:
    rows = source.rows("stage_log")
    if rows.is_empty():
        return []
    made = [
        [r["stage"], r["code_version"] or "", shown.exact(r["rows_out"]), (r["fingerprint"] or "")[:_HASH]]
        for r in rows.iter_rows(named=True)
    ]
    return [Table([Column(c) for c in ("stage", "version", "rows", "fingerprint")], made, "What ran.", "table-stages")]


def _more(rows: int, table: str) -> str:
    return f" The first {ROWS_SHOWN} of {rows}; the table {table} has all." if rows > ROWS_SHOWN else ""
