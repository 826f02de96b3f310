"""Which adapter reads a file: exactly one must claim it."""

from __future__ import annotations

import difflib

from joulebook_pipelines.adapters import ADAPTERS
from joulebook_pipelines.logs.contract import Adapter, Head, LogRefusedError

BINARY_SAMPLE, BINARY_SHARE = 4_000, 0.05
"""Characters that are looked at, and the share of odd ones from which a file is no text; a crash leaves fewer in a log."""


def named(name: str) -> Adapter:
    """Return the adapter of that name.

    Raises
    ------
    LogRefusedError
        There is none; the nearest name is told.
    """
    for adapter in ADAPTERS:
        if adapter.name == name:
            return adapter
    near = difflib.get_close_matches(name, [a.name for a in ADAPTERS], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise LogRefusedError(f"there is no adapter {name!r}{hint} (joulebook formats lists them)")


def claims(head: Head) -> list[Adapter]:
    """Return the adapters that claim a file; one that reads what nobody else knows only where no other does."""
    found = [a for a in ADAPTERS if not a.fallback and _claims(a, head)]
    return found or [a for a in ADAPTERS if a.fallback and _claims(a, head)]


def adapter_for(head: Head, *, columns_given: bool = False) -> Adapter:
    """Return the one adapter that claims a file.

    Parameters
    ----------
    head
        The beginning of the file.
    columns_given
        study.toml says what the columns of the file hold, so a table that no adapter knows can be read all the same.

    Raises
    ------
    LogRefusedError
        None or several claim it.
    """
    found = claims(head)
    if not found and columns_given:
        found = [a for a in ADAPTERS if a.fallback]
    if len(found) == 1:
        return found[0]
    if not found and _binary(head):
        raise LogRefusedError(
            f"{head.name}: is not text, and no adapter knows this binary format; export it as a table with a time and a power column "
            "(CSV), or leave it out of the study"
        )
    if not found:
        first = next((line for line in head.lines if line.strip()), "")[:100]
        raise LogRefusedError(
            f"{head.name}: no adapter knows this format (it begins {first!r}). If it is a table of meter readings, name its columns: "
            'columns = { time = "…", power_w = "…" }; joulebook formats lists what is read'
        )
    raise LogRefusedError(
        f'{head.name}: {len(found)} adapters claim this file ({", ".join(a.name for a in found)}); add adapter = "…" to its [[source]]'
    )


def _binary(head: Head) -> bool:
    """Tell whether a file is no text: several bytes in a hundred stand for no character that a log holds."""
    sample = head.text[:BINARY_SAMPLE]
    odd = sum((c < " " and c not in "\t\r\n\x1b") or c == "\ufffd" for c in sample)
    return odd > BINARY_SHARE * len(sample)


def _claims(adapter: Adapter, head: Head) -> bool:
    try:
        return adapter.sniff(head)
    except (ValueError, IndexError, KeyError):
        # A sniff that stumbles over foreign text does not claim it.
        return False
