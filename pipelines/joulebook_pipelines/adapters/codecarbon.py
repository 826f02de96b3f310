"""CodeCarbon's ``emissions.csv``, every version from 0.0.9 on: a row for each run, or for each flush of a tracker."""

from __future__ import annotations

import glob
from collections.abc import Iterator

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook.wording import counted
from joulebook_pipelines.logs import (
    emissions_checks,
    emissions_json,
    emissions_rows,
    emissions_runs,
    local_time,
    relative,
    stamps,
    table,
)
from joulebook_pipelines.logs.contract import Adapter, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.table import Field

_DEVICES = {
    "gpu": ("board", (
        Field("gpu_energy", "gpu_energy", "energy_j", "kWh", required=True),
        Field("gpu_power", "gpu_power", "reported_power_w", "W"),
        Field("gpu_utilization_percent", "gpu_utilization_percent", "utilization_ratio", "percent"),
    )),
    "cpu": ("package", (
        Field("cpu_energy", "cpu_energy", "energy_j", "kWh", required=True),
        Field("cpu_power", "cpu_power", "reported_power_w", "W"),
        Field("cpu_utilization_percent", "cpu_utilization_percent", "utilization_ratio", "percent"),
    )),
    "dram": ("dram", (
        Field("ram_energy", "ram_energy", "energy_j", "kWh", required=True),
        Field("ram_power", "ram_power", "reported_power_w", "W"),
        Field("ram_used_gb", "ram_used_gb", "memory_used_bytes", "GiB"),
    )),
    "components": ("components", (Field("energy_consumed", "energy_consumed", "energy_j", "kWh", required=True),)),
}  # fmt: skip
"""What each device of a row covers and which columns speak of it; ``gpu`` is all boards of the machine together."""

_STAMP = Field("timestamp", "timestamp", "ts_utc")


def sniff(head: Head) -> bool:
    """Tell whether the file begins with the header of an emissions.csv, or holds its rows as JSON objects."""
    return _is_table(head) or emissions_json.looks(head)


def _is_table(head: Head) -> bool:
    return any(emissions_rows.separator_of(line) is not None for line in head.lines[:20])


def _parse(log: Log) -> Iterator[Part]:
    rows = emissions_rows.read(log) if _is_table(log.head) else emissions_json.read(log)
    raw, rejects, doubts = _timed(log, rows)
    raw, more = _lasting(raw, rows)
    rejects += more
    raw, more = _scaled(raw, rows)
    rejects += more
    raw, values, more = _valued(raw, rows)
    rejects += more
    runs = _runs(raw)
    raw = raw.join(runs.select("chain", "device_suffix"), on="chain", how="left", maintain_order="left")
    readings, more = _readings(raw, values)
    rejects += more
    yield Part(
        lines=rows.lines, readings=readings, rejects=pl.concat(rejects), runs=emissions_runs.as_table(runs, log.options.host),
        channels=_channels(raw, readings), findings=(*doubts, *_findings(log, rows, raw, runs)),
        tool_version=next((v for v in raw["codecarbon_version"].drop_nulls().to_list()[::-1] if v.strip()), ""),
    )  # fmt: skip


def _fields(rows: emissions_rows.Rows) -> list[Field]:
    return [f for _, fields in _DEVICES.values() for f in fields if f.column in rows.present]


def _timed(log: Log, rows: emissions_rows.Rows) -> tuple[pl.DataFrame, list[pl.DataFrame], tuple[Finding, ...]]:
    """Return the rows with their UTC stamps, as rejects what has none or stands twice, and doubts about the stamps."""
    samples = [s for s in rows.frame["timestamp"].drop_nulls().to_list() if len(s.strip()) > 9]
    if not samples:
        odd = rows.rejects
        why = (
            f"{counted(odd.height, 'line')} could not be read, first line {odd['line'][0]}"
            if odd.height
            else "no run was written"
        )
        raise LogRefusedError(f"{log.name}: has a header but no row with a time stamp: {why}")
    form = local_time.form(log, samples[:200])
    first = rows.frame.filter(pl.col("timestamp") == samples[0]).row(0, named=True)
    clock = local_time.localiser(log, form, first["line"], samples[0])
    raw = rows.frame.with_columns(
        clock.utc(rows.frame, stamps.parse(pl.col("timestamp"), form)), device=pl.lit(None, pl.String)
    )
    lost = raw.filter(pl.col("ts_utc").is_null())
    raw = raw.filter(pl.col("ts_utc").is_not_null())
    again = emissions_runs.repeated(raw)
    twice = table.whole_lines(raw.filter(again).select("line", "raw"), "duplicate-run")
    rejects = [rows.rejects, table.without_time(lost, _fields(rows), _STAMP), twice]
    return raw.filter(~again), rejects, relative.repeated_hour(log, clock)


