"""The only place that prints: results on stdout, progress and warnings on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import polars as pl
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from joulebook.wording import counted
from joulebook_pipelines import alike
from joulebook_pipelines.filling import Told
from joulebook_pipelines.ingest import Outcome

_MARK = {"error": "✖", "warning": "▲", "note": "ℹ"}


def say(text: str = "") -> None:
    """Print a line of the result."""
    print(text)


def tell(text: str) -> None:
    """Print a line about the work or a doubt."""
    print(text, file=sys.stderr)


def fail(text: str) -> None:
    """Print an error."""
    print(f"joulebook: {text}", file=sys.stderr)


def as_json(value: object) -> None:
    """Print a value for a machine."""
    print(json.dumps(value, indent=1, default=str, ensure_ascii=False))


def rows(frame: pl.DataFrame, *, json_output: bool = False) -> None:
    """Print a frame: as JSON rows, or as a table that is as wide as it must be."""
    if json_output:
        as_json(frame.to_dicts())
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, dtype in frame.schema.items():
        table.add_column(name, justify="right" if dtype.is_numeric() else "left", overflow="fold")
    for row in frame.iter_rows():
        table.add_row(*(_cell(v) for v in row))
    # Elsewhere than on a terminal a table is as wide as it needs, for grep and awk.
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 1000)
    console.print(table)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else escape(str(value))


def outcomes(files: Sequence[Outcome]) -> None:
    """Print what became of each file."""
    kinds = [alike.kind(o.name, o.reason) if o.status == "refused" else o.name for o in files]
    for group in alike.together(kinds):
        o = files[group[0]]
        if o.status == "refused":
            say(f"✖ refused: {o.reason if o.reason.startswith(o.name) else f'{o.name}: {o.reason}'}")
            _likewise([files[i].name for i in group[1:]])
        else:
            note = {"unchanged": " (unchanged)", "grown": " (only what was added was read)"}.get(o.status, "")
            counts = ", ".join(
                counted(n, w) for n, w in ((o.lines, "line"), (o.readings, "reading"), (o.rejects, "reject"))
            )
            say(f"{'·' if o.status == 'unchanged' else '✔'} {o.name}: {o.adapter}, {counts}{note}")


def _likewise(names: Sequence[str]) -> None:
    if names:
        say(alike.likewise(names))


def findings(frame: pl.DataFrame) -> None:
    """Print findings, worst first; what is said of many is said once."""
    found = frame.to_dicts()
    for group in alike.together(
        [f"{r['severity']} {r['code']} {alike.kind(r['subject'], r['message'])}" for r in found]
    ):
        row = found[group[0]]
        about = f" [{row['run_id']}]" if row["run_id"] and row["run_id"] != row["subject"] else ""
        subject = f"{row['subject']}{about}: "
        # a message that names a place in a file begins with that file
        say(
            f"{_MARK[row['severity']]} {row['code']} — {'' if row['message'].startswith(row['subject']) else subject}{row['message']}"
        )
        _likewise([found[i]["subject"] or found[i]["run_id"] for i in group[1:]])


def trace(frame: pl.DataFrame) -> None:
    """Print numbers, and below each the files and lines that it was made from."""
    about = ("scope", "phase", "metric", "value", "lo", "hi", "method")
    for key, lines in frame.group_by(about, maintain_order=True):
        scope, phase, metric, value, lo, hi, method = key
        ends = f" [{_cell(lo)}, {_cell(hi)}]" if lo is not None and hi is not None else ""
        during = f" during {phase}" if phase else ""
        say(f"{metric} = {'–' if value is None else _cell(value)}{ends} at the {scope}{during}: {method}")
        for row in lines.drop_nulls("path").iter_rows(named=True):
            say(
                f"    {row['path']}, lines {row['first_line']} to {row['last_line']}: {counted(row['readings'], 'reading')} of "
                f"{row['device']}, read as {row['adapter']} (SHA-256 {row['sha256'][:12]}…)"
            )


@contextmanager
def progress(total_bytes: int, *, quiet: bool = False) -> Generator[Told]:
    """Show what is being done: bars on a terminal, plain lines elsewhere."""
    if quiet:
        yield Told()
    elif sys.stderr.isatty():
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
            task = bar.add_task("reading", total=total_bytes)
            yield Told(
                lambda text: bar.update(task, description=text),
                lambda name, done: bar.update(task, advance=done, description=name),
            )
    else:
        seen: set[str] = set()

        def read(name: str, _done: int) -> None:
            if name not in seen:
                seen.add(name)
                tell(f"reading {name}")

        yield Told(tell, read)
