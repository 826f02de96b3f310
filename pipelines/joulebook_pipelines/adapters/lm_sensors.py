"""``sensors`` of lm-sensors in a loop: as text, raw (``-u``) or JSON (``-j``), each round under a collector's time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import damage, entries, hwmon_names, stamp_lines, table, untimed
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.stamp_lines import StampLines

_CHIP = rf'^\s*"?({hwmon_names.CHIP})"?(?::\s*\{{)?\s*$'
_RAW = r'^\s+"?((?:power|energy|temp|fan|in|curr)\d+_\w+)"?:\s*(-?[\d.]+|N/A)'
"""A feature's file and its number: ``power1_average: 35.000``, quoted in JSON."""

_LABEL = r'^\s*"?([^":{}]+?)"?:\s*(?:\{\s*)?$'
_SHOWN = r"^([^:]+):\s+([-+]?\d+(?:\.\d+)?|N/A)\s*(°?C|RPM|[munµkM]?W|[munµkM]?J|m?V|m?A)?(?:\s|$|\()"
_CAP = r"[(,]\s*cap =\s*([\d.]+) ([munµkM]?W)"
_KNOWN = (
    r'^\s*(?:"?Adapter"?:|[{}\[\]]|\(|"?\w+\d_\w+"?:|'
    r"[^:]+:\s*(?:[-+]?\d.*°F|[-+]?[\d.]+ ?%|ALARM|FAULT|enabled|disabled))"
)
_MESSAGE = r"(?i)^\s*(?:error|no sensors|can't|cannot|sensors:|bash:|kernel)"
_FILES = {
    "power_average": ("power_w", "W"), "power_input": ("power_w", "W"), "power_cap": ("power_limit_w", "W"),
    "energy_input": ("energy_counter_j", "J"), "temp_input": ("temperature_c", "C"), "fan_input": ("fan_speed_rpm", "RPM"),
    "in_input": ("voltage_v", "V"), "curr_input": ("current_a", "A"),
}  # fmt: skip
_UNITS = {
    "C": "temperature_c", "M": "fan_speed_rpm", "W": "power_w", "J": "energy_counter_j", "V": "voltage_v", "A": "current_a",
}  # fmt: skip
"""Quantities by the last letter of the unit that is printed."""

_CURE = "write the time before each round, e.g. while true; do date -Is; sensors; sleep 10; done"


@dataclass
class _Rounds:
    """What the lines so far said that those behind need."""

    clock: StampLines | untimed.Steps | untimed.Moment
    chips: list[str]
    stamp: str | None = None
    passed: int = 0
    waiting: pl.DataFrame | None = None
    cut: int = -1
    told: set[str] = field(default_factory=set)
    scopes: dict[str, str] = field(default_factory=dict)
    said_scope: str = ""


def _chips(head: Head) -> list[str]:
    behind = (re.sub(r"^.*?\s(?=\S+$)", "", line) for line in head.lines if "-" in line)
    return [m[1] for line in behind if (m := re.match(_CHIP, line))]


def _sniff(head: Head) -> bool:
    return bool(_chips(head)) and any(
        re.search(_RAW, line) or re.search(r":\s+[-+]?[\d.]+\s*(?:°C|C|RPM|[munµkM]?[WJVA])(?:\s|$)", line)
        for line in head.lines
    )


def _parse(log: Log) -> Iterator[Part]:
    chips = _chips(log.head)
    if not chips:
        raise LogRefusedError(f"{log.name}: no line names a chip as sensors prints it (amdgpu-pci-0300)")
    clock = stamp_lines.find(log, re.compile(_CHIP))
    rounds = _Rounds(
        clock or untimed.of_dumps(log, max(chips.count(c) for c in chips), _CURE),
        list(dict.fromkeys(chips)),
        said_scope=log.options.scope or "",
    )
    for block in log.blocks():
        yield _read(block, rounds)
    yield _read(None, rounds)
    told = () if isinstance(rounds.clock, StampLines) else rounds.clock.findings
    yield Part(findings=(*told, *_of_the_meter(log, rounds)))


