"""Working ahead: the next items are made in a thread while the last one is used. Few are held, so memory stays bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")

READY = 3
"""Items that are made or held ready at most: enough that neither side waits for a slow item of the other."""


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items of an iterator, each made while the one before is used.

    It pays where both sides release the interpreter, as reading, parsing and writing blocks do. What the iterator raises
    is raised here.

    Examples
    --------
    >>> list(ahead(iter([1, 2, 3])))
    [1, 2, 3]
    """
    end = object()
    with ThreadPoolExecutor(1) as maker:
        pending = deque(maker.submit(next, items, end) for _ in range(READY))
        while (item := pending.popleft().result()) is not end:
            pending.append(maker.submit(next, items, end))
            yield item  # pyrefly: ignore[invalid-yield]
