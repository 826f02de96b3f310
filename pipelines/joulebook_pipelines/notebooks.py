"""The notebooks of a study: which apply, and their execution."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from joulebook_pipelines.notebook_kernels import Kernel, Kernels, NotebookError

if TYPE_CHECKING:
    from joulebook_pipelines.report.source import StoreView

__all__ = ["TEMPLATES", "Kernels", "NotebookError", "Template", "applicable", "execute", "execute_all", "template"]


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
    with Kernel() as kernel:
        return kernel.execute(source, out, parameters)


def execute_all(names: Sequence[str], store_path: Path, folder: Path, kernels: Kernels) -> list[Path]:
    """Execute notebooks on a study, side by side.

    Parameters
    ----------
    names
        Those that apply.
    store_path
        The store's file; it must not be open for writing.
    folder
        Where the executed notebooks go; those that no longer apply are removed.
    kernels
        What executes them.

    Returns
    -------
    list of pathlib.Path
        The executed notebooks.

    Raises
    ------
    NotebookError
        A notebook failed; the others are executed all the same.
    """
    for known in TEMPLATES:
        if known.name not in names:
            (folder / f"{known.name}.ipynb").unlink(missing_ok=True)
    given = {"store_path": os.path.relpath(store_path, folder)}
    books = [kernels.execute(template(name), folder / f"{name}.ipynb", given) for name in names]
    wait(books)
    return [book.result() for book in books]
