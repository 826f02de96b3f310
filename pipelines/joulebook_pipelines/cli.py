"""The command line: thin verbs around functions that notebooks and tests call as well."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from threadpoolctl import threadpool_limits
from typer.exceptions import TyperException

from joulebook import iso_weeks
from joulebook_pipelines import __version__, book, config, console, fleet, inspect, run
from joulebook_pipelines.adapters import ADAPTERS
from joulebook_pipelines.config_errors import ConfigError
from joulebook_pipelines.config_study import Study
from joulebook_pipelines.logs.contract import LogRefusedError
from joulebook_pipelines.store import StoreError, open_store

DONE, NOT_GOOD_ENOUGH, USAGE, REGRESSION = 0, 1, 2, 3
"""Exit codes: done; the data is not good enough; usage or configuration; a regression was found."""

app = typer.Typer(
    name="joulebook",
    help="Turn power logs of machine-learning training into energy numbers that survive an argument. It reads what other tools wrote.",
    epilog="Example: joulebook run my-logs/ && open my-logs/out/report.html",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

StudyPath = Annotated[Path, typer.Argument(metavar="STUDY", help="A folder of logs, or its study.toml.")]
Out = Annotated[Path | None, typer.Option("-o", "--out", help="Folder of the results. Default: STUDY/out.")]
Json = Annotated[bool, typer.Option("--json", help="Print for a machine.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")]


def _study(path: Path) -> Study:
    return config.load(path, adapters=[a.name for a in ADAPTERS])


def _out(study: Study, out: Path | None) -> Path:
    return out if out is not None else study.folder / "out"


def _bytes(study: Study) -> int:
    return sum(s.path.stat().st_size for s in study.sources_resolved())


@app.command(epilog="Example: joulebook init my-logs/")
def init(folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder of logs.")]) -> None:
    """Recognise the files of a folder and write a commented study.toml."""
    target = folder / config.STUDY_FILE
    if target.exists():
        raise ConfigError(f"{target}: is there already; edit it, or move it away to begin anew")
    target.write_text(inspect.draft(config.default(folder)), encoding="utf-8")
    console.say(str(target))


@app.command(epilog="Example: joulebook check my-logs/")
def check(study: StudyPath, json: Json = False) -> None:
    """Read everything and write nothing: sources, rejects, findings, configuration in force."""
    result = inspect.check(_study(study))
    if json:
        console.as_json(result.as_dict())
    else:
        console.outcomes(result.outcomes)
        if result.rejects.height:
            console.say()
            console.rows(result.rejects)
        if result.findings.height:
            console.say()
            console.findings(result.findings)
        console.say()
        console.say(result.configuration)
    raise typer.Exit(DONE if result.good else NOT_GOOD_ENOUGH)


@app.command(
    "run", epilog="Example: joulebook run my-logs/ -o results/    Many at once: joulebook run 'fleet/*' -o results/"
)
def run_(
    studies: Annotated[list[Path], typer.Argument(metavar="STUDY…", help="A folder of logs, or its study.toml; many, or a glob.")],
    out: Annotated[str | None, typer.Option("-o", "--out", help="Folder of the results, or a URL. Default: STUDY/out.")] = None,
    quiet: Quiet = False,
    json: Json = False,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Make notebooks and the page, or only the numbers.")] = True,
    workers: Annotated[int | None, typer.Option(min=1, help="Studies at a time. Default: one a core.")] = None,
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Work on a Dask cluster, e.g. tcp://10.0.0.1:8786.")] = None,
) -> None:  # fmt: skip
    """Do the main job: ingest, every analysis, notebooks and one self-contained HTML report.

    Several studies are worked on side by side; one that fails stops no other, and -o also holds the tables of all as Parquet.
    """
    found = fleet.studies(studies, out=out)
    several = len(found) > 1 or any(map(fleet.is_glob, studies)) or dask is not None or "://" in (out or "")
    raise typer.Exit(
        _fleet(found, out, quiet, json, report, workers, dask) if several else _one(found[0], out, quiet, json, report)
    )


def _one(path: Path, out: str | None, quiet: bool, json: bool, report: bool) -> int:
    loaded = _study(path)
    folder = _out(loaded, None if out is None else Path(out))
    with console.progress(_bytes(loaded), quiet=quiet) as told:
        if report:
            from joulebook_pipelines import job  # noqa: PLC0415 (the notebook machinery takes a second to load; no other verb needs it)

            result = job.run(loaded, folder, told)
        else:
            result = run.analyse(loaded, folder, told)
    page = str(result.report) if result.report else None
    with open_store(result.store) as store:
        lines, answered = inspect.headline(store), inspect.answered(store)
    if json:
        console.as_json({"report": page, "store": str(result.store), "stages": result.worked})
    else:
        console.outcomes([o for o in result.outcomes if o.status == "refused"])
        for line in lines:
            console.say(line)
        console.say(f"report: {page}" if page else f"store: {result.store}")
    return DONE if result.read and answered else NOT_GOOD_ENOUGH


def _fleet(
    paths: list[Path], out: str | None, quiet: bool, json: bool, report: bool, workers: int | None, dask: str | None
) -> int:
    if out is None:
        raise ConfigError("several studies need one folder for their results: add -o FOLDER")
    pool = fleet.dask(dask) if dask else fleet.processes if len(paths) > 1 else fleet.here
    outcomes = fleet.map_over(
        paths, out, pool, workers=workers or fleet.default_workers(len(paths)),
        report=report, staged=dask is not None, told=lambda o: None if quiet else console.tell(f"{o.status} {o.study}"),
    )  # fmt: skip
    table = pl.DataFrame(outcomes).select("study", "status", "runs", "errors", "warnings", "reason")
    console.rows(table, json_output=json)
    return DONE if all(o.status == "done" for o in outcomes) else NOT_GOOD_ENOUGH


@app.command(epilog="Example: joulebook weekly my-logs/ --week 2026-W47 -o site/ --fail-on regression")
def weekly(
    studies: Annotated[list[Path], typer.Argument(metavar="STUDY…", help="Studies, folders with a study.duckdb, or globs of them.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="SITE", help="Folder of the site; weeks that it has are kept.")],
    week: Annotated[list[str] | None, typer.Option(metavar="2026-W47", help="ISO week in UTC, one or more. Default: the last.")] = None,
    weeks: Annotated[int, typer.Option(min=1, help="Weeks before it to look at.")] = 8,
    threshold: Annotated[float, typer.Option(min=0.0, help="Least change that counts, as a ratio.")] = 0.02,
    fail_on: Annotated[str | None, typer.Option(metavar="regression", help="Exit with 3 where one was found.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Render a week against the weeks before, for one study or many, with an index of all weeks."""
    from joulebook_pipelines import weekly as weeks_site  # noqa: PLC0415 (the pages are needed by no other verb)

    if fail_on not in (None, "regression"):
        raise ConfigError(f"--fail-on {fail_on!r}: is one of regression")
    for name in week or ():
        _checked_week(name)
    with console.progress(0, quiet=quiet) as told:
        histories = weeks_site.read(weeks_site.analysed(p, told) for p in fleet.studies(studies))
    last = max((h.weeks[-1] for h in histories if h.weeks), default=None)
    if not week and last is None:
        raise ConfigError("no study has a run with a start; there is no week to render")
    done = weeks_site.render(
        histories, out, week or [str(last)], weeks=weeks, threshold_ratio=threshold, workers=os.cpu_count() or 1
    )
    if json:
        console.as_json([w.data for w in done])
    else:
        for one in done:
            for line in one.regressions:
                console.say(f"▲ {one.week} {line}")
            console.say(f"page: {one.page}")
    found = any(one.regressions for one in done)
    raise typer.Exit(REGRESSION if found and fail_on else DONE)


