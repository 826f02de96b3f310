"""How many of the database's threads write the rows of a log: one, but where two do it in half the time."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import duckdb

ROW_GROUP = 122_880
"""Rows that the database keeps together."""

AT_ONCE = 2
"""Threads for large blocks: more leave row groups that are not full."""


class WritingThreads:
    """The threads of a connection while rows are appended to a table."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con
        self._usual = self._now = 0

    @contextmanager
    def few(self) -> Generator[None]:
        """Write by one thread: several each begin row groups of their own, at twice the cost and size."""
        (self._usual,) = self._con.execute("select current_setting('threads')").fetchall()[0]
        self._use(2)
        try:
            yield
        finally:
            self._use(self._usual)

    def fit(self, rows: int, devices: int) -> None:
        """Take as many as the next block wants.

        Parameters
        ----------
        rows
            Rows of the block.
        devices
            Devices that stand one after another in it, each over all of its lines; 0 where line stands behind line. What is
            alike over thousands of rows costs two threads no more than one, and no room.
        """
        self._use(min(AT_ONCE, self._usual) if devices and rows >= AT_ONCE * ROW_GROUP else 1)

    def _use(self, threads: int) -> None:
        if threads != self._now:
            self._con.execute(f"set threads = {threads}")
            self._now = threads
