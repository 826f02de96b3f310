"""What the title of a column says: which quantity, in which unit, of which device; or a time, a name, a unit."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from joulebook_pipelines.logs import beside_power, cells, device_places, title_words
from joulebook_pipelines.logs import meter_vocabulary as known

_SUM = re.compile(r"^(?:p|wp|wh|s|q)(?:sum|tot|total|ges|sigma)$")
_ELEMENT = re.compile(r"^(?:p|u|v|i|s|q|pf|wp|wh|urms|irms|vrms|arms)(\d)$")
"""What power analysers call the quantities of one wiring element: ``U1``, ``I1``, ``P1``, ``WP1``."""

_BY_FAMILY = (
    "power_w", "energy_j", "apparent_power_va", "reactive_power_var", "voltage_v", "current_a", "temperature_c",
)  # fmt: skip

_PLAUSIBLE = re.compile(r"^[\w .,()\[\]/%°µ²+&*#'φ-]{1,60}$")
"""A title is short and has no punctuation of sentences, JSON or logs."""

_SERIAL = re.compile(r"\s*\(?(?:LGR|SEN) S/N:[^)]*\)?|,?\s*\(?(?:GMT|UTC)[+-]\d{1,2}:\d{2}\)?")
"""HOBO loggers put their serial number behind every title, and the offset behind that of the time."""

_LONG_UNITS = {"kwh", "wh", "kw", "watts", "watt", "joules", "joule"}
_GLUED = {"power W", "watts W", "energy J"}
"""Words behind which a large letter without a gap is the unit, as in ``PowerW``."""

INPUTS = {"input", "ac input", "mains input", "total input", "vdd", "pom 5v"}
"""Places through which all passes that the columns beside them tell; the ``IN`` of ``VDD_IN`` and ``POM_5V_IN`` is no word of a place."""

_SHORT = {"a", "c", "v", "j", "s", "w", "b"}


@dataclass(frozen=True)
class Meaning:
    """What a title says.

    Parameters
    ----------
    role
        ``time``, ``date``, ``clock``, ``start``, ``end``, ``relative``, ``value``, ``unit``, ``device``, ``quantity``
        or ``""``.
    quantity
        Name in ``readings``; energy is ``energy_j`` until it is known whether it counts.
    unit
        Unit of its numbers, ``""`` where the title gives none.
    place
        What it is about, in the words of the title; ``""`` = the meter itself.
    total
        The title says that it is a sum.
    counts
        ``counter`` or ``interval`` where an energy's title says which.
    """

    role: str = ""
    quantity: str = ""
    unit: str = ""
    place: str = ""
    total: bool = False
    counts: str = ""


@lru_cache(maxsize=4096)
def meaning(title: str, unit_row: str = "") -> Meaning:
    """Return what a title says.

    Parameters
    ----------
    title
        As it stands in the file.
    unit_row
        What a line of units below says of the column.

    Examples
    --------
    >>> meaning("Leistung [kW]").quantity, meaning("Leistung [kW]").unit
    ('power_w', 'kW')
    >>> meaning("n1_watts").place, meaning("psu_output_w").place
    ('n1', 'psu output')
    """
    title = title_words.english(_SERIAL.sub("", title))
    if not _PLAUSIBLE.match(title.strip() or "#"):
        return Meaning()
    bare, unit = _unit_apart(title.strip().strip("#").strip())
    if _is_place(unit):
        bare, unit = f"{unit} {bare}", ""
    unit = unit or unit_row.strip("[]() ")
    words, written = _words(bare)
    if not words:
        return Meaning()
    if beside := beside_power.find(bare, words, unit):
        return Meaning("quantity", beside[0], beside[1], beside[2])
    role = _role(words, written, unit)
    if role:
        last = written[-1].casefold() if len(written) > 1 else ""
        return Meaning(role, unit=known.TIME_UNITS.get(unit.casefold()) or known.TIME_UNITS.get(last, unit))
    if not unit and (own := known.OWN_UNITS.get(re.sub(r"^gpu \d+\.", "", bare.casefold()))):
        return Meaning(
            "quantity",
            own[0],
            own[1],
            _place([w for w in words if w not in {"apower", "aenergy", "act"}]),
            counts=own[2],
        )
    if not unit or not quantity_of(unit):
        tail = _unit_word(written, bare)
        if tail:
            unit, words = tail, [w for w in words if w not in {tail.casefold(), "in"}]
    return _quantity(words, unit)


def zone_of(title: str) -> str:
    """Return the zone or the offset that the title of a time names, ``""`` where it names none.

    Examples
    --------
    >>> zone_of("Date Time, GMT+01:00"), zone_of("time_utc"), zone_of("Time Bucket (Europe/Berlin)"), zone_of("Time")
    ('+01:00', 'UTC', 'Europe/Berlin', '')
    """
    plain = title.replace("_", " ")
    if match := re.search(r"(?<![A-Za-z])(?:UTC|GMT)\s*([+-])(\d{1,2}):?(\d{2})?(?!\d)", plain):
        return f"{match[1]}{int(match[2]):02d}:{match[3] or '00'}"
    if re.search(r"(?<![A-Za-z])(UTC|GMT|utc|gmt)(?![A-Za-z])", plain):
        return "UTC"
    area = re.search(r"\b((?:Africa|America|Asia|Atlantic|Australia|Europe|Indian|Pacific)/[A-Z][A-Za-z_]+)\b", title)
    return area[1] if area else ""


def _unit_apart(title: str) -> tuple[str, str]:
    """Take a unit in brackets, or behind a comma, off the title."""
    for pattern in (
        r"^(.*?)\s*[\[(]\s*([^\])]*?)\s*[\])]\s*$",
        r"^(.*?)\s*,\s*([A-Za-zµ°%]+)$",
        r"^(.*?)\s*/\s*([A-Za-zµ°%]+)$",
    ):
        if (match := re.match(pattern, title)) and (match[1] or quantity_of(match[2])):
            return match[1] or title, match[2]
    return title, ""


def _is_place(unit: str) -> bool:
    """Tell whether what stands in the brackets of a title is no unit but what it is about, as in ``Power (CPU)``."""
    if quantity_of(unit) or unit.casefold() in known.TIME_UNITS:
        return False
    words, _ = _words(unit)
    return bool(words) and (device_places.is_known(" ".join(words)) or set(words) <= known.FILLER | known.TOTAL)


def _words(bare: str) -> tuple[list[str], list[str]]:
    """Return the words of a title, plain and as written; ``activePower1`` is three words, ``GPU0Power`` as well."""
    apart = re.sub(
        r"(?<=[a-zäöüß]{2})(?=[A-Z])|(?<=[A-Z]{2})(?=[A-Z][a-z]{2})|(?<=[A-Z]{2}\d)(?=[A-Z][a-z]{2})", " ", bare
    )
    apart = re.sub(r"(?<=[A-Za-z]{3})(?=\d)", " ", apart)
    written = [w for w in re.split(r"[^0-9A-Za-zÀ-ÿµ°%]+", apart) if w]
    plain = [
        "".join(c for c in unicodedata.normalize("NFKD", w.casefold()) if not unicodedata.combining(c)) for w in written
    ]
    return plain, written


def _role(words: list[str], written: list[str], unit: str) -> str:
    """Return what a column is that holds no quantity; ``""`` where it may hold one."""
    said = set(words)
    if said & {"utc", "timestamp"} and said & (known.START | known.END) and not unit:
        return "start" if said & known.START else "end"  # the time at which a power begins is no power
    measures = quantity_of(unit) or said & (known.POWER - {"p"}) or _unit_word(written, " ".join(written))
    if measures or said & known.OTHER_TIMES:
        return ""
    return _role_of_time(words, unit) or _role_in_long(words)


def _role_of_time(words: list[str], unit: str) -> str:
    said = set(words)
    timed = bool(said & (known.TIME | known.DATE | known.CLOCK)) or any(
        w.startswith(("time", "datetime")) for w in words
    )
    bound = timed or bool(said & {"interval", "period"})
    roles = (
        ("start", bound and said & known.START), ("end", bound and said & known.END),
        ("relative", said & known.RELATIVE and unit.casefold() in {"", *known.TIME_UNITS}),
        ("clock", said & known.CLOCK and not said & known.DATE),
        ("date", said & known.DATE and not said & (known.TIME | known.CLOCK)),
        ("clock", words in (["time"], ["zeit"])),
        ("time", timed or " ".join(words) in known.MONTHS or _is_t(words, unit)),
    )  # fmt: skip
    return next((role for role, holds in roles if holds), "")


def _is_t(words: list[str], unit: str) -> bool:
    """Tell whether a title is the ``t`` of a plot's axis, in units of time."""
    alone = len(words) == 1 and unit.casefold() in {"", *known.TIME_UNITS}
    return words[0] == "t" and (alone or words[1:] in (["ms"], ["s"]))


