"""Which columns of a meter's table are read, and as what: from their titles, or from what study.toml says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from joulebook_pipelines.logs import calendar_columns, cells, device_places, meter_makers, meter_series, meter_titles
from joulebook_pipelines.logs.contract import LogRefusedError, Options
from joulebook_pipelines.logs.dialect import Dialect
from joulebook_pipelines.logs.meter_titles import Meaning
from joulebook_pipelines.logs.table import Field

ENERGIES = ("energy_j", "energy_counter_j")
_OF_ROWS = frozenset({"", "gpu"})
"""Places of titles that are about the device that a row names."""

_ENERGETIC = frozenset({"power_w", *ENERGIES})
_BOUNDS = (("start", "end"), ("from", "to"), ("von", "bis"))
_HOSTS = {"host", "hostname", "server", "machine", "node", "nodename", "node_name"}
_USAGE = {"usage", "consumption", "verbrauch", "amount", "consumo", "consommation"}


@dataclass(frozen=True)
class Group:
    """Columns about one device.

    Parameters
    ----------
    device
        ``""`` where each row names its own.
    total
        Its title says that it is a sum.
    judged
        Scope by whose rules impossible values are told: a part of a rack's total may draw more than a chip.
    """

    device: str
    scope: str
    fields: tuple[Field, ...]
    total: bool = False
    judged: str = ""


@dataclass(frozen=True)
class Layout:
    """The columns that are read; names are those of the raw frame.

    Parameters
    ----------
    time
        One column, or date and time of day, or year, month, day, hour and what is finer.
    millis
        Column of the milliseconds that belong behind a time of day.
    end
        Column with the end of the span, where the table has start and end.
    label
        ``start`` or ``end`` where the title of the stamp says which of a span it is.
    zone
        Zone that the title of the stamps names, or offset, as ``+01:00``.
    value, unit
        Columns of a table with a row per value and the unit beside it.
    host
        Column of the host, beside one of the device.
    cards
        The column of the device numbers accelerators.
    counts
        For each energy column what its title says: ``counter``, ``interval`` or nothing.
    unread
        Titles that speak of power or energy and are not read, with the reason.
    """

    time: tuple[str, ...]
    groups: tuple[Group, ...] = ()
    millis: str | None = None
    end: str | None = None
    label: str | None = None
    relative: bool = False
    relative_unit: str = ""
    zone: str = ""
    device: str | None = None
    host: str | None = None
    cards: bool = False
    value: str | None = None
    unit: str | None = None
    counts: tuple[tuple[str, str], ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, of all devices."""
        return tuple(f for g in self.groups for f in g.fields)

    def counting(self, column: str) -> str:
        """Return what the title of an energy column says of it."""
        return dict(self.counts).get(column, "")


def knows(titles: Sequence[str]) -> bool:
    """Tell whether titles name a time and a power or an energy."""
    found = meanings(titles)
    roles = {m.role for m in found}
    if not roles & {"time", "clock", "start", "end", "relative", "date"}:
        return False
    measured = any(m.quantity in {"power_w", "energy_j"} for m in found)
    return measured or {"value", "unit"} <= roles


def meanings(titles: Sequence[str], units: Sequence[str] = ()) -> list[Meaning]:
    """Return what each title says, and what only the titles beside it tell: a bare start is one beside an end.

    Examples
    --------
    >>> [m.role for m in meanings(["Start", "End", "Usage (kWh)"])]
    ['start', 'end', 'quantity']
    """
    found = [meter_titles.meaning(t, u) for t, u in zip(titles, units or [""] * len(titles), strict=True)]
    found = [meter_series.meaning(t) or m for t, m in zip(titles, found, strict=True)]
    bare = [t.strip().strip("#").strip().casefold() for t in titles]
    if any(m.role == "unit" for m in found) and not any(m.role in {"quantity", "value"} for m in found):
        # A column of units makes a bare usage beside it an energy (or a power) of each interval.
        found = [
            Meaning("quantity", "energy_j", counts="interval") if t in _USAGE else m
            for t, m in zip(bare, found, strict=True)
        ]
    measured = [i for i, m in enumerate(found) if m.role == "quantity"]
    if len(measured) == 1 and found[measured[0]].quantity == "power_w" and not found[measured[0]].unit:
        # The unit stands beside each power, and may change from row to row.
        found = [
            Meaning("value") if i in measured and any(m.role == "unit" for m in found) else m
            for i, m in enumerate(found)
        ]
    bounds = next((p for p in _BOUNDS if set(p) <= set(bare)), ())
    for role, title in zip(("start", "end"), bounds, strict=False):
        found[bare.index(title)] = Meaning(role)
    return meter_makers.told(bare, found)


