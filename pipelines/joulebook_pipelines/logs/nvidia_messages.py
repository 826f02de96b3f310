"""What nvidia-smi prints between its rows when a card or the driver fails, and the doubts that follow for the file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs.contract import Part

_BUS = re.compile(r"GPU ?((?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])")

FEWEST_AT_END = 2
"""So many messages after the last row are no slip: the tool went on failing until the log ended."""


@dataclass
class Messages:
    """The tool's messages of one pass over a file."""

    lost: dict[str, int] = field(default_factory=dict)
    at_end: int = 0
    first_at_end: int = 0
    example: str = ""

    def add(self, part: Part) -> None:
        """Take in the messages of a part."""
        read = part.readings is not None and part.readings.height
        last_read = int(str(part.readings["line"].max())) if read and part.readings is not None else 0
        if last_read:
            self.at_end = 0
        if part.rejects is None or part.rejects.is_empty():
            return
        told = part.rejects.filter(pl.col("rule") == "tool-message")
        for line, raw in told.select("line", "raw").iter_rows():  # one row per message, not per reading
            for bus in _BUS.findall(raw or ""):
                self.lost.setdefault(bus, line)
        tail = told.filter(pl.col("line") > last_read)
        if tail.height and not self.at_end:
            self.first_at_end, self.example = int(tail["line"][0]), str(tail["raw"][0])
        self.at_end += tail.height

    def findings(self, name: str) -> tuple[Finding, ...]:
        """Return which cards were lost, and whether the log ends with errors."""
        found = []
        for bus, line in self.lost.items():
            found.append(Finding(
                "card-lost", Severity.WARNING, name,
                f"The driver lost the card at bus {bus} (first said in line {line}): its readings end there, and a total of all cards "
                "holds only until then.", {"bus_id": bus, "line": line},
            ))  # fmt: skip
        if self.at_end >= FEWEST_AT_END:
            found.append(Finding(
                "ends-with-errors", Severity.WARNING, name,
                f"The log ends with {self.at_end} lines of errors from line {self.first_at_end} on ({self.example!r}): what ran after "
                "the last reading was not measured, and nothing is made up for it.",
                {"lines": self.at_end, "first_line": self.first_at_end},
            ))  # fmt: skip
        return tuple(found)
