"""Benchmarks: ratios of whole tasks measured side by side in one run; ``make bench`` writes the table of the documentation.

A machine is shared and noisy, so nothing here is a timed test of the default suite: figures are the least of a few
alternating runs, and only their ratio is kept.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "benchmarks-data"
ROWS = ROOT / "out" / "bench"

FIGURES = """
import json, pathlib
# Not getrusage: its peak is inherited from the process that started this one.
out["peak_mb"] = int(pathlib.Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
print(json.dumps(out))
"""


@dataclass
class Bench:
    """Runs commands in processes of their own and keeps rows of the table."""

    rows: list[dict[str, str]] = field(default_factory=list)

    @property
    def data(self) -> Path:
        """Folder of the logs that benchmarks make once and keep."""
        return DATA

    @property
    def peers(self) -> str | None:
        """A Python in which the libraries of peers are installed, if ``PEERS_PYTHON`` names one."""
        return os.environ.get("PEERS_PYTHON")

    def process(self, code: str, *arguments: object, python: str = sys.executable) -> dict[str, float]:
        """Run Python code that prints a JSON object of figures as its last line; add its peak memory [MB]."""
        done = subprocess.run(
            [python, "-c", code + FIGURES, *map(str, arguments)],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ,
        )
        return json.loads(done.stdout.strip().splitlines()[-1])

    def least(self, runs: int, **codes: tuple[str, tuple[object, ...]]) -> dict[str, dict[str, float]]:
        """Run several codes in turn, ``runs`` times, and return the figures of the fastest run of each."""
        best: dict[str, dict[str, float]] = {}
        for _ in range(runs):
            for name, (code, arguments) in codes.items():
                got = self.process(code, *arguments)
                if name not in best or got["seconds"] < best[name]["seconds"]:
                    best[name] = got
        return best

    def row(self, task: str, demand: str, measured: str) -> None:
        """Add a row to the table."""
        self.rows.append({"task": task, "demand": demand, "measured": measured})


MEASURED = pytest.StashKey[bool]()
"""Whether something was measured in this session."""


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """Yield the bench; its rows are kept also when a demand is missed."""
    made = Bench()
    yield made
    if made.rows:
        request.config.stash[MEASURED] = True
        ROWS.mkdir(parents=True, exist_ok=True)
        (ROWS / f"{request.node.name}.json").write_text(json.dumps(made.rows, indent=1))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the table of all rows that there are, where some were measured: tests alone leave it as it is."""
    if not session.config.stash.get(MEASURED, False):
        return
    rows = (
        [row for file in sorted(ROWS.glob("*.json")) for row in json.loads(file.read_text())] if ROWS.is_dir() else []
    )
    if rows:
        table = "\n".join(f"| {r['task']} | {r['demand']} | {r['measured']} |" for r in rows)
        (ROOT / "docs" / "speed.md").write_text(
            "# Speed\n\nRatios measured side by side in one run of `make bench` "
            f"({os.cpu_count()} cores, Python {platform.python_version()}); absolute times are the machine's, ratios travel.\n\n"
            f"| task | demand | measured |\n| --- | --- | --- |\n{table}\n"
        )
