"""The notebooks of a study: which apply, and their execution by papermill with this interpreter's own kernel."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import nbformat
import papermill
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import ensure_event_loop
from nbclient.exceptions import CellTimeoutError, DeadKernelError

if TYPE_CHECKING:
    from joulebook_pipelines.report.source import StoreView

CELL_SECONDS = 600
"""Time that one cell may take [s]: notebooks read finished tables, minutes mean that something hangs."""

FORGET = """\
import warnings
with warnings.catch_warnings():
    pass
get_ipython().reset()
"""
"""Executed between two notebooks: names go, cells count from 1, and a warning that was given is given again."""

AT_ONCE = 2
"""Kernels side by side: each is a process that mostly imports."""


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

    line: AsyncKernelClient | None = None
    """The connection that was made last."""

    @cached_property
    def kernel_spec(self) -> KernelSpec:
        """The spec of ipykernel in this interpreter."""
        return KernelSpec(**get_kernel_dict())

    def client(self, **options: Any) -> AsyncKernelClient:  # type: ignore[override]
        """Return a new connection, and remember it."""
        self.line = super().client(**options)
        return self.line


class Kernel:
    """A kernel for one notebook after another, in one thread: what it has imported serves the next one, names do not."""

    def __enter__(self) -> Self:
        self._loop = ensure_event_loop()
        self._manager = _OwnKernel()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.run_until_complete(self._stop())
        if not self._loop.is_running():  # it is this thread's own, and nobody else closes it
            self._loop.close()

    def execute(self, source: Path, out: Path, parameters: dict[str, Any]) -> Path:
        """Execute a notebook as :func:`execute` does; after one that fails the kernel is a new one."""
        source, out = source.resolve(), out.resolve()
        out.parent.mkdir(parents=True, exist_ok=True)
        ended = self._stop
        try:
            papermill.execute_notebook(
                str(source), str(out), parameters, kernel_name="python3", language="python", progress_bar=False,
                execution_timeout=CELL_SECONDS, km=self._manager,
                request_save_on_cell_execute=False,  # at the end, or where a cell fails: once a cell takes as long as the cells
                # where the kernel starts; papermill's cwd would move this whole process, and with it the notebooks beside
                resources={"metadata": {"path": str(out.parent)}},
                extra_arguments=["--IPKernelApp.log_level=50"],  # its warnings, and an error at each end, go to the terminal otherwise
            )  # fmt: skip
            ended = self._clear
        except papermill.PapermillExecutionError as error:
            raise NotebookError(f"{out.name}: {error.ename}: {error.evalue} (the cell is marked in {out})") from None
        except (DeadKernelError, CellTimeoutError) as error:
            raise NotebookError(f"{out.name}: {str(error).splitlines()[0]}") from None
        finally:
            self._loop.run_until_complete(ended())
        _settle(out)
        return out

    async def _clear(self) -> None:
        """Forget the last notebook and hang up."""
        line = self._manager.line
        if line is not None:
            await line.execute(FORGET, silent=True, reply=True, timeout=CELL_SECONDS)
            line.stop_channels()

    async def _stop(self) -> None:
        if self._manager.line is not None:
            self._manager.line.stop_channels()
        if self._manager.has_kernel:
            await self._manager.shutdown_kernel(now=True)
        self._manager = _OwnKernel()


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


def execute_all(names: Sequence[str], store_path: Path, folder: Path) -> list[Path]:
    """Execute notebooks on a study, side by side.

    Parameters
    ----------
    names
        Those that apply.
    store_path
        The store's file; it must not be open for writing.
    folder
        Where the executed notebooks go; those that no longer apply are removed.

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
    books = {name: folder / f"{name}.ipynb" for name in names}
    waiting, failed = iter(books.items()), dict[str, NotebookError]()

    def work() -> None:
        with Kernel() as kernel:
            for name, book in waiting:
                try:
                    kernel.execute(template(name), book, given)
                except NotebookError as error:
                    failed[name] = error

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for worker in [pool.submit(work) for _ in range(min(AT_ONCE, len(names)))]:
            worker.result()
    for name in names:
        if name in failed:
            raise failed[name]
    return list(books.values())


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
