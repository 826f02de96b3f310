"""How training frameworks write a step as a line of text: which line it is, and where its things stand in it.

Throughputs are not read: the frameworks print them per device or per job, and the line does not say of how many.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from joulebook_pipelines.logs.contract import Head

_NUMBER = r"([-+]?(?:\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?|nan|inf))"
_STAMP = r"(\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?)"


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
    """

    framework: str
    line: str
    things: tuple[tuple[str, str, str], ...]

    @property
    def names(self) -> dict[str, str]:
        """Names in the file of the things of a step."""
        return {quantity: name for quantity, name, _ in self.things}


FORMS = (
    Form("torchtitan", r"\bstep:\s*\d+\s+loss:\s*[-\dni]", (
        ("end_utc", "time", _STAMP), ("step", "step", r"\bstep:\s*(\d+)"), ("loss", "loss", rf"\bloss:\s*{_NUMBER}"),
    )),
    Form("DeepSpeed", r"\[Rank \d+\]\s+step=\d+,\s*skipped=\d+", (
        ("end_utc", "time", rf"^\[{_STAMP}\]"), ("step", "step", r"\bstep=(\d+)"), ("learning_rate", "lr", rf"\blr=\[?{_NUMBER}"),
    )),
    Form("NeMo", r"\bTraining epoch \d+, iteration \d+/\d+\s*\|", (
        ("end_utc", "time", _STAMP), ("step", "global_step", r"\bglobal_step:\s*(\d+)"),
        ("loss", "reduced_train_loss", rf"\breduced_train_loss:\s*{_NUMBER}"), ("learning_rate", "lr", rf"\blr:\s*{_NUMBER}"),
        ("batch_size", "global_batch_size", rf"\bglobal_batch_size:\s*{_NUMBER}"),
        ("step_time_s", "train_step_timing in s", rf"\btrain_step_timing in s:\s*{_NUMBER}"),
    )),
)  # fmt: skip
"""Lines as torchtitan's metrics, DeepSpeed's step reports and NeMo 2's progress printer write them."""


def find(head: Head) -> Form | None:
    """Return the form that some line at the beginning of a file has.

    Examples
    --------
    >>> line = "[rank0]:[titan] 2026-11-02 09:00:10,123 - root - INFO - step: 10  loss:  7.01  tps: 5,234"
    >>> find(Head("train.log", line, "utf-8", True)).framework
    'torchtitan'
    """
    return next((f for f in FORMS if re.search(f.line, head.text)), None)
