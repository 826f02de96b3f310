"""Tables with a row per value and its unit beside it: auto-ranging displays, dumps of sensors."""

from __future__ import annotations

import re

import polars as pl

from joulebook_pipelines.logs import cells, device_places, meter_titles, table
from joulebook_pipelines.logs.contract import Channel, Options
from joulebook_pipelines.logs.meter_form import Understood
from joulebook_pipelines.logs.table import Field

_WHOLE_NODE = re.compile(
    r"^(pwr consumption|power consumption|system level|sys(tem)? power|total[_ ]power)$", re.IGNORECASE
)
"""Names that management controllers give to what the whole machine draws."""

_QUANTITIES = (
    "power_w",
    "energy_counter_j",
    "temperature_c",
    "voltage_v",
    "current_a",
    "fan_speed_rpm",
    "apparent_power_va",
    "reactive_power_var",
)


def readings(
    timed: pl.DataFrame, found: Understood, options: Options, title: str
) -> tuple[pl.DataFrame, pl.DataFrame, tuple[Channel, ...]]:
    """Return readings, rejects and channels of such rows.

    Parameters
    ----------
    timed
        Rows with ``line, stamp, ts_utc, span_s`` and the text cells.
    found
        What is known of the table.
    options
        What study.toml says of it.
    title
        Title of the column of values.
    """
    value, unit = str(found.layout.value), str(found.layout.unit)
    raw = timed.with_columns(
        _unit=_cell(unit),
        _joined=pl.when(_cell(value) == "").then(pl.lit("")).otherwise(
            pl.concat_str(_cell(value), _cell(unit), separator=" ").str.strip_chars()
        ),
    )  # fmt: skip
    raw, names = _named(raw, found, options)
    units = {u: _quantity(u) for u in raw["_unit"].unique(maintain_order=True)}
    raw = raw.with_columns(_quantity=pl.col("_unit").replace_strict(units, default="", return_dtype=pl.String))
    frames, rejects, channels = [], [], []
    for quantity in _QUANTITIES:
        mine = raw.filter(pl.col("_quantity") == quantity)
        if mine.is_empty():
            continue
        fields = [Field("_joined", title, quantity, "", required=quantity == "power_w")]
        for device in mine["device"].unique(maintain_order=True):  # one turn a device, not a row
            rows = mine.filter(pl.col("device") == device)
            scope = names[device] if quantity in {"power_w", "energy_counter_j"} else "part"
            values, bad = table.convert(rows, fields, decimal=found.decimal)
            values, judged = table.judge(_signed(values, options), rows, fields, scope or "facility")
            frames.append(table.kept(values.with_columns(rows["ts_utc"], rows["span_s"])))
            rejects += [bad, judged]
            powered = device in set(raw.filter(_quantity="power_w")["device"])
            kind = "counter" if quantity == "energy_counter_j" and not powered else options.kind or "instant"
            channels.append(Channel(device, scope, kind=kind, window_s=options.window_s))
    rest = raw.filter(pl.col("_quantity") == "")
    rejects.append(rest.select(
        pl.col("line").cast(pl.Int64), "device", column_name=pl.lit(title), rule=pl.lit("unknown-unit"),
        raw=pl.col("_joined"),
    ))  # fmt: skip
    return _together(frames), pl.concat(rejects), tuple(channels)


def _together(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """Return the readings of all quantities by line."""
    if not frames:
        return pl.DataFrame(
            schema={"line": pl.Int64, "device": pl.String, "ts_utc": pl.Datetime("us", "UTC"), "span_s": pl.Float64}
        )
    # What a device says of one moment is one reading, in whichever order its values stand; a second value is another reading.
    moment = ["device", "ts_utc", "span_s"]
    numbered = [f.with_columns(_nth=pl.int_range(pl.len()).over(moment)) for f in frames]
    read = pl.concat(numbered, how="diagonal").sort("line", maintain_order=True)
    powers = pl.col("line").filter(pl.col("power_w").is_not_null()) if "power_w" in read.columns else pl.col("line")
    told = pl.exclude("line", *moment, "_nth").drop_nulls().first()
    read = read.group_by(*moment, "_nth", maintain_order=True).agg(
        pl.coalesce(powers.first(), pl.col("line").first()), told
    )
    return read.drop("_nth").select("line", pl.exclude("line")).sort("line", maintain_order=True)


def _cell(column: str) -> pl.Expr:
    return pl.col(column).fill_null("").str.strip_chars(' "')


def _quantity(unit: str) -> str:
    return next((q for q in _QUANTITIES if cells.factor(q, unit) is not None), "") if unit else ""


def _signed(values: pl.DataFrame, options: Options) -> pl.DataFrame:
    if options.sign == 1 or "power_w" not in values.columns:
        return values
    return values.with_columns(power_w=pl.col("power_w") * options.sign)


def _named(raw: pl.DataFrame, found: Understood, options: Options) -> tuple[pl.DataFrame, dict[str, str]]:
    """Name the device of each row; also return the scope of each."""
    column = found.layout.device
    if column is None:
        device, scope = device_places.of("", options)
        return raw.with_columns(device=pl.lit(device)), {device: scope}
    texts = raw[column].fill_null("").str.strip_chars(' "')
    places = {t: device_of(t, options) for t in texts.unique(maintain_order=True)}
    taken = [d for d, _ in places.values()]
    # Two sensors that would share a name keep their own.
    places = {t: (t, s) if taken.count(d) > 1 and t else (d, s) for t, (d, s) in places.items()}
    named = texts.replace_strict({t: d for t, (d, _) in places.items()}, return_dtype=pl.String)
    return raw.with_columns(named.alias("device")), dict(places.values())


def device_of(text: str, options: Options) -> tuple[str, str]:
    """Return device and scope of the words by which a row names what it is about; words that say nothing name the device."""
    if _WHOLE_NODE.match(text):
        return options.device or "node", options.scope or "node"
    said = meter_titles.meaning(text)
    place = said.place if said.role == "quantity" else meter_titles.meaning(f"{text} [W]").place
    device, scope = device_places.of(place, options)
    return (device, scope) if device_places.is_known(place) or not text else (text, scope)
