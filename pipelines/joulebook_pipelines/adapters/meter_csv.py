"""Tables of power and energy from meters, plugs and scripts, of any dialect; titles or study.toml say what is what."""

from __future__ import annotations

from collections.abc import Iterator

from joulebook_pipelines.logs import dialect, meter_checks, meter_columns, meter_form, meter_reader, meter_table
from joulebook_pipelines.logs.contract import Adapter, Head, Log, Part


def _parse(log: Log) -> Iterator[Part]:
    found = meter_table.understand(log)
    reader = meter_reader.Reader(log, found, meter_checks.of(log.name, found.layout))
    yield Part(lines=found.dialect.first_line - 1, channels=reader.named(), findings=found.findings)
    for block in meter_form.rows(log, found.dialect):
        yield reader.read(block)
    yield Part(findings=reader.afterwards())


def _sniff(head: Head) -> bool:
    """Claim tables whose titles name a time and a power or energy; also rows without titles, to say what to write."""
    return dialect.find(head, meter_columns.knows) is not None or dialect.looks_headerless(head) > 0


ADAPTER = Adapter(
    name="meter-csv",
    title="Tables of meters, plugs and scripts: time, power, energy (CSV of any dialect)",
    yields="power, energy counters or energy per interval, voltage, current, power factor and temperatures, per device",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
    family="meter",
    fallback=True,
)
