"""What the titles of a run table mean: one row a run, with its energy or mean power, its duration, its knobs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from joulebook_pipelines.logs import meter_titles, rapl, run_spent, step_names
from joulebook_pipelines.logs.run_spent import Spent

_RUN = (
    "run_id", "__run_id", "run_name", "run", "trial_id", "trial", "experiment_id", "experiment", "window_name", "job_id",
    "job", "project_name", "task_name", "lauf", "durchlauf",
)  # fmt: skip
_START = ("start_utc", "start_time", "start", "started_at", "started", "begin", "start_timestamp", "timestamp_start")
_END = (
    "end_utc", "end_time", "end", "ended_at", "finished", "finished_at", "stop", "stop_time", "end_timestamp", "timestamp_end",
)  # fmt: skip
_STAMP = ("timestamp", "datetime", "time", "date", "date_time", "ts")
_DURATION = (
    "duration", "runtime", "run_time", "execution_time", "elapsed_time", "total_time", "train_time", "training_time", "inference_time",
    "total_inference_time", "total_training_time", "wall_time", "walltime", "real_time", "time_per_epoch", "epoch_time", "total_runtime",
    "time_taken", "time_spent", "train_runtime", "run_duration", "total_duration", "training_duration", "task_duration",
    "inference_duration", "latency", "total_latency", "end_to_end_latency", "e2e_latency", "response_time", "generation_time",
    "wall_clock_time", "wall_total", "total_wall_time", "dauer", "laufzeit", "duree", "duracion", "durata", "temps",
)  # fmt: skip
_PLAIN = {
    "batch_size": ("batch_size", "global_batch_size", "batchsize", "params_batch_size", "config_batch_size"),
    "tokens": ("tokens", "total_tokens", "num_tokens", "n_tokens", "tokens_processed", "train_tokens"),
    "samples": ("samples", "total_samples", "num_samples", "n_samples", "samples_processed"),
    "phase": ("phase",),
    "done": ("__done",),
}
_TOKENS_PER_S = re.compile(r"(^|_)tokens?_per_s(ec|econd)?(_mean|_avg)?$")
_KNOBS = frozenset({
    "power_limit", "power_cap", "power_level", "clock", "batch_size", "avg_batch_size", "max_num_seqs", "measurement_index", "repetition",
    "repeat",
})  # fmt: skip
"""Beginnings of titles that tell the rows of a table of runs apart."""

_WANDB = frozenset({"name", "state", "created", "runtime", "user"})
"""Titles of the table of runs as W&B exports it, whose runtimes are seconds."""

_ECO2AI = frozenset({"experiment_description", "co2_emissions_kg", "cpu_name", "gpu_name"})
"""Titles of eco2AI, whose energy is that of processor, memory and cards."""

_SAID_ROLES = {"span_s": "duration", "start": "start", "end": "end", "time": "stamp"}

_OF_INTERVAL = re.compile(
    r"(^|_)(interval|period)(_|$).*(start|begin|end)|(^|_)(start|begin|end)(_|$).*(interval|period)(_|$)"
)
"""Titles of meters that give the energy of every interval."""

_MONTHLY = frozenset({"period", "month", "billing_period", "billing_month", "usage_month", "year_month"})
"""Titles of bills and exports by month."""

CODECARBON = "emissions"
"""A title of CodeCarbon's table, which has its own reader."""


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
    by_name = {
        run_spent.plain(run_spent.unit_apart(t, run_spent.TIME_UNITS)[0]): i
        for i, t in reversed(list(enumerate(found.titles)))
    }
    exact = {run_spent.plain(t): i for i, t in reversed(list(enumerate(found.titles)))}
    for role, names in (("run", _RUN), ("start", _START), ("end", _END), ("stamp", _STAMP), *_PLAIN.items()):
        at = next((exact[n] for n in names if n in exact), None)
        if at is not None:
            found.roles[role] = at
    exported = set(exact) >= _WANDB
    if exported:
        found.roles |= {"run": exact["name"], "start": exact["created"]}
    at = next((by_name[n] for n in _DURATION if n in by_name), None)
    if at is not None:
        found.roles["duration"] = at
        found.duration_unit = (
            "s" if found.monitor or exported else run_spent.unit_apart(found.titles[at], run_spent.TIME_UNITS)[1]
        )
    if {"__done", "time"} <= set(exact) and "duration" not in found.roles and found.roles.get("stamp") == exact["time"]:
        # In the table of experiment-runner a time is what the run took.
        found.roles["duration"] = found.roles.pop("stamp")
    rate = next((i for n, i in exact.items() if _TOKENS_PER_S.search(n)), None)
    if rate is not None:
        found.roles["tokens_per_s"] = rate
    taken = set(found.roles.values())
    found.spent = [
        s
        for i, t in enumerate(found.titles)
        if i not in taken and (s := run_spent.of_title(i, t, monitor=found.monitor))
    ]
    if set(exact) >= _ECO2AI:
        found.spent = [replace(s, device="components", scope="components") for s in found.spent]
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
            units = run_spent.ENERGY_UNITS if key == "energy_j" else run_spent.POWER_UNITS
            bare, unit = run_spent.unit_apart(title, units)
            named.append(Spent(at, title, key, unit, *run_spent.device_of(run_spent.plain(bare).split("_"))))
        elif key in _SAID_ROLES:
            found.roles[_SAID_ROLES[key]] = at
            if key == "span_s":
                found.duration_unit = run_spent.unit_apart(title, run_spent.TIME_UNITS)[1]
    found.spent = named or found.spent


