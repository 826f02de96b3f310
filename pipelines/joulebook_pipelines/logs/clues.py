"""Why a file that no adapter claims cannot be read, and what would help: told from what it begins with."""

from __future__ import annotations

import re
from collections.abc import Sequence

from joulebook_pipelines.logs import dialect, json_names, meter_titles, run_spent
from joulebook_pipelines.logs.contract import Head

ROWS = 200
"""Lines that are looked at."""

_TIMES = {"time", "clock", "date", "start", "end", "relative"}
_MEASURED = {"power_w", "energy_j"}
_WATTS = re.compile(
    r"(?i)(?<![\w.])\d+(?:[.,]\d+)?\s*(?:mW|kW|W|watts?|Joules?|kWh|Wh)\b|[(\[](?:mW|kW|W|kWh|Wh|J)[)\]]"
)
_NESTED = re.compile(r"\s*\[\s*\[")
_CARBON = re.compile(r"(?i)co2|carbon|emission")
_KEYED = re.compile(r"(?i)(?<![a-z])(?:power|energy|watts?|consumption)(?![a-z])|(?-i:[a-z](?:Power|Energy)(?![a-z]))")

_COUNTED = re.compile(r"(?i)(?:^|[/_ ])(?:epochs?|steps?|iter(?:ation)?s?|timesteps|episodes?|totalenvinteracts)$")
_LEARNED = re.compile(r"(?i)loss|(?:^|[/_ ])(?:ep_)?rew(?:ard)?(?:_|$)|return|epret|accuracy|mAP")
_PROGRESS = re.compile(
    r"(?i)(?:^|[\s(|\[])(?:epochs?|iters?|iterations?|total_timesteps|global[ _]step)\b[\s|:=#\[]{1,24}\d+\b|\bstep[:=] ?\d+/\d"
)
"""A line that counts as trainings do."""

_TOTAL = re.compile(r"(?i)total (?:power usage|energy)[\w ]*[:=] *[\d.,]+ *(?:[kMm]?Wh|[kM]?J|joules)$")
"""A line that is all that a tool says of the energy of a run."""

_PRINTED = (
    (re.compile(r"Scaphandre stdout exporter|Host:\s+[\d.]+ W\b"),
     "holds what scaphandre prints for people, without times: log with scaphandre json -s 1 -f power.json"),
    (re.compile(r".*\bTotal Power: [\d.]+ Watts?\s+CPU Power:"),
     "holds what PowerJoular prints for people, without times: log with powerjoular -f power.csv"),
    (re.compile(r"(?:(?:Average|Instantaneous) )?Power Draw\s+: [\d.]+ W$"),
     "holds lines cut out of nvidia-smi -q; which card and which of its powers each is of stood in the lines that were left out: "
     "log the whole report, or nvidia-smi --query-gpu=timestamp,index,power.draw --format=csv -l 1"),
    (re.compile(r"Energy consumed: [\d.]+ Joules?$"),
     "holds what likwid-powermeter prints of a run, without times: make a table of the runs with the titles "
     "run_id,start_time,end_time,energy_j (or duration_s in place of the times), a line a run"),
)  # fmt: skip
"""How lines begin that tools print for people, and what to do about them."""

LEAST_PROGRESS = 2
_RUN = "name the run in [[run]] with start and end, and leave the file out of the study"


def why_unknown(head: Head) -> str:
    """Return the reason and the cure for a file of no known format."""
    if head.text.lstrip()[:1] in {"{", "["} and ('"' in head.text or _NESTED.match(head.text)):
        return f"no adapter knows this format: it is JSON, and {json_names.why_unknown(head)}"
    return _of_table(head) or _of_text(head)


def _of_table(head: Head) -> str:
    """Return what a table lacks whose first line has titles; ``""`` where it has none."""
    found = _titles(head)
    if not found:
        return ""
    meant = [(t, meter_titles.meaning(t)) for t in found]
    times = [t for t, m in meant if m.role in _TIMES]
    powers = [t for t, m in meant if m.quantity in _MEASURED]
    begins = f"no adapter knows this format: it is a table of {len(found)} columns ({_some(found)})"
    if (why := _of_training(found)) and not powers:
        return f"{begins} {why}"
    if powers and not times:
        return f"{begins} {_of_powers(found, powers)}"
    if times and not powers and (carbon := [t for t in found if _CARBON.search(t)]):
        return (
            f"{begins} of carbon ({_some(carbon)}), not of energy: export the energy (kWh) instead, or put the carbon per kWh into "
            "[site] carbon_kg_per_kwh"
        )
    if times and not powers:
        return (
            f"{begins} with the time {times[0]!r}, but no title names a power or an energy. If a column is one, name it: "
            f'columns = {{ time = "{times[0]}", power_w = "…" }} and units = {{ power_w = "W" }} (or energy_j, energy_counter_j); '
            "if it holds something else, leave the file out of the study"
        )
    return (
        f"{begins}, and no title names a time, a power or an energy. If columns are, name them: "
        'columns = { time = "…", power_w = "…" } and units = { power_w = "W" }; else leave the file out of the study'
    )


