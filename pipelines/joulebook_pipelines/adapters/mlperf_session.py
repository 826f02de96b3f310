"""Session files of MLPerf's power measurement (``client.json``, ``server.json``): when ranging and testing were metered."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import json_text, phase_log, table
from joulebook_pipelines.logs.contract import Adapter, Head, Log, LogRefusedError, Part

ORIGIN = "power session"

_MARKS = ("ptd_client_server", "mlcommons/power")
_CLIENT = "ptd_client_server.lib.client"

_METERED = (1, 2)
"""Of the four moments of a phase: the meter has started, it is told to stop."""


def _sniff(head: Head) -> bool:
    return head.text.lstrip().startswith("{") and '"version"' in head.text and any(m in head.text for m in _MARKS)


def _parse(log: Log) -> Iterator[Part]:
    text = log.whole_text()
    document = json_text.document(log, text, cure="copy it again")
    told = document.get("phases") if isinstance(document, dict) else None
    if not isinstance(told, dict) or not told:
        raise LogRefusedError(
            f"{log.name}: tells of no phase (phases with ranging and testing); give the window as [[run]] with start and end"
        )
    rows: list[tuple[str, str, datetime, datetime, str]] = []
    bad: list[tuple[int, str]] = []
    for name, moments in told.items():
        window = _window(moments)
        if window is None:
            bad.append((1, f"{name}: {json.dumps(moments)}"))
        else:
            rows.append(("", name, *window, ORIGIN))
    lines = text.count("\n") + (not text.endswith("\n"))
    odd = pl.DataFrame(bad, schema={"line": pl.Int64, "raw": pl.String}, orient="row")
    yield Part(
        lines=lines, phases=pl.DataFrame(rows, schema=phase_log.PHASE_SCHEMA, orient="row"),
        rejects=table.whole_lines(odd, "no-such-time"), findings=_clock_finding(log, document),
    )  # fmt: skip


def _window(moments: Any) -> tuple[datetime, datetime] | None:
    """Return the metered time of a phase from its four pairs of wall clock and monotonic clock."""
    if not isinstance(moments, list) or len(moments) != 4:
        return None
    ends = []
    for at in _METERED:
        pair = moments[at]
        wall = pair[0] if isinstance(pair, list) and pair else None
        if isinstance(wall, bool) or not isinstance(wall, int | float) or not math.isfinite(wall):
            return None
        moment = phase_log.moment(round(wall * 1e6) * 1000)
        if moment is None:
            return None
        ends.append(moment)
    return (ends[0], ends[1]) if ends[1] > ends[0] else None


def _clock_finding(log: Log, document: dict[str, Any]) -> tuple[Finding, ...]:
    """Say how far the client's clock was from that of the meter's computer: it asked for the time again and again."""
    modules, messages = document.get("modules"), document.get("messages")
    if not isinstance(modules, dict) or _CLIENT not in modules or not isinstance(messages, list):
        return ()
    offsets = []
    for message in messages:
        if not isinstance(message, dict) or message.get("cmd") != "time":
            continue
        try:
            asked, told, heard = (float(message[k]) for k in ("cmd_time", "reply", "reply_time"))
        except (KeyError, TypeError, ValueError):
            continue
        if all(map(math.isfinite, (asked, told, heard))):
            offsets.append((asked + heard) / 2 - told)
    if not offsets:
        return ()
    offset_s = statistics.median(offsets)
    return (Finding(
        "clock-offset", Severity.NOTE, log.name,
        f"The clock of this machine was {abs(offset_s) * 1e3:.1f} ms {'ahead of' if offset_s > 0 else 'behind'} that of the meter's "
        f"computer (median of {len(offsets)} comparisons).", {"offset_s": offset_s, "comparisons": len(offsets)},
    ),)  # fmt: skip


ADAPTER = Adapter(
    name="mlperf-session",
    title="session files of MLPerf's power measurement (client.json, server.json)",
    yields="phases of the metered session (ranging, testing) and the offset of the client's clock",
    sniff=_sniff,
    parse=_parse,
)
