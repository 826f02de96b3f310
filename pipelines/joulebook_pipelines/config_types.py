"""Kinds of values in study.toml, each of which refuses with what is allowed."""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    StringConstraints,
    ValidationInfo,
)
from pydantic_core import CoreSchema, core_schema

from joulebook_pipelines import config_files
from joulebook_pipelines.config_errors import nearest, refusal

_OFFSET = re.compile(r"^(UTC|GMT|Z)?[+-]\d{1,2}(:?\d{2})?$", re.IGNORECASE)
_MEMORY = re.compile(r"^\d+(\.\d+)? ?([KMGT]i?B)$")


@dataclass(frozen=True)
class Surroundings:
    """What the check of a value needs to know beside the value.

    Parameters
    ----------
    folder
        Folder that paths are relative to.
    zone
        Zone of times without an offset.
    zone_known
        False where the zone itself is in error, so that times are not blamed for it.
    adapters
        Names of adapters; empty = not checked.
    """

    folder: Path
    zone: zoneinfo.ZoneInfo | None = None
    zone_known: bool = True
    adapters: Collection[str] = field(default_factory=tuple)


@dataclass(frozen=True)
class OneOf:
    """Only these names, with the nearest suggested.

    Parameters
    ----------
    what
        What such a name is called in a message.
    names
        The names.
    """

    what: str
    names: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Tell pydantic to check after the type."""
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def check(self, value: str) -> str:
        """Return the name; refuse any other."""
        if value not in self.names:
            raise refusal(f"is not a known {self.what}", near=nearest(value, self.names), allowed=self.names)
        return value


@cache
def _zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones() | {"UTC"})


def zone_error(name: str) -> str | None:
    """Return why a name is no zone, with the cure; ``None`` where it is one."""
    if name in _zones():
        return None
    if _OFFSET.match(name):
        return "is an offset, not a zone; write the zone as Area/City, or utc_offset_s in the [[source]]"
    return 'is not a time zone; write "UTC" or an Area/City of the IANA list, such as "Europe/Berlin"'


def _nearest_zone(name: str) -> str | None:
    """Return the zone that was meant: by its city alone, else by spelling."""
    places = {zone.rsplit("/", 1)[-1].casefold(): zone for zone in sorted(_zones(), reverse=True)}
    city = name.rsplit("/", 1)[-1].strip().replace(" ", "_").casefold()
    return places.get(city) or nearest(name, sorted(_zones()))


def _zone(name: str) -> str:
    why = zone_error(name)
    if why is not None:
        raise refusal(why, near=None if _OFFSET.match(name) else _nearest_zone(name))
    return name


def _memory(text: str) -> str:
    if not _MEMORY.match(text) or float(re.split(r" ?[KMGT]", text)[0]) == 0:
        raise refusal('is not an amount of memory; write a number and a unit, such as "2GB"')
    return text


def _file(name: str, info: ValidationInfo) -> str:
    around = info.context
    if isinstance(around, Surroundings) and not (around.folder / name).is_file():
        raise refusal(f"names no file; {config_files.beside(around.folder, name)}")
    return name


def _number_or_file(value: object, info: ValidationInfo) -> object:
    if isinstance(value, str):
        return _file(value, info)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refusal("must be a number, or the name of a CSV file by hour in quotes")
    return float(value)


def _label(value: object) -> object:
    if not isinstance(value, str | int | float | bool):
        raise refusal("must be text, a number, true or false")
    return value


def _time(value: dt.datetime, info: ValidationInfo) -> dt.datetime:
    """Return the time in UTC; one without an offset needs the zone of the study, and must exist there just once."""
    if value.tzinfo is not None:
        return value.astimezone(dt.UTC)
    around = info.context if isinstance(info.context, Surroundings) else None
    if around is not None and not around.zone_known:
        return value.replace(tzinfo=dt.UTC)
    if around is None or around.zone is None:
        raise refusal("has no offset from UTC; end it in Z or an offset such as +08:00, or set study.timezone")
    first, second = (value.replace(tzinfo=around.zone, fold=fold).astimezone(dt.UTC) for fold in (0, 1))
    if first.astimezone(around.zone).replace(tzinfo=None) != value:
        raise refusal(f"does not exist in {around.zone.key}: the clock was put forward; write it with its offset")
    if first != second:
        raise refusal(f"exists twice in {around.zone.key}: the clock was put back; write it with its offset")
    return first


def _adapter(name: str, info: ValidationInfo) -> str:
    known = tuple(info.context.adapters) if isinstance(info.context, Surroundings) else ()
    if known and name not in known:
        raise refusal("is not an adapter", near=nearest(name, known), allowed=sorted(known))
    return name


def _column(value: object) -> object:
    """Return the title of a column, or its position as text: files without a header have nothing else."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and value > 0 else value


def _distinct(values: tuple[str, ...]) -> tuple[str, ...]:
    twice = next((v for i, v in enumerate(values) if v in values[:i]), None)
    if twice is not None:
        raise refusal(f"names {twice!r} twice")
    return values


Text = Annotated[str, StringConstraints(min_length=1)]
Texts = Annotated[tuple[Text, ...], Field(strict=False), AfterValidator(_distinct)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(gt=0)]
Zone = Annotated[str, AfterValidator(_zone)]
Memory = Annotated[str, AfterValidator(_memory)]
FileName = Annotated[Text, AfterValidator(_file)]
NumberOrFile = Annotated[float | str, BeforeValidator(_number_or_file)]
Label = Annotated[str | int | float | bool, BeforeValidator(_label)]
Time = Annotated[dt.datetime, AfterValidator(_time)]
AdapterName = Annotated[Text, AfterValidator(_adapter)]
ColumnTitle = Annotated[Text, BeforeValidator(_column)]
