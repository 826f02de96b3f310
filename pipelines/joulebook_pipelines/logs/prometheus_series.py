"""Series of a Prometheus as readings: cards and hosts told apart, repeats counted once, invented tails set aside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import boards, entries, prometheus_names, prometheus_scrapers, prometheus_tail, table
from joulebook_pipelines.logs.contract import Channel, Log, LogRefusedError, Part
from joulebook_pipelines.logs.prometheus_cards import Cards, Hosts, Series
from joulebook_pipelines.logs.prometheus_names import Meaning

SAMPLES: dict[str, pl.DataType | type[pl.DataType]] = {
    "series": pl.Int64,
    "line": pl.Int64,
    "ts_utc": pl.Datetime("us", "UTC"),
    "raw": pl.String,
}
"""Columns of the samples of a file: ``series`` is the place in its list of series."""

BLANK_FROM = 140_737_488_355_328
"""DCGM writes 2^47 and above (and 2^63 less a few) for "no value" and "not supported"."""


@dataclass(frozen=True)
class _Told:
    """A series that is understood."""

    series: int
    meaning: Meaning
    host: str
    header: str
    model: str = ""
    uuid: str = ""
    label: str = ""


def readings(log: Log, series: Sequence[Series], samples: pl.DataFrame) -> Part:
    """Return what the samples (:data:`SAMPLES`) of the series say.

    Raises
    ------
    LogRefusedError
        No series is of a known metric; study.toml may say what one is.
    """
    told, strangers = _understand(log, series)
    if not told:
        raise LogRefusedError(_nothing_known(log, series))
    told, findings = _hosts(log, told)
    told = _main_and_others(told)
    frame = pl.DataFrame(
        [(t.series, t.meaning.device, t.meaning.quantity, t.meaning.unit, t.header, t.meaning.rank, t.label) for t in told],
        schema={"series": pl.Int64, "device": pl.String, "quantity": pl.String, "unit": pl.String, "header": pl.String,
                "rank": pl.Int64, "label": pl.String}, orient="row",
    )  # fmt: skip
    found = samples.join(frame, on="series", how="inner", maintain_order="left")
    told_in_labels = {(t.series, t.label): series[t.series].labels[t.label] for t in told if t.label}
    if told_in_labels:
        pairs = [(s, k, v) for (s, k), v in told_in_labels.items()]
        values = pl.DataFrame(pairs, schema={"series": pl.Int64, "label": pl.String, "said": pl.String}, orient="row")
        found = found.join(values, on=["series", "label"], how="left", maintain_order="left")
        found = found.with_columns(raw=pl.coalesce("said", "raw")).drop("said")
    found, rejects, repeats = _once(found, log.name)
    found, between, scrapers = prometheus_scrapers.set_aside(found, log.name)
    found, filled, tails = prometheus_tail.set_aside(found, log.name)
    scopes = {t.meaning.device: t.meaning.scope for t in told}
    found = found.with_columns(row=pl.struct("ts_utc", "device").rank("dense").cast(pl.Int64))
    good, bad = entries.gather(found.select(list(entries.SCHEMA)), scopes)
    channels = tuple(_channels(log, told, good))
    findings += [*_about(log, strangers), *repeats, *scrapers, *tails]
    return Part(
        readings=good, rejects=pl.concat([rejects, between, filled, bad]), channels=channels, findings=tuple(findings)
    )


def _understand(log: Log, series: Sequence[Series]) -> tuple[list[_Told], list[Series]]:
    """Return the series that are understood, with the card numbered, and those that are not."""
    named = {metric: quantity for quantity, metric in log.options.columns.items() if quantity != "time"}
    hosts = Hosts(series)
    cards = Cards(series, hosts)
    told, strangers = [], []
    for i, one in enumerate(series):  # series, not samples
        quantity = named.get(one.name or "*")
        if quantity is not None:
            told.append(_Told(i, _as_said(log, quantity, one), hosts.of(one.labels), one.name or "value"))
            continue
        meanings = [("", m) for m in prometheus_names.classify(one.name, one.labels)]
        meanings += prometheus_names.in_labels(one.name, one.labels)
        if not meanings:
            strangers.append(one)
        for label, meaning in meanings:
            device, model, uuid = cards.name(meaning, one.labels)
            header = f"{one.name}{{{label}}}" if label else one.name
            told.append(_Told(i, replace(meaning, device=device), hosts.of(one.labels), header, model, uuid, label))
    return told, strangers


def _as_said(log: Log, quantity: str, one: Series) -> Meaning:
    """Return the meaning that study.toml gives a metric."""
    uuid, number = prometheus_names.card_key(one.labels)
    device = log.options.device or (f"gpu:{number}" if number else "node" if log.options.scope == "node" else "reading")
    scope = log.options.scope or ("board" if device.startswith("gpu:") else "node" if device == "node" else "")
    units = {
        "power_w": "W",
        "energy_counter_j": "J",
        "energy_j": "J",
        "temperature_c": "C",
        "utilization_ratio": "ratio",
    }
    unit = log.options.units.get(quantity) or units.get(quantity)
    if unit is None:
        raise LogRefusedError(
            f'{log.name}: {quantity} of {one.name!r} needs its unit; add units = {{ {quantity} = "…" }}'
        )
    return Meaning(device, scope, quantity, unit, 0, uuid or "said")


def _hosts(log: Log, told: list[_Told]) -> tuple[list[_Told], list[Finding]]:
    """Keep the devices of several hosts apart; of a file with the source's own host only that one is read."""
    hosts = list(dict.fromkeys(t.host for t in told))
    if len(hosts) < 2:
        return told, []
    if log.options.host in hosts:
        mine = [t for t in told if t.host == log.options.host]
        return mine, [Finding(
            "other-hosts", Severity.NOTE, log.name,
            f"The file holds series of {len(hosts)} hosts; those of {log.options.host} are read.", {"hosts": hosts},
        )]  # fmt: skip
    apart = [
        replace(t, meaning=replace(t.meaning, device=f"{t.meaning.device}@{t.host}" if t.host else t.meaning.device))
        for t in told
    ]
    return apart, [Finding(
        "several-hosts", Severity.WARNING, log.name,
        f"The file holds series of {len(hosts)} hosts ({', '.join(hosts[:5])}), so its sums are over all of them. To tell their runs "
        'apart, export one file per host, or give this [[source]] the host of which it should be read: host = "…".', {"hosts": hosts},
    )]  # fmt: skip


