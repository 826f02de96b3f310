"""Numbers in sentences."""

from __future__ import annotations


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it is not one.

    Parameters
    ----------
    n
        How many.
    noun
        A noun with a regular plural, in the singular.

    Examples
    --------
    >>> counted(1, "place"), counted(3, "place")
    ('1 place', '3 places')
    """
    return f"{n} {noun}{'' if n == 1 else 's'}"
