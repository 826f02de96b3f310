"""What an adapter is: a name, a claim, and a parse that yields parts in canonical units."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from joulebook.findings import Finding
from joulebook_pipelines.logs import terminal, text
from joulebook_pipelines.logs.ahead import ahead
from joulebook_pipelines.logs.block import Block
from joulebook_pipelines.logs.text import Head, LogRefusedError, pieces


@dataclass(frozen=True)
class Options:
    """What study.toml says about one file (see the reference of study.toml for each key)."""

    host: str = "node"
    scope: str | None = None
    timezone: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    device: str | None = None
    devices: tuple[str, ...] = ()
    interval_label: str | None = None
    kind: str | None = None
    window_s: float | None = None
    period_s: float | None = None
    date: str | None = None
    delimiter: str | None = None
    decimal: str | None = None
    day_first: bool | None = None
    range_j: float | None = None
    sign: int = 1
    mark: str | None = None
    utc_offset_s: float | None = None

    @property
    def distance_s(self) -> float | None:
        """Distance of what has no time [s]: ``period_s``; a ``window_s`` of a study of old said the same."""
        return self.window_s if self.period_s is None else self.period_s


@dataclass
class Passed:
    """How much of a file was read so far."""

    bytes: int = 0
    lines: int = 0


@dataclass(frozen=True)
class Log:
    """One file as an adapter sees it: where it is, how it begins, what the user said about it.

    Parameters
    ----------
    from_byte, from_line
        Where the blocks begin: what stands before was read another time.
    to_byte
        Where they end; a file that is still written to is read as it was when reading began.
    passed
        How much was read.
    """

    path: Path
    head: Head
    options: Options = field(default_factory=Options)
    from_byte: int = 0
    from_line: int = 1
    to_byte: int | None = None
    passed: Passed = field(default_factory=Passed, compare=False)

    @property
    def name(self) -> str:
        """Name of the file in messages: relative to study.toml."""
        return self.head.name

    def blocks(self, times: int = 1) -> Iterator[Block]:
        """Yield the whole file in blocks of lines, so many times the usual size; the next one is read while one is used."""
        size = times * text.BLOCK_BYTES
        whole = text.blocks(
            self.path, self.head, size, from_byte=self.from_byte, from_line=self.from_line, to_byte=self.to_byte
        )
        return ahead(map(self._counted, whole))

    def _counted(self, block: Block) -> Block:
        self.passed.bytes += len(block.data)
        self.passed.lines += block.count
        return block

    def whole_text(self, limit_bytes: int = 1 << 28) -> str:
        """Return the whole file as text, for formats that cannot be read in blocks (JSON, XML).

        Raises
        ------
        LogRefusedError
            The file is larger than ``limit_bytes`` when unpacked.
        """
        # Not through blocks: those cut a line of more than a few MiB, and a document may be one line.
        found, total = [], 0
        for piece in pieces(self.path, self.head):
            total += len(piece)
            if total > limit_bytes:
                raise LogRefusedError(f"{self.name}: larger than {limit_bytes >> 20} MiB; split it into parts")
            found.append(piece)
        return terminal.without_codes(b"".join(found)).decode("utf-8", errors="replace")


@dataclass(frozen=True)
class Channel:
    """One device of a source: what its readings cover and how they are made.

    Parameters
    ----------
    kind
        ``instant``, ``mean`` (over span or window), ``counter``, ``energy`` (per span), ``on-change`` (held).
    window_s
        Averaging window of the sensor [s], where known.
    """

    device: str
    scope: str
    model: str = ""
    uuid: str = ""
    kind: str = "instant"
    window_s: float | None = None


@dataclass(frozen=True)
class Part:
    """What an adapter found in a stretch of a file; frames have the columns of the store's tables less ``source_id``.

    Parameters
    ----------
    lines
        Physical lines that this part accounts for.
    readings
        ``line, device, ts_utc, span_s`` and quantities.
    rejects
        ``line, device, column_name, rule, raw``.
    devices
        Where the readings stand device by device, each over all the same lines: how many devices. Else 0: line by line.
    """

    lines: int = 0
    readings: pl.DataFrame | None = None
    rejects: pl.DataFrame | None = None
    runs: pl.DataFrame | None = None
    steps: pl.DataFrame | None = None
    phases: pl.DataFrame | None = None
    channels: tuple[Channel, ...] = ()
    findings: tuple[Finding, ...] = ()
    tool_version: str = ""
    devices: int = 0


@dataclass(frozen=True)
class Adapter:
    """A format that can be read.

    Parameters
    ----------
    name
        Stable name, as in ``adapter = "…"`` of study.toml.
    title
        What writes such files.
    yields
        What comes out, in words, for ``joulebook formats``.
    sniff
        Whether the head of a file is of this format; claims of two adapters are an error, so it must be narrow.
    parse
        Turns a file into parts. Raises :class:`LogRefusedError` with the cure where it cannot be honest.
    needs_zone
        Stamps carry no offset, so the study must name the zone.
    family
        ``meter`` (an instrument in the supply line), ``sensor`` (of the device itself) or ``model`` (an estimate of a
        tracker): of two instruments of one scope the earlier kind is used.
    appendable
        Lines are read one by one, so that the lines added to a file say the same read alone.
    fallback
        Reads what nobody else knows: its claim counts only where no other adapter claims the file.
    """

    name: str
    title: str
    yields: str
    sniff: Callable[[Head], bool]
    parse: Callable[[Log], Iterator[Part]]
    needs_zone: bool = False
    family: str = "sensor"
    appendable: bool = False
    fallback: bool = False


__all__ = ["Adapter", "Block", "Channel", "Head", "Log", "LogRefusedError", "Options", "Part", "Passed"]
