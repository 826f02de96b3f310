"""The command line: thin verbs around functions that notebooks and tests call as well."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from threadpoolctl import threadpool_limits
from typer.exceptions import TyperException

from joulebook import iso_weeks
from joulebook.wording import counted
from joulebook_pipelines import cli_results, config, console, filling, fleet_pools, fleet_studies, headline, inspect
from joulebook_pipelines.cli_options import Json, Out, Quiet, StudyPath, out_of, study_of
from joulebook_pipelines.config_errors import ConfigError
from joulebook_pipelines.config_study import Study
from joulebook_pipelines.ingest import Outcome
from joulebook_pipelines.init import FILL_IN
from joulebook_pipelines.logs.contract import LogRefusedError
from joulebook_pipelines.store import StoreError, open_store

DONE, NOT_GOOD_ENOUGH, USAGE, REGRESSION = 0, 1, 2, 3
"""Exit codes: done; the data is not good enough; usage or configuration; a regression was found."""

app = typer.Typer(
    name="joulebook",
    help="Turn power logs of machine-learning training into energy numbers that survive an argument. It reads what other tools wrote.",
    epilog="Example: joulebook run my-logs/ && open my-logs/out/report.html",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _bytes(study: Study) -> int:
    return sum(s.path.stat().st_size for s in study.sources_resolved())


@app.command(epilog="Example: joulebook init my-logs/")
def init(folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder of logs.")]) -> None:
    """Recognise the files of a folder, write a commented study.toml."""
    target = folder / config.STUDY_FILE
    if target.exists():
        raise ConfigError(f"{target}: is there already; edit it, or move it away to begin anew")
    if not folder.is_dir():
        raise ConfigError(
            f"{folder}: {'is a file; name the folder it is in' if folder.exists() else 'there is no such folder'}"
        )
    text = inspect.draft(config.default(folder))
    target.write_text(text, encoding="utf-8")
    console.say(str(target))
    places = text.count(FILL_IN) - 1  # the head of the file tells of the mark
    answer = f"answer the {counted(places, 'place')} marked {FILL_IN} in it, then: " if places else "next: "
    console.tell(f"{answer}joulebook run {folder}")


@app.command(
    short_help="Read everything and write nothing: what a run would find.", epilog="Example: joulebook check my-logs/"
)
def check(study: StudyPath, json: Json = False) -> None:
    """Read everything and write nothing: sources, rejects, findings, configuration in force."""
    study_read = study_of(study)
    result = inspect.check(study_read)
    if json:
        console.as_json(result.as_dict())
    else:
        console.outcomes(result.outcomes)
        if result.rejects.height:
            console.say()
            console.rows(result.rejects)
        more = result.findings.filter(pl.col("code") != "source-refused")  # those are told above
        if more.height:
            console.say()
            console.findings(more)
        console.say()
        console.say(result.configuration)
        _hint(study_read, result.outcomes)
    raise typer.Exit(DONE if result.good else NOT_GOOD_ENOUGH)


@app.command(
    "run", short_help="Do the main job: store, analyses, notebooks and HTML report.",
    epilog="\b\nExample: joulebook run my-logs/ -o results/\nMany at once: joulebook run 'fleet/*' -o results/",
)  # fmt: skip
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
    found = fleet_studies.studies(studies, out=out)
    several = len(found) > 1 or any(map(fleet_studies.is_glob, studies)) or dask is not None or "://" in (out or "")
    raise typer.Exit(
        _fleet(found, out, quiet, json, report, workers, dask) if several else _one(found[0], out, quiet, json, report)
    )


def _one(path: Path, out: str | None, quiet: bool, json: bool, report: bool) -> int:
    loaded = study_of(path)
    folder = out_of(loaded, None if out is None else Path(out))
    with console.progress(_bytes(loaded), quiet=quiet) as told:
        if report:
            from joulebook_pipelines import job  # noqa: PLC0415 (as below, and the notebook machinery takes as long again)

            result = job.run(loaded, folder, told)
        else:
            from joulebook_pipelines import run  # noqa: PLC0415 (the analyses take a second to load; other verbs do without)

            result = run.analyse(loaded, folder, told)
    page = str(result.report) if result.report else None
    with open_store(result.store) as store:
        lines, answered = headline.lines(store), headline.answered(store)
    if json:
        console.as_json({"report": page, "store": str(result.store), "stages": result.worked})
    else:
        console.outcomes([o for o in result.outcomes if o.status == "refused"])
        for line in lines:
            console.say(line)
        console.say(f"report: {page}" if page else f"store: {result.store}")
        _hint(loaded, result.outcomes)
    return DONE if result.read and answered else NOT_GOOD_ENOUGH


def _hint(study: Study, outcomes: Sequence[Outcome]) -> None:
    """Tell where to say what files lack, to whom there is no study.toml yet."""
    refused = sum(o.status == "refused" for o in outcomes)
    if refused and not (study.folder / config.STUDY_FILE).is_file():
        console.tell(
            f"{counted(refused, 'file')} not read. What they lack is said in a study.toml; write one with: "
            f"joulebook init {study.folder}"
        )


def _fleet(
    paths: list[Path], out: str | None, quiet: bool, json: bool, report: bool, workers: int | None, dask: str | None
) -> int:
    if out is None:
        raise ConfigError("several studies need one folder for their results: add -o FOLDER")
    from joulebook_pipelines import fleet  # noqa: PLC0415 (as for one study)

    pool = fleet_pools.dask(dask) if dask else fleet_pools.processes if len(paths) > 1 else fleet_pools.here
    outcomes = fleet.map_over(
        paths, out, pool, workers=workers or fleet_pools.default_workers(len(paths)),
        report=report, staged=dask is not None, told=lambda o: None if quiet else console.tell(f"{o.status} {o.study}"),
    )  # fmt: skip
    table = pl.DataFrame(outcomes).select("study", "status", "runs", "errors", "warnings", "reason")
    console.rows(table, json_output=json)
    return DONE if all(o.status == "done" for o in outcomes) else NOT_GOOD_ENOUGH


@app.command(
    short_help="Render the page of a week against the weeks before.",
    epilog="\b\nExample: joulebook weekly my-logs/ --week 2026-W47 -o site/ --fail-on regression",
)
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
        histories = weeks_site.read(weeks_site.analysed(p, told) for p in fleet_studies.studies(studies))
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
            if one.outcome:
                console.say(f"{one.week}: {one.outcome}")
            console.say(f"page: {one.page}")
    found = any(one.regressions for one in done)
    raise typer.Exit(REGRESSION if found and fail_on else DONE)


def _checked_week(name: str) -> None:
    try:
        iso_weeks.monday(name)
    except ValueError as error:
        raise ConfigError(f"--week: {error}") from None


@app.command(short_help="Fill the store only, without analysing it.", epilog="Example: joulebook ingest my-logs/")
def ingest(study: StudyPath, out: Out = None, quiet: Quiet = False) -> None:
    """Fill the store only: sources, readings, rejects, runs, steps, phases."""
    loaded = study_of(study)
    with console.progress(_bytes(loaded), quiet=quiet) as told:
        result = filling.fill(loaded, out_of(loaded, out), told)
    console.outcomes(result.outcomes)
    console.say(f"store: {result.store}")
    raise typer.Exit(DONE if result.read else NOT_GOOD_ENOUGH)


app.add_typer(cli_results.app)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a failure of input is one clear line on stderr and an exit code."""
    # Arrays are small and devices are worked on side by side: threads of the linear algebra would stand in each other's way.
    with threadpool_limits(1, user_api="blas"):
        sys.exit(run_command(arguments))


def run_command(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        code = app(words or ["--help"], prog_name="joulebook", standalone_mode=False)
        return int(code or (DONE if words else USAGE))
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