def _lasting(raw: pl.DataFrame, rows: emissions_rows.Rows) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Return the rows that took time; an energy over no time, or over an unknown time, belongs to no span."""
    duration = pl.col("duration").fill_null("").str.strip_chars().cast(pl.Float64, strict=False)
    raw = raw.with_columns(duration_s=pl.when(duration.is_finite() & (duration >= 0)).then(duration))
    unknown, zero = raw.filter(pl.col("duration_s").is_null()), raw.filter(pl.col("duration_s") == 0)
    rejects = [table.without_time(unknown, _fields(rows), Field("duration", "duration", "span_s"))]
    for field in _fields(rows):
        filled = zero.filter(pl.col(field.column).fill_null("").str.strip_chars() != "")
        rejects.append(table.cell_rejects(filled, field, pl.lit("zero-duration")))
    return raw.filter(pl.col("duration_s") > 0), rejects


def _scaled(raw: pl.DataFrame, rows: emissions_rows.Rows) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Return the rows with ``pue_factor`` and ``version``; where one is unreadable, so is what it scales."""
    text = pl.col("pue").fill_null("").str.strip_chars()
    pue = text.cast(pl.Float64, strict=False)
    raw = raw.with_columns(
        pue_factor=pl.when(text.str.to_lowercase().is_in(["", "nan", "none"])).then(1.0).when(pue > 0).then(pue),
        version=emissions_checks.version_number(pl.col("codecarbon_version")),
    )
    garbled = pl.col("version").is_null() & (pl.col("codecarbon_version").fill_null("").str.strip_chars() != "")
    lost = raw.filter(pl.col("pue_factor").is_null())
    unclear = raw.filter(garbled & (pl.col("pue_factor") != 1))
    rejects = [table.whole_lines(lost, "no-such-pue"), table.whole_lines(unclear, "no-such-version")]
    kept = raw.filter(pl.col("pue_factor").is_not_null() & ~(garbled & (pl.col("pue_factor") != 1)))
    oldest = 2_000_000 if "cpu_energy" in rows.present else 1_000_000
    return kept.with_columns(pl.col("version").fill_null(oldest)), rejects


def _valued(
    raw: pl.DataFrame, rows: emissions_rows.Rows
) -> tuple[pl.DataFrame, dict[str, pl.DataFrame], list[pl.DataFrame]]:
    """Return the rows in order of run and time with what their text means, the values per device, and rejects."""
    number = {
        name: pl.col(column).str.strip_chars().cast(pl.Float64, strict=False)
        for name, column in (("rate", "emissions_rate"), ("emissions_kg", "emissions"), ("threads", "cpu_count"))
    }
    raw = raw.with_columns(**number, machine_mode=pl.col("tracking_mode").fill_null("machine") != "process")
    values, rejects = {}, []
    for device, (_, fields) in _DEVICES.items():
        mine = [f for f in fields if f.column in rows.present]
        if not mine:
            continue
        cells = raw.with_columns(device=pl.lit(device))
        frame, bad = table.convert(cells, mine)
        values[device] = frame.with_columns(_without_pue(frame, raw))
        rejects.append(bad)
    joules = {name: _energy(values.get(device), raw.height) for name, device in
              (("cpu_j", "cpu"), ("gpu_j", "gpu"), ("ram_j", "dram"), ("total_j", "components"))}  # fmt: skip
    raw = raw.with_columns(**joules).with_columns(gpu_there=_gpu_there())
    order = emissions_runs.chains(raw.with_row_index("place"))
    values = {device: frame[order["place"]] for device, frame in values.items()}
    rejects = [r.with_columns(device=pl.lit(None, pl.String)) if r.is_empty() else r for r in rejects]
    if not order["gpu_there"].any():
        rejects = [r.filter(~pl.col("column_name").str.starts_with("gpu_")) for r in rejects]
    return order.drop("place"), values, rejects