def _checked_week(name: str) -> None:
    try:
        iso_weeks.monday(name)
    except ValueError as error:
        raise ConfigError(f"--week: {error}") from None


@app.command(epilog="Example: joulebook ingest my-logs/")
def ingest(study: StudyPath, out: Out = None, quiet: Quiet = False) -> None:
    """Fill the store only: sources, readings, rejects, runs, steps, phases."""
    loaded = _study(study)
    with console.progress(_bytes(loaded), quiet=quiet) as told:
        result = run.fill(loaded, _out(loaded, out), told)
    console.outcomes(result.outcomes)
    console.say(f"store: {result.store}")
    raise typer.Exit(DONE if result.read else NOT_GOOD_ENOUGH)


@app.command(epilog="Example: joulebook rejects my-logs/ --by-rule")
def rejects(
    study: StudyPath,
    out: Out = None,
    by_rule: Annotated[bool, typer.Option("--by-rule", help="Counts instead of lines.")] = False,
    json: Json = False,
) -> None:
    """List the cells and lines that broke a rule, with their text."""
    with open_store(_out(_study(study), out)) as store:
        console.rows(inspect.rejects(store, by_rule=by_rule), json_output=json)


@app.command(epilog="Example: joulebook findings my-logs/ --severity warning")
def findings(
    study: StudyPath,
    out: Out = None,
    severity: Annotated[str, typer.Option(help="Least severity to show: note, warning or error.")] = "note",
    json: Json = False,
) -> None:
    """List what the reader of the numbers should know, worst first."""
    levels = ("note", "warning", "error")
    if severity not in levels:
        raise ConfigError(f"--severity {severity!r}: is one of {', '.join(levels)}")
    with open_store(_out(_study(study), out)) as store:
        found = store.findings().filter(pl.col("severity").is_in(levels[levels.index(severity) :]))
    if json:
        console.rows(found, json_output=True)
    else:
        console.findings(found)


