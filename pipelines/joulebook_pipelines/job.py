"""The main job: from a folder of logs to a store, executed notebooks and a report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from joulebook_pipelines import notebooks, report
from joulebook_pipelines.config_study import Study
from joulebook_pipelines.run import Result, Told, analyse
from joulebook_pipelines.store import Store, open_store


def run(study: Study, out: Path, told: Told | None = None) -> Result:
    """Do the main job: ingest, analyse, execute the notebooks, render report.html and report.json.

    Parameters
    ----------
    study
        The study.
    out
        Folder of the results.
    told
        Where progress is told.
    """
    told = told or Told()
    # Notebooks run in their own folder, so a relative path would not lead back to the store.
    out = out.resolve()
    result = analyse(study, out, told)
    report_file = out / "report.html"
    if result.worked or not report_file.is_file() or not (out / "report.json").is_file():
        with open_store(result.store) as store:
            books = _notebooks(store, result.store, out / "notebooks", told)
            told.step("rendering the report")
            report.render(store, report_file, books)
            (out / "report.json").write_text(
                json.dumps(report.to_json(store), indent=1, ensure_ascii=False), encoding="utf-8"
            )
    return replace(result, report=report_file)


def _notebooks(store: Store, path: Path, folder: Path, told: Told) -> list[Path]:
    """Execute the notebooks; one that fails is told and must not keep the report from being written."""
    try:
        return notebooks.execute_all(store, path, folder, told.step)
    except notebooks.NotebookError as error:
        told.step(f"a notebook failed: {error}")
        return sorted(folder.glob("*.ipynb"))
