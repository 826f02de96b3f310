"""Training logs as JSON lines or a JSON list: one object a step with its time, and what it knows of tokens, loss and batch size."""

from __future__ import annotations

import json
from collections.abc import Iterator

import polars as pl

from joulebook_pipelines.logs import (
    damage,
    json_text,
    step_documents,
    step_log,
    step_names,
    table,
    wall_clock,
    wandb_system,
)
from joulebook_pipelines.logs.contract import Adapter, Block, Head, Log, LogRefusedError, Part

_LOOKED_AT = 50
"""Lines in which every name of the log should have come up: validation and system lines stand between the steps."""


def _objects(head: Head, most: int) -> list[dict[str, object]]:
    """Return the objects of the first lines; damaged lines are passed over, but the first must be an object."""
    found: list[dict[str, object]] = []
    for line in [li for li in _whole_lines(head)[:most] if li.strip()]:
        value = json_text.members(line)
        if value is not None:
            found.append(value)
        elif not found:
            return []
    return found


def _whole_lines(head: Head) -> list[str]:
    lines = [line for line in head.lines if line.strip()]
    return lines if head.complete or len(lines) < 2 else lines[:-1]


def _plain(head: Head) -> tuple[str, ...]:
    """Return the names of plain members, not of what lies inside another object."""
    found = {n: None for o in _objects(head, _LOOKED_AT) for n, v in o.items() if not isinstance(v, (dict, list))}
    return tuple(found)


def _names(head: Head) -> dict[str, str]:
    """Return the log's names of the things of a step."""
    epochs = [o["epoch"] for o in _objects(head, _LOOKED_AT) if "epoch" in o]
    whole = bool(epochs) and all(isinstance(e, int) for e in epochs)
    return step_names.known_of_epochs(_plain(head)) if whole else step_names.known_names(_plain(head))


def _sniff(head: Head) -> bool:
    if head.text.lstrip().startswith("{") and step_names.tells_of_steps(_names(head)):
        return True
    # The Trainer's state has its own reader.
    return (
        head.text.lstrip()[:1] in {"{", "["}
        and '"log_history"' not in head.text
        and bool(step_documents.names(head.text))
    )


def _parse(log: Log) -> Iterator[Part]:
    names = _names(log.head)
    if not step_names.tells_of_steps(names) and (known := step_documents.names(log.head.text)):
        yield from step_documents.parse(log, known)
        return
    if not names:
        raise LogRefusedError(f"{log.name}:1: is not a JSON object with a step and its loss, tokens or batch size")
    form = None
    if "end_utc" in names:
        told = [str(o[names["end_utc"]]) for o in _objects(log.head, 100) if o.get(names["end_utc"]) is not None]
        if wall_clock.are_durations(told) and "step_time_s" not in names:
            names["step_time_s"] = names.pop("end_utc")
        else:
            form = wall_clock.form(log, told)
    collected, cards = step_log.Steps(log, names, form), wandb_system.System(log, _plain(log.head), form)
    for block in log.blocks():
        raw, rejects = _split(block, names | {n: n for n in cards.known})
        readings, bad, fresh = cards.read(raw, collected.add(raw.drop(cards.known)))
        yield Part(block.count, readings, pl.concat([rejects, bad]), channels=fresh)
    untimed = () if form else (step_log.without_times(log, "The log"),)
    yield collected.part(*untimed, *step_log.powers_left(log, _plain(log.head), {*names.values(), *cards.known}))


def _split(block: Block, names: dict[str, str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the known fields of each line as text, and rejects of lines that are no object."""
    lines = block.filled()
    whole = lines["raw"].str.strip_chars().str.contains(r"^\{.*\}$")
    fields = [_field(name).alias(quantity) for quantity, name in names.items()]
    # "5/100": the step, and of how many.
    fields = [f.str.replace(r"^(\d+)/\d+$", "${1}") if q == "step" else f for q, f in zip(names, fields, strict=True)]
    frame = lines.filter(whole).select("line", "raw", *fields)
    readable = frame.filter(pl.any_horizontal([pl.col(q).is_not_null() for q in names if q != "epoch"]))
    odd = pl.concat([lines.filter(~whole), frame.join(readable, on="line", how="anti").select("line", "raw")])
    cut = pl.col("line") == block.cut_line
    empty = pl.col("raw").str.contains(r"^\s*\{.*\}\s*$")
    rule = (
        pl.when(cut & ~empty).then(pl.lit(damage.CUT))
        .when(empty).then(pl.lit("no-known-member")).otherwise(pl.lit("not-a-json-object"))
    )  # fmt: skip
    return readable.drop("raw"), table.whole_lines(odd.sort("line"), rule)


def _field(name: str) -> pl.Expr:
    """Return a member of the object as text, without quotes; a reader of JSON would refuse the NaN of a diverged loss."""
    key = json.dumps(name, ensure_ascii=False)
    escaped = "".join(f"\\{c}" if c in r"\.+*?()|[]{}^$" else c for c in key)
    value = pl.col("raw").str.extract(escaped + r'\s*:\s*("(?:[^"\\]|\\.)*"|[^,}\]]+)')
    text = value.str.strip_chars()
    return pl.when(text != "null").then(text.str.strip_chars('"'))


ADAPTER = Adapter(
    name="training-jsonl",
    title="training loops that log JSON (time, run, step, loss, tokens, batch size …), a line or a list; W&B and Keras histories",
    yields="runs, steps with tokens, loss, batch size and learning rate; cards as W&B samples them",
    sniff=_sniff,
    parse=_parse,
)
