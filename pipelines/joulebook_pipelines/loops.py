"""Compiles the numeric loops before they are wanted: ``python -m joulebook_pipelines.loops``.

They are compiled when they are first called and kept beside the modules. Done where the package is set up, nobody waits
for it at a first run, and processes that start side by side do not each compile them anew.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from joulebook import synthetic_studies
from joulebook_pipelines import config, filling, run
from joulebook_pipelines.logs import plain


def compile_all() -> None:
    """Run the sample study and read a large log: between them they call the loops that most studies call."""
    with tempfile.TemporaryDirectory() as folder:
        study, large = Path(folder, "study"), Path(folder, "large")
        for file in synthetic_studies.node():
            path = study / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.text.encode("utf-8"))
        run.analyse(config.load(study), study / "out")
        large.mkdir()
        (large / "gpu.csv").write_text(_large_log(), encoding="utf-8")
        (large / config.STUDY_FILE).write_text('[study]\ntimezone = "UTC"\n', encoding="utf-8")
        filling.fill(config.load(large), large / "out")


def _large_log() -> str:
    """Return a log of a size that is read by the loops."""
    row = "2026/03/03 09:00:{:02d}.{:03d}, {}, {}.25 W, {} %, P0\n"
    rows = "".join(
        row.format(second, 2 * card, card, 300 + second, second) for second in range(60) for card in range(8)
    )
    header = "timestamp, index, power.draw [W], utilization.gpu [%], pstate\n"
    return header + rows * (plain.LEAST_BYTES // len(rows) + 2)


if __name__ == "__main__":
    compile_all()
