"""The reference pages of the documentation, made from the code: ``python -m joulebook_pipelines.reference docs``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl

from joulebook import schema
from joulebook_pipelines import config_reference, console
from joulebook_pipelines.adapters import ADAPTERS

FIXTURES = Path(__file__).resolve().parents[2] / "tests" / "fixtures"
"""Files with golden outcomes, one folder an adapter; the pages are made in a checkout, where the tests are."""

PROOFS = Path(__file__).with_name("proved.py")
"""What is known of them where the tests are not installed."""

_TYPES = {
    pl.String: "text",
    pl.Int64: "whole number",
    pl.Int32: "whole number",
    pl.Float64: "number",
    pl.Boolean: "true/false",
}


def tables() -> str:
    """Return the page about the store's tables."""
    parts = [
        "# The store's tables\n",
        "One DuckDB file a study. Times are UTC, intervals half-open, ratios 0 to 1; a reading over a span is labelled by its end. "
        "The key of a table is set in bold. This page is made from the code.\n",
    ]
    for table in schema.TABLES:
        parts.append(
            f"## {table.name}\n\n{table.doc[:1].upper()}{table.doc[1:]}.\n\n| column | type | meaning |\n| --- | --- | --- |"
        )
        for column in table.columns:
            kind = "time" if column.dtype == schema.UTC else next(n for t, n in _TYPES.items() if column.dtype == t)
            name = f"**{column.name}**" if column.key else column.name
            parts.append(f"| {name} | {kind} | {column.doc} |")
        parts.append("")
    return "\n".join(parts)


def formats() -> str:
    """Return the page about the formats that are read."""
    rows = [
        f"| `{a.name}` | {a.title} | {a.yields} | {'needed' if a.needs_zone else ''} | {_proof(a.name)} |"
        for a in sorted(ADAPTERS, key=lambda a: a.name)
    ]
    return "\n".join([
        "# Formats that are read\n",
        "Each file is recognised by its content; exactly one adapter must claim it. Where stamps carry no offset, the study must name a "
        "time zone. This page is made from the code and the tests: the last column counts the files in `tests/fixtures/` whose outcome, "
        "read or refused, a golden file holds.\n",
        "| adapter | written by | yields | timezone | proved by |", "| --- | --- | --- | --- | --- |", *rows, "",
    ])  # fmt: skip


def _proof(adapter: str) -> str:
    """Return how many files prove an adapter: those read, and those refused by name."""
    read, refused = proof(adapter)
    return f"{read} read" + (f", {refused} refused" if refused else "")


def proof(adapter: str) -> tuple[int, int]:
    """Return how many files of the tests an adapter reads, and how many it refuses by name."""
    goldens = sorted((FIXTURES / adapter).glob("*.golden.json"))
    refused = sum('"refused":' in g.read_text(encoding="utf-8") for g in goldens)
    return len(goldens) - refused, refused


def proofs() -> str:
    """Return the module that tells an installed joulebook what its tests hold."""
    rows = [f'    "{a.name}": {proof(a.name)},' for a in sorted(ADAPTERS, key=lambda a: a.name)]
    return "\n".join([
        '"""How many files of the tests each adapter reads, and how many it refuses by name; made with the reference pages."""',
        "", "from __future__ import annotations", "", "PROVED = {", *rows, "}", "",
    ])  # fmt: skip


PAGES: dict[str, Callable[[], str]] = {
    "reference-study-toml.md": config_reference.render,
    "reference-tables.md": tables,
    "reference-formats.md": formats,
}
"""Page of ``docs/`` and what makes it."""


def main(folder: str) -> None:
    """Write every page."""
    PROOFS.write_text(proofs(), encoding="utf-8")
    for name, make in PAGES.items():
        path = Path(folder) / name
        path.write_text(make(), encoding="utf-8")
        console.say(str(path))


if __name__ == "__main__":
    main(sys.argv[1])
