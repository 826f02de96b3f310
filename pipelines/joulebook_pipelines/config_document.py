"""A whole study.toml: its sections, and whether they agree on unique names, known hosts, clocks and knobs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field, model_validator

from joulebook_pipelines.config_errors import nearest, refusal
from joulebook_pipelines.config_names import DEFAULT_HOST, KNOBS
from joulebook_pipelines.config_schema import (
    Calibration,
    Campaign,
    Devices,
    General,
    Idle,
    Model,
    Run,
    Section,
    Site,
    Source,
    Sweep,
)


class Document(Section):
    """A whole study.toml; the first disagreement between its sections refuses it, by its place."""

    study: General = General()
    site: Site = Site()
    model: Model = Model()
    devices: Devices = Devices()
    source: Annotated[tuple[Source, ...], Field(strict=False)] = ()
    run: Annotated[tuple[Run, ...], Field(strict=False)] = ()
    idle: Annotated[tuple[Idle, ...], Field(strict=False)] = ()
    sweep: Annotated[tuple[Sweep, ...], Field(strict=False)] = ()
    campaign: Annotated[tuple[Campaign, ...], Field(strict=False)] = ()
    calibration: Annotated[tuple[Calibration, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        _names_unique(self)
        _knobs_known(self)
        _clock_known(self)
        _hosts_known(self)
        return self


def _names_unique(document: Document) -> None:
    entries = (("run", "id", document.run), ("sweep", "name", document.sweep), ("campaign", "name", document.campaign))
    for section, name, items in entries:
        first: dict[str, int] = {}
        for i, item in enumerate(items):
            value = getattr(item, name)
            if value in first:
                raise refusal(f"is taken by {section}[{first[value] + 1}]", at=(section, i, name), value=value)
            first[value] = i


def _knobs_known(document: Document) -> None:
    allowed = (*KNOBS, *sorted({label for run in document.run for label in run.labels}))
    for i, sweep in enumerate(document.sweep):
        if sweep.knob not in allowed and not re.fullmatch(r"labels\..+", sweep.knob):
            raise refusal(
                "is neither a knob nor a label of a [[run]] (a label from a training log is written as labels.NAME)",
                at=("sweep", i, "knob"), value=sweep.knob, near=nearest(sweep.knob, allowed), allowed=allowed,
            )  # fmt: skip


def _clock_known(document: Document) -> None:
    clocks = tuple(dict.fromkeys(s.clock or s.host or DEFAULT_HOST for s in document.source))
    reference = document.study.reference_clock
    if clocks and reference is not None and reference not in clocks:
        raise refusal(
            "is not the clock of any [[source]]", at=("study", "reference_clock"), value=reference,
            near=nearest(reference, clocks), allowed=clocks,
        )  # fmt: skip


def _hosts_known(document: Document) -> None:
    hosts = tuple(dict.fromkeys(s.host or DEFAULT_HOST for s in document.source))
    entries: tuple[tuple[str, Sequence[Run | Idle | Calibration]], ...] = (
        ("run", document.run), ("idle", document.idle), ("calibration", document.calibration),
    )  # fmt: skip
    for section, items in entries:
        for i, item in enumerate(items):
            at = (section, i, "host")
            if item.host is not None and hosts and item.host not in hosts:
                raise refusal(
                    "is not the host of any [[source]]",
                    at=at,
                    value=item.host,
                    near=nearest(item.host, hosts),
                    allowed=hosts,
                )
            if item.host is None and len(hosts) > 1 and DEFAULT_HOST not in hosts:
                raise refusal("is missing, and the sources are of several hosts", at=at, allowed=hosts)
