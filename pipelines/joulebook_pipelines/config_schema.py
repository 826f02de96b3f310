"""The sections of study.toml: every key with its type, default and meaning, said once.

The reference in the documentation is made from these models, and the checks of values too.
"""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from joulebook.schema import SCOPES, SUMMED_SCOPES
from joulebook_pipelines import config_text
from joulebook_pipelines.config_errors import nearest, refusal
from joulebook_pipelines.config_names import COLUMN_NAMES, DEFAULT_HOST, DEFAULT_MEMORY, KNOBS, METRICS, usual_units
from joulebook_pipelines.config_types import (
    AdapterName,
    ColumnTitle,
    Count,
    FileName,
    Label,
    Memory,
    NotNegative,
    NumberOrFile,
    OneOf,
    Positive,
    Text,
    Texts,
    Time,
    Zone,
)
from joulebook_pipelines.logs import cells

Scope = Annotated[str, OneOf("scope", SCOPES)]
SummedScope = Annotated[str, OneOf("scope", SUMMED_SCOPES)]


def key(default: object, doc: str) -> Any:
    """Return a key of a section with its default (``...`` = required) and its meaning."""
    return Field(default, description=doc)


class Section(BaseModel):
    """A table of study.toml: frozen, typed strictly, with no key that is not declared."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class General(Section):
    """What holds for the whole study."""

    name: Text | None = key(None, "Name of the study in reports. Absent: the name of its folder.")
    timezone: Zone | None = key(
        None,
        "Zone of stamps, and of times in this file, without an offset. Absent: these are refused.",
    )
    reference_clock: Text | None = key(
        None, "Clock that the others are aligned to. Absent: the clock with the widest scope."
    )
    memory_limit: Memory = key(DEFAULT_MEMORY, "Memory that the database may use before it writes to disk.")
    warmup_steps: Annotated[int, Field(ge=0)] | None = key(
        None, "Optimizer steps at the start of each run that count as warm-up. Absent: found in the data."
    )


class Site(Section):
    """Where the power comes from: facility overhead, carbon and price."""

    pue: Annotated[float, Field(ge=1)] | None = key(
        None, "Facility energy over IT energy. Absent: no facility energy without a facility meter."
    )
    carbon_kg_per_kwh: NumberOrFile | None = key(
        None, "Carbon intensity of the grid [kg/kWh]: a number, or a CSV file by hour. Absent: no carbon."
    )
    carbon_source: Text | None = key(None, "Source and date of the carbon intensity, printed beside the number.")
    price_per_kwh: NumberOrFile | None = key(
        None, "Price of energy [currency/kWh]: a number, or a CSV file by hour. Absent: no cost."
    )
    price_source: Text | None = key(None, "Source and date of the price, printed beside the number.")
    currency: Text | None = key(None, "Currency of the price, such as USD. Absent: cost is printed without one.")

    @model_validator(mode="after")
    def _carbon_is_not_negative(self) -> Self:
        if isinstance(self.carbon_kg_per_kwh, float) and self.carbon_kg_per_kwh < 0:
            raise refusal("must be at least 0", at="carbon_kg_per_kwh", value=self.carbon_kg_per_kwh)
        return self


def _recomputation(value: object) -> object:
    if value in ("none", "full"):
        return value
    if not isinstance(value, bool):
        raise refusal("must be true, false, or one of the names", allowed=("none", "full"))
    return "full" if value else "none"


class Model(Section):
    """The model that is trained, for floating-point work per token."""

    parameters: Positive | None = key(None, "Parameters that take part in each token. Absent: no MFU.")
    layers: Count | None = key(None, "Layers, for the share of attention in the work.")
    hidden: Count | None = key(None, "Width of a layer.")
    sequence_length: Count | None = key(None, "Tokens in a sequence.")
    peak_flops_per_device: Positive | None = key(None, "Peak of one accelerator at the precision used [FLOP/s].")
    recomputation: Annotated[Literal["none", "full"], BeforeValidator(_recomputation)] = key(
        "none",
        "Recomputation of activations: full (or true) makes three units of the hardware's work four, told as HFU beside the MFU.",
    )


class Devices(Section):
    """What is known of the accelerators."""

    tdp_w: Positive | None = key(None, "Nameplate power of one accelerator [W]. Absent: no ratio to it.")
    energy_counter_range_j: Positive | None = key(
        None,
        "Where energy counters wrap [J], for sources without range_j. Absent: as the format says.",
    )


class Source(Section):
    """A log file, or several of one kind."""

    path: Text = key(..., "A file or a glob, relative to study.toml. `**` stands for any number of folders.")
    adapter: AdapterName | None = key(None, "Format, where it is not recognised; `joulebook formats` lists them.")
    host: Text | None = key(None, f"Machine that the readings are about. Absent: `{DEFAULT_HOST}`.")
    clock: Text | None = key(
        None, "Time base of the stamps; a meter has its own. Absent: the host's clock, named like the host."
    )
    scope: Scope | None = key(None, "Boundary that the readings cover, for meters. Absent: as the format says.")
    timezone: Zone | None = key(None, "Zone of stamps without an offset. Absent: study.timezone.")
    utc_offset_s: Annotated[float, Field(gt=-86400, lt=86400)] | None = key(
        None, "The stamps' time minus UTC [s], where no zone fits; in place of timezone."
    )
    columns: dict[Annotated[str, OneOf("column", COLUMN_NAMES)], ColumnTitle] = key(
        {}, "What the columns of a table hold: title, or position from 1 in a file without a header."
    )
    units: dict[Annotated[str, OneOf("column", COLUMN_NAMES)], Text] = key(
        {}, 'Units of columns that do not state them, such as `{ power_w = "kW" }`. Absent: as the file says.'
    )
    device: Text | None = key(None, "What the file is about, such as `inlet`, where the file does not say.")
    devices: Texts = key((), "What the lines of one tick are about, in order, where the file has no index column.")
    interval_label: Annotated[str, OneOf("label", ("start", "end"))] | None = key(
        None, "Whether the stamp of an interval is its start or its end. Absent: as the format says."
    )
    kind: Annotated[str, OneOf("kind", ("instant", "mean", "on-change"))] | None = key(
        None, "Whether a power is of an instant, a mean, or held until the next line. Absent: as the format says."
    )
    window_s: Positive | None = key(None, "Averaging window of the sensor [s].")
    period_s: Positive | None = key(
        None,
        "Seconds from one line, round or run to the next, in files without times. Absent: window_s, else such files are refused.",
    )
    date: dt.date | None = key(None, "Date of the first line, for logs with a time of day only.")
    day_first: bool | None = key(
        None, "In dates such as 03/04/2026, whether the day comes first. Absent: only where it is plain."
    )
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = key(
        None, 'Character between cells, such as `";"` or `"\\t"`. Absent: found.'
    )
    decimal: Annotated[str, OneOf("decimal sign", (".", ","))] | None = key(
        None, "Decimal sign of numbers. Absent: found."
    )
    range_j: Positive | None = key(None, "Where the energy counter wraps [J]. Absent: devices.energy_counter_range_j.")
    sign: Literal[1, -1] = key(1, "-1 turns the sign of power, for a clamp that sits the wrong way round.")
    mark: Text | None = key(None, "Reads only the lines with this mark, for logs of SPEC PTDaemon. Absent: all lines.")

    @model_validator(mode="after")
    def _keys_agree(self) -> Self:
        for one, other in (("timezone", "utc_offset_s"), ("device", "devices")):
            if one in self.model_fields_set and other in self.model_fields_set:
                raise refusal(f"contradicts {one}; keep one of the two", at=other, value=getattr(self, other))
        if self.delimiter is not None and self.delimiter == self.decimal:
            raise refusal("is the delimiter as well", at="decimal", value=self.decimal)
        for column, unit in self.units.items():
            if cells.factor(column, unit) is None:
                allowed = usual_units(column)
                why = "is not a unit of it" if allowed else "has no unit"
                raise refusal(why, at=("units", column), value=unit, near=nearest(unit, allowed), allowed=allowed)
        return self


def _ordered(start: dt.datetime, end: dt.datetime) -> None:
    if end <= start:
        raise refusal(f"is not after start ({config_text.value(start)})", at="end", value=end)


class Run(Section):
    """An execution with start and end, on the clock of its host."""

    id: Text = key(..., "Name of the run, unique in the study.")
    start: Time = key(..., "Start; a time without an offset is in study.timezone.")
    end: Time = key(..., "End, after start.")
    host: Text | None = key(None, "Host that it ran on. Absent: the only host of the sources, or `node`.")
    labels: dict[Text, Label] = key({}, "Further labels: `variant`, `repeat`, a knob of a sweep.")
    batch_size: Positive | None = key(None, "Global batch size [samples].")
    tokens: NotNegative | None = key(None, "Tokens processed. Absent: from the training log.")
    samples: NotNegative | None = key(None, "Samples processed.")
    tokens_to_target: Positive | None = key(
        None, "Tokens to the target loss, where known from elsewhere. Absent: found in the training log."
    )
    devices: Texts = key((), "Accelerators that it used, where runs share a host. Absent: all of them.")

    @model_validator(mode="after")
    def _end_after_start(self) -> Self:
        _ordered(self.start, self.end)
        return self


class Idle(Section):
    """A stretch known to be idle, as baseline of its host; on the host's clock."""

    start: Time = key(..., "Start of the idle stretch.")
    end: Time = key(..., "End, after start.")
    host: Text | None = key(None, "Host that was idle. Absent: the only host of the sources, or `node`.")

    @model_validator(mode="after")
    def _end_after_start(self) -> Self:
        _ordered(self.start, self.end)
        return self


