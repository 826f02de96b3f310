"""The columns of a meter's table as study.toml names them: by title, or by position from 1."""

from __future__ import annotations

import difflib
import re

from joulebook.schema import QUANTITY_NAMES
from joulebook_pipelines.logs import cells, device_places, meter_columns, meter_titles
from joulebook_pipelines.logs.contract import LogRefusedError, Options
from joulebook_pipelines.logs.dialect import Dialect
from joulebook_pipelines.logs.meter_columns import Group, Layout
from joulebook_pipelines.logs.table import Field

_USUAL = {"power_w": "W, kW or mW", "energy_j": "kWh, Wh or J", "energy_counter_j": "kWh, Wh or J"}
"""Units that meters write, of the many that are read."""


def from_options(dialect: Dialect, options: Options, name: str) -> Layout:
    """Return the layout that ``columns`` of study.toml tells, by title or by position from 1.

    Raises
    ------
    LogRefusedError
        A column is not there, there is no time, or a unit is not said.
    """
    wanted = options.columns
    places = {key: position(dialect, key, text, name) for key, text in wanted.items()}
    names = dialect.names
    where = f"{name}:{dialect.header_line}" if dialect.header_line else name
    stamps = [names[places[k]] for k in ("date", "time") if k in places] or [
        names[places[k]] for k in ("start",) if k in places
    ]
    if not stamps and "end" not in places:
        raise LogRefusedError(f'{where}: columns must name the time, as in columns = {{ time = "…", power_w = "…" }}')
    quantities = [k for k in wanted if k in QUANTITY_NAMES]
    if not quantities:
        raise LogRefusedError(f'{where}: columns must name at least one quantity, such as power_w = "…"')
    fields = tuple(_field_said(dialect, options, key, places[key], where) for key in quantities)
    device, scope = device_places.of("", options)
    scope = meter_columns.own_scope(scope, fields)
    if scope == "part" and options.device is None and options.scope is None:
        device = "sensor"
    rows_name = names[places["device"]] if "device" in places else None
    title_label = "start" if "start" in places and "time" not in places else None if "time" in places else "end"
    end = names[places["end"]] if "end" in places and stamps else None
    counts = tuple(
        (f.column, "counter" if f.quantity == "energy_counter_j" else "interval")
        for f in fields
        if f.quantity in meter_columns.ENERGIES
    )
    return Layout(
        tuple(stamps) or (names[places["end"]],), (Group("" if rows_name else device, scope, fields),),
        end=end, label=title_label, device=rows_name, counts=counts,
    )  # fmt: skip


def position(dialect: Dialect, key: str, text: str, name: str) -> int:
    """Return where a column of study.toml is, from 0."""
    folded = [t.casefold() for t in dialect.titles]
    if text.casefold().strip() in folded:
        return folded.index(text.casefold().strip())
    if text.isdigit() and 1 <= int(text) <= len(dialect.titles):
        return int(text) - 1
    titles = [t for t in dialect.titles if t]
    near = difflib.get_close_matches(text, titles, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    have = (
        ", ".join(repr(t) for t in titles[:20]) or f"{len(dialect.titles)} columns without titles: use positions from 1"
    )
    raise LogRefusedError(f"{name}: columns.{key} = {text!r} is no column of this file{hint}; it has {have}")


def _field_said(dialect: Dialect, options: Options, key: str, at: int, where: str) -> Field:
    title, header = dialect.titles[at], dialect.titles[at] or f"column {at + 1}"
    if key in cells.TEXT_QUANTITIES:
        return Field(dialect.names[at], header, key)
    unit = options.units.get(key) or _unit_in(title, dialect.units[at] if dialect.units else "", key)
    if not unit and key == "power_factor_ratio":
        unit = "1"
    if not unit:
        allowed = _USUAL.get(key) or " or ".join(list(cells.units_of(key))[:3])
        raise LogRefusedError(
            f'{where}: nothing says the unit of {header!r} ({allowed}); add units = {{ {key} = "…" }} to this '
            f"[[source]]"
        )
    return Field(dialect.names[at], header, key, unit, required=key == "power_w")


def _unit_in(title: str, unit_row: str, key: str) -> str:
    """Return the unit that a title says for a quantity; ``""`` where none fits."""
    for unit in (
        meter_titles.meaning(title, unit_row).unit,
        unit_row.strip("[]() "),
        *re.findall(r"[\[(]\s*([^\])]+?)\s*[\])]\s*$", title),
    ):
        if unit and cells.factor(key, str(unit)) is not None:
            return str(unit)
    return ""