def is_run_table(titles: Sequence[str], *, rows_named: bool = False) -> bool:
    """Tell whether a header makes a table of runs, and not a log of readings or of training steps.

    Parameters
    ----------
    rows_named
        The first cell of each row is a name that no other row has, or there is one row; energies of such rows are those of runs.
    """
    folded = {t.strip().lower() for t in titles}
    if (
        len(titles) < 3
        or {CODECARBON, "time_of_day_seconds"} & folded
        or rapl.is_poll(titles)
        or step_names.tells_of_steps(step_names.known_names(titles))
    ):
        return False
    if {run_spent.plain(t) for t in titles} & _MONTHLY:
        return False
    found = understand(titles)
    roles = set(found.roles)
    others = (t for i, t in enumerate(found.titles) if i not in found.roles.values())
    # Titles of other languages name a time as well: a table with one is a log.
    untimed = not roles & {"stamp", "start", "end"} and not any(
        _OF_INTERVAL.search(run_spent.plain(t)) or _is_other_time(t) for t in others
    )
    named = bool(roles & {"run", "batch_size", "phase", "done"}) or any(
        run_spent.plain(t).startswith(tuple(_KNOBS)) for t in titles
    )
    energies = any(s.quantity == "energy_j" for s in found.spent)
    named = named or (rows_named and energies)
    if not found.spent:
        return bool({"batch_size"} <= roles and any(t.startswith("target_") for t in folded) and untimed)
    if "duration" in roles:
        by_name = (
            rows_named and energies and 0 not in found.roles.values()
        )  # sessions of a plug: name, duration, energy, date
        return (named and (untimed or bool(roles & {"start", "phase", "run"}))) or "start" in roles or by_name
    if {"start", "end"} <= roles:
        return named
    return untimed and (
        (named and "tokens_per_s" in roles) or (energies and (named or any(s.unit for s in found.spent)))
    )


def _is_other_time(title: str) -> bool:
    """Tell whether a title names a time in another language; English ones are in the lists above, beside durations, say stamp or zone."""
    if {"timestamp", "datetime"} & set(run_spent.plain(title).split("_")):
        return True
    if meter_titles.meaning(title).role not in {"time", "date", "clock"}:
        return False
    return bool(meter_titles.zone_of(title)) or not re.search(r"time|epoch|data|day", title.casefold())


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
