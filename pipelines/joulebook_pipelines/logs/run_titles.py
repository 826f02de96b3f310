"""What the titles of a run table mean: one row a run, with its energy or mean power, its duration, its knobs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from joulebook_pipelines.logs import meter_titles, rapl, step_names

_RUN = (
    "run_id", "__run_id", "run_name", "run", "trial_id", "trial", "experiment_id", "experiment", "window_name", "job_id",
    "job", "project_name", "lauf", "durchlauf",
)  # fmt: skip
_START = ("start_utc", "start_time", "start", "started_at", "started", "begin", "start_timestamp", "timestamp_start")
_END = (
    "end_utc", "end_time", "end", "ended_at", "finished", "finished_at", "stop", "stop_time", "end_timestamp", "timestamp_end",
)  # fmt: skip
_STAMP = ("timestamp", "datetime", "time", "date", "date_time", "ts")
_DURATION = (
    "duration", "runtime", "run_time", "execution_time", "elapsed_time", "total_time", "train_time", "training_time", "inference_time",
    "total_inference_time", "total_training_time", "wall_time", "walltime", "real_time", "time_per_epoch", "epoch_time", "total_runtime",
    "dauer", "laufzeit", "duree", "duracion", "durata", "temps",
)  # fmt: skip
_PLAIN = {
    "batch_size": ("batch_size", "global_batch_size", "batchsize", "params_batch_size", "config_batch_size"),
    "tokens": ("tokens", "total_tokens", "num_tokens", "n_tokens", "tokens_processed", "train_tokens"),
    "samples": ("samples", "total_samples", "num_samples", "n_samples", "samples_processed"),
    "phase": ("phase",),
    "done": ("__done",),
}
_TOKENS_PER_S = re.compile(r"(^|_)tokens?_per_s(ec|econd)?(_mean|_avg)?$")
_NOT_SPENT = frozenset({
    "per", "saving", "savings", "saved", "pct", "percent", "percentage", "norm", "normalized", "edp", "idle", "static", "std", "stddev",
    "min", "max", "peak", "co2", "cost", "price", "carbon", "emissions", "emission", "ratio", "rate", "efficiency", "error",
    "baseline", "target", "limit", "cap", "level", "reactive", "apparent", "available", "factor", "state", "mode", "weighted",
})  # fmt: skip
"""Words that make a title something other than the energy or mean power of the run."""

_ENERGY_UNITS = frozenset({"j", "kj", "mj", "uj", "µj", "wh", "kwh", "mwh", "joule", "joules", "ws"})
_POWER_UNITS = frozenset({"w", "kw", "mw", "watt", "watts"})
_TIME_UNITS = frozenset({"s", "sec", "seconds", "ms", "us", "µs", "ns", "min", "h"})
_LONG_TIMES = {"secs": "s", "second": "s", "minutes": "min", "hours": "h", "hour": "h"}
_PARTS = frozenset({"cores", "core", "pp0", "pp1", "uncore"})
_NODE = frozenset({"meter", "wall", "plug", "node", "system", "server", "mains", "machine"})
_KNOBS = frozenset({
    "power_limit", "power_cap", "power_level", "clock", "batch_size", "avg_batch_size", "max_num_seqs", "measurement_index", "repetition",
    "repeat",
})  # fmt: skip
"""Beginnings of titles that tell the rows of a table of runs apart."""

_SAID_ROLES = {"span_s": "duration", "start": "start", "end": "end", "time": "stamp"}

_OF_INTERVAL = re.compile(
    r"(^|_)(interval|period)(_|$).*(start|begin|end)|(^|_)(start|begin|end)(_|$).*(interval|period)(_|$)"
)
"""Titles of meters that give the energy of every interval."""

_MONTHLY = frozenset({"period", "month", "billing_period", "billing_month", "usage_month", "year_month"})
"""Titles of bills and exports by month."""

CODECARBON = "emissions"
"""A title of CodeCarbon's table, which has its own reader."""


@dataclass(frozen=True)
class Spent:
    """A column with the energy or the mean power of each run.

    Parameters
    ----------
    quantity
        ``energy_j`` or ``power_w``.
    unit
        As the title gives it, ``""`` where it does not.
    device, scope
        What it is about; scope ``""`` where the title does not say.
    """

    at: int
    title: str
    quantity: str
    unit: str
    device: str
    scope: str


@dataclass
class Columns:
    """What the titles of a table say.

    Parameters
    ----------
    roles
        Place of ``run``, ``start``, ``end``, ``stamp``, ``duration``, ``batch_size``, ``tokens``, ``samples``, ``phase``,
        ``done``, ``tokens_per_s``, where there is one.
    duration_unit
        As the title gives it, ``""`` where it does not.
    spent
        Columns of energy and power.
    """

    titles: tuple[str, ...]
    roles: dict[str, int] = field(default_factory=dict)
    duration_unit: str = ""
    spent: list[Spent] = field(default_factory=list)

    @property
    def monitor(self) -> bool:
        """Whether ZeusMonitor wrote the table, whose times are seconds and whose energies are joules."""
        return self.titles[:3] == ("start_time", "window_name", "elapsed_time")


