"""Lines that carry the name of a host in front, as pdsh, clush and FreeIPMI print them for several hosts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from joulebook_pipelines.logs import stamp_lines
from joulebook_pipelines.logs.contract import Log, LogRefusedError

_STAMP = rf"(?:[\s#\[]*(?:{'|'.join(stamp_lines.FORMS[s] for s in ('iso', 'date', 'epoch'))})[\],;]*\s+)?"
_HOST = r"([A-Za-z][\w-]*(?:\.[\w-]+)*):\s+"
_PREFIXED = rf"^({_STAMP}){_HOST}"
_SAYS_POWER = re.compile(r"(?i)power reading|current power|\|[^|]*\|")
"""What stands behind the name where the line is a tool's value."""


def host_of(log: Log) -> str | None:
    """Return the host whose lines are to be read; ``None`` where lines carry no names.

    Raises
    ------
    LogRefusedError
        The lines are of several hosts and study.toml does not say of which.
    """
    found = _hosts(log.head.lines)
    if not found:
        return None
    if len(found) == 1:
        return found[0]
    if log.options.host in found:
        return log.options.host
    shown = ", ".join(found[:5]) + (" …" if len(found) > 5 else "")
    raise LogRefusedError(
        f"{log.name}: its lines are of {len(found)} hosts ({shown}); one source is of one host. Make a file for each, e.g. "
        f"grep '{found[0]}:' {log.name} > {found[0]}.txt, and name it in its [[source]]: host = \"{found[0]}\""
    )


def head_of(log: Log, host: str) -> Log:
    """Return the log with a beginning that holds one host's lines only, without its name; lines keep their places."""
    lines = pl.DataFrame({"text": log.head.lines})
    mine, plain = only(pl.col("text"), host)
    told = lines.select(pl.when(mine).then(plain).otherwise(pl.lit(""))).to_series().to_list()
    return replace(log, head=replace(log.head, text="\n".join(told)))


def _hosts(lines: Sequence[str]) -> list[str]:
    """Return the hosts in front of values, in order, where most values have one."""
    values = [line for line in lines if _SAYS_POWER.search(line)]
    names = [m[2] for line in values if (m := re.match(_PREFIXED, line))]
    return list(dict.fromkeys(names)) if 2 * len(names) > len(values) else []


def only(text: pl.Expr, host: str) -> tuple[pl.Expr, pl.Expr]:
    """Return which lines are of a host or of none, and the lines without its name.

    Examples
    --------
    >>> frame = pl.DataFrame({"t": ["n1: 300 W", "n2: 500 W", "2026-03-02T10:00:00Z"]})
    >>> mine, plain = only(pl.col("t"), "n1")
    >>> frame.filter(mine).select(plain)["t"].to_list()
    ['300 W', '2026-03-02T10:00:00Z']
    """
    name = text.str.extract(_PREFIXED, 2)
    return name.is_null() | (name == host), text.str.replace(_PREFIXED, "${1}")