@app.command(epilog="Example: joulebook trace my-logs/ train-1 energy_j --scope node")
def trace(
    study: StudyPath,
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="A run.")],
    metric: Annotated[str, typer.Argument(metavar="METRIC", help="A metric, such as energy_j.")],
    scope: Annotated[str | None, typer.Option(help="Boundary; all by default.")] = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Follow a number back to its files and lines."""
    with open_store(_out(_study(study), out)) as store:
        console.rows(inspect.trace(store, run_id, metric, scope), json_output=json)


@app.command(epilog="Example: joulebook export my-logs/ --format csv -o tables/")
def export(
    study: StudyPath,
    format: Annotated[str, typer.Option("--format", help="parquet, csv or json.")] = "parquet",
    to: Annotated[Path | None, typer.Option("--to", help="Folder of the tables. Default: OUT/tables.")] = None,
    out: Out = None,
) -> None:
    """Write the tables of the store as files."""
    folder = _out(_study(study), out)
    with open_store(folder) as store:
        for file in inspect.export(store, to or folder / "tables", format):
            console.say(str(file))


@app.command(epilog="Example: joulebook baseline my-logs/ --book machine.parquet --name resnet --scope node")
def baseline(
    study: StudyPath,
    book_file: Annotated[Path, typer.Option("--book", help="The book, a Parquet file; made where it is missing.")],
    name: Annotated[str, typer.Option(help="Name of the baseline, such as that of the reference model.")],
    scope: Annotated[str, typer.Option(help="Boundary of the baseline.")] = "node",
    out: Out = None,
    json: Json = False,
) -> None:
    """Add the study's stable power to a baseline book and show how the machine has drifted."""
    with open_store(_out(_study(study), out)) as store:
        moved = book.add(book_file, store, name, scope)
    console.rows(moved.frame.filter((pl.col("name") == name) & (pl.col("scope") == scope)), json_output=json)
    for finding in moved.findings:
        console.tell(f"{finding.code} — {finding.subject}: {finding.message}")


@app.command(epilog="Example: joulebook formats")
def formats(json: Json = False) -> None:
    """List every format that is read, what writes it, and what it yields."""
    console.rows(inspect.formats(), json_output=json)


@app.command(epilog="Example: joulebook version")
def version() -> None:
    """Print the version."""
    console.say(__version__)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a failure of input is one clear line on stderr and an exit code."""
    # Arrays are small and devices are worked on side by side: threads of the linear algebra would stand in each other's way.
    with threadpool_limits(1, user_api="blas"):
        sys.exit(run_command(arguments))


def run_command(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        code = app(arguments, standalone_mode=False)
        return int(code or DONE)
    except (typer.Exit, SystemExit) as exit_:
        return int(getattr(exit_, "exit_code", None) or getattr(exit_, "code", None) or DONE)
    except (ConfigError, StoreError) as error:
        console.fail(str(error))
        return USAGE
    except TyperException as error:
        console.fail(f"{str(error).rstrip()} (joulebook --help lists the verbs, joulebook VERB --help its options)")
        return USAGE
    except (LogRefusedError, KeyError) as error:
        console.fail(str(error.args[0] if error.args else error))
        return NOT_GOOD_ENOUGH
    except BrokenPipeError:
        return DONE