def understand(titles: Sequence[str], said: Mapping[str, str] | None = None) -> Columns:
    """Return what the titles of a table say.

    Parameters
    ----------
    titles
        As they stand in the file.
    said
        ``columns`` of study.toml: the titles of ``energy_j``, ``power_w``, ``span_s``, ``start``, ``end`` or ``time``,
        which then hold, and no other column is taken for energy or power.

    Raises
    ------
    ValueError
        ``said`` names a title that is not there.

    Examples
    --------
    >>> found = understand(["run_id", "batch_size", "runtime_s", "gpu0_energy (mJ)"])
    >>> found.roles["duration"], found.duration_unit, found.spent[0].device, found.spent[0].unit
    (2, 's', 'gpu:0', 'mJ')
    """
    found = Columns(tuple(t.strip() for t in titles))
    by_name = {_plain(_unit_apart(t, _TIME_UNITS)[0]): i for i, t in reversed(list(enumerate(found.titles)))}
    exact = {_plain(t): i for i, t in reversed(list(enumerate(found.titles)))}
    for role, names in (("run", _RUN), ("start", _START), ("end", _END), ("stamp", _STAMP), *_PLAIN.items()):
        at = next((exact[n] for n in names if n in exact), None)
        if at is not None:
            found.roles[role] = at
    at = next((by_name[n] for n in _DURATION if n in by_name), None)
    if at is not None:
        found.roles["duration"] = at
        found.duration_unit = "s" if found.monitor else _unit_apart(found.titles[at], _TIME_UNITS)[1]
    rate = next((i for n, i in exact.items() if _TOKENS_PER_S.search(n)), None)
    if rate is not None:
        found.roles["tokens_per_s"] = rate
    taken = set(found.roles.values())
    found.spent = [
        s for i, t in enumerate(found.titles) if i not in taken and (s := _spent(i, t, monitor=found.monitor))
    ]
    if said:
        _apply(found, said)
    return found


def _apply(found: Columns, said: Mapping[str, str]) -> None:
    """Let what study.toml says of the columns hold."""
    named: list[Spent] = []
    for key, title in said.items():
        if title not in found.titles:
            raise ValueError(f"there is no column {title!r}, which columns names; there are {', '.join(found.titles)}")
        at = found.titles.index(title)
        if key in {"energy_j", "power_w"}:
            units = _ENERGY_UNITS if key == "energy_j" else _POWER_UNITS
            bare, unit = _unit_apart(title, units)
            named.append(Spent(at, title, key, unit, *_device(_plain(bare).split("_"))))
        elif key in _SAID_ROLES:
            found.roles[_SAID_ROLES[key]] = at
            if key == "span_s":
                found.duration_unit = _unit_apart(title, _TIME_UNITS)[1]
    found.spent = named or found.spent


def is_run_table(titles: Sequence[str]) -> bool:
    """Tell whether a header makes a table of runs, and not a log of readings or of training steps."""
    folded = {t.strip().lower() for t in titles}
    if (
        len(titles) < 3
        or {CODECARBON, "time_of_day_seconds"} & folded
        or rapl.is_poll(titles)
        or step_names.tells_of_steps(step_names.known_names(titles))
    ):
        return False
    if {_plain(t) for t in titles} & _MONTHLY:
        return False
    found = understand(titles)
    roles = set(found.roles)
    others = (t for i, t in enumerate(found.titles) if i not in found.roles.values())
    # Titles of other languages name a time as well: a table with one is a log.
    untimed = not roles & {"stamp", "start", "end"} and not any(
        _OF_INTERVAL.search(_plain(t)) or _is_foreign_time(t) for t in others
    )
    named = bool(roles & {"run", "batch_size", "phase", "done"}) or any(
        _plain(t).startswith(tuple(_KNOBS)) for t in titles
    )
    if not found.spent:
        return bool({"batch_size"} <= roles and any(t.startswith("target_") for t in folded) and untimed)
    if "duration" in roles:
        return (named and (untimed or bool(roles & {"start", "phase", "run"}))) or "start" in roles
    if {"start", "end"} <= roles:
        return named
    energies = any(s.quantity == "energy_j" for s in found.spent)
    return untimed and (
        (named and "tokens_per_s" in roles) or (energies and (named or any(s.unit for s in found.spent)))
    )


def _is_foreign_time(title: str) -> bool:
    """Tell whether a title names a time in another language; English ones are in the lists above, beside durations."""
    if meter_titles.meaning(title).role not in {"time", "date", "clock"}:
        return False
    return not re.search(r"time|epoch|data|day", title.casefold())


