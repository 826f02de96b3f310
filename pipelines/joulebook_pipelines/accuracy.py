"""The page of measured accuracy, made from the rows of the score tests: ``python -m joulebook_pipelines.accuracy FOLDER PAGE``."""

from __future__ import annotations

import json
import re
import sys
from itertools import groupby
from pathlib import Path

from joulebook_pipelines import console

COLUMNS = ("topic", "case", "demand", "measured", "held")
"""What a row says, all as text; ``held`` is ``yes`` or ``no``."""

_HEAD = """# Measured accuracy

Each row is a test against known truth: simulated logs with their exact answers, or published measurements. It says what
was demanded, what was measured, and whether the demand held. `make scores` runs the tests and makes this page again; do
not edit it. What each method does and when it refuses is in [methods.md](methods.md).
"""


def read(folder: Path) -> list[dict[str, str]]:
    """Return the rows of every score test, in the order of topic and case.

    Parameters
    ----------
    folder
        Folder of JSON files, each a list of rows with ``topic``, ``case``, ``demand``, ``measured``, ``held``.

    Returns
    -------
    list of dict
        The rows; the order does not depend on the names of the files.

    Raises
    ------
    ValueError
        A file holds something else.
    """
    rows: list[dict[str, str]] = []
    for file in sorted(folder.glob("*.json")):
        for row in json.loads(file.read_text(encoding="utf-8")):
            if set(row) != set(COLUMNS):
                raise ValueError(
                    f"{file.name}: a row has the keys {', '.join(sorted(row))}; needed are {', '.join(COLUMNS)}"
                )
            rows.append(row)
    return sorted(rows, key=lambda r: (r["topic"].lower(), *(_natural(r[c]) for c in ("case", "demand", "measured"))))


def render(rows: list[dict[str, str]]) -> str:
    """Return the page.

    Parameters
    ----------
    rows
        Rows as :func:`read` returns them.

    Returns
    -------
    str
        Markdown: a section a topic, a row a demand.

    Examples
    --------
    >>> row = {"topic": "energy", "case": "ramp", "demand": "≤ 1 %", "measured": "0.2 %", "held": "yes"}
    >>> print(render([row]).splitlines()[-1])
    | ramp | ≤ 1 % | 0.2 % | yes |
    """
    held = sum(r["held"] == "yes" for r in rows)
    parts = [_HEAD, f"{held} of {len(rows)} demands held."]
    for topic, some in groupby(rows, key=lambda r: r["topic"]):
        parts += [
            "",
            f"## {topic[:1].upper()}{topic[1:]}",
            "",
            "| case | demanded | measured | held |",
            "| --- | --- | --- | --- |",
        ]
        parts += [_row(r) for r in some]
    return "\n".join(parts) + "\n"


def _row(row: dict[str, str]) -> str:
    cells = [_cell(row[c]) for c in ("case", "demand", "measured")]
    return f"| {' | '.join(cells)} | {'yes' if row['held'] == 'yes' else '**no**'} |"


def _cell(text: str) -> str:
    """Return text that stands in one cell of a table, signs and all."""
    return " ".join(re.sub(r"([|<*_`\\])", r"\\\1", text).replace(">=", "≥").replace(r"\<=", "≤").split())


def _natural(text: str) -> list[tuple[float, str]]:
    """Return a key that puts 3,000 before 10,000."""
    return [
        (float(p.replace(",", "")), "") if p[:1].isdigit() else (-1.0, p.lower())
        for p in re.split(r"(\d[\d,]*)", text)
        if p
    ]


def main(folder: str, page: str) -> None:
    """Write the page; without rows there is nothing to say, and the page that is there stays."""
    rows = read(Path(folder))
    if rows:
        Path(page).write_text(render(rows), encoding="utf-8")
    console.say(f"{page}: {len(rows)} rows of {folder}" if rows else f"{folder}: no rows; {page} is left as it is")


if __name__ == "__main__":
    main(*sys.argv[1:])
