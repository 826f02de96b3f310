"""Boundaries of a machine: from narrow to wide, and which of them lie beside each other."""

from __future__ import annotations

from collections.abc import Collection

SCOPES = ("part", "board", "package", "dram", "components", "dc", "node", "rack", "facility")
"""Boundaries from narrow to wide. ``part`` lies inside another reading and is never added; ``dc`` is the output side
of power supplies."""

SUMMED_SCOPES = SCOPES[1:]
"""Scopes over which the devices of a run may be summed."""

BESIDE = ("board", "package", "dram")
"""Cards, processors and memory lie beside each other: none holds another, and their energies may be added. Of a machine
that trains, cards tell most, memory least."""

WIDTH = {scope: -BESIDE.index(scope) if scope in BESIDE else i for i, scope in enumerate(SCOPES[1:])} | {
    "part": -len(BESIDE)
}
"""How much of a machine a scope tells: greater is more. Those beside each other are in the order of :data:`BESIDE`."""


def widest(scopes: Collection[str]) -> tuple[str, ...]:
    """Return the widest of some scopes: one, or those that lie beside each other where nothing holds them.

    Parameters
    ----------
    scopes
        Names out of :data:`SCOPES`.

    Returns
    -------
    tuple of str
        The one that tells most first; empty where there is no scope.

    Examples
    --------
    >>> widest({"board", "dram", "node"}), widest({"dram", "board"}), widest(())
    (('node',), ('board', 'dram'), ())
    """
    order = sorted(scopes, key=WIDTH.__getitem__, reverse=True)
    return tuple(s for s in order if s in BESIDE) if order and order[0] in BESIDE else tuple(order[:1])


def split(scopes: Collection[str]) -> tuple[str, ...]:
    """Return at which of some scopes energy is told apart by phase and by waste.

    The accelerators, where it happens, and the machine, which pays for it; where neither is measured, the widest.

    Examples
    --------
    >>> split(["board", "package", "node", "rack"]), split(["package", "dram"]), split(["facility"])
    (('board', 'node'), ('package', 'dram'), ('facility',))
    """
    return tuple(s for s in scopes if s in {"board", "node"}) or widest(scopes)


def leading(scopes: Collection[str]) -> str | None:
    """Return the scope that tells most of a machine, ``None`` where there is none.

    Examples
    --------
    >>> leading({"package", "dram"}), leading({"package", "board", "components"})
    ('package', 'components')
    """
    return next(iter(widest(scopes)), None)
