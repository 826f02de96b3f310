"""TensorBoard's event files (``events.out.tfevents.…``) as PyTorch, Lightning, the Trainer, Megatron and Keras write them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from joulebook_pipelines.logs import event_records, packed, step_log, step_names, table
from joulebook_pipelines.logs.contract import Adapter, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.event_records import Broken, Scalar
from joulebook_pipelines.logs.stamps import StampForm

LARGEST_BYTES = 1 << 28
"""Larger files hold images and histograms, not scalars of a run."""

_FORM = StampForm("epoch", aware=True, unit_us=1e6)
_NO_RUNS = frozenset({"train", "tensorboard", "tb", "logs"})
"""Folders that name no run; the one above does."""


def _sniff(head: Head) -> bool:
    return event_records.MARK in head.text[:400]


def _run(path: Path) -> str:
    """Return the run of a file: TensorBoard calls it after its folder."""
    names = [p.name for p in path.resolve().parents if p.name]
    return next((n for n in names if n.lower() not in _NO_RUNS), "events")


def _bytes(log: Log) -> bytes:
    try:
        with packed.open_bytes(log.path) as file:
            data = file.read(LARGEST_BYTES + 1)
    except packed.UNREADABLE as error:
        raise LogRefusedError(f"{log.name}: cannot be read: {error}") from None
    if len(data) > LARGEST_BYTES:
        raise LogRefusedError(
            f"{log.name}: larger than {LARGEST_BYTES >> 20} MiB; export the chart of the training loss as CSV"
        )
    return data


def _parse(log: Log) -> Iterator[Part]:
    found, count = event_records.read(_bytes(log))
    scalars = [s for s in found if isinstance(s, Scalar)]
    tags = tuple(dict.fromkeys(s.tag for s in scalars))
    known = {t: q for q, t in step_names.known_names(tags).items() if q in step_names.VALUES}
    if not known or log.path.parent.name.lower() in {"validation", "eval", "test"}:
        why = "is of an evaluation" if known else f"holds {', '.join(map(repr, tags[:6])) or 'no scalars'}"
        raise LogRefusedError(f"{log.name}: {why}, nothing of training steps; leave it out of the study")
    titles = {"end_utc": "wall_time", "step": "step", **{q: t for t, q in known.items()}, "run_id": "folder"}
    steps = step_log.Steps(log, titles, _FORM)
    raw = _rows([s for s in scalars if s.tag in known], known).with_columns(run_id=pl.lit(_run(log.path)))
    broken = [(b.record, b.data.hex(" ")) for b in found if isinstance(b, Broken)]
    cut = {b.record for b in found if isinstance(b, Broken) and b.cut}
    odd = pl.DataFrame(broken, schema={"line": pl.Int64, "raw": pl.String}, orient="row")
    rule = pl.when(pl.col("line").is_in(list(cut))).then(pl.lit("last-record-cut")).otherwise(pl.lit("damaged-record"))
    rejects = pl.concat([table.whole_lines(odd, rule), steps.add(raw)])
    yield Part(lines=count, rejects=rejects)
    yield steps.part()


def _rows(scalars: list[Scalar], known: dict[str, str]) -> pl.DataFrame:
    """Return the scalars of a step as one row, as text: those that stand together, until a tag comes again."""
    rows: list[dict[str, str | int]] = []
    for s in scalars:  # a few numbers a step, not a reading
        quantity = known[s.tag]
        if not rows or rows[-1]["step"] != str(s.step) or quantity in rows[-1]:
            rows.append({"line": s.record, "end_utc": f"{s.time_s:.6f}", "step": str(s.step)})
        rows[-1][quantity] = f"{s.value:.7g}"
    schema = {"line": pl.Int64, **dict.fromkeys(("end_utc", "step", *known.values()), pl.String)}
    return pl.DataFrame(rows, schema=schema, orient="row")


ADAPTER = Adapter(
    name="tensorboard",
    title="event files of TensorBoard (events.out.tfevents.…): PyTorch, Lightning, Hugging Face Trainer, Megatron, Keras",
    yields="steps with time, loss, learning rate, batch size and tokens; the run is called after the folder",
    sniff=_sniff,
    parse=_parse,
)
