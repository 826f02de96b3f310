"""Kernels that execute notebooks with this interpreter: one after another in each, several side by side."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self

import nbformat
import papermill
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import ensure_event_loop
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

CELL_SECONDS = 600
"""Time that one cell may take [s]: notebooks read finished tables, minutes mean that something hangs."""

FORGET = """\
import warnings
with warnings.catch_warnings():
    pass
get_ipython().reset()
"""
"""Executed between two notebooks: names go, cells count from 1, and a warning that was given is given again."""

LOAD = f"""\
import matplotlib.pyplot, polars, joulebook.plots, joulebook_pipelines
{FORGET}"""
"""Executed before the first notebook: what they all import."""

START = ["--IPKernelApp.log_level=50"]
"""Of the kernel: its warnings, and an error at each end, go to the terminal otherwise."""

AT_ONCE = 2
"""Kernels side by side: each is a process that mostly imports."""


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

    def client(self, **options: Any) -> AsyncKernelClient:
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

    def load(self, folder: Path) -> None:
        """Start in a folder and import what notebooks need, before there is one; where that fails the first one will say why."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._loop.run_until_complete(self._load(folder))
        except Exception:
            self._loop.run_until_complete(self._stop())

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
                extra_arguments=START,
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

    async def _load(self, folder: Path) -> None:
        await self._manager.start_kernel(cwd=str(folder), extra_arguments=START)
        line = self._manager.client()
        line.start_channels()
        await line.wait_for_ready(timeout=CELL_SECONDS)
        await line.execute(LOAD, silent=True, reply=True, timeout=CELL_SECONDS)
        line.stop_channels()

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


class Kernels:
    """Some kernels side by side, which load what notebooks import from now on, while there is none to execute yet.

    Parameters
    ----------
    folder
        Of the executed notebooks; made where it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._waiting: SimpleQueue[tuple[Future[Path], tuple[Path, Path, dict[str, Any]]] | None] = SimpleQueue()
        self._pool = ThreadPoolExecutor(AT_ONCE)
        for _ in range(AT_ONCE):
            self._pool.submit(self._work, folder)

    def execute(self, source: Path, out: Path, parameters: dict[str, Any]) -> Future[Path]:
        """Have a notebook executed as soon as a kernel is free; what :class:`Kernel` raises is the result's."""
        done: Future[Path] = Future()
        self._waiting.put((done, (source, out, parameters)))
        return done

    def close(self) -> None:
        """End the kernels when all is executed that was asked for."""
        for _ in range(AT_ONCE):
            self._waiting.put(None)
        self._pool.shutdown()

    def _work(self, folder: Path) -> None:
        with Kernel() as kernel:
            kernel.load(folder)
            while (asked := self._waiting.get()) is not None:
                done, what = asked
                try:
                    done.set_result(kernel.execute(*what))
                except BaseException as error:
                    done.set_exception(error)


def _settle(out: Path) -> None:
    """Take out times, paths and random names, so that the same study gives the same notebook."""
    book: NotebookNode = nbformat.read(out, as_version=4)  # pyrefly: ignore[bad-assignment]
    book.metadata.pop("papermill", None)
    for i, cell in enumerate(book.cells):
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        if "injected-parameters" in cell.metadata.get("tags", []):
            cell["id"] = f"parameters-{i}"
    nbformat.write(book, out)
