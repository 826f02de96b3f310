"""``tegrastats`` of Jetson boards: one line a tick, power rails in mW; the input rail covers the module, others lie inside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import damage, local_time, stamp_lines, stamps, table, untimed
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.table import Field

_LINE = re.compile(r"\bRAM \d+/\d+MB\b.*\b(?:CPU \[|EMC_FREQ|GR3D_FREQ)")
_OWN = re.compile(r"^(\d\d-\d\d-\d{4} \d\d:\d\d:\d\d) RAM ")
_FORM = stamps.StampForm("%m-%d-%Y %H:%M:%S", aware=False)
"""tegrastats prints month, day, year, whatever the locale."""

_RAIL = re.compile(r"\b((?:VDDQ?|VIN|POM|CV|GPU|CPU|SOC|VDDRQ|SYS5V)[A-Z0-9_]*) (-?\d+)(?:mW)?/-?\d+(?:mW)?(?=\s|$)")
"""An idle rail is printed below zero by the step of its sensor."""

_INPUTS = ("VDD_IN", "POM_5V_IN", "VDD_TOTAL", "VIN")
"""Rails through which the whole module is fed; ``VIN`` (Thor) is the input of module and carrier board."""

_APART = (
    frozenset({"VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"}),
    frozenset({"GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"}),
)
"""Rails of modules without an input rail (Orin AGX, Xavier AGX) that do not overlap: together they feed the module."""


def _sniff(head: Head) -> bool:
    lines = [line for line in head.lines[:20] if line.strip()]
    return sum(bool(_LINE.search(line)) for line in lines) * 2 > len(lines)


def _rails(head: Head) -> dict[str, tuple[str, str]]:
    """Return device and scope of each rail that the head shows."""
    names = list(dict.fromkeys(m[1] for line in head.lines[:200] if _LINE.search(line) for m in _RAIL.finditer(line)))
    whole = next((n for n in _INPUTS if n in names), None)
    apart = next((a for a in _APART if whole is None and a <= set(names)), frozenset())
    made = {}
    for name in names:
        if name == whole:
            made[name] = ("gpu:0", "board")
        else:
            made[name] = (f"rail:{name.lower().replace('_', '-')}", "components" if name in apart else "part")
    return made


@dataclass
class _Reader:
    log: Log
    rails: dict[str, tuple[str, str]]
    clock: local_time.Localiser
    collector: stamp_lines.StampLines | None
    steps: untimed.Steps | None = None
    seen: set[str] = field(default_factory=set)

    def read(self, block: Block) -> Part:
        """Return what a block says."""
        block, nul = damage.without_nul(block)
        rejects = [nul]
        lines = block.filled()
        if not block.terminated and lines.height > 1:
            rejects.append(table.whole_lines(lines.tail(1), damage.CUT))
            lines = lines.head(lines.height - 1)
        good = pl.col("raw").str.contains(_LINE.pattern)
        rejects.append(table.whole_lines(lines.filter(~good), "tool-message"))
        lines = self._timed(lines.filter(good))
        frames, channels = [], []
        for name, (device, scope) in self.rails.items():
            readings, more = self._rail(lines, name, device, scope)
            frames.append(readings)
            rejects += more
            if device not in self.seen and readings.height:
                self.seen.add(device)
                window_s = None if self.steps else self.log.options.window_s
                kind = "mean" if self.steps or window_s else "instant"
                channels.append(Channel(device, scope, name, kind=kind, window_s=window_s))
        readings = pl.concat(frames, how="diagonal").sort("line", maintain_order=True)
        lost = lines.filter(pl.col("ts_utc").is_null())
        rejects.append(table.whole_lines(lost, "no-such-time"))
        return Part(block.count, readings, pl.concat(rejects), channels=tuple(channels))

    def _timed(self, lines: pl.DataFrame) -> pl.DataFrame:
        if self.steps is not None:
            return lines.with_columns(self.steps.next(lines.height).alias("ts_utc"), span_s=pl.lit(self.steps.step_s))
        if self.collector is not None:
            naive = lines.select(
                self.collector.naive(self.collector.split(pl.col("raw"))[0]).alias("ts_utc")
            ).to_series()
            return lines.with_columns(self.collector.clock.to_utc(naive))
        stamp = pl.col("raw").str.extract(_OWN.pattern, 1)
        return lines.with_columns(self.clock.utc(lines, stamps.parse(stamp, _FORM)))

    def _rail(self, lines: pl.DataFrame, name: str, device: str, scope: str) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
        cell = pl.col("raw").str.extract(rf"\b{name} ([^/\s]*?)(?:mW)?/-?\d+(?:mW)?(?:\s|$)", 1)
        fields = [Field("power", name, "power_w", "mW", required=True)]
        raw = lines.filter(pl.col("ts_utc").is_not_null()).with_columns(device=pl.lit(device), power=cell)
        if device == "gpu:0":
            fields += [
                Field("load", "GR3D_FREQ", "utilization_ratio", "%"), Field("ram", "RAM", "memory_used_bytes", "MiB"),
                Field("heat", "gpu@", "temperature_c", "C"),
            ]  # fmt: skip
            raw = raw.with_columns(
                load=pl.col("raw").str.extract(r"\bGR3D_FREQ (\d+)%", 1), ram=pl.col("raw").str.extract(r"\bRAM (\d+)/", 1),
                heat=pl.col("raw").str.extract(r"(?i)\bgpu@(-?[\d.]+)C", 1),
            )  # fmt: skip
        values, bad = table.convert(raw, fields)
        values, judged = table.judge(values, raw, fields, scope)
        times = [raw[c] for c in ("ts_utc", "span_s") if c in raw.columns]
        return table.kept(values.with_columns(*times)), [bad, judged]


def _parse(log: Log) -> Iterator[Part]:
    rails = _rails(log.head)
    if not rails:
        raise LogRefusedError(
            f"{log.name}: no line shows a power rail (VDD_…); this board or release of tegrastats does not measure power"
        )
    collector, steps, clock = None, None, local_time.Localiser(None)
    first = next(((n, m[1]) for n, line in enumerate(log.head.lines, 1) if (m := _OWN.match(line))), None)
    if first is not None:
        clock = local_time.localiser(log, _FORM, *first)
    else:
        collector = stamp_lines.find(log, re.compile(r"^\s*RAM "))
        steps = untimed.Steps(log) if collector is None and log.options.distance_s is not None else None
        if collector is None and steps is None:
            raise LogRefusedError(
                f"{log.name}: its lines carry no time, and without times there is no energy; log again with a tegrastats that prints it "
                "(L4T 32.6 or later), or through ts '%Y-%m-%dT%H:%M:%.S%z'; or add period_s = (seconds from line to line, as --interval "
                "said, 1 where nothing was said) to this [[source]]"
            )
    yield Part(findings=_about(log, rails))
    reader = _Reader(log, rails, clock, collector, steps)
    for block in log.blocks():
        yield reader.read(block)
    yield Part(findings=steps.findings if steps is not None else ())


def _about(log: Log, rails: dict[str, tuple[str, str]]) -> tuple[Finding, ...]:
    scopes = {s for _, s in rails.values()}
    if "board" in scopes:
        return ()
    names = [n for n, (_, s) in rails.items() if s == "components"]
    if names:
        return (Finding(
            "no-input-rail", Severity.NOTE, log.name,
            f"The board has no input rail; {', '.join(names)} do not overlap and are added as its components. The carrier board and the "
            "supply's loss are not in them.", {"rails": names},
        ),)  # fmt: skip
    return (Finding(
        "no-input-rail", Severity.WARNING, log.name,
        f"The lines have no input rail (VDD_IN): {', '.join(rails)} may overlap, so no energy is given from them.", {"rails": list(rails)},
    ),)  # fmt: skip


ADAPTER = Adapter(
    name="tegrastats",
    title="tegrastats (NVIDIA Jetson)",
    yields="module power and its rails, GPU load and temperature, memory",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
)
