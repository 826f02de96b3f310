"""Writes the sample studies: ``python -m joulebook_pipelines.sample OUT``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from joulebook import synthetic_studies
from joulebook.synthetic_studies import File

STUDIES: tuple[tuple[str, Callable[[], tuple[File, ...]]], ...] = (
    ("node", synthetic_studies.node),
    ("sweep", synthetic_studies.sweep),
    ("campaign", synthetic_studies.campaign),
)
"""Sample studies: name of the folder, and what makes its files."""


def write(out: Path) -> tuple[Path, ...]:
    """Write every sample study into a folder of its own, over what is there.

    Parameters
    ----------
    out
        Folder for the studies; made where it is missing.

    Returns
    -------
    tuple of Path
        What was written. The bytes are the same every time.

    Raises
    ------
    OSError
        A file cannot be written.
    """
    written = []
    for name, make in STUDIES:
        for file in make():
            path = out / name / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.text.encode("utf-8"))
            written.append(path)
    return tuple(written)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the sample studies into the folder that the command line names."""
    parser = argparse.ArgumentParser(prog="joulebook_pipelines.sample", description="Write the sample studies.")
    parser.add_argument("out", type=Path, help="folder for the studies")
    write(parser.parse_args(argv).out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
