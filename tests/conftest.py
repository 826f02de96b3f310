"""Shared by all tests: where the optional shared data lies, and small studies written on the fly."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import matplotlib as mpl
import pytest
from hypothesis import settings

from joulebook_pipelines import Store, open_store, stages

mpl.use("agg")

settings.register_profile("default", max_examples=12, deadline=None)
settings.load_profile("default")

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of real logs and studies with known truth; skip where it is not there."""
    if not (SHARED / "studies").is_dir():
        pytest.skip("the shared data is not beside this checkout")
    return SHARED


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Yield an empty store, open for writing."""
    with open_store(tmp_path / "study.duckdb", read_only=False) as opened:
        yield opened


@pytest.fixture
def energy_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an analysis end at the energies: for tests in which what follows has nothing to say."""
    names = ("runs", "clocks", "instruments", "energy")
    monkeypatch.setattr(stages, "STAGES", tuple(s for s in stages.STAGES if s.name in names))


@pytest.fixture
def gpu_log() -> Callable[..., str]:
    """Return a writer of small nvidia-smi logs: ``(second, card, watts as text)`` per line."""

    def write(rows: Iterable[tuple[float, int, str]], start: str = "2026-03-03T09:00:00") -> str:
        t0 = dt.datetime.fromisoformat(start)
        lines = ["timestamp, index, name, power.draw [W], utilization.gpu [%]"]
        for second, card, watts in rows:
            stamp = (t0 + dt.timedelta(seconds=second)).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
            lines.append(f"{stamp}, {card}, SIM, {watts}, 50 %")
        return "\n".join(lines) + "\n"

    return write


@pytest.fixture
def study_folder(tmp_path: Path) -> Callable[..., Path]:
    """Return a writer of study folders: files by name and the text of study.toml."""

    def write(files: dict[str, str | bytes], toml: str | None = '[study]\ntimezone = "UTC"\n') -> Path:
        folder = tmp_path / "study"
        folder.mkdir(exist_ok=True)
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        if toml is not None:
            (folder / "study.toml").write_text(toml)
        return folder

    return write
