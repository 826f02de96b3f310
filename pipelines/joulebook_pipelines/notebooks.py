"""The notebooks of a study: which apply, and their execution by papermill with this interpreter's own kernel."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import papermill
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import ensure_event_loop

if TYPE_CHECKING:
    from joulebook_pipelines.report.source import StoreView

CELL_SECONDS = 600
"""Time that one cell may take [s]: notebooks read finished tables, minutes mean that something hangs."""


AT_ONCE = 2
"""Notebooks executed side by side: each is a process that mostly starts up."""


@dataclass(frozen=True)
class Template:
    """A notebook, and the tables of which one must have rows for it to say anything; without tables it applies."""

    name: str
    tables: tuple[str, ...] = ()


TEMPLATES = (
    Template("first-look"),
    Template("clocks-and-calibration", ("alignments", "calibrations")),
    Template("steady-state", ("segments",)),
    Template("phases", ("phases",)),
    Template("sweet-spot", ("sweeps",)),
    Template("post-mortem", ("changes",)),
    Template("energy-and-loss", ("steps",)),
    Template("ledger", ("results",)),
)
"""The notebooks, in the order in which they are read."""


class NotebookError(Exception):
    """A notebook could not be executed; the message names it and the cell's error."""


class _OwnKernel(AsyncKernelManager):
    """The kernel of the running interpreter, whatever kernelspecs are or are not registered."""

    @cached_property
    def kernel_spec(self) -> KernelSpec:
        """The spec of ipykernel in this interpreter."""
        return KernelSpec(**get_kernel_dict())


def template(name: str) -> Path:
    """Return the file of a template: beside the package in a checkout, inside it when installed.

    Raises
    ------
    FileNotFoundError
        There is no template of that name; the message lists those that there are.
    """
    here = Path(__file__).resolve().parent
    for folder in (here / "notebooks", here.parents[1] / "notebooks"):
        if (folder / f"{name}.ipynb").is_file():
            return folder / f"{name}.ipynb"
    raise FileNotFoundError(f"there is no notebook {name!r}; there are {', '.join(t.name for t in TEMPLATES)}")


def applicable(store: StoreView) -> list[str]:
    """Return the names of the notebooks whose tables have rows."""
    filled = {t: not store.table(t).is_empty() for known in TEMPLATES for t in known.tables}
    return [t.name for t in TEMPLATES if not t.tables or any(filled[name] for name in t.tables)]


def execute(source: Path, out: Path, parameters: dict[str, Any]) -> Path:
    """Execute a notebook and write it with its outputs.

    It runs in the folder of ``out``, so relative paths among the parameters hold when it is opened there.

    Parameters
    ----------
    source
        The template, with one cell tagged ``parameters``.
    out
        The executed notebook. The same store gives the same bytes but for the kernel's own messages.
    parameters
        Values that replace those of the tagged cell.

    Returns
    -------
    pathlib.Path
        ``out``.

    Raises
    ------
    NotebookError
        A cell failed; what was executed until then is in ``out``.
    """
    source, out = source.resolve(), out.resolve()
    out.parent.mkdir(parents=True, exist_ok=True)
    loop = ensure_event_loop()
    try:
        papermill.execute_notebook(
            str(source), str(out), parameters, kernel_name="python3", language="python", progress_bar=False,
            execution_timeout=CELL_SECONDS, kernel_manager_class=_OwnKernel,
            # where the kernel starts; papermill's cwd would move this whole process, and with it the notebooks beside
            resources={"metadata": {"path": str(out.parent)}},
            extra_arguments=["--IPKernelApp.log_level=50"],  # its warnings, and an error at each end, go to the terminal otherwise
        )  # fmt: skip
    except papermill.PapermillExecutionError as error:
        raise NotebookError(f"{out.name}: {error.ename}: {error.evalue} (the cell is marked in {out})") from None
    finally:
        if not loop.is_running():  # it is this thread's own, and nobody else closes it
            loop.close()
    _settle(out)
    return out


def execute_all(
    store: StoreView, store_path: Path, folder: Path, told: Callable[[str], None] = lambda _text: None
) -> list[Path]:
    """Execute every notebook that applies to a study.

    Parameters
    ----------
    store
        The open store; it must not be open for writing.
    store_path
        Its file.
    folder
        Where the executed notebooks go; those of tables that have become empty are removed.
    told
        Told what is being executed.

    Returns
    -------
    list of pathlib.Path
        The executed notebooks.
    """
    names = applicable(store)
    for known in TEMPLATES:
        if known.name not in names:
            (folder / f"{known.name}.ipynb").unlink(missing_ok=True)
    given = {"store_path": os.path.relpath(store_path, folder)}
    told(f"notebooks {', '.join(names)}")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda name: execute(template(name), folder / f"{name}.ipynb", given), names))


def _settle(out: Path) -> None:
    """Take out times, paths and random names, so that the same study gives the same notebook."""
    book = nbformat.read(out, as_version=4)  # type: ignore[no-untyped-call]
    book.metadata.pop("papermill", None)
    for i, cell in enumerate(book.cells):
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        if "injected-parameters" in cell.metadata.get("tags", []):
            cell["id"] = f"parameters-{i}"
    nbformat.write(book, out)  # type: ignore[no-untyped-call]