class Sweep(Section):
    """Runs that differ in one knob."""

    name: Text = key(..., "Name of the sweep, unique in the study.")
    knob: Text = key(
        ...,
        f"What was varied: {', '.join(f'`{k}`' for k in KNOBS)}, or a label of the runs as `labels.NAME`. Limit and clocks are taken "
        "from the logs of the cards where no label tells them.",
    )
    runs: Text = key("*", "Which runs: a glob over their ids.")
    scope: SummedScope = key("board", "Boundary that energy is compared at.")
    target_loss: float | None = key(
        None, "Loss to reach, for tokens to target. Absent: from tokens_to_target of the runs."
    )
    max_slowdown_ratio: Annotated[float, Field(ge=1)] | None = key(
        None,
        "Longest time, to the target or per token, that is acceptable, over the least: the setting with the least energy among those "
        "is sought as well. Absent: no such choice is made.",
    )


class Campaign(Section):
    """An ordered series of changes, each measured by runs."""

    name: Text = key(..., "Name of the campaign, unique in the study.")
    scope: SummedScope = key(..., "Boundary that the changes are compared at.")
    metric: Annotated[str, OneOf("metric", METRICS)] = key("energy_per_token_j", "Number that is compared.")
    order: Annotated[Texts, Field(min_length=2)] = key(
        ..., "Values of the label `variant`, in the order of the changes."
    )


class Calibration(Section):
    """A stored calibration of an earlier study, applied to this one."""

    file: FileName = key(..., "File of the calibration, relative to study.toml.")
    host: Text | None = key(None, "Host whose readings it is for. Absent: the only host of the sources, or `node`.")
    scope: SummedScope = key(..., "Scope of the readings.")
    reference_scope: SummedScope = key(..., "Scope of the reference that they are turned into.")
