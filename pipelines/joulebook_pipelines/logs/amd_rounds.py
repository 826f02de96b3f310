"""The times of ``rocm-smi`` and ``amd-smi`` rounds, and what a file of them says once it is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from joulebook.findings import Finding
from joulebook_pipelines.logs import local_time, stamp_lines, stamps, untimed
from joulebook_pipelines.logs.contract import Log, LogRefusedError

_TOOL = re.compile(r"^\s*[\[\]{}\"]|^\s*(?:device|gpu|card\d+)\b")
"""Lines of the tools themselves: they hold no collector's stamp."""

_NUMBER = re.compile(r"\d+(\.\d+)?")

CURE = (
    "rocm-smi prints no times; put one before each round (date -Is; rocm-smi --showpower --csv), or log with "
    "amd-smi monitor --csv, whose rows carry a timestamp"
)


@dataclass(frozen=True)
class Said:
    """What a file says of its cards.

    Parameters
    ----------
    entries
        As in :mod:`joulebook_pipelines.logs.entries`.
    lines
        Physical lines of the file.
    naming
        By card: what names its model and itself.
    rejects
        Lines and stamps that could not be read.
    findings
        What is not known of the times.
    """

    entries: pl.DataFrame
    lines: int
    naming: dict[str, dict[str, str]]
    rejects: pl.DataFrame
    findings: tuple[Finding, ...] = ()


class Times:
    """The time of each round: in a column of its own, else a collector's.

    Parameters
    ----------
    log
        The file.
    samples
        Some of the file's own stamps; empty where it has none.
    line
        Where the first of them stands.
    rounds
        How many rounds the file holds, where they can be told apart without times: one alone is a moment, several follow each
        other as ``period_s`` says.

    Raises
    ------
    LogRefusedError
        There is no time at all, or it cannot be put on a clock.
    """

    def __init__(self, log: Log, samples: Sequence[str], line: int, rounds: int = 0) -> None:
        self.collector: stamp_lines.StampLines | None = None
        self.steps: untimed.Steps | untimed.Moment | None = None
        self._form: stamps.StampForm | None = None
        self._clock = local_time.Localiser(None)
        numbers = [s for s in samples if _NUMBER.fullmatch(s)]
        samples = numbers if len(numbers) * 2 > len(samples) else samples
        if not samples:
            self.collector = stamp_lines.find(log, _TOOL)
            if self.collector is None and rounds:
                self.steps = untimed.of_dumps(log, rounds, CURE)
            elif self.collector is None:
                raise LogRefusedError(
                    f"{log.name}: its rounds carry no time, and without times there is no energy; {CURE}"
                )
            return
        self._form = local_time.form(log, samples)
        if self._form.pattern == "relative":
            raise LogRefusedError(
                f"{log.name}:{line}: the times ({samples[0]!r}) count from an unknown start; log again with real ones"
            )
        self._clock = local_time.localiser(log, self._form, line, samples[0])

    def utc(self, texts: pl.Series) -> pl.Series:
        """Return UTC stamps of texts; null where one cannot be read."""
        frame, text = texts.to_frame("t"), pl.col("t")
        if self.collector is not None:
            return self.collector.utc(frame, text)
        assert self._form is not None
        return self._clock.utc(frame, stamps.parse(text, self._form))
