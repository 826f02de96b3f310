"""Counters of Windows as ``typeperf``, ``relog`` and Performance Monitor write them: power of meters and of RAPL domains."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import dialect, meter_reader, prefixes
from joulebook_pipelines.logs.contract import Adapter, Block, Head, Log, LogRefusedError, Options, Part

_HEADER = re.compile(r'^"?\(PDH-([CT])SV \d\.\d\)(?: \([^"]*\)\((?P<bias>-?\d+)\))?"?\s*[,\t]')
"""A perfmon log names the zone of its stamps, and by how many minutes UTC is ahead of it."""

_POWER = re.compile(r"^\\\\[^\\]+\\(?P<set>Power Meter|Energy Meter)\((?P<about>.+)\)\\Power$", re.IGNORECASE)
_OTHER = re.compile(r"\\(?:Power|Energy) Meter\(.+\)\\(?:Power|Energy)$", re.IGNORECASE)
_DOMAIN = re.compile(r"^RAPL_Package(?P<socket>\d+)_(?P<domain>PKG|PP0|PP1|DRAM)$", re.IGNORECASE)
_DOMAINS = {"PKG": "cpu package {}", "PP0": "cpu cores", "PP1": "igpu", "DRAM": "dram {}"}
"""Domains of Energy Meter, and the words by which the reader of tables knows them."""

_TOTAL = "_total"


def titles(names: Sequence[str]) -> list[str]:
    r"""Return titles that say quantity, unit and device of each counter; one that is no power, or adds others up, only its number.

    The meters of ``Power Meter`` are added up by its ``_Total``; that of ``Energy Meter`` adds what lies inside each other.

    Parameters
    ----------
    names
        Paths of the counters, without the column of times.

    Examples
    --------
    >>> titles(["\\\\PC\\Energy Meter(RAPL_Package0_PKG)\\Power", "\\\\PC\\Power Meter(_Total)\\Power", "\\\\PC\\System\\Threads"])
    ['cpu package 0 power [mW]', 'power meter power [mW]', 'column 4']
    """
    told = [_POWER.match(name) for name in names]
    meters = [m["about"].casefold() for m in told if m and m["set"].casefold() == "power meter"]
    return [_title(match, meters) or f"column {at}" for at, match in enumerate(told, 2)]


def _title(match: re.Match[str] | None, meters: list[str]) -> str | None:
    if match is None:
        return None
    about = match["about"]
    if match["set"].casefold() == "power meter":
        alone = about.casefold() == _TOTAL or _TOTAL not in meters
        number = "" if about.casefold() == _TOTAL or len(meters) == 1 else f" {meters.index(about.casefold())}"
        return f"power meter{number} power [mW]" if alone else None
    domain = _DOMAIN.match(about)
    return _DOMAINS[domain["domain"].upper()].format(domain["socket"]) + " power [mW]" if domain else None


def _header(head: Head) -> tuple[int, re.Match[str]] | None:
    return next(((i, m) for i, line in enumerate(head.lines[:5]) if (m := _HEADER.match(line))), None)


def _names(line: str, separator: str) -> list[str]:
    return [cell.strip('" \r') for cell in dialect.split_line(line, separator)][1:]


def _sniff(head: Head) -> bool:
    found = _header(head)
    return found is not None and bool(re.search(r"\\(?:Power|Energy) Meter\(", head.lines[found[0]], re.IGNORECASE))


def _parse(log: Log) -> Iterator[Part]:
    found = _header(log.head)
    if found is None:
        raise LogRefusedError(
            f"{log.name}:1: no line begins with (PDH-CSV 4.0), as typeperf writes it; give the log as the program wrote it, or take "
            "adapter out of its [[source]]"
        )
    at, header = found
    separator = "\t" if header[1] == "T" else ","
    names = _names(log.head.lines[at], separator)
    told = titles(names)
    if not any(t.endswith("[mW]") for t in told):
        raise LogRefusedError(
            f"{log.name}:{at + 1}: no counter is a power that is known; log \\Power Meter(_Total)\\Power or "
            "\\Energy Meter(RAPL_Package0_PKG)\\Power"
        )
    wanted = separator.join(f'"{t}"' for t in ("time", *told))
    above = [""] * at

    def titled(block: Block) -> list[bytes]:
        lines = block.data.split(b"\n")[: None if not block.terminated else -1]
        return [*(b"" for _ in above), wanted.encode(), *lines[at + 1 :]] if block.first_line == 1 else lines

    head = replace(log.head, text="\n".join([*above, wanted, *log.head.lines[at + 1 :]]))
    with prefixes.copied(replace(log, options=_options(log.options, header)), titled, head) as copy:
        yield from meter_reader.parts(copy)
    yield Part(findings=tuple(_left_out(log, names, told)))


def _options(options: Options, header: re.Match[str]) -> Options:
    """Return the options with what the file says of its times: month before day everywhere, and the offset of its zone."""
    first = options.day_first if options.day_first is not None else False
    if header["bias"] is None or options.utc_offset_s is not None:
        return replace(options, day_first=first)
    return replace(options, day_first=first, utc_offset_s=-60.0 * int(header["bias"]))


def _left_out(log: Log, names: Sequence[str], told: Sequence[str]) -> list[Finding]:
    unread = [n for n, t in zip(names, told, strict=True) if _OTHER.search(n) and not t.endswith("[mW]")]
    if not unread:
        return []
    return [Finding(
        "columns-not-read", Severity.NOTE, log.name,
        f"Not read, as they add up other counters, count on from an unknown start or are of unknown rails: {', '.join(unread[:8])}.",
        {"columns": unread},
    )]  # fmt: skip


ADAPTER = Adapter(
    name="perfmon",
    title="counters of Windows (typeperf, relog, Performance Monitor; CSV, TSV)",
    yields="power of Power Meter, and of processor packages, their parts and memory (Energy Meter)",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
)