def _of_powers(titles: Sequence[str], powers: Sequence[str]) -> str:
    """Return what a table with powers or energies and without times lacks."""
    each = [t for t in titles if run_spent.is_for_each(t)]
    if set(powers) <= set(each):
        return (
            f"of which {_some(each)} give an energy for each of something, not that of a run; add a column with the energy of each run "
            "(energy_j), and one with its seconds (duration_s)"
        )
    return (
        f'with {_some(powers)}, but no title names a time. If a column is one, name it: columns = {{ time = "…", '
        f'power_w = "{powers[0]}" }}; if there is none, log again with a time in each line'
    )


def _of_training(titles: Sequence[str]) -> str:
    """Return why a table of a training gives no steps; ``""`` where the titles are of something else."""
    counted = [t for t in titles if _COUNTED.search(t.strip())]
    learned = [t for t in titles if _LEARNED.search(t)]
    if not counted or not learned:
        return ""
    losses = [t for t in learned if "loss" in t.lower()]
    if losses and any(t.strip().lower() in {"epoch", "step", "iter", "iteration"} for t in counted):
        why = f"whose losses ({_some(losses)}) are none that a step has as a whole (loss, train_loss) and numbers"
    else:
        why = f"that has no number of a step beside its loss and a clock: {_some(counted)} count something else"
    return f"of a training, {why}; {_RUN}"


def _titles(head: Head) -> list[str]:
    """Return the titles of the first line, where it looks like a header over rows of as many cells."""
    lines = [line for line in head.lines[:ROWS] if line.strip()]
    for separator in dialect.SEPARATORS if len(lines) > 1 else ():
        titles = dialect.split_line(lines[0], separator)
        like = sum(len(dialect.split_line(line, separator)) == len(titles) for line in lines[1:20])
        words = sum(bool(re.search(r"[A-Za-z]", t)) and not dialect.is_number(t) for t in titles)
        plain = all(len(t) <= 60 and not re.search(r"[{}<>=|]|\d{4}-\d\d|\d:\d\d", t) for t in titles)
        if len(titles) >= 2 and plain and 2 * like >= len(lines[1:20]) and words >= len(titles) - 1:
            return [t for t in titles if t]
    return []


def _of_text(head: Head) -> str:
    """Return what a text without a table holds."""
    lines = [(i, line) for i, line in enumerate(head.lines[:ROWS], 1) if line.strip()]
    first = lines[0][1].strip()[:100] if lines else ""
    return _of_a_tool(lines, first) or _unknown(head, lines, f"no adapter knows this format (it begins {first!r})")


def _of_a_tool(lines: list[tuple[int, str]], first: str) -> str:
    """Return what the text of a tool that is known holds, where that is nothing to be read."""
    if re.match(r"(?:client|ptd-server) \d{4}-\d\d-\d\d ", first):
        return (
            "holds the messages of MLPerf's power client or server; client.json and server.json beside it have the phases, the log of "
            "PTDaemon the power: leave it out of the study"
        )
    if any(line.strip() == "MLPerf Results Summary" for _, line in lines[:5]):
        return (
            "holds the printed summary of an MLPerf run, without power; mlperf_log_detail.txt beside it has the run with its times: "
            "leave it out of the study"
        )
    if any(re.match(r"(?:Actual|Predicted) consumption for \d+ epoch", line.strip()) for _, line in lines):
        return (
            "holds what carbontracker prints for people: energies that it has multiplied by a PUE of its own, without times. Give the "
            "tracker log_dir = …, and add the …_carbontracker.log that it writes there; leave this file out of the study"
        )
    if said := next((told for _, line in lines for form, told in _PRINTED if form.match(line.strip())), ""):
        return said
    if total := next((m for _, line in lines if (m := _TOTAL.match(line.strip()))), None):
        return (
            f"holds one total ({total[0]!r}) without times, which another tool worked out: compare it with the result, and leave the file "
            "out of the study"
        )
    return ""


def _unknown(head: Head, lines: list[tuple[int, str]], begins: str) -> str:
    """Return what would help with a text that nothing is known of."""
    watts = [(i, line.strip()[:80]) for i, line in lines if _WATTS.search(line) or _KEYED.search(line)]
    if watts:
        at, example = watts[0]
        return (
            f"{begins}; line {at} speaks of power or energy ({example!r}), but no table or known report holds it. Write the numbers as a "
            "CSV with the titles time,power_w (or time,energy_j for the energy of each interval); a total of one run goes into a table "
            "with the titles run_id,start_time,end_time,energy_j; joulebook formats lists what is read"
        )
    if sum(bool(_PROGRESS.search(line)) for _, line in lines) >= LEAST_PROGRESS:
        return (
            f"{begins}; it looks like the printed log of a training, but no line of it tells a step with its loss: {_RUN}. "
            "A log of steps has a line each with a time, the number of the step, and the loss as a whole (loss: 2.31)"
        )
    late = (
        ""
        if head.complete
        else (
            'If it is the printed log of a training whose steps come later, add adapter = "training-text" to its [[source]]. '
        )
    )
    return (
        f"{begins}, and none of its first {len(lines)} lines speaks of power or energy: leave it out of the study. {late}If it is a table "
        'of meter readings, name its columns: columns = { time = "…", power_w = "…" }; joulebook formats lists what is read'
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(repr(n) for n in names[:6]) + (" …" if len(names) > 6 else "")
