"""The committed sample studies are what the simulator makes, byte for byte, small, and consistent with their truth."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from joulebook_pipelines import sample

HERE = Path(__file__).resolve().parents[2] / "sample_data"

LIMIT_BYTES = 3_000_000


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sample_data")
    assert sample.main([str(out)]) == 0
    return out


def _files(folder: Path) -> dict[str, bytes]:
    kept = (p for p in folder.rglob("*") if p.is_file() and "out" not in p.relative_to(folder).parts[:-1])
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in kept}


def test_committed_samples_are_made_again(written: Path) -> None:
    made = _files(written)
    assert len(made) == 22
    committed = {name: HERE.joinpath(name) for name in made}
    assert [n for n, p in committed.items() if not p.is_file()] == []
    assert [n for n, p in committed.items() if p.read_bytes() != made[n]] == []


def test_samples_stay_small(written: Path) -> None:
    assert sum(map(len, _files(written).values())) < LIMIT_BYTES


@pytest.mark.parametrize("name", [name for name, _ in sample.STUDIES])
def test_study_names_files_that_exist_and_runs_that_the_truth_knows(written: Path, name: str) -> None:
    folder = written / name
    study = tomllib.loads((folder / "study.toml").read_text(encoding="utf-8"))
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    assert all((folder / s["path"]).is_file() for s in study["source"])
    side_by_side = [job for jobs in truth.get("shared", {}).values() for job in jobs["board_energy_j"]]
    assert [r["id"] for r in study["run"]] == [*truth["runs"], *side_by_side]
    assert all(r["start"] < r["end"] for r in study["run"])
    logged = (json.loads(line) for p in folder.rglob("train.jsonl") for line in p.read_text().splitlines())
    assert {r["run"] for r in logged} == set(truth["runs"])


def test_phases_of_the_node_sum_to_its_runs(written: Path) -> None:
    truth = json.loads((written / "node" / "truth.json").read_text(encoding="utf-8"))
    for run in truth["runs"].values():
        for scope in ("board", "node"):
            total = sum(p["energy_j"] for p in run["phases"][scope].values())
            assert total == pytest.approx(run["energy_j"][scope], rel=1e-7)


def test_a_folder_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        sample.main([])
    assert caught.value.code == 2
    assert "out" in capsys.readouterr().err