def from_titles(dialect: Dialect, options: Options, name: str) -> Layout:
    """Return the layout that the titles tell.

    Raises
    ------
    LogRefusedError
        There is no time, or the unit of a power or an energy is not said.
    """
    units = dialect.units or ("",) * len(dialect.titles)
    found = meanings(dialect.titles, units)
    frame = _time_of(dialect, found)
    roles = {m.role: i for i, m in reversed(list(enumerate(found)))}
    devices = [i for i, m in enumerate(found) if m.role == "device"]
    hosts = [i for i in devices if dialect.titles[i].strip().casefold() in _HOSTS]
    host = None
    if len(devices) > 1 and hosts:
        host = dialect.names[hosts[0]]
        roles["device"] = next((i for i in devices if i not in hosts), hosts[0])
    device = dialect.names[roles["device"]] if "device" in roles else None
    cards = device is not None and found[roles["device"]].place == "gpu"
    where = f"{name}:{dialect.header_line}"
    if {"value", "unit"} <= roles.keys():
        value, unit = (dialect.names[roles[r]] for r in ("value", "unit"))
        return replace(frame, device=device, value=value, unit=unit)
    cleared = [_with_unit(m, options, t, where) for m, t in zip(found, dialect.titles, strict=True)]
    unread = tuple(
        t
        for m, c, t in zip(found, cleared, dialect.titles, strict=True)
        if m.role == "quantity" and c.role != "quantity"
    )
    groups, counts, twice = _groups(dialect, cleared, options, rows_name_device=device is not None)
    return replace(frame, groups=groups, counts=counts, device=device, host=host, cards=cards, unread=(*unread, *twice))


def _time_of(dialect: Dialect, found: list[Meaning]) -> Layout:
    places: dict[str, int] = {}
    for i, m in enumerate(found):
        places.setdefault(m.role, i)
    names = dialect.names
    calendar = calendar_columns.of_titles(dialect.titles)
    if calendar and all(i in calendar for r, i in places.items() if r in {"time", "start", "date", "clock"}):
        return Layout(tuple(names[i] for i in calendar))
    if "time" in places:  # a day or an hour beside a whole stamp repeats a part of it
        places = {r: i for r, i in places.items() if not calendar_columns.is_part(dialect.titles[i])}

    def zone(i: int) -> str:
        return meter_titles.zone_of(dialect.titles[i])

    if "start" in places and "date" in places:
        return Layout((names[places["date"]], names[places["start"]]), label="start", zone=zone(places["start"]))
    if "start" in places:
        end = names[places["end"]] if "end" in places else None
        return Layout((names[places["start"]],), end=end, label="start", zone=zone(places["start"]))
    if "date" in places and "clock" in places:
        at = calendar_columns.millis(dialect.titles)
        millis = None if at is None else names[at]
        return Layout((names[places["date"]], names[places["clock"]]), millis=millis, zone=zone(places["clock"]))
    for role in ("time", "clock", "date", "end", "relative"):
        if role in places:
            i = places[role]
            label = "end" if role == "end" else None
            unit = found[i].unit
            return Layout((names[i],), label=label, relative=role == "relative", relative_unit=unit, zone=zone(i))
    raise LogRefusedError("no time column")  # the caller found the titles by their time


def _with_unit(found: Meaning, options: Options, title: str, where: str) -> Meaning:
    """Return the meaning with the unit that study.toml says; refuse a power or an energy without one."""
    if found.role != "quantity":
        return found
    keys = ENERGIES if found.quantity == "energy_j" else (found.quantity,)
    said = next((options.units[k] for k in keys if k in options.units), None)
    unit = said if said is not None and not found.unit else found.unit
    if unit and cells.factor(found.quantity, unit) is not None:
        return replace(found, unit=unit)
    if found.quantity not in {"power_w", "energy_j"}:
        return Meaning()
    allowed = ("W", "kW", "mW") if found.quantity == "power_w" else ("kWh", "Wh", "J")
    key = "power_w" if found.quantity == "power_w" else "energy_counter_j"
    raise LogRefusedError(
        f"{where}: the column {title!r} does not say its unit ({', '.join(allowed)}); add units = {{ {key} = "
        f'"{allowed[0]}" }} with the right one to this [[source]], or name only the columns to read with columns = '
        f"{{ … }}"
    )


