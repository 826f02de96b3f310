"""Text logs of training frameworks with a line a step: torchtitan, DeepSpeed, NeMo, fairseq, nanoGPT, llm.c, own loops."""

from __future__ import annotations

from collections.abc import Iterator

from joulebook_pipelines.logs import step_lines, step_text
from joulebook_pipelines.logs.contract import Adapter, Log, LogRefusedError, Part


def _parse(log: Log) -> Iterator[Part]:
    form = step_lines.find(log.head)
    if form is None:
        raise LogRefusedError(
            f"{log.name}: has no line about a step as torchtitan, DeepSpeed, NeMo, fairseq or an own loop write it"
        )
    yield from step_text.parse(log, form)


ADAPTER = Adapter(
    name="step-lines",
    title="text logs of torchtitan, DeepSpeed, NeMo, fairseq, nanoGPT, llm.c, verl, Darknet, TF object detection, own loops",
    yields="runs, steps with time, loss, batch size and learning rate",
    sniff=lambda head: step_lines.find(head) is not None,
    parse=_parse,
    needs_zone=True,
)
