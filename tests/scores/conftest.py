"""Score tests: each demand on accuracy is one test, and each leaves a row for the table in the documentation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROWS = Path(__file__).resolve().parents[2] / "out" / "scores"


@dataclass
class Score:
    """Collects the rows of one test."""

    rows: list[dict[str, str]] = field(default_factory=list)

    def row(self, topic: str, case: str, demand: str, measured: str) -> None:
        """Add a row: what was demanded, and what was measured."""
        self.rows.append({"topic": topic, "case": case, "demand": demand, "measured": measured})


@pytest.fixture
def score(request: pytest.FixtureRequest) -> Iterator[Score]:
    """Yield the collector; what it holds is written also when the test fails."""
    collector = Score()
    yield collector
    if collector.rows:
        ROWS.mkdir(parents=True, exist_ok=True)
        failed = getattr(request.node, "rep_failed", False)
        name = request.node.nodeid.replace("/", "_").replace("::", "-").replace("[", "_").replace("]", "")
        (ROWS / f"{name}.json").write_text(
            json.dumps([r | {"held": "no" if failed else "yes"} for r in collector.rows], indent=1)
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Leave a mark on a failed test, for the row's last column."""
    report = yield
    if report.when == "call":  # type: ignore[attr-defined]
        item.rep_failed = report.failed or hasattr(report, "wasxfail")  # type: ignore[attr-defined]
    return report
