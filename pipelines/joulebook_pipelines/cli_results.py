"""Verbs that ask the results of a study, and what joulebook can read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from joulebook_pipelines import __version__, console, inspect
from joulebook_pipelines.cli_options import Json, Out, ResultsPath, results_of, store_of
from joulebook_pipelines.config_errors import ConfigError

app = typer.Typer()


@app.command(epilog="Example: joulebook rejects my-logs/ --by-rule")
def rejects(
    study: ResultsPath,
    out: Out = None,
    by_rule: Annotated[bool, typer.Option("--by-rule", help="Counts instead of lines.")] = False,
    json: Json = False,
) -> None:
    """List the cells and lines that broke a rule, with their text."""
    with store_of(study, out) as store:
        console.rows(inspect.rejects(store, by_rule=by_rule), json_output=json)


@app.command(epilog="Example: joulebook findings my-logs/ --severity warning")
def findings(
    study: ResultsPath,
    out: Out = None,
    severity: Annotated[str, typer.Option(help="Least severity to show: note, warning or error.")] = "note",
    json: Json = False,
) -> None:
    """List what the reader of the numbers should know, worst first."""
    levels = ("note", "warning", "error")
    if severity not in levels:
        raise ConfigError(f"--severity {severity!r}: is one of {', '.join(levels)}")
    with store_of(study, out) as store:
        found = store.findings().filter(pl.col("severity").is_in(levels[levels.index(severity) :]))
    if json:
        console.rows(found, json_output=True)
    else:
        console.findings(found)


@app.command(epilog="Example: joulebook trace my-logs/ train-1 energy_j --scope node")
def trace(
    study: ResultsPath,
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="A run.")],
    metric: Annotated[str, typer.Argument(metavar="METRIC", help="A metric, such as energy_j.")],
    scope: Annotated[str | None, typer.Option(help="Boundary; all by default.")] = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Follow a number back to its files and lines."""
    with store_of(study, out) as store:
        found = inspect.trace(store, run_id, metric, scope)
    if json:
        console.rows(found, json_output=True)
    else:
        console.trace(found)


@app.command(epilog="Example: joulebook export my-logs/ --format csv --to tables/")
def export(
    study: ResultsPath,
    format: Annotated[str, typer.Option("--format", help="parquet, csv or json.")] = "parquet",
    to: Annotated[Path | None, typer.Option("--to", help="Folder of the tables. Default: OUT/tables.")] = None,
    out: Out = None,
) -> None:
    """Write the tables of the store as files."""
    folder = results_of(study, out)
    with store_of(study, out) as store:
        for file in inspect.export(store, to or folder / "tables", format):
            console.say(str(file))


@app.command(
    short_help="Add stable power to a baseline book, show how it drifted.",
    epilog="Example: joulebook baseline my-logs/ --book machine.parquet --name resnet --scope node",
)
def baseline(
    study: ResultsPath,
    book_file: Annotated[Path, typer.Option("--book", help="The book, a Parquet file; made where it is missing.")],
    name: Annotated[str, typer.Option(help="Name of the baseline, such as that of the reference model.")],
    scope: Annotated[str, typer.Option(help="Boundary of the baseline.")] = "node",
    out: Out = None,
    json: Json = False,
) -> None:
    """Add the study's stable power to a baseline book and show how the machine has drifted."""
    from joulebook_pipelines import book  # noqa: PLC0415 (no other verb here needs the analyses)

    with store_of(study, out) as store:
        moved = book.add(book_file, store, name, scope)
    console.rows(moved.frame.filter((pl.col("name") == name) & (pl.col("scope") == scope)), json_output=json)
    for finding in moved.findings:
        console.tell(f"{finding.code} — {finding.subject}: {finding.message}")


@app.command(short_help="List every format that is read.", epilog="Example: joulebook formats")
def formats(json: Json = False) -> None:
    """List every format that is read, what writes it, and what it yields."""
    console.rows(inspect.formats(), json_output=json)


@app.command(epilog="Example: joulebook version")
def version() -> None:
    """Print the version."""
    console.say(__version__)
