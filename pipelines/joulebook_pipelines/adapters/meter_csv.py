"""Tables of power and energy from meters, plugs and scripts, of any dialect; titles or study.toml say what is what."""

from __future__ import annotations

from joulebook_pipelines.logs import dialect, meter_columns, meter_reader
from joulebook_pipelines.logs.contract import Adapter, Head


def _sniff(head: Head) -> bool:
    """Claim tables whose titles name a time and a power or energy; also rows without titles, to say what to write."""
    return dialect.find(head, meter_columns.knows) is not None or dialect.looks_headerless(head) > 0


ADAPTER = Adapter(
    name="meter-csv",
    title="Tables of meters, plugs and scripts: time, power, energy (CSV of any dialect)",
    yields="power, energy counters or energy per interval, voltage, current, power factor and temperatures, per device",
    sniff=_sniff,
    parse=meter_reader.parts,
    needs_zone=True,
    family="meter",
    fallback=True,
)