def _role_in_long(words: list[str]) -> str:
    """Return the role in a table with a row per value."""
    if len(words) > 2:
        return ""
    if set(words) & known.VALUE:
        return "value"
    if set(words) & known.UNIT:
        return "unit"
    return "device" if words[0] in known.DEVICE and set(words[1:]) <= {"id", "index", "name", "no", "number"} else ""


def quantity_of(unit: str) -> str:
    """Return the quantity whose unit this is."""
    if unit in {"%", "1"} or not unit or unit == "mwh":  # mwh in small letters is milli or mega: not known
        return ""
    return next((q for q in _BY_FAMILY if cells.factor(q, unit) is not None), "")


def _unit_word(written: list[str], bare: str) -> str:
    """Return the word of a title that is a unit: the last, as in ``power_kW``, or a long one, as in ``kWh total``."""
    last = written[-1] if written else ""
    short = last.lower() in _SHORT and len(written) > 1 and not re.search(rf"[_\s./-]{re.escape(last)}$", bare)
    if short and len(written) > 1 and f"{written[-2].casefold()} {last}" in _GLUED:
        return last
    if quantity_of(last) and not short:
        return last
    return next((w for w in written if w.lower() in _LONG_UNITS), "")


def _quantity(words: list[str], unit: str) -> Meaning:
    said = set(words)
    by_unit = quantity_of(unit)
    if said & known.NOT_A_READING or (
        not by_unit and "%" in "".join((*words, unit)) and said & (known.POWER | known.ENERGY)
    ):
        return Meaning()
    if said & {"limit", "cap"}:
        about = _place([w for w in words if w not in {"limit", "cap", "enforced"}])
        return Meaning("quantity", "power_limit_w", unit, about) if by_unit == "power_w" else Meaning()
    if {"power", "factor"} <= said or {"cos", "phi"} <= said:
        return Meaning(
            "quantity",
            "power_factor_ratio",
            unit or "1",
            _place([w for w in words if w not in {"factor", "cos", "phi"}]),
        )
    secondary = next((known.SECONDARY[w] for w in words if w in known.SECONDARY), None)
    if by_unit == "" and secondary and not (said & known.POWER and secondary[0] == "current_a"):
        quantity, usual = secondary
        return Meaning("quantity", quantity, unit or usual, _place([w for w in words if w not in known.SECONDARY]))
    quantity = by_unit or ("power_w" if said & known.POWER else "energy_j" if said & known.ENERGY else "")
    if not quantity and re.fullmatch(r"gpu\d*|[lp]\d|phase[a-c\d]|psu\d*", "".join(words)):
        quantity = "power_w"  # a column of a card in a table of powers; its unit must be said
    if not quantity:
        return Meaning()
    if quantity == "energy_j" and not re.search(r"\bintegrated (?:gpu|graphics)\b", " ".join(words)):  # that is a thing
        words = [w for w in words if w not in known.HOW]
        said = {*said, "counter"} if said & {"integrated", "since"} else said
    if by_unit and secondary and secondary[0] == by_unit:
        words = [w for w in words if w not in known.SECONDARY]
    counts = "counter" if said & known.COUNTER else "interval" if said & known.INTERVAL else ""
    return Meaning(
        "quantity",
        quantity,
        unit,
        _place(words),
        bool(said & known.TOTAL) or any(map(_SUM.match, words)),
        counts if quantity == "energy_j" else "",
    )


def _place(words: list[str]) -> str:
    """Return the words that say what a column is about."""
    told = [f"element {m[1]}" if (m := _ELEMENT.match(w)) else w for w in words]
    told = [w for w in told if not _SUM.match(w)]
    return " ".join(
        w for w in told if w not in known.FILLER | known.POWER | known.ENERGY | known.COUNTER | known.SYMBOLS
    )
