"""The configuration that is in force, written as a study.toml with every default filled in."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from joulebook_pipelines import config_text
from joulebook_pipelines.config_schema import Section

if TYPE_CHECKING:
    from joulebook_pipelines.config_study import ResolvedSource, Study

WIDTH = 100
"""Characters of a line of comment."""

FILES_LISTED = 8
"""Files of one glob that are listed by name; the others are counted."""


def render(study: Study, resolved: Sequence[ResolvedSource]) -> str:
    """Return the configuration as TOML that loads to the same study.

    Parameters
    ----------
    study
        The study.
    resolved
        Its files, as :meth:`Study.sources_resolved` returns them.

    Returns
    -------
    str
        Every section with every key; keys without a value stand in comments.
    """
    lines = [f"# effective configuration of {config_text.string(study.place)}"]
    lines += _table("[study]", study.general, {"name": study.name})
    for name, section in (("site", study.site), ("model", study.model), ("devices", study.devices)):
        lines += _table(f"[{name}]", section, {})
    lines += _sources(study, resolved)
    lists = (
        ("run", study.runs), ("idle", study.idles), ("sweep", study.sweeps), ("campaign", study.campaigns),
        ("calibration", study.calibrations),
    )  # fmt: skip
    for name, entries in lists:
        for entry in entries:
            lines += _table(f"[[{name}]]", entry, {})
    return "\n".join(lines) + "\n"


def _sources(study: Study, resolved: Sequence[ResolvedSource]) -> Iterator[str]:
    groups: dict[str, list[ResolvedSource]] = {}
    for file in resolved:
        groups.setdefault(file.entry if study.sources else file.name, []).append(file)
    for i, files in enumerate(groups.values()):
        first = files[0]
        options = first.options
        filled = {
            "path": study.sources[i].path if study.sources else first.name,
            "host": options.host,
            "clock": first.clock,
            "timezone": options.timezone,
            "range_j": options.range_j,
        }
        section = study.sources[i] if study.sources else study.whole_folder
        yield from _table("[[source]]", section, filled)
        if study.sources:
            yield from (f"# reads {config_text.string(f.name)}" for f in files[:FILES_LISTED])
            if len(files) > FILES_LISTED:
                yield f"# and {len(files) - FILES_LISTED} more"


def _table(header: str, section: Section, filled: Mapping[str, object]) -> Iterator[str]:
    """Yield a section; ``filled`` are the defaults that depend on other sections."""
    yield ""
    yield header
    unset = []
    for name in type(section).model_fields:
        value = filled.get(name, getattr(section, name))
        if value is None or value in ({}, ()):
            unset.append(name)
        else:
            yield f"{name} = {config_text.value(value)}"
    if unset:
        yield from textwrap.wrap(", ".join(unset), WIDTH, initial_indent="# not set: ", subsequent_indent="#   ")
