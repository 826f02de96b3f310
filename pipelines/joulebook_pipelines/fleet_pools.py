"""Where studies are worked on: in this process, in processes of this machine, or on a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from multiprocessing import get_context

from joulebook_pipelines.config_errors import ConfigError

RETRIES = 3
"""How often work is given out again when the worker that had it died."""


CONNECT_S = 10
"""How long a scheduler may take to answer [s]."""


Pool = Callable[[int], AbstractContextManager[Executor]]
"""Makes an executor with at most that many workers."""


def said(error: BaseException) -> str:
    """Return the first line of what an error says."""
    return str(error.args[0] if error.args else error).strip().splitlines()[0] if str(error) else type(error).__name__


@contextmanager
def processes(workers: int) -> Generator[Executor]:
    """Give an executor of processes on this machine; each starts afresh, since threads do not survive a fork."""
    with ProcessPoolExecutor(max_workers=workers, mp_context=get_context("spawn")) as executor:
        yield executor


@contextmanager
def here(_workers: int) -> Generator[Executor]:
    """Give an executor that works in this process, one study after the other."""
    with ThreadPoolExecutor(1) as executor:
        yield executor


def dask(address: str) -> Pool:
    """Return a maker of executors on a Dask cluster.

    Parameters
    ----------
    address
        Of the scheduler, e.g. ``tcp://10.0.0.1:8786``.

    Raises
    ------
    ConfigError
        Dask is not installed, or the scheduler does not answer.
    """
    try:
        import distributed  # noqa: PLC0415 (an extra)
    except ImportError:
        raise ConfigError("--dask needs Dask: pip install 'joulebook[dask]'") from None

    @contextmanager
    def pool(_workers: int) -> Generator[Executor]:
        try:
            client = distributed.Client(address, timeout=CONNECT_S)
        except (OSError, ValueError) as error:
            raise ConfigError(f"--dask {address}: no scheduler answers there ({said(error)})") from None
        with client:
            executor: Executor = client.get_executor(retries=RETRIES, pure=False)
            yield executor

    return pool


def default_workers(count: int) -> int:
    """Return how many workers suit a number of studies on this machine."""
    return max(1, min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, count))