def _groups(
    dialect: Dialect, found: list[Meaning], options: Options, *, rows_name_device: bool
) -> tuple[tuple[Group, ...], tuple[tuple[str, str], ...], tuple[str, ...]]:
    found = meter_series.with_phases(found)
    fields: dict[tuple[str, str], list[Field]] = {}
    totals: set[str] = set()
    counts: list[tuple[str, str]] = []
    twice: list[str] = []
    alone = None if rows_name_device else _only_powered(found, options)
    scope_of_rows = _scope_of_rows(found, options)
    # What a process's card draws is that of the card, whose own column never pauses.
    ordered = sorted(zip(dialect.names, dialect.titles, found, strict=True), key=lambda c: " process " in c[2].place)
    for column, title, m in ordered:
        if m.role != "quantity":
            continue
        device, scope = device_places.of(m.place, options)
        if (
            alone is not None
            and m.quantity not in _ENERGETIC
            and (m.place == "" or (device, scope) == ("gpu:0", "board") == alone)
        ):
            device, scope = alone
        if rows_name_device and m.place in _OF_ROWS:
            device, scope = "", scope_of_rows
        mine = fields.setdefault((device, scope), [])
        if any(f.quantity == m.quantity for f in mine):
            twice.append(title)
            continue
        mine.append(Field(column, title, m.quantity, m.unit, required=m.quantity == "power_w"))
        if m.quantity == "energy_j":
            counts.append((column, m.counts))
        if m.total or m.place in meter_titles.INPUTS:
            totals.add(device)
    apart = {k: device_places.apart(*k, fields) for k in fields}
    groups = [Group(apart[d, s], own_scope(s, f), tuple(f), d in totals) for (d, s), f in fields.items() if f]
    return tuple(_parts_of_the_total(groups, options)), tuple(counts), tuple(twice)


def _only_powered(found: list[Meaning], options: Options) -> tuple[str, str] | None:
    """Return device and scope of the only thing whose power or energy a table has: what names nothing else is about it."""
    powered = {device_places.of(m.place, options) for m in found if m.quantity in _ENERGETIC}
    return powered.pop() if len(powered) == 1 else None


def _scope_of_rows(found: list[Meaning], options: Options) -> str:
    """Return the boundary of the devices that rows name: that of their power, of cards where a title says so."""
    scopes = [device_places.of(m.place, options)[1] for m in found if m.quantity in _ENERGETIC and m.place in _OF_ROWS]
    return next((s for s in scopes if s), scopes[0] if scopes else "")


def own_scope(scope: str, fields: Sequence[Field]) -> str:
    """Temperatures alone belong to no boundary of power."""
    return scope if any(f.quantity in _ENERGETIC for f in fields) else "part"


def _parts_of_the_total(groups: list[Group], options: Options) -> list[Group]:
    """Make what lies beside a total a part of it, so that it is not added twice."""
    main = device_places.of("", options)[0]
    has_power = [g for g in groups if any(f.quantity == "power_w" for f in g.fields)]
    feeds = {g.device for g in has_power if device_places.is_feed(g.device)}
    if feeds and all(g.device in feeds or g.device not in {main, ""} for g in has_power):
        return [_as_part(g) if g in has_power and g.device not in feeds else g for g in groups]
    totals = [g.device for g in has_power if g.total]
    if len(totals) == 1 and not any(g.device in {main, ""} for g in has_power):
        main = totals[0]  # a PDU beside its machines
    if not any(g.device in {main, ""} for g in has_power) or len(has_power) < 2:
        return groups
    return [_as_part(g) if g.device not in {main, ""} and g in has_power else g for g in groups]


def _as_part(group: Group) -> Group:
    """Return a group as part of what stands beside it, unless its title says plainly of what it is."""
    own = group.scope in device_places.BY_HEADER
    return group if own else replace(group, scope="part", judged=group.scope or "facility")
