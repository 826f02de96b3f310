"""What training scripts print for people: the Trainer's dictionaries, Keras' bars, lines with epoch and place in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from joulebook_pipelines.logs import step_text, text, training_forms
from joulebook_pipelines.logs.contract import Adapter, Log, LogRefusedError, Part


def _parse(log: Log) -> Iterator[Part]:
    form = training_forms.find(log.head)
    if form is None:
        # What stands before the first step may be long: a model that is loaded, a data set that is prepared.
        first = next(text.blocks(log.path, log.head), None)
        log = replace(log, head=replace(log.head, text=first.data.decode("utf-8", errors="replace") if first else ""))
        form = training_forms.find(log.head)
    if form is None:
        raise LogRefusedError(f"{log.name}: has no lines with the loss of a step or of an epoch")
    yield from step_text.parse(log, form)


ADAPTER = Adapter(
    name="training-text",
    title="printed progress of Hugging Face Trainer, Keras, OpenMMLab, detectron2, timm, MaxText, ImageNet examples, own loops",
    yields="steps or epochs with loss and learning rate, with time where the lines have one",
    sniff=lambda head: training_forms.find(head) is not None,
    parse=_parse,
    needs_zone=True,
    fallback=True,
)
