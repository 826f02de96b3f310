"""Working ahead: the next item is made in a thread while the last one is used. One is held ready, so memory stays bounded."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


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
        pending = maker.submit(next, items, end)
        while (item := pending.result()) is not end:
            pending = maker.submit(next, items, end)
            yield item  # type: ignore[misc]
