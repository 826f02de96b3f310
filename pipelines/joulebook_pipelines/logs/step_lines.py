"""How training frameworks write a step as a line of text: which line it is, and where its things stand in it.

Throughputs are not read: the frameworks print them per device or per job, and the line does not say of how many.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from joulebook_pipelines.logs import stamps
from joulebook_pipelines.logs.contract import Head

_NUMBER = r"([-+]?(?:\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?|nan|inf))"
_MONTHS = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
GAP = r"(?:\W{0,3}?| *\W?? +)"
"""What stands between a name and its number: columns are aligned by any number of blanks, and a minus is of the number."""

_COUNT = r"(?:\b|_)(?:step|iteration|iter)s?\b"
_STAMP = rf"({stamps.ISO})"
STAMP = (
    rf"({stamps.ISO}|{stamps.SLASHED}|\b\d\d/\d\d \d\d:\d\d:\d\d|\b{_MONTHS}\s+\d\d? \d\d:\d\d:\d\d"
    rf"|^[IWEF]\d{{4}} \d\d:\d\d:\d\d(?:\.\d+)?|^[\[(]?\d\d:\d\d:\d\d(?:[.,]\d+)?\b{stamps.HALF_DAY})"
)
"""ISO; without a year as detectron2, syslog and glog write it; a time of day at the beginning of the line."""


@dataclass(frozen=True)
class Form:
    """How a framework writes a step.

    Parameters
    ----------
    framework
        Its name.
    line
        What a line about a step holds, and no other.
    things
        Thing of a step, its name in the line, and the pattern of its value.
    without
        What no line about a training step holds.
    numbering
        ``step``: the line tells its number. ``in-epoch``: it tells epoch and place in it. ``heading``: the epoch stands in a line
        above, and the line where the place is the last one tells of it. ``bar``: the same with the epoch in the line, if anywhere.
        ``order``: nothing tells it.
    places
        Patterns of ``epoch``, ``at`` and ``of``.
    first_epoch
        Number of the first epoch, where the framework fixes it.
    heading
        A line that tells the epoch of those below it.
    cut
        What is taken off a line before it is read.
    """

    framework: str
    line: str
    things: tuple[tuple[str, str, str], ...]
    without: str = r"[^\s\S]"
    numbering: str = "step"
    places: tuple[tuple[str, str], ...] = ()
    first_epoch: int | None = None
    heading: str = ""
    cut: str = ""

    @property
    def names(self) -> dict[str, str]:
        """Names in the file of the things of a step."""
        return {quantity: name for quantity, name, _ in self.things}

    def tells(self, line: str) -> bool:
        """Tell whether a line, without colours, is about a step."""
        line = re.sub(self.cut, "", line) if self.cut else line
        return re.search(self.line, line) is not None and re.search(self.without, line) is None


FORMS = (
    Form("torchtitan", r"\bstep:\s*\d+\s+loss:\s*[-\dni]", (
        ("end_utc", "time", STAMP), ("step", "step", r"\bstep:\s*(\d+)"), ("loss", "loss", rf"\bloss:\s*{_NUMBER}"),
    )),
    Form("DeepSpeed", r"\[Rank \d+\]\s+step=\d+,\s*skipped=\d+", (
        ("end_utc", "time", rf"^\[{_STAMP}\]"), ("step", "step", r"\bstep=(\d+)"), ("learning_rate", "lr", rf"\blr=\[?{_NUMBER}"),
    )),
    Form("NeMo", r"\bTraining epoch \d+, iteration \d+/\d+\s*\|", (
        ("end_utc", "time", STAMP), ("step", "global_step", r"\bglobal_step:\s*(\d+)"),
        ("loss", "reduced_train_loss", rf"\breduced_train_loss:\s*{_NUMBER}"), ("learning_rate", "lr", rf"\blr:\s*{_NUMBER}"),
        ("batch_size", "global_batch_size", rf"\bglobal_batch_size:\s*{_NUMBER}"),
        ("step_time_s", "train_step_timing in s", rf"\btrain_step_timing in s:\s*{_NUMBER}"),
    )),
    Form("fairseq", r'\bnum_updates"?\s*[:=].*\bwall"?\s*[:=]', (
        ("end_utc", "time", rf"^{_STAMP}"), ("step", "num_updates", r'\bnum_updates"?\s*[:=]\s*"?(\d+)'),
        ("loss", "loss", rf'\bloss"?\s*[:=]\s*"?{_NUMBER}'), ("learning_rate", "lr", rf'\blr"?\s*[:=]\s*"?{_NUMBER}'),
        ("batch_size", "bsz", rf'\bbsz"?\s*[:=]\s*"?{_NUMBER}'),
    )),
    Form("nanoGPT", r"\biter \d+: loss [\d.]+, time [\d.]+ms", (
        ("end_utc", "time", STAMP), ("step", "iter", r"\biter (\d+):"), ("loss", "loss", rf"\bloss {_NUMBER}"),
    )),
    Form("llm.c", r"\bstep\s+\d+/\d+ \| (?:train )?loss ", (
        ("end_utc", "time", STAMP), ("step", "step", r"\bstep\s+(\d+)/"), ("loss", "loss", rf"\bloss {_NUMBER}"),
        ("learning_rate", "lr", rf"\blr {_NUMBER}"),
    )),
    Form("llm.c, its log file", r"^s:\d+ trl:", (
        ("step", "s", r"^s:(\d+)"), ("loss", "trl", rf"\btrl:{_NUMBER}"), ("learning_rate", "lr", rf"\blr:{_NUMBER}"),
    )),
    Form("verl", r"\bstep:\d+ - .*\btiming_s/step:", (
        ("end_utc", "time", STAMP), ("step", "step", r"\bstep:(\d+) - "), ("step_time_s", "timing_s/step", rf"\btiming_s/step:{_NUMBER}"),
        ("learning_rate", "actor/lr", rf"\bactor/lr:{_NUMBER}"),
        ("tokens", "perf/total_num_tokens", rf"\bperf/total_num_tokens:{_NUMBER}"),
    )),
    Form("Darknet", r"^\s*\d+: \S+, \S+ avg(?: loss)?, [\d.]+ rate, [\d.]+ seconds, \d+ images", (
        ("step", "", r"^\s*(\d+):"), ("loss", "loss", rf"^\s*\d+: {_NUMBER}"), ("learning_rate", "rate", r"([\d.]+) rate,"),
        ("step_time_s", "seconds", r"([\d.]+) seconds,"),
    )),
    Form("TensorFlow's object detection", r"\bStep \d+ per-step time [\d.]+s", (
        ("end_utc", "time", STAMP), ("step", "Step", r"\bStep (\d+)"), ("loss", "loss", rf"\bloss={_NUMBER}"),
        ("step_time_s", "per-step time", r"\bper-step time ([\d.]+)s"),
    )),
    Form("stamped",
        rf"(?im)^\W{{0,2}}\d{{4}}-\d\d-\d\d[ T][\d:.,]+\S*\s.*{_COUNT}{GAP}\d+\b.*\bloss\b{GAP}[-+\dni]", (
        ("end_utc", "time", STAMP), ("step", "step", rf"(?i){_COUNT}{GAP}(\d+)"),
        ("epoch", "epoch", rf"(?i)\bepochs?\b{GAP}(\d+)(?:[^.\d]|$)"), ("loss", "loss", rf"(?i)\bloss\b{GAP}{_NUMBER}"),
        ("learning_rate", "lr", rf"(?i)\b(?:lr|learning[_ ]rate)\b{GAP}{_NUMBER}"),
    ), r"(?i)consumed samples|\b(?:val|valid|validation|eval|evaluation|test)\b|(?:val|eval|test)_loss|\bwatt|\{\""),
)  # fmt: skip
"""Lines as torchtitan's metrics, DeepSpeed's step reports, NeMo 2's progress printer and others write them; the last form is that of
own loops: a time, the number of the step and its loss in one line."""

_COUNTS = re.compile(r"(?i)step|iter|num_updates|\btrl:|\d rate, ")
"""What every line about a step holds: most lines of most files need no second look."""


def find(head: Head) -> Form | None:
    """Return the form that some line at the beginning of a file has.

    Examples
    --------
    >>> line = "[rank0]:[titan] 2026-11-02 09:00:10,123 - root - INFO - step: 10  loss:  7.01  tps: 5,234"
    >>> find(Head("train.log", line, "utf-8", True)).framework
    'torchtitan'
    """
    lines = [line for line in head.lines if _COUNTS.search(line)]
    return next((f for f in FORMS if any(map(f.tells, lines))), None)