def _read(block: Block | None, rounds: _Rounds) -> Part:
    """Return what a block says; what stands behind its last chip waits for the next one, ``None`` at the end of the file."""
    lines = _understood(block, rounds)
    stump = lines.filter(pl.col("line") == rounds.cut).select("line", raw="text")
    lines = _under_stamps(lines.filter(pl.col("line") != rounds.cut), rounds)
    told = pl.concat([_entries(lines, rounds), _limits(lines, rounds)])
    row = pl.struct("mark", "device").rank("dense").cast(pl.Int64)
    told = told.with_columns(row=row).sort("line", maintain_order=True)
    readings, rejects = entries.gather(told.select(list(entries.SCHEMA)), rounds.scopes)
    accounted = told["line"].implode()
    odd = lines.filter(
        ~pl.col("meant") & pl.col("chip_here").is_null() & ~pl.col("line").is_in(accounted) & ~pl.col("known")
    )
    rule = pl.when(pl.col("rest").str.contains(_MESSAGE)).then(pl.lit("tool-message")).otherwise(pl.lit("foreign-line"))
    fresh = entries.fresh(readings, rounds.told)
    counters = set(told.filter(pl.col("quantity") == "energy_counter_j")["device"])
    return Part(
        block.count if block is not None else 0, readings,
        pl.concat([table.whole_lines(odd.select("line", "rest", raw="text"), rule), table.whole_lines(stump, damage.CUT), rejects]),
        channels=tuple(Channel(d, rounds.scopes[d], kind="counter" if d in counters else "instant") for d in fresh),
    )  # fmt: skip


def _understood(block: Block | None, rounds: _Rounds) -> pl.DataFrame:
    """Return lines with the collector's stamp, the chip and the label above them, and what they say."""
    lines = pl.DataFrame(schema={"line": pl.Int64, "text": pl.String})
    if block is not None:
        lines = block.filled("text")
        rounds.cut = block.cut_line
    lines = lines if rounds.waiting is None else pl.concat([rounds.waiting, lines])
    rounds.waiting = None
    clock = rounds.clock if isinstance(rounds.clock, StampLines) else None
    stamp, rest, meant = (
        clock.split(pl.col("text")) if clock else (pl.lit(None, pl.String), pl.col("text"), pl.lit(value=False))
    )
    lines = lines.with_columns(stamp=stamp, rest=rest, meant=meant)
    # A stamp before each line leaves the line behind it.
    lines = lines.with_columns(
        meant=pl.col("meant") & (pl.col("stamp").is_null() | (pl.col("rest").str.strip_chars() == ""))
    )
    lines = lines.with_columns(chip_here=pl.col("rest").str.extract(_CHIP, 1))
    if block is not None and (last := lines.filter(pl.col("chip_here").is_not_null())["line"].max()) is not None:
        rounds.waiting = lines.filter(pl.col("line") >= last).select("line", "text")
        lines = lines.filter(pl.col("line") < last)
    raw, number, unit = (pl.col("rest").str.extract(p, at) for p, at in ((_RAW, 1), (_SHOWN, 2), (_SHOWN, 3)))
    shown = pl.when(raw.is_null() & (unit.is_not_null() | (number == "N/A"))).then(
        pl.col("rest").str.extract(_SHOWN, 1)
    )
    heads = pl.when(pl.col("chip_here").is_null() & raw.is_null()).then(pl.col("rest").str.extract(_LABEL, 1))
    return lines.with_columns(
        chip=pl.col("chip_here").forward_fill(), raw_file=raw, shown=shown, heads=heads
    ).with_columns(
        label=pl.coalesce("shown", pl.col("heads").forward_fill()),
        known=pl.col("rest").str.contains(_KNOWN) | pl.col("heads").is_not_null(),
    )


def _under_stamps(lines: pl.DataFrame, rounds: _Rounds) -> pl.DataFrame:
    """Return the lines with ``mark`` and ``ts_utc`` of their round."""
    if isinstance(rounds.clock, StampLines):
        held = (
            pl.coalesce("stamp", pl.when("meant").then(pl.lit("")))
            .forward_fill()
            .fill_null(pl.lit(rounds.stamp, pl.String))
        )
        lines = lines.with_columns(mark=held)
        rounds.stamp = lines["mark"][-1] if lines.height else rounds.stamp
        return lines.with_columns(rounds.clock.utc(lines, pl.col("mark").fill_null("")))
    first = pl.col("chip_here") == rounds.chips[0]
    number = first.fill_null(value=False).cast(pl.Int64).cum_sum() + rounds.passed
    lines = lines.with_columns(number=number)
    rounds.passed = int(lines["number"][-1]) if lines.height else rounds.passed
    return lines.with_columns(
        rounds.clock.at(lines["number"].clip(lower_bound=1)), mark=pl.col("number").cast(pl.String)
    )


