"""Chrome traces as JSON, as the PyTorch profiler writes them: annotations become phases, profiler steps become steps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import polars as pl

from joulebook import schema
from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import json_text, phase_log, step_log
from joulebook_pipelines.logs.contract import Adapter, Head, Log, LogRefusedError, Part

ORIGIN = "profiler trace"

_STEP = re.compile(r"^ProfilerStep#(\d+)$")
_ANNOTATIONS = frozenset({"user_annotation", "annotation", "python_user_annotation"})
_ON_DEVICE = frozenset({"kernel", "gpu_user_annotation", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver"})


def _sniff(head: Head) -> bool:
    text = head.text.lstrip()
    if text.startswith("{"):
        return '"traceEvents"' in text or '"baseTimeNanoseconds"' in text
    return text.startswith("[") and re.search(r'"ph"\s*:\s*"[BEXM]"', text[:4096]) is not None and '"ts"' in text


@dataclass
class _Spans:
    """Spans found in a trace, in nanoseconds of its own time."""

    named: list[tuple[str, int, int]] = field(default_factory=list)
    steps: list[tuple[int, int, int]] = field(default_factory=list)
    damaged: int = 0

    def add(self, name: str, category: str, start_ns: int, end_ns: int) -> None:
        """Keep what people annotated, and what is named like a phase; operators and kernels are neither."""
        if category in _ON_DEVICE or end_ns <= start_ns:
            return
        if match := _STEP.match(name):
            self.steps.append((int(match[1]), start_ns, end_ns))
        elif category in _ANNOTATIONS or phase_log.word(name) in schema.PHASES:
            self.named.append((phase_log.word(name), start_ns, end_ns))


def _number(value: Any) -> float | None:
    return (
        float(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e18 else None
    )


def _spans(events: list[Any]) -> _Spans:
    found = _Spans()
    open_: dict[tuple[str, str], list[tuple[str, str, float]]] = {}
    for event in events:
        if not isinstance(event, dict) or not isinstance(event.get("name", ""), str):
            found.damaged += 1
            continue
        kind, at_us = event.get("ph"), _number(event.get("ts"))
        if kind not in {"X", "B", "E"}:
            continue
        name, category = str(event.get("name", "")), str(event.get("cat", ""))
        thread = (str(event.get("pid")), str(event.get("tid")))
        if at_us is None:
            found.damaged += 1
        elif kind == "X":
            length_us = _number(event.get("dur"))
            if length_us is None:
                found.damaged += 1
            else:
                found.add(name, category, _ns(at_us), _ns(at_us) + _ns(length_us))
        elif kind == "B":
            open_.setdefault(thread, []).append((name, category, at_us))
        elif open_.get(thread):
            name, category, start_us = open_[thread].pop()
            found.add(name, category, _ns(start_us), _ns(at_us))
        else:
            found.damaged += 1
    found.damaged += sum(map(len, open_.values()))
    return found


def _ns(us: float) -> int:
    # Whole microseconds first: a float cannot hold today's nanoseconds.
    whole = int(us)
    return whole * 1000 + round((us - whole) * 1000)


def _base_ns(log: Log, document: Any, first_ns: int) -> int:
    """Return what has to be added to the stamps to make them Unix time [ns].

    Raises
    ------
    LogRefusedError
        Nothing says when the trace's clock began.
    """
    base = document.get("baseTimeNanoseconds") if isinstance(document, dict) else None
    if isinstance(base, int) and phase_log.moment(base + first_ns) is not None:
        return base
    if phase_log.moment(first_ns) is not None:
        return 0
    raise LogRefusedError(
        f"{log.name}: the stamps count from an unknown start (the first is {first_ns / 1e9:.6f} s) and there is no baseTimeNanoseconds; "
        "PyTorch 2.4 and later write it, or log the phases with their times (run, phase, start, end)"
    )


def _parse(log: Log) -> Iterator[Part]:
    text = log.whole_text()
    document = json_text.document(log, text, cure="a profiler that was killed leaves its trace cut")
    events = document.get("traceEvents") if isinstance(document, dict) else document
    if not isinstance(events, list):
        raise LogRefusedError(f"{log.name}: has no list of traceEvents")
    found = _spans(events)
    if not found.named and not found.steps:
        raise LogRefusedError(
            f'{log.name}: has no annotated phase and no profiler step; mark them with torch.profiler.record_function("forward") and '
            "prof.step()"
        )
    base = _base_ns(log, document, min(s for _, s, _ in (*found.named, *found.steps)))
    phases = [("", name, *times) for name, start, end in found.named if (times := _times(base, start, end))]
    yield Part(
        lines=text.count("\n") + (not text.endswith("\n")), phases=phase_log.frame(phases, ORIGIN), steps=_steps(log, found, base),
        findings=_findings(log, found, len(phases)),
    )  # fmt: skip


def _times(base: int, start: int, end: int) -> tuple[datetime, datetime] | None:
    first, last = phase_log.moment(base + start), phase_log.moment(base + end)
    return None if first is None or last is None or last <= first else (first, last)


def _steps(log: Log, found: _Spans, base: int) -> pl.DataFrame | None:
    rows = {
        number: (step_log.run_of(log), number, *times, None, None, None, None)
        for number, start, end in found.steps if (times := _times(base, start, end))
    }  # fmt: skip
    return pl.DataFrame(list(rows.values()), schema=step_log.STEP_SCHEMA, orient="row").sort("step") if rows else None


def _findings(log: Log, found: _Spans, kept: int) -> tuple[Finding, ...]:
    told = [phase_log.without_run(log)] if found.named else []
    if found.damaged:
        told.append(Finding(
            "events-not-read", Severity.WARNING, log.name,
            f"{found.damaged} events of the trace have no name, time or end and were not read.", {"events": found.damaged},
        ))  # fmt: skip
    if kept < len(found.named):
        told.append(Finding(
            "spans-too-short", Severity.NOTE, log.name,
            f"{len(found.named) - kept} annotations are shorter than a microsecond: they were left out.",
        ))  # fmt: skip
    return tuple(told)


ADAPTER = Adapter(
    name="chrome-trace",
    title="Chrome trace JSON of the PyTorch profiler (annotations, profiler steps)",
    yields="phases and steps with absolute times",
    sniff=_sniff,
    parse=_parse,
)
