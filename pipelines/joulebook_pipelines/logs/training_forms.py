"""How training scripts print their progress for people: which line tells of a step, and how its number is made.

Frameworks whose lines number their steps are in :mod:`joulebook_pipelines.logs.step_lines`; these here print an epoch and a place
in it, a dictionary without a number, or a bar.
"""

from __future__ import annotations

import re

from joulebook_pipelines.logs.contract import Head
from joulebook_pipelines.logs.step_lines import GAP, STAMP, Form

_NUMBER = r"'?([-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|nan|inf|NaN|Inf))\b"
_TIME = ("end_utc", "time", STAMP)
_NAMED = r"\b(?:(?:train(?:ing)?|avg|average|mean|total|running|epoch|batch|lm|ce)[ _/-]?)?loss(?: train)?\b"
_LOSS = ("loss", "loss", rf"(?i){_NAMED}{GAP}{_NUMBER}")
_LR = ("learning_rate", "lr", rf"(?i)\b(?:lr|learning[ _]rate)\b{GAP}{_NUMBER}")
_EPOCH = rf"(?i)\bepochs?\b{GAP}(\d+)"
_OF_EVALUATION = r"(?i)\b(?:val|valid|validation|eval|evaluation|test|testing)\b"
_EVALUATED = rf"(?i)\b(?:val|valid|validation|eval|evaluation|test)(?:[ _/-][a-z@\d]+)*\W{{0,3}}?(?:{_NUMBER}%?|n/a)"
"""What a line of an epoch tells of its evaluation."""

_WATTS = r"|\d\s?[mk]?W(?:atts?)?\b"
_PLACE = (
    ("epoch", r"\[\s*(\d+)\s*(?:/\d+)?\]\s*\["),
    ("at", r"\]\s*\[\s*(\d+)\s*/"),
    ("of", r"\]\s*\[\s*\d+\s*/\s*(\d+)"),
)
_BATCH = rf"\b(?:step|iter|iteration|batch|it)\b{GAP}"
_OWN_PLACE = (
    ("epoch", _EPOCH),
    ("at", rf"(?i){_BATCH}(\d+)\s*(?:/|of)"),
    ("of", rf"(?i){_BATCH}\d+\s*(?:/|of)\s*(\d+)"),
)

_WITH_STEPS = r"\{'.*'loss': .*'(?:step|global_step)': '?\d|\{'.*'(?:step|global_step)': '?\d.*'loss': "