def _energy(values: pl.DataFrame | None, height: int) -> pl.Series:
    known = values is not None and "energy_j" in values.columns
    return values["energy_j"] if values is not None and known else pl.Series([None] * height, dtype=pl.Float64)


def _gpu_there() -> pl.Expr:
    """Tell which rows come from a machine with a board; a 0 of any other says nothing."""
    count = pl.col("gpu_count").str.strip_chars().cast(pl.Float64, strict=False).fill_null(0.0)
    model = pl.col("gpu_model").fill_null("").str.strip_chars() != ""
    power = pl.col("gpu_power").str.strip_chars().cast(pl.Float64, strict=False).fill_null(0.0)
    return (count > 0) | model | (power != 0) | (pl.col("gpu_j").fill_null(0.0) != 0)


def _without_pue(values: pl.DataFrame, raw: pl.DataFrame) -> list[pl.Series]:
    """Return energies and powers without the facility's overhead that the tracker multiplied in."""
    out, factor = [], raw["pue_factor"]
    if "energy_j" in values.columns:
        out.append((values["energy_j"] / factor).alias("energy_j"))
    if "reported_power_w" in values.columns:
        included = (raw["version"] >= emissions_checks.POWER_WITH_PUE_FROM).to_frame("with").with_columns(f=factor)
        out.append((values["reported_power_w"] / included.select(pl.when("with").then("f").otherwise(1.0)).to_series())
                   .alias("reported_power_w"))  # fmt: skip
    return out


def _runs(raw: pl.DataFrame) -> pl.DataFrame:
    """Return one row a run with its name, its end and which tracker of overlapping ones stands for the machine."""
    runs = raw.filter("last").with_columns(end_utc="ts_utc").sort("line", maintain_order=True)
    runs = emissions_runs.overlaps(runs).with_columns(emissions_runs.names(runs).alias("name"))
    beside = pl.when(pl.col("lane") > 0).then(pl.format("/tracker-{}", pl.col("lane") + 1)).otherwise(pl.lit(""))
    return runs.with_columns(device_suffix=beside)