def _entries(lines: pl.DataFrame, rounds: _Rounds) -> pl.DataFrame:
    """Return one entry for each number that is read."""
    file = pl.col("raw_file").str.replace(r"^([a-z]+)\d+", "${1}")
    told = pl.when(pl.col("shown").is_not_null()).then("rest")
    number, unit = told.str.extract(_SHOWN, 2), told.str.extract(_SHOWN, 3).str.strip_prefix("°")
    powerful = pl.col("label").str.contains(r"(?i)power|PPT")
    quantity = pl.coalesce(
        file.replace_strict({f: q for f, (q, _) in _FILES.items()}, default=None, return_dtype=pl.String),
        unit.str.slice(-1).replace_strict(_UNITS, default=None, return_dtype=pl.String),
        pl.when((number == "N/A") & powerful).then(pl.lit("power_w")),
    )
    files = file.replace_strict({f: u for f, (_, u) in _FILES.items()}, default=None, return_dtype=pl.String)
    found = lines.with_columns(
        quantity=quantity, unit=pl.coalesce(files, unit, pl.lit("W")), header=pl.coalesce("raw_file", "label"),
        raw=pl.coalesce(pl.col("rest").str.extract(_RAW, 2), pl.concat_str(number, unit, separator=" ", ignore_nulls=True)),
    )  # fmt: skip
    found = found.filter(pl.col("quantity").is_not_null() & pl.col("chip").is_not_null())
    # Where the line of its label was lost a raw number is known by its file.
    found = found.with_columns(
        pl.coalesce("label", pl.col("raw_file").str.extract(r"^([a-z]+\d+)"), pl.lit("")).alias("label")
    )
    # Newer drivers give the power of now beside its mean.
    twice = (pl.col("quantity") == "power_w") & ~pl.struct("mark", "chip", "label", "quantity").is_first_distinct()
    beside = pl.concat_str("label", pl.col("raw_file").str.extract(r"_(\w+)$"), separator=" ", ignore_nulls=True)
    return _placed(found.with_columns(label=pl.when(twice).then(beside).otherwise("label")), rounds)


def _limits(lines: pl.DataFrame, rounds: _Rounds) -> pl.DataFrame:
    """Return an entry for each cap that stands behind a power."""
    found = lines.filter(pl.col("shown").is_not_null() & pl.col("chip").is_not_null()).with_columns(
        raw=pl.col("rest").str.extract(_CAP, 1), unit=pl.col("rest").str.extract(_CAP, 2), header=pl.lit("cap"),
        quantity=pl.lit("power_limit_w"),
    )  # fmt: skip
    return _placed(found.filter(pl.col("raw").is_not_null()), rounds)


def _placed(found: pl.DataFrame, rounds: _Rounds) -> pl.DataFrame:
    """Return entries with the device that each is about."""
    rounds.chips += [c for c in found["chip"].unique(maintain_order=True) if c not in rounds.chips]
    places = {
        (chip, label, quantity): hwmon_names.device_of(chip, label, quantity, rounds.chips)
        for chip, label, quantity in found.select("chip", "label", "quantity").unique(maintain_order=True).iter_rows()
    }
    for device, scope in places.values():
        rounds.scopes.setdefault(device, scope or rounds.said_scope)
    known = pl.DataFrame(
        [(*key, device) for key, (device, _) in places.items()],
        schema=dict.fromkeys(("chip", "label", "quantity", "device"), pl.String), orient="row",
    )  # fmt: skip
    return found.join(known, on=["chip", "label", "quantity"], how="left", maintain_order="left").select(
        "line", "mark", "device", "ts_utc", "quantity", "header", "unit", "raw"
    )


def _of_the_meter(log: Log, rounds: _Rounds) -> tuple[Finding, ...]:
    """Say what the power meter of the firmware is taken for."""
    if "node" not in rounds.told:
        return ()
    return (Finding(
        "firmware-meter-is-node", Severity.NOTE, log.name,
        "The power meter of the firmware is taken for the whole machine, as servers wire it; compare it once with another instrument.", {},
    ),)  # fmt: skip


ADAPTER = Adapter(
    name="lm-sensors",
    title="sensors of lm-sensors (text, -u, -j), looped",
    yields="power of the machine (ACPI power meter) and of AMD and Intel cards, energy counters, temperatures and fans",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
)
