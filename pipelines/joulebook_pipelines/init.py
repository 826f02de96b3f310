"""A first study.toml for a folder of logs: what was recognised, and what only its owner can say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from joulebook.schema import SUMMED_SCOPES
from joulebook_pipelines import config_text
from joulebook_pipelines.questions import Question

FILL_IN = "FILL IN"
"""Mark of the places that need an answer."""


@dataclass(frozen=True)
class Recognised:
    """What the adapters say about one file.

    Parameters
    ----------
    name
        Name relative to the folder, with forward slashes.
    adapter
        Name of the adapter that reads it, ``None`` where none does, or several claim it.
    reason
        Why there is no adapter, or why it cannot read the file whatever is said of it.
    questions
        What must be said of the file before it can be read, each with the refusal that asks for it.
    needs_zone
        Its stamps carry no offset from UTC.
    needs_scope
        The format does not say what its power covers.
    """

    name: str
    adapter: str | None
    reason: str = ""
    questions: tuple[tuple[Question, str], ...] = ()
    needs_zone: bool = False
    needs_scope: bool = False


def draft(folder: Path, recognised: Sequence[Recognised]) -> str:
    """Return the text of a study.toml for a folder.

    Parameters
    ----------
    folder
        The folder; its name becomes the study's.
    recognised
        Its files, in the order in which they shall stand.

    Returns
    -------
    str
        TOML that loads as it stands. Where something must be said first, a commented line marked ``FILL IN`` says what;
        files that cannot be read stand in comments with the reason.

    Examples
    --------
    >>> text = draft(Path("node7"), [Recognised("gpu.csv", "nvidia-smi-csv", needs_zone=True)])
    >>> [line for line in text.splitlines() if "FILL IN" in line and "timezone" in line]
    ['# timezone = "Area/City"   # FILL IN: zone of the stamps without an offset in "gpu.csv"']
    """
    lines = [
        "# Written by `joulebook init` from the files of this folder.",
        f"# Lines marked {FILL_IN} need an answer: take the first # away and put the right value in.",
        "",
        "[study]",
        f"name = {config_text.string(folder.resolve().name or 'study')}",
        *_zone([r for r in recognised if r.needs_zone and not r.reason]),
        "",
        *_SITE,
    ]
    for record in recognised:
        lines += ["", *(_source(record) if record.adapter is not None and not record.reason else _unread(record))]
    return "\n".join([*lines, "", *_RUNS]) + "\n"


_SITE = (
    "# Facility energy, carbon and cost are given once these are known:",
    "# [site]",
    "# pue = 1.3",
    "# carbon_kg_per_kwh = 0.4         # a number, or the name of a CSV file by hour",
    "# price_per_kwh = 0.12            # a number, or the name of a CSV file by hour",
    '# currency = "USD"',
)

_RUNS = (
    "# Runs come from training logs where there are some, else one for each busy stretch. To name them yourself:",
    "# [[run]]",
    '# id = "run-1"',
    "# start = 2026-11-01T08:00:00Z",
    "# end = 2026-11-01T09:00:00Z",
)

_FILES_NAMED = 4
"""Files that the line of the zone names; the others are counted."""


def _zone(needing: Sequence[Recognised]) -> Iterator[str]:
    if not needing:
        return
    files = ", ".join(config_text.string(r.name) for r in needing[:_FILES_NAMED])
    more = f" and {len(needing) - _FILES_NAMED} more" if len(needing) > _FILES_NAMED else ""
    yield f'# timezone = "Area/City"   # {FILL_IN}: zone of the stamps without an offset in {files}{more}'


def _source(record: Recognised) -> Iterator[str]:
    yield "[[source]]"
    yield f"path = {config_text.string(record.name)}   # {_plain(record.adapter or '')}"
    said = ""
    for question, reason in record.questions:
        why = "with the line above" if reason == said else _plain(reason)
        yield f"# {question.key} = {question.value}   # {FILL_IN}: {why}"
        said = reason
    if record.needs_scope:
        yield f'# scope = "node"   # {FILL_IN}: what the meter covers, one of {", ".join(SUMMED_SCOPES)}'
        yield '# clock = "meter"   # if it stamps with its own clock, not with the host\'s'


def _unread(record: Recognised) -> Iterator[str]:
    yield f"# not read: {_plain(record.reason) or 'no format that joulebook knows'}"
    yield "# [[source]]"
    yield f"# path = {config_text.string(record.name)}"
    if record.adapter is None:
        yield '# adapter = "…"   # its format, where it is one that `joulebook formats` lists'


def _plain(text: str) -> str:
    """Return text that can stand in one line of a comment."""
    return config_text.string(" ".join(text.split())).strip('"').replace('\\"', '"')