def _readings(raw: pl.DataFrame, values: dict[str, pl.DataFrame]) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Return span readings (of flushes the difference to the flush before), and as rejects what is impossible."""
    frames, rejects = [], []
    spoiled = unmeasured = pl.Series([False] * raw.height, dtype=pl.Boolean)
    for device, (scope, fields) in _DEVICES.items():
        if device not in values or (device == "gpu" and not raw["gpu_there"].any()):
            continue
        frame = _spans(values[device], raw)
        rules = _broken(frame, values[device], scope, device, raw["gpu_there"])
        if device == "components" and "energy_j" in rules.columns:
            fine = pl.col("energy_j").is_null()
            blamed = (
                pl.when(fine & spoiled).then(pl.lit("part-impossible"))
                .when(fine & unmeasured).then(pl.lit("part-not-measured"))
            )  # fmt: skip
            rules = rules.select(blamed.otherwise("energy_j").alias("energy_j"))
        elif "energy_j" in rules.columns:
            spoiled = spoiled | rules["energy_j"].is_in(["negative-energy", "beyond-physical"]).fill_null(value=False)
            if device != "dram" and "reported_power_w" in frame.columns:
                zero = (rules["energy_j"] == "zero-energy") & (frame["reported_power_w"] > 0)
                unmeasured = unmeasured | zero.fill_null(value=False)
        for field in (f for f in fields if f.quantity in rules.columns):
            bad = rules[field.quantity].is_not_null() & frame[field.quantity].is_not_null()
            bad = bad | (rules[field.quantity] == "no-difference").fill_null(value=False)
            marked = raw.with_columns(rules[field.quantity].alias("rule"), device=pl.lit(device)).filter(bad)
            rejects.append(table.cell_rejects(marked, field, pl.col("rule")))
            frame = frame.with_columns(pl.when(~bad).then(pl.col(field.quantity)).alias(field.quantity))
        frames.append(table.kept(frame.with_columns(raw["ts_utc"], device=pl.lit(device) + raw["device_suffix"])))
    return pl.concat(frames, how="diagonal").sort("ts_utc", "line", "device", maintain_order=True), rejects


def _spans(values: pl.DataFrame, raw: pl.DataFrame) -> pl.DataFrame:
    frame = values.with_columns(raw.select("flush", "duration_s"))
    each = [c for c in ("duration_s", "energy_j") if c in frame.columns]
    frame = frame.with_columns(pl.when("flush").then(pl.col(c).diff()).otherwise(c).alias(c) for c in each)
    return frame.rename({"duration_s": "span_s"}).drop("flush")


def _broken(frame: pl.DataFrame, whole: pl.DataFrame, scope: str, device: str, there: pl.Series) -> pl.DataFrame:
    """Return the rule that each energy and each printed power breaks, null where none."""
    absent = ~there if device == "gpu" else pl.Series([False] * frame.height, dtype=pl.Boolean)
    rules = []
    if "energy_j" in frame.columns:
        lost = frame["energy_j"].is_null() & whole["energy_j"].is_not_null()
        rule = emissions_checks.broken(frame, scope).alias("energy_j")
        nothing = absent & (frame["energy_j"] == 0)
        found = pl.when(lost).then(pl.lit("no-difference")).when(nothing).then(pl.lit("no-such-device"))
        rules.append(found.otherwise(rule).alias("energy_j"))
    if "reported_power_w" in frame.columns:
        rule = emissions_checks.broken_power(frame, scope).alias("reported_power_w")
        nothing = absent & (frame["reported_power_w"] == 0)
        rules.append(pl.when(nothing).then(pl.lit("no-such-device")).otherwise(rule).alias("reported_power_w"))
    return pl.select(rules)


def _channels(raw: pl.DataFrame, readings: pl.DataFrame) -> tuple[Channel, ...]:
    """Return the channels: of trackers that ran beside another, only parts, so that nothing is added twice."""
    found = []
    for name in readings["device"].unique(maintain_order=True):  # one per device and overlapping tracker, not per row
        device, _, beside = name.partition("/")
        column = {"gpu": "gpu_model", "cpu": "cpu_model"}.get(device)
        models = [m for m in raw[column].drop_nulls().unique(maintain_order=True) if m.strip()] if column else []
        found.append(Channel(name, "part" if beside else _DEVICES[device][0], "; ".join(models[:3]), kind="energy"))
    return tuple(sorted(found, key=lambda c: c.device))


def _findings(log: Log, rows: emissions_rows.Rows, raw: pl.DataFrame, runs: pl.DataFrame) -> tuple[Finding, ...]:
    found = emissions_checks.about_values(log.name, raw.with_columns(pue=pl.col("pue_factor")).sort("line"))
    found += emissions_checks.about_runs(log.name, raw, runs)
    found += rows.findings(log.name)
    beside = sorted(p.name for p in log.path.parent.glob(f"{glob.escape(log.path.name)}*.bak"))
    if beside:
        found.append(Finding(
            "older-rows-beside", Severity.NOTE, log.name,
            f"{', '.join(beside[:5])} beside this file: the tracker moves earlier rows there when its columns change. "
            "The study should hold them too; "
            "runs that stand in both are counted once.", {"files": beside[:20]},
        ))  # fmt: skip
    return tuple(found)


ADAPTER = Adapter(
    name="codecarbon",
    title="CodeCarbon emissions.csv, versions 0.0.9 to 3.3.2, and its rows as JSON",
    yields="runs; energy per run (or flush) of all boards, processor, memory and their sum; the printed powers apart",
    sniff=sniff,
    parse=_parse,
    needs_zone=True,
    family="model",
)