def unknown_units(found: Columns, said: Mapping[str, str]) -> list[str]:
    """Return what has to be added to ``units`` of study.toml before the table can be read."""
    missing = []
    if "duration" in found.roles and not found.duration_unit and "span_s" not in said:
        missing.append('span_s = "s"')
    for quantity, usual in (("energy_j", "J"), ("power_w", "W")):
        if any(s.quantity == quantity and not s.unit for s in chosen(found)) and quantity not in said:
            missing.append(f'{quantity} = "{usual}"')
    return missing


def chosen(found: Columns) -> list[Spent]:
    """Return the columns that are read: of each device one energy and one power, with a unit in its title if any has one.

    A device without a number beside numbered ones of its kind is their sum, and the sum of all beside some: those are
    ``part``, so that nothing is added twice.
    """
    best: dict[tuple[str, str], Spent] = {}
    for column in found.spent:
        key = (column.device, column.quantity)
        known = best.get(key)
        if known is None or (column.unit and (not known.unit or "codecarbon" in known.title.lower())):
            best[key] = column
    if any(s.unit for s in best.values() if "codecarbon" not in s.title.lower()):
        best = {k: s for k, s in best.items() if s.unit or not _doubled(s, best)}
    numbered = {s.device.split(":")[0] for s in best.values() if ":" in s.device}
    return [
        Spent(s.at, s.title, s.quantity, s.unit, s.device, "part") if s.device in numbered and s.device != "node" else s
        for s in best.values()
    ]


def _doubled(column: Spent, others: Mapping[tuple[str, str], Spent]) -> bool:
    """Tell whether another column of the same quantity has a unit, so that this one need not be guessed at."""
    return any(o.unit and o.quantity == column.quantity for o in others.values())


def _plain(title: str) -> str:
    text = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "_", title.strip())
    leading = "__" if text.startswith("__") else ""
    return leading + re.sub(r"[^0-9a-zµ°%]+", "_", text.lower()).strip("_")


def _unit_apart(title: str, units: frozenset[str]) -> tuple[str, str]:
    """Take a unit in brackets, or the last word that is one, off a title."""
    if match := re.match(r"^(.*?)\s*[\[(]\s*([^\])]*?)\s*[\])]\s*$", title.strip()):
        unit = _LONG_TIMES.get(match[2].lower(), match[2])
        return (match[1], unit) if unit.lower() in units else (title, "")
    words = re.split(r"(?<=[^\W_])[\s_.-]+(?=[^\W_])", title.strip())
    for at in (len(words) - 1, len(words) - 2):
        unit = _LONG_TIMES.get(words[at].lower(), words[at]) if at > 0 else ""
        tail = {w.lower() for w in words[at + 1 :]}
        if unit.lower() in units and tail <= {"mean", "avg", "average", "total"}:
            return "_".join(words[:at] + words[at + 1 :]), unit
    return title, ""


def _spent(at: int, title: str, *, monitor: bool) -> Spent | None:
    """Return what a column says of energy or power, ``None`` where it is something else."""
    bare, unit = _unit_apart(title, _ENERGY_UNITS)
    quantity = "energy_j" if unit else ""
    if not unit:
        bare, unit = _unit_apart(title, _POWER_UNITS)
        quantity = "power_w" if unit else ""
    words = [w for w in _plain(bare).split("_") if w]
    said = set(words)
    if said & _NOT_SPENT or not title.strip():
        return None
    if quantity == "" or (quantity == "power_w" and unit.lower() in {"mw"} and "energy" in said):
        quantity = "energy_j" if said & {"energy"} else "power_w" if said & {"power"} else ""
    consumed = "consumption" in said and unit.lower() in {"kwh", "wh"}
    if not quantity or (quantity == "energy_j" and "power" in said and "energy" not in said and not consumed):
        return None
    device, scope = _device(words)
    unit = unit or ("kWh" if "codecarbon" in said and quantity == "energy_j" else "")  # its table has no other unit
    return Spent(at, title, quantity, "J" if monitor and not unit else unit, device, scope)


def _device(words: Sequence[str]) -> tuple[str, str]:
    """Return device and scope that the words of a title name; ``""`` where they name none."""
    text = " ".join(words)
    if match := re.search(r"\bgpu ?(\d+)?\b", text):
        return (f"gpu:{match[1]}" if match[1] else "gpu"), "board"
    if set(words) & _PARTS:
        return f"cpu/{next(w for w in words if w in _PARTS)}", "part"
    if match := re.search(r"\b(?:package|pkg|socket|cpu) ?(?:package |pkg )?(\d+)?\b", text):
        return (f"cpu:{match[1]}" if match[1] else "cpu"), "package"
    if set(words) & {"dram", "ram"}:
        return "dram", "dram"
    return ("node", "node") if set(words) & _NODE else ("", "")