FORMS = (
    Form("Hugging Face Trainer, with its steps", _WITH_STEPS, (
        _TIME, ("step", "step", r"'(?:step|global_step)': '?(\d+)"), ("loss", "loss", rf"'loss': {_NUMBER}"),
        ("learning_rate", "learning_rate", rf"'learning_rate': {_NUMBER}"),
    ), r"'eval_loss'|'train_runtime'"),
    Form("Hugging Face Trainer", r"\{'(?:.*')?loss': .*'(?:epoch|grad_norm|learning_rate)': ", (
        _TIME, ("loss", "loss", rf"'loss': {_NUMBER}"), ("learning_rate", "learning_rate", rf"'learning_rate': {_NUMBER}"),
        ("tokens_seen", "num_tokens", rf"'num_(?:input_)?tokens(?:_seen)?': {_NUMBER}"),
    ), r"'eval_loss'|'train_runtime'", numbering="order"),
    Form("OpenMMLab", r"\bEpoch(?:\(train\)\s+| )\[\d+\]\[\s*\d+/\d+\].*\bloss: ", (
        _TIME, _LOSS, ("learning_rate", "lr", rf"\blr: {_NUMBER}"), ("step_time_s", "time", rf"\btime: {_NUMBER}"),
    ), numbering="in-epoch", places=_PLACE, first_epoch=1),
    Form("OpenMMLab, by iterations", r"\bIter(?:\(train\)\s+| )\[\s*\d+/\d+\].*\bloss: ", (
        _TIME, ("step", "iter", r"\bIter(?:\(train\)\s+| )\[\s*(\d+)/"), _LOSS, ("learning_rate", "lr", rf"\blr: {_NUMBER}"),
        ("step_time_s", "time", rf"\btime: {_NUMBER}"),
    )),
    Form("detectron2", r"\biter: \d+\s+total_loss: ", (
        _TIME, ("step", "iter", r"\biter: (\d+)"), ("loss", "total_loss", rf"\btotal_loss: {_NUMBER}"),
        ("learning_rate", "lr", rf"\blr: {_NUMBER}"), ("step_time_s", "time", rf"\btime: {_NUMBER}"),
    )),
    Form("MaxText", r"\bcompleted step: \d+, seconds: .*\bloss: ", (
        _TIME, ("step", "completed step", r"\bcompleted step: (\d+)"), ("loss", "loss", rf"\bloss: {_NUMBER}"),
        ("step_time_s", "seconds", rf"\bseconds: {_NUMBER}"), ("tokens", "total_weights", rf"\btotal_weights: {_NUMBER}"),
    )),
    Form("timm", r"\bTrain: \d+ \[\s*\d+/\d+ .*\bLoss: ", (
        _TIME, ("loss", "Loss", rf"\bLoss:\s+{_NUMBER}"), ("learning_rate", "LR", rf"\bLR: {_NUMBER}"),
        ("step_time_s", "Time", r"\bTime: ([\d.]+)s"),
    ), numbering="in-epoch", places=(
        ("epoch", r"\bTrain: (\d+) \["), ("at", r"\bTrain: \d+ \[\s*(\d+)/"), ("of", r"\bTrain: \d+ \[\s*\d+/(\d+)"),
    )),
    Form("ImageNet example", r"\b(?:Epoch|Train):\s*\[\s*\d+(?:/\d+)?\]\s*\[\s*\d+/\d+\].*\b[Ll]oss[\s:]", (
        _TIME, ("loss", "Loss", rf"\b[Ll]oss[\s:]+{_NUMBER}"), _LR,
        ("step_time_s", "Time", rf"\b[Tt]ime[\s:]+{_NUMBER}"),
    ), numbering="in-epoch", places=_PLACE),
    Form("Keras", r"^\W*\d+/\d+ (?:\[=+\] )?[-━ ]*\d+m?s\b.*\bloss: ", (
        _TIME, ("loss", "loss", rf"\bloss: {_NUMBER}"),
    ), numbering="heading", places=(("at", r"^\W*(\d+)/\d+ "), ("of", r"^\W*\d+/(\d+) ")), heading=r"^\W*Epoch (\d+)/\d+\W*$"),
    Form("NeMo's bar", r"\breduced_train_loss=.*\bglobal_step=", (
        _TIME, ("step", "global_step", r"\bglobal_step=(\d+)"), ("loss", "reduced_train_loss", rf"\breduced_train_loss={_NUMBER}"),
        ("step_time_s", "train_step_timing in s", rf"\btrain_step_timing in s={_NUMBER}"),
    )),
    Form("progress bar", r"\d%\|.*\|\s*\d+/\d+ \[.*\b(?:train[_/])?loss(?:_step)?=", (
        _TIME, ("loss", "loss", rf"\b(?:train[_/])?loss(?:_step)?={_NUMBER}"),
    ), _OF_EVALUATION, numbering="bar", places=(
        ("epoch", _EPOCH), ("at", r"\|\s*(\d+)/\d+ \["), ("of", r"\|\s*\d+/(\d+) \["),
    )),
    Form("own loop, by batches", rf"(?i)\bepoch\b{GAP}\d+.*{_BATCH}\d+\s*(?:/|of)\s*\d+.*{_NAMED}{GAP}{_NUMBER}",
        (_TIME, _LOSS, _LR), _OF_EVALUATION + _WATTS, numbering="in-epoch", places=_OWN_PLACE, cut=_EVALUATED),
    Form("own loop, by batches without their count", rf"(?i)\bepoch\b{GAP}\d+.*{_BATCH}\d+\b.*{_NAMED}{GAP}{_NUMBER}",
        (_TIME, _LOSS, _LR), rf"{_OF_EVALUATION}{_WATTS}|(?i:\b(?:global[ _])?steps?\b)", numbering="order", cut=_EVALUATED),
    Form("own loop, by steps", rf"(?i)\b(?:global[ _])?(?:step|iteration|iter)s?\b{GAP}\d+\b.*{_NAMED}{GAP}{_NUMBER}", (
        _TIME, ("step", "step", rf"(?i)\b(?:global[ _])?(?:step|iteration|iter)s?\b{GAP}(\d+)"), _LOSS, _LR,
    ), _OF_EVALUATION + _WATTS, cut=_EVALUATED),
    Form("own loop, loss before step", rf"(?i){_NAMED}{GAP}{_NUMBER}.*\b(?:global[ _])?(?:step|iteration|iter)s?\b{GAP}\d+\b", (
        _TIME, ("step", "step", rf"(?i)\b(?:global_)?(?:step|iteration|iter)s?\b{GAP}(\d+)"), _LOSS, _LR,
    ), _OF_EVALUATION + _WATTS, cut=_EVALUATED),
    Form("own loop, by parts of epochs", rf"(?i)\bepoch\b{GAP}\d+\.\d+\b.*{_NAMED}{GAP}{_NUMBER}", (_TIME, _LOSS, _LR),
        _OF_EVALUATION + _WATTS, numbering="order", cut=_EVALUATED),
    Form("own loop, by epochs", rf"(?i)\bepoch\b{GAP}\d+.*{_NAMED}{GAP}{_NUMBER}", (
        _TIME, ("step", "epoch", _EPOCH), _LOSS, _LR,
    ), _OF_EVALUATION + _WATTS, cut=_EVALUATED),
)  # fmt: skip
"""Lines as these programs print them; the last ones are those of own loops, as tutorials write them."""

LEAST_LINES, LOOKED_AT = 2, 500
"""So many lines of a form must be at the beginning of a file, among so many that speak of a loss: one sentence is no training log."""


def find(head: Head) -> Form | None:
    """Return the form that lines at the beginning of a file have.

    Examples
    --------
    >>> line = "{'loss': 1.2, 'grad_norm': 3.1, 'learning_rate': 5e-05, 'epoch': 0.5}"
    >>> find(Head("train.log", line + chr(10) + line, "utf-8", True)).framework
    'Hugging Face Trainer'
    """
    text = head.text.lstrip()
    if "loss" not in text.lower() or re.match(r"\{\s*\"|\[\s*\{", text):  # JSON has its own reader
        return None
    lines = [line for line in head.lines if "loss" in line.lower()]
    return next((f for f in FORMS if sum(map(f.tells, lines[:LOOKED_AT])) >= LEAST_LINES), None)
