"""Execute the notebook templates on the sample studies and keep their text outputs: ``python -m …notebooks_kept notebooks``.

Pictures are not kept: they would change with every font. The tests execute the notebooks again and compare the cells
that are marked for it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from joulebook_pipelines import console, notebooks

PICTURES = ("image/png", "image/jpeg", "image/svg+xml")


def keep(template: Path) -> None:
    """Execute a template with its own parameters and write its outputs, without pictures, into it."""
    with tempfile.TemporaryDirectory(dir=template.parent) as folder:
        made = notebooks.execute(template, Path(folder) / template.name, {"store_path": _deeper(template)})
        executed: NotebookNode = nbformat.read(made, as_version=4)  # pyrefly: ignore[bad-assignment]
    kept: NotebookNode = nbformat.read(template, as_version=4)  # pyrefly: ignore[bad-assignment]
    done = [c for c in executed.cells if "injected-parameters" not in c.metadata.get("tags", [])]
    code = [(c, d) for c, d in zip(kept.cells, done, strict=True) if c.cell_type == "code"]
    for number, (cell, with_output) in enumerate(code, start=1):
        cell.outputs = [_kept(o, number) for o in with_output.outputs if o.get("name") != "stderr"]
        cell.execution_count = number
    nbformat.write(kept, template)


def _deeper(template: Path) -> str:
    """Return the template's own store path as seen from one folder below it."""
    book: NotebookNode = nbformat.read(template, as_version=4)  # pyrefly: ignore[bad-assignment]
    (cell,) = [c for c in book.cells if "parameters" in c.metadata.get("tags", [])]
    return str(template.resolve().parent / cell.source.split('"')[1])


def _kept(output: nbformat.NotebookNode, number: int) -> nbformat.NotebookNode:
    """Return an output without pictures, numbered as if the template had been run from top to bottom."""
    for kind in PICTURES:
        output.get("data", {}).pop(kind, None)
    if "execution_count" in output:
        output["execution_count"] = number
    return output


if __name__ == "__main__":
    for file in sorted(Path(sys.argv[1]).glob("*.ipynb")):
        keep(file)
        console.say(str(file))
