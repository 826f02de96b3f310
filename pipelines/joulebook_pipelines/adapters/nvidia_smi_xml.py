"""``nvidia-smi -q -x``, once or in a loop: XML documents one after the other; entities and foreign DTDs are refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any
from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import AttributesImpl

import polars as pl
from defusedxml.common import DefusedXmlException
from defusedxml.expatreader import create_parser

from joulebook_pipelines.logs import local_time, smi_report, stamps, table
from joulebook_pipelines.logs.contract import Adapter, Channel, Head, Log, LogRefusedError, Part

_ROOT = re.compile(r"<nvidia_smi_log\b")
_OPEN, _CLOSE = "<nvidia_smi_log", "</nvidia_smi_log>"
_STAMP = re.compile(r"<timestamp>([^<]*)</timestamp>")
_PROLOGUE = re.compile(r"<\?xml[^>]*\?>|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>|<!--.*?-->", re.DOTALL)
"""What may stand around the documents: declarations, comments, and the DTD that ``--dtd`` embeds."""

LARGEST_DOCUMENT = 1 << 26
"""A report on sixteen cards has half a megabyte; one that never ends is damage."""


def _sniff(head: Head) -> bool:
    return bool(_ROOT.search(head.text[:4096]))


class _Handler(ContentHandler):
    """Collects the entries of one document with their lines."""

    def __init__(self, first_line: int) -> None:
        super().__init__()
        self._first = first_line
        self._path: list[str] = []
        self._text: list[str] = []
        self._leaf_line = 0
        self.bus = ""
        self.cards = -1
        self.top: dict[str, tuple[int, str]] = {}
        self.entries: list[tuple[int, int, str, str, str]] = []

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802 (the interface's name)
        self._path.append(name)
        self._text = []
        locator: Any = self._locator  # pyrefly: ignore[missing-attribute]
        self._leaf_line = locator.getLineNumber() - 1 + self._first
        if len(self._path) == 2 and name == "gpu":
            self.bus, self.cards = str(attrs.get("id", "")), self.cards + 1

    def characters(self, content: str) -> None:
        self._text.append(content)

    def endElement(self, name: str) -> None:  # noqa: N802 (the interface's name)
        text = "".join(self._text).strip()
        if len(self._path) == 2 and name != "gpu":
            self.top[name] = (self._leaf_line, text)
        elif len(self._path) in {3, 4} and self._path[1] == "gpu" and text:
            key = "/".join(p.replace("_", " ") for p in self._path[2:])
            if key in smi_report.KNOWN or key in smi_report.NAMING:
                self.entries.append((self.cards, self._leaf_line, self.bus, key, text))
        self._text = []
        self._path.pop()


@dataclass
class _Reader:
    log: Log
    form: stamps.StampForm
    clock: local_time.Localiser
    cards: smi_report.Cards
    driver: str = ""
    rejects: list[pl.DataFrame] = field(default_factory=list)

    def documents(self, pieces: list[tuple[int, str]]) -> tuple[pl.DataFrame | None, tuple[Channel, ...]]:
        """Return readings and new channels of whole documents (first line, text); what is damaged is rejected."""
        whole = [h for line, text in pieces if (h := self._handled(line, text)) is not None]
        if not whole:
            return None, ()
        said = [h.top.get("timestamp", (0, "")) for h in whole]
        frame = pl.DataFrame({"stamp": [stamp for _, stamp in said]})
        utc = self.clock.utc(frame, stamps.parse(pl.col("stamp"), self.form))
        for (line, stamp), time in zip(said, utc, strict=True):
            if time is None:
                self.reject(line, stamp, "no-such-time", "timestamp")
        rows = [(i, *entry) for i, h in enumerate(whole) for entry in h.entries]
        names = {
            "document": pl.Int64,
            "card": pl.Int64,
            "line": pl.Int64,
            "bus": pl.String,
            "key": pl.String,
            "raw": pl.String,
        }
        found = pl.DataFrame(rows, schema=names, orient="row")
        if found.is_empty():
            return None, ()
        times = pl.DataFrame({"document": pl.int_range(len(whole), eager=True), "ts_utc": utc})
        found = found.join(times, on="document", maintain_order="left")
        found = found.with_columns(card=pl.struct("document", "card").rle_id()).select(
            pl.col(c).cast(t) for c, t in smi_report.SCHEMA.items()
        )
        readings, more, channels = self.cards.read(found)
        self.rejects.append(more)
        return readings, channels

    def _handled(self, first_line: int, text: str) -> _Handler | None:
        """Return what a document says, ``None`` where it is damaged."""
        handler = _Handler(first_line)
        parser = create_parser(forbid_dtd=True, forbid_entities=True, forbid_external=True)
        parser.setContentHandler(handler)
        try:
            parser.parse(BytesIO(text.encode()))
        except SAXParseException as error:
            line = first_line + (error.getLineNumber() or 1) - 1
            self.reject(line, f"{error.getMessage()}: {text[:200]}", "document-not-well-formed")
            return None
        except DefusedXmlException as error:
            raise LogRefusedError(
                f"{self.log.name}:{first_line}: {type(error).__name__}: a report never declares that"
            ) from None
        self.driver = self.driver or handler.top.get("driver_version", (0, ""))[1]
        attached = handler.top.get("attached_gpus", (0, ""))[1]
        self.cards.attached = max(
            self.cards.attached, int(attached) if attached.isascii() and attached.isdigit() else 0
        )
        return handler

    def reject(self, line: int, raw: str, rule: str, column: str = "") -> None:
        """Take down what could not be read."""
        row = (line, None, column, rule, raw[: table.LONGEST_RAW])
        self.rejects.append(pl.DataFrame([row], schema=table.REJECT_SCHEMA, orient="row"))

    def around(self, first_line: int, text: str) -> None:
        """Judge what stands between documents: declarations belong there, anything else is rejected."""
        if "<!ENTITY" in text:
            raise LogRefusedError(
                f"{self.log.name}:{first_line}: the document declares entities, which nvidia-smi never does; "
                "remove the DOCTYPE if the file is a log"
            )
        blanked = _PROLOGUE.sub(lambda m: "\n" * m[0].count("\n"), text)
        for number, line in enumerate(blanked.split("\n"), first_line):
            if line.strip():
                self.reject(number, line.strip(), "tool-message")


def _parse(log: Log) -> Iterator[Part]:
    samples = [(log.head.text.count("\n", 0, m.start()) + 1, m[1]) for m in _STAMP.finditer(log.head.text)]
    smi_report.refuse_empty(log, [s for _, s in samples])
    form = local_time.form(log, [s for _, s in samples[:50]])
    clock = local_time.localiser(log, form, *samples[0])
    reader = _Reader(log, form, clock, smi_report.Cards(log))
    rest, rest_line = "", 1
    for block in log.blocks():
        text = rest + block.data.decode("utf-8", errors="replace")
        pieces, at, line = [], 0, rest_line
        while (begin := text.find(_OPEN, at)) >= 0 and (end := text.find(_CLOSE, begin)) >= 0:
            reader.around(line, text[at:begin])
            line += text.count("\n", at, begin)
            # A document that was cut lies before the last opening in front of this end.
            last = text.rfind(_OPEN, begin, end)
            if last > begin:
                reader.reject(line, text[begin : begin + 200], "document-cut")
                line += text.count("\n", begin, last)
            pieces.append((line, text[last : end + len(_CLOSE)]))
            line += text.count("\n", last, end)
            at = end + len(_CLOSE)
        rest, rest_line = text[at:], line
        if len(rest) > LARGEST_DOCUMENT:
            raise LogRefusedError(
                f"{log.name}:{rest_line}: a document does not end within {LARGEST_DOCUMENT >> 20} MiB"
            )
        readings, channels = reader.documents(pieces)
        rejects, reader.rejects = pl.concat([table.no_rejects(), *reader.rejects]), []
        yield Part(block.count, readings, rejects, channels=channels)
    begin = rest.find(_OPEN)
    reader.around(rest_line, rest if begin < 0 else rest[:begin])
    if begin >= 0:
        reader.reject(rest_line + rest.count("\n", 0, begin), rest[begin : begin + 200], "document-cut")
    rejects = pl.concat([table.no_rejects(), *reader.rejects])
    yield Part(rejects=rejects, findings=reader.cards.findings(), tool_version=reader.driver)


ADAPTER = Adapter(
    name="nvidia-smi-xml",
    title="nvidia-smi -q -x (XML, also looped)",
    yields="board power, limit, utilisation, memory, temperatures and clocks per card",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
)
