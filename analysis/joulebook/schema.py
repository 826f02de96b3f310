"""The store's tables, said once: names, types, units and meaning of every column, and the words for scopes and phases.

The unit is part of the name. Times are UTC, intervals half-open, ratios 0 to 1. A reading over a span is labelled by
the span's end.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from joulebook.boundaries import SCOPES, SUMMED_SCOPES

__all__ = [
    "PHASES", "QUANTITIES", "QUANTITY_NAMES", "SCOPES", "SEGMENT_KINDS", "SUMMED_SCOPES", "TABLES", "UTC", "Column", "Table",
    "conform", "table",
]  # fmt: skip

UTC = pl.Datetime("us", "UTC")

PHASES = (
    "startup", "warmup", "data_wait", "forward", "backward", "grad_sync", "optimizer", "checkpoint", "evaluation", "idle",
)  # fmt: skip

SEGMENT_KINDS = ("warmup", "stable", "stall", "idle", "transient")


@dataclass(frozen=True)
class Column:
    """One column: name (with its unit), polars type, meaning, and whether it belongs to the key."""

    name: str
    dtype: pl.DataType | type[pl.DataType]
    doc: str
    key: bool = False


@dataclass(frozen=True)
class Table:
    """One table of the store."""

    name: str
    doc: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> dict[str, pl.DataType | type[pl.DataType]]:
        """Column name to polars type, in order."""
        return {c.name: c.dtype for c in self.columns}

    def empty(self) -> pl.DataFrame:
        """Return a frame of this table without rows."""
        return pl.DataFrame(schema=self.schema)


def _c(name: str, dtype: pl.DataType | type[pl.DataType], doc: str, *, key: bool = False) -> Column:
    return Column(name, dtype, doc, key)


def _estimate(name: str, doc: str) -> tuple[Column, Column, Column]:
    """Return a column and the two ends of its 95 % interval."""
    return (
        _c(name, pl.Float64, doc),
        _c(f"{name}_lo", pl.Float64, f"lower end of the 95 % interval of {name}"),
        _c(f"{name}_hi", pl.Float64, f"upper end of the 95 % interval of {name}"),
    )


QUANTITIES = (
    _c("power_w", pl.Float64, "electric power [W]; the mean over span_s where that is given"),
    _c("energy_j", pl.Float64, "energy used within span_s [J], where the tool gives energy per span"),
    _c("energy_counter_j", pl.Float64, "cumulative energy counter [J], as the tool counts it"),
    _c("reported_power_w", pl.Float64, "a power the tool prints beside its energy [W], kept apart from power_w"),
    _c("utilization_ratio", pl.Float64, "share of time with work on the device"),
    _c("memory_utilization_ratio", pl.Float64, "share of time with memory traffic"),
    _c("memory_used_bytes", pl.Float64, "memory in use [B]"),
    _c("temperature_c", pl.Float64, "temperature [°C]"),
    _c("memory_temperature_c", pl.Float64, "temperature of the memory [°C]"),
    _c("sm_clock_hz", pl.Float64, "clock of the compute units [Hz]"),
    _c("memory_clock_hz", pl.Float64, "clock of the memory [Hz]"),
    _c("power_limit_w", pl.Float64, "power limit in force [W]"),
    _c("fan_ratio", pl.Float64, "fan speed as a share of its maximum"),
    _c("fan_speed_rpm", pl.Float64, "fan speed [1/min]"),
    _c("voltage_v", pl.Float64, "voltage [V]"),
    _c("current_a", pl.Float64, "current [A]"),
    _c("power_factor_ratio", pl.Float64, "active over apparent power"),
    _c("apparent_power_va", pl.Float64, "apparent power [VA]"),
    _c("reactive_power_var", pl.Float64, "reactive power [var]"),
    _c("performance_state", pl.String, "performance state as the tool names it, e.g. P0"),
    _c("throttle_reasons", pl.String, "reasons for lowered clocks, as the tool names them"),
)  # fmt: skip
"""What a tool may say about one device at one instant."""

QUANTITY_NAMES = tuple(c.name for c in QUANTITIES)

TABLES = (
    Table("study", "settings in force, one a row", (
        _c("key", pl.String, "dotted name, as in study.toml", key=True),
        _c("value", pl.String, "JSON value"),
    )),
    Table("sources", "one row per log file", (
        _c("source_id", pl.Int32, "number of the source in this store", key=True),
        _c("path", pl.String, "path relative to study.toml"),
        _c("sha256", pl.String, "hash of the file's bytes"),
        _c("bytes", pl.Int64, "size of the file [B]"),
        _c("adapter", pl.String, "name of the adapter that read it"),
        _c("tool_version", pl.String, "version of the tool that wrote it, where the file says so"),
        _c("host", pl.String, "host the readings are about"),
        _c("clock", pl.String, "time base of the file's stamps"),
        _c("timezone", pl.String, "zone of stamps without an offset, '' where every stamp has one"),
        _c("lines", pl.Int64, "physical lines in the file"),
        _c("readings", pl.Int64, "rows kept in readings"),
        _c("rejects", pl.Int64, "rows in rejects"),
        _c("first_utc", UTC, "first stamp"),
        _c("last_utc", UTC, "last stamp"),
        _c("ingested_utc", UTC, "when it was read"),
    )),
    Table("channels", "one row per source and device: what its readings cover and how densely", (
        _c("source_id", pl.Int32, "source", key=True),
        _c("device", pl.String, "device within the host, e.g. gpu:0", key=True),
        _c("scope", pl.String, "boundary that the readings cover"),
        _c("model", pl.String, "model as the tool names it"),
        _c("uuid", pl.String, "identifier as the tool gives it"),
        _c("period_s", pl.Float64, "median step between stamps [s]"),
        _c("n", pl.Int64, "readings with a power, energy or counter"),
        _c("gaps", pl.Int64, "steps longer than 3 s and 3 periods"),
        _c("coverage_ratio", pl.Float64, "covered share of the time between first and last stamp"),
        _c("first_utc", UTC, "first stamp"),
        _c("last_utc", UTC, "last stamp"),
        _c("kind", pl.String, "instant, mean (over span_s or window_s), counter or energy"),
        _c("window_s", pl.Float64, "averaging window of the sensor [s], where known"),
    )),
    Table("readings", "what a tool said about one device at one instant, or over a span that ends there", (
        _c("source_id", pl.Int32, "source", key=True),
        _c("line", pl.Int64, "physical line in the file, from 1", key=True),
        _c("device", pl.String, "device within the host", key=True),
        _c("ts_utc", UTC, "stamp on the source's own clock; the end of the span"),
        _c("span_s", pl.Float64, "length of the span that ends at ts_utc [s]; null = instantaneous"),
        *QUANTITIES,
    )),
    Table("rejects", "a cell or line that broke a rule, with its text", (
        _c("source_id", pl.Int32, "source", key=True),
        _c("line", pl.Int64, "physical line in the file, from 1", key=True),
        _c("device", pl.String, "device, where it is known", key=True),
        _c("column_name", pl.String, "column of the file, '' for a whole line", key=True),
        _c("rule", pl.String, "name of the rule"),
        _c("raw", pl.String, "the text as it stands in the file"),
    )),
    Table("logged_runs", "runs as single sources tell of them; what study.toml and other sources say is joined in runs", (
        _c("source_id", pl.Int32, "source", key=True),
        _c("run_id", pl.String, "name of the run", key=True),
        _c("host", pl.String, "host it ran on"),
        _c("start_utc", UTC, "start, on the host's clock"),
        _c("end_utc", UTC, "end, on the host's clock"),
        _c("origin", pl.String, "where the run is known from: study.toml, a training log, busy stretches"),
        _c("tokens", pl.Float64, "tokens processed"),
        _c("samples", pl.Float64, "samples processed"),
        _c("batch_size", pl.Float64, "global batch size [samples]"),
        _c("tokens_to_target", pl.Float64, "tokens to the target loss, where known from elsewhere"),
        _c("labels", pl.String, "further labels as a JSON object"),
    )),
    Table("runs", "executions with start and end, on the clock of their host", (
        _c("run_id", pl.String, "name of the run", key=True),
        _c("host", pl.String, "host it ran on"),
        _c("start_utc", UTC, "start, on the host's clock"),
        _c("end_utc", UTC, "end, on the host's clock"),
        _c("origin", pl.String, "where the run is known from: study.toml, a training log, busy stretches"),
        _c("tokens", pl.Float64, "tokens processed"),
        _c("samples", pl.Float64, "samples processed"),
        _c("batch_size", pl.Float64, "global batch size [samples]"),
        _c("tokens_to_target", pl.Float64, "tokens to the target loss, where known from elsewhere"),
        _c("labels", pl.String, "further labels as a JSON object"),
    )),
    Table("steps", "optimizer steps", (
        _c("run_id", pl.String, "run", key=True),
        _c("step", pl.Int64, "number of the step", key=True),
        _c("start_utc", UTC, "start of the step, null where unknown"),
        _c("end_utc", UTC, "end of the step"),
        _c("tokens", pl.Float64, "tokens in the step"),
        _c("loss", pl.Float64, "training loss"),
        _c("batch_size", pl.Float64, "global batch size [samples]"),
        _c("learning_rate", pl.Float64, "learning rate"),
        _c("source_id", pl.Int32, "source it was read from"),
    )),
    Table("phases", "named intervals of runs", (
        _c("run_id", pl.String, "run", key=True),
        _c("phase", pl.String, "name of the phase", key=True),
        _c("start_utc", UTC, "start", key=True),
        _c("end_utc", UTC, "end"),
        _c("origin", pl.String, "where the phase is known from"),
        _c("source_id", pl.Int32, "source it was read from"),
    )),
    Table("alignments", "one row per clock. True time = t − offset_s − drift_ppm·1e-6·(t − anchor_utc)", (
        _c("clock", pl.String, "clock", key=True),
        _c("reference_clock", pl.String, "clock it is aligned to"),
        _c("anchor_utc", UTC, "middle of the overlap, where offset_s holds"),
        _c("offset_s", pl.Float64, "clock minus true time at the anchor [s]"),
        _c("offset_lo", pl.Float64, "lower end of the 95 % interval of offset_s"),
        _c("offset_hi", pl.Float64, "upper end of the 95 % interval of offset_s"),
        _c("drift_ppm", pl.Float64, "rate error of the clock [1e-6]"),
        _c("drift_lo", pl.Float64, "lower end of the 95 % interval of drift_ppm"),
        _c("drift_hi", pl.Float64, "upper end of the 95 % interval of drift_ppm"),
        _c("residual_s", pl.Float64, "root mean square of what the line leaves [s]"),
        _c("status", pl.String, "reference, aligned, assumed or refused"),
        _c("reason", pl.String, "why"),
    )),
    Table("trails", "by how much readings trail their power, where no file says it and it was found with a clock's offset", (
        _c("source_id", pl.Int32, "source", key=True),
        _c("device", pl.String, "device", key=True),
        _c("trail_s", pl.Float64, "half of the sensor's window, and its lag [s]"),
        _c("against_clock", pl.String, "clock against whose power it was found"),
    )),
    Table("calibrations", "reference = gain · reading + offset_w", (
        _c("host", pl.String, "host", key=True),
        _c("scope", pl.String, "scope of the reading", key=True),
        _c("reference_scope", pl.String, "scope of the reference", key=True),
        _c("gain", pl.Float64, "gain"), _c("gain_lo", pl.Float64, "lower end of its 95 % interval"),
        _c("gain_hi", pl.Float64, "upper end of its 95 % interval"),
        _c("offset_w", pl.Float64, "offset [W]"), _c("offset_lo", pl.Float64, "lower end of its 95 % interval"),
        _c("offset_hi", pl.Float64, "upper end of its 95 % interval"),
        _c("range_lo_w", pl.Float64, "lowest reading at which it holds [W]"),
        _c("range_hi_w", pl.Float64, "highest reading at which it holds [W]"),
        _c("points", pl.Int64, "points behind it"),
        _c("status", pl.String, "calibrated, offset-only or refused"),
        _c("reason", pl.String, "why"),
    )),
    Table("calibration_points", "stretches in which both instruments were read, from which a calibration was fitted", (
        _c("host", pl.String, "host", key=True),
        _c("scope", pl.String, "boundary of the reading", key=True),
        _c("reference_scope", pl.String, "boundary of the reference", key=True),
        _c("reading_w", pl.Float64, "mean of the reading [W]"),
        _c("reading_lo", pl.Float64, "lower end of its 95 % interval [W]"),
        _c("reading_hi", pl.Float64, "upper end of its 95 % interval [W]"),
        _c("reference_w", pl.Float64, "mean of the reference [W]"),
        _c("reference_lo", pl.Float64, "lower end of its 95 % interval [W]"),
        _c("reference_hi", pl.Float64, "upper end of its 95 % interval [W]"),
        _c("fitted_w", pl.Float64, "what the calibration gives for the reading [W]; null where it was refused"),
        _c("fitted_lo", pl.Float64, "lower end of its 95 % interval [W]"),
        _c("fitted_hi", pl.Float64, "upper end of its 95 % interval [W]"),
        _c("kept", pl.Boolean, "whether it was used; an outlier is left out"),
    )),
    Table("segments", "intervals found in the data", (
        _c("run_id", pl.String, "run, '' outside of runs", key=True),
        _c("device", pl.String, "device, '' = the whole scope", key=True),
        _c("scope", pl.String, "scope", key=True),
        _c("kind", pl.String, "warmup, stable, stall, idle or transient"),
        _c("start_utc", UTC, "start", key=True),
        _c("end_utc", UTC, "end"),
        _c("n", pl.Int64, "readings in it"),
        _c("mean_w", pl.Float64, "mean power [W]"), _c("mean_lo", pl.Float64, "lower end of its 95 % interval"),
        _c("mean_hi", pl.Float64, "upper end of its 95 % interval"),
        _c("sd_w", pl.Float64, "standard deviation [W]"),
        _c("cv_ratio", pl.Float64, "standard deviation / mean"),
        _c("slope_w_per_s", pl.Float64, "trend inside the segment [W/s]"),
        _c("reason", pl.String, "why it is of this kind, or why it is not stable"),
    )),
    Table("instruments", "which channels a run's numbers of a scope were made from, and which were left out and why", (
        _c("run_id", pl.String, "run", key=True),
        _c("host", pl.String, "host", key=True),
        _c("scope", pl.String, "scope", key=True),
        _c("source_id", pl.Int32, "source", key=True),
        _c("device", pl.String, "device", key=True),
        _c("chosen", pl.Boolean, "its readings enter the run's numbers of the scope"),
        _c("coverage_ratio", pl.Float64, "covered share of the run"),
        _c("reason", pl.String, "why"),
    )),
    Table("results", "one number a row; device '' = the whole scope, phase '' = the whole run", (
        _c("run_id", pl.String, "run", key=True),
        _c("scope", pl.String, "boundary of the number", key=True),
        _c("device", pl.String, "device, '' = all of the scope", key=True),
        _c("phase", pl.String, "phase, '' = the whole run", key=True),
        _c("metric", pl.String, "name that ends in its unit", key=True),
        _c("value", pl.Float64, "the number; null = refused, see reason"),
        _c("lo", pl.Float64, "lower end of the 95 % interval"),
        _c("hi", pl.Float64, "upper end of the 95 % interval"),
        _c("n", pl.Int64, "readings behind it"),
        _c("coverage_ratio", pl.Float64, "covered share of the time"),
        _c("method", pl.String, "how it was made, and from what"),
        _c("reason", pl.String, "why it was refused or is doubtful, '' otherwise"),
        _c("stage", pl.String, "stage that made it"),
    )),
    Table("uncertainties", "named parts of the uncertainty of a result", (
        _c("run_id", pl.String, "run", key=True),
        _c("scope", pl.String, "boundary", key=True),
        _c("device", pl.String, "device, '' = all of the scope", key=True),
        _c("metric", pl.String, "metric", key=True),
        _c("part", pl.String, "noise, edges, alignment, calibration, resolution, unknown time, …", key=True),
        _c("lo", pl.Float64, "by how much the value may be lower for this reason [unit of the metric]"),
        _c("hi", pl.Float64, "by how much the value may be higher for this reason [unit of the metric]"),
        _c("stage", pl.String, "stage that made it"),
    )),
    Table("sweeps", "runs that differ in one knob, one row a setting", (
        _c("sweep", pl.String, "name of the sweep", key=True),
        _c("knob", pl.String, "what was varied"),
        _c("x", pl.Float64, "setting of the knob", key=True),
        _c("repeats", pl.Int64, "runs at this setting"),
        *_estimate("step_time_s", "time per step [s]"),
        *_estimate("energy_per_token_j", "energy per token [J]"),
        *_estimate("tokens_to_target", "tokens to the target loss"),
        *_estimate("energy_to_target_j", "energy to the target loss [J]"),
        *_estimate("mean_power_w", "mean power [W]"),
    )),
    Table("sweet_spots", "best setting of a sweep per objective", (
        _c("sweep", pl.String, "name of the sweep", key=True),
        _c("objective", pl.String, "what is least or best", key=True),
        _c("x", pl.Float64, "best setting"), _c("x_lo", pl.Float64, "lower end of its 95 % interval"),
        _c("x_hi", pl.Float64, "upper end of its 95 % interval"),
        _c("value", pl.Float64, "the objective there"),
        _c("status", pl.String, "found, flat, edge, too-few or refused"),
        _c("reason", pl.String, "why"),
    )),
    Table("changes", "effect of each step of a campaign: after / before − 1", (
        _c("campaign", pl.String, "name of the campaign", key=True),
        _c("position", pl.Int32, "place in the order, from 1", key=True),
        _c("change", pl.String, "name of the change"),
        _c("scope", pl.String, "boundary", key=True),
        _c("metric", pl.String, "metric that is compared"),
        _c("before", pl.Float64, "mean before"), _c("after", pl.Float64, "mean after"),
        _c("effect_ratio", pl.Float64, "after / before − 1"),
        _c("effect_lo", pl.Float64, "lower end of its 95 % interval"),
        _c("effect_hi", pl.Float64, "upper end of its 95 % interval"),
        _c("p_value", pl.Float64, "corrected for the number of changes"),
        _c("verdict", pl.String, "saves, costs, indistinguishable or refused"),
        _c("reason", pl.String, "why"),
    )),
    Table("decompositions", "what each effect of a campaign is made of; the parts add up to the effect", (
        _c("campaign", pl.String, "name of the campaign", key=True),
        _c("position", pl.Int32, "place in the order, from 1", key=True),
        _c("change", pl.String, "name of the change"),
        _c("scope", pl.String, "boundary", key=True),
        _c("part", pl.String, "duration, power-level or phase-mix", key=True),
        _c("effect_ratio", pl.Float64, "share of the effect: after / before − 1"),
        _c("effect_lo", pl.Float64, "lower end of its 95 % interval"),
        _c("effect_hi", pl.Float64, "upper end of its 95 % interval"),
    )),
    Table("drivers", "how much of the variance of power goes with each quantity logged beside it", (
        _c("run_id", pl.String, "run", key=True),
        _c("scope", pl.String, "boundary", key=True),
        _c("device", pl.String, "device", key=True),
        _c("driver", pl.String, "quantity, or unexplained", key=True),
        _c("share_ratio", pl.Float64, "share of the variance"),
        _c("share_lo", pl.Float64, "lower end of its 95 % interval"),
        _c("share_hi", pl.Float64, "upper end of its 95 % interval"),
        _c("reason", pl.String, "why there is none"),
    )),
    Table("convergence", "what each stretch of equal energy bought in loss", (
        _c("run_id", pl.String, "run", key=True),
        _c("scope", pl.String, "boundary of the energy", key=True),
        _c("step", pl.Int64, "last step of the stretch", key=True),
        _c("end_utc", UTC, "end of the stretch"),
        _c("energy_j", pl.Float64, "energy spent until then [J]"),
        _c("loss", pl.Float64, "mean loss in the stretch"),
        _c("marginal_j", pl.Float64, "energy per unit of loss [J]; null where the loss does not measurably fall"),
        _c("marginal_lo", pl.Float64, "lower end of its 95 % interval"),
        _c("marginal_hi", pl.Float64, "upper end of its 95 % interval; null where the loss may not fall at all"),
    )),
    Table("shares", "energy of a machine split over the runs that shared it; what no run drew is idle", (
        _c("host", pl.String, "host", key=True),
        _c("scope", pl.String, "boundary", key=True),
        _c("start_utc", UTC, "start of the shared time", key=True),
        _c("end_utc", UTC, "end of the shared time"),
        _c("run_id", pl.String, "run, or idle", key=True),
        _c("energy_j", pl.Float64, "its energy [J]"),
        _c("energy_lo", pl.Float64, "lower end of its 95 % interval [J]"),
        _c("energy_hi", pl.Float64, "upper end of its 95 % interval [J]"),
        _c("share_ratio", pl.Float64, "its share"),
        _c("method", pl.String, "what the split goes by"),
    )),
    Table("what_if", "carbon and cost had the run started at another hour of the same curve", (
        _c("run_id", pl.String, "run", key=True),
        _c("metric", pl.String, "carbon_kg or cost", key=True),
        _c("shift_h", pl.Float64, "start, later than it was [h]", key=True),
        _c("value", pl.Float64, "the amount; null where the curve does not reach that far"),
    )),
    Table("days", "efficiency by day, and its change since the first day", (
        _c("day", pl.String, "day of the runs' start, UTC", key=True),
        _c("scope", pl.String, "boundary of tokens per joule", key=True),
        _c("runs", pl.Int64, "runs of the day"),
        _c("mfu_ratio", pl.Float64, "model FLOP utilisation"),
        _c("tokens_per_j", pl.Float64, "tokens per joule"),
        _c("pue", pl.Float64, "power usage effectiveness"),
        _c("mfu_ratio_change_ratio", pl.Float64, "change since the first day"),
        _c("tokens_per_j_change_ratio", pl.Float64, "change since the first day"),
    )),
    Table("findings", "what the reader of a number should know", (
        _c("run_id", pl.String, "run, '' = the study"),
        _c("source_id", pl.Int32, "source, null = none"),
        _c("stage", pl.String, "stage that found it"),
        _c("code", pl.String, "stable name"),
        _c("severity", pl.String, "note, warning or error"),
        _c("subject", pl.String, "what it is about"),
        _c("message", pl.String, "what is the case and what to do"),
        _c("evidence", pl.String, "JSON object"),
    )),
    Table("stage_log", "what ran, on which inputs", (
        _c("stage", pl.String, "stage", key=True),
        _c("fingerprint", pl.String, "hash of its inputs and settings"),
        _c("code_version", pl.String, "version of the code"),
        _c("started_utc", UTC, "when it started"),
        _c("seconds", pl.Float64, "how long it took [s]"),
        _c("rows_out", pl.Int64, "rows it wrote"),
    )),
)  # fmt: skip
"""Every table of the store, in the order in which it is made."""

_BY_NAME = {t.name: t for t in TABLES}


def table(name: str) -> Table:
    """Return the table of that name.

    Raises
    ------
    KeyError
        There is no such table.
    """
    return _BY_NAME[name]


def conform(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the frame with exactly the columns of a table, in order and type; missing ones are null.

    Raises
    ------
    ValueError
        The frame has a column that the table does not know.
    """
    want = _BY_NAME[name].schema
    unknown = [c for c in frame.columns if c not in want]
    if unknown:
        raise ValueError(f"table {name!r} has no column {', '.join(unknown)}; it has {', '.join(want)}")
    return frame.select((pl.col(c) if c in frame.columns else pl.lit(None)).cast(t).alias(c) for c, t in want.items())