def _main_and_others(told: list[_Told]) -> list[_Told]:
    """Keep one kind of series per device and quantity as the main one; another kind becomes a part beside it.

    Supplies beside the whole machine's reading are parts of it as well.
    """
    best: dict[tuple[str, str], tuple[int, str]] = {}
    for t in told:
        key, mine = (t.meaning.device, t.meaning.quantity), (t.meaning.rank, t.meaning.name)
        best[key] = min(best.get(key, mine), mine)
    whole = {
        t.host
        for t in told
        if t.meaning.scope == "node" and t.meaning.quantity == "power_w" and t.meaning.device.startswith("node")
    }
    made = []
    for t in told:
        meaning = t.meaning
        if (meaning.rank, meaning.name) != best[meaning.device, meaning.quantity]:
            tail = meaning.name.removeprefix("power.draw.") if meaning.field else meaning.name
            meaning = replace(meaning, device=f"{meaning.device}/{tail}", scope="part")
        if "/mig:" in meaning.device:
            meaning = replace(meaning, scope="part")
        if meaning.scope == "node" and meaning.device.startswith("psu") and t.host in whole:
            meaning = replace(meaning, scope="part")
        made.append(replace(t, meaning=meaning))
    return made


def _once(found: pl.DataFrame, name: str) -> tuple[pl.DataFrame, pl.DataFrame, list[Finding]]:
    """Count a board once where its power comes with each slice of it or each pod on it; take out DCGM's blanks."""
    number = pl.col("raw").cast(pl.Float64, strict=False).fill_nan(None)
    blank = (
        found.select(pl.col("header").str.starts_with("DCGM_") & (number >= BLANK_FROM))
        .to_series()
        .fill_null(value=False)
    )
    rejects = [table.no_rejects(), entries.rejected(found.filter(blank), "error-code")]
    found = found.filter(~blank)
    key = ["device", "quantity", "ts_utc"]
    # A number comes before NaN, and the first series before the others.
    found = found.with_columns(_nan=number.is_null()).sort("ts_utc", "device", "quantity", "_nan", maintain_order=True)
    again = found.select(~pl.struct(key).is_first_distinct() & pl.col("ts_utc").is_not_null()).to_series()
    if not again.any():
        return found.drop("_nan"), pl.concat(rejects), []
    same = pl.col("raw") == pl.col("raw").first().over(key)
    rule = (
        pl.when(same)
        .then(pl.lit("repeated-series"))
        .when("_nan")
        .then(pl.lit("no-value"))
        .otherwise(pl.lit("conflicting-series"))
    )
    found = found.with_columns(rule=rule)
    gone = found.filter(again)
    rejects.append(entries.rejected(gone, pl.col("rule")))
    finding = Finding(
        "repeated-series", Severity.NOTE, name,
        f"{gone.height} samples repeat a device and time of another series (slices of a card, pods on it, two scrapers): each device is "
        "counted once.", {"samples": gone.height, "devices": gone["device"].unique().sort().to_list()},
    )  # fmt: skip
    return found.filter(~again).drop("_nan", "rule"), pl.concat(rejects), [finding]


