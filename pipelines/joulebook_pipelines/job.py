"""The main job: from a folder of logs to a store, executed notebooks and a report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from joulebook_pipelines.config_study import Study
from joulebook_pipelines.filling import Result, Told
from joulebook_pipelines.run import analyse
from joulebook_pipelines.store import Store, open_store

if TYPE_CHECKING:
    from joulebook_pipelines.notebook_kernels import Kernels

SLOW_TO_LOAD = ("joulebook_pipelines.report", "joulebook_pipelines.notebooks")
"""Pictures and the notebook machinery take two seconds to load, which a run with nothing new has no need of."""


class _Ahead:
    """What pages and notebooks need, loaded in a thread: from the beginning, where it is sure to be needed, or when asked for."""

    def __init__(self, folder: Path, *, now: bool) -> None:
        self._folder = folder
        self._beside = ThreadPoolExecutor(1)
        self._kernels: Future[Kernels] | None = self._beside.submit(self._load) if now else None

    def _load(self) -> Kernels:
        for name in SLOW_TO_LOAD:
            import_module(name)
        from joulebook_pipelines.notebook_kernels import Kernels  # noqa: PLC0415 (see SLOW_TO_LOAD)

        return Kernels(self._folder)

    def kernels(self) -> Kernels:
        """Return the notebooks' kernels."""
        if self._kernels is None:
            self._kernels = self._beside.submit(self._load)
        return self._kernels.result()

    def close(self) -> None:
        """End the kernels, if there are any."""
        if self._kernels is not None:
            self._kernels.result().close()
        self._beside.shutdown()


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
    report_file = out / "report.html"
    with closing(_Ahead(out / "notebooks", now=not report_file.is_file())) as ahead:
        result = analyse(study, out, told)
        if result.worked or not report_file.is_file() or not (out / "report.json").is_file():
            with open_store(result.store) as store:
                _render(store, result.store, report_file, told, ahead.kernels())
    return replace(result, report=report_file)


def _render(store: Store, path: Path, report_file: Path, told: Told, kernels: Kernels) -> None:
    """Execute the notebooks and, while their kernels work, draw the report; its last section asks for them."""
    from joulebook_pipelines import notebooks, report  # noqa: PLC0415 (see SLOW_TO_LOAD)

    folder, names = report_file.parent / "notebooks", notebooks.applicable(store)
    told.step(f"notebooks {', '.join(names)}")
    with ThreadPoolExecutor(1) as beside:
        running = beside.submit(notebooks.execute_all, names, path, folder, kernels)
        told.step("rendering the report")
        report.render(store, report_file, _books(running, folder, told))
        made = json.dumps(report.to_json(store), indent=1, ensure_ascii=False)
        report_file.with_suffix(".json").write_text(made, encoding="utf-8")


def _books(running: Future[list[Path]], folder: Path, told: Told) -> Iterator[Path]:
    """Yield the executed notebooks; one that fails is told and must not keep the report from being written."""
    from joulebook_pipelines import notebooks  # noqa: PLC0415 (see SLOW_TO_LOAD)

    try:
        yield from running.result()
    except notebooks.NotebookError as error:
        told.step(f"a notebook failed: {error}")
        yield from sorted(folder.glob("*.ipynb"))