def _channels(log: Log, told: list[_Told], good: pl.DataFrame) -> list[Channel]:
    powered = (
        set(good.filter(pl.col("power_w").is_not_null())["device"].unique()) if "power_w" in good.columns else set()
    )
    counted = (
        set(good.filter(pl.col("energy_counter_j").is_not_null())["device"].unique())
        if "energy_counter_j" in good.columns
        else set()
    )
    made: dict[str, Channel] = {}
    ordered = sorted(told, key=lambda t: (t.meaning.quantity != "power_w", t.meaning.rank))
    for t in ordered:
        device = t.meaning.device
        if device in made:
            continue
        window_s = log.options.window_s or (
            boards.power_window_s(t.model, t.meaning.field) if t.meaning.field else None
        )
        kind = "counter" if device in counted - powered else "instant" if window_s is None else "mean"
        made[device] = Channel(device, t.meaning.scope, t.model, t.uuid, kind, window_s if kind == "mean" else None)
    return [made[d] for d in sorted(made)]


def _about(log: Log, strangers: list[Series]) -> list[Finding]:
    inside = sorted(
        {s.name for s in strangers if prometheus_names.about_processes(s.name) and prometheus_names.says_energy(s.name)}
    )
    names = sorted({s.name for s in strangers if s.name not in inside and prometheus_names.says_energy(s.name)})
    found = []
    if inside:
        found.append(Finding(
            "process-series-left-out", Severity.NOTE, log.name,
            f"Not read: {', '.join(inside[:5])} split the node's energy by pod or process; they lie inside what is read.",
            {"metrics": inside},
        ))  # fmt: skip
    if names:
        found.append(Finding(
            "series-not-read", Severity.WARNING, log.name,
            f"Not known, though the names speak of power or energy: {', '.join(names[:8])}. To read one, add to this [[source]] "
            f'columns = {{ power_w = "{names[0]}" }}, units and scope.', {"metrics": names},
        ))  # fmt: skip
    return found


def _nothing_known(log: Log, series: Sequence[Series]) -> str:
    names = list(dict.fromkeys(s.name or "(no name)" for s in series))
    shown = ", ".join(names[:6]) + (" …" if len(names) > 6 else "")
    key = next((s.name for s in series if prometheus_names.says_energy(s.name)), None) or (
        "*" if "(no name)" in names else "METRIC"
    )
    return (
        f"{log.name}: no series of a known exporter: {shown or 'none at all'}. If one is a power, add to this [[source]] "
        f'columns = {{ power_w = "{key}" }}, units = {{ power_w = "W" }} and scope = "…"'
    )
