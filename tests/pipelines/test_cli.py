import json
import re
from pathlib import Path

import pytest

from joulebook_pipelines import cli
from joulebook_pipelines.adapters import ADAPTERS

ROOT = Path(__file__).resolve().parents[2]

ROWS = [(s, 0, f"{300 + s % 3} W") for s in range(121)]


@pytest.fixture
def command(capsys):
    """Run the command line; return exit code, stdout and stderr."""

    def call(*arguments):
        code = cli.run_command([str(a) for a in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def study(gpu_log, study_folder):
    return study_folder({"gpu.csv": gpu_log([*ROWS, (121, 0, "[N/A]")])})


def test_check_reads_everything_and_writes_nothing(command, study):
    code, out, _ = command("check", study)
    assert code == cli.DONE
    assert "nvidia-smi-csv" in out
    assert "no-value" in out
    assert sorted(p.name for p in study.iterdir()) == ["gpu.csv", "study.toml"]


def test_check_for_a_machine(command, study):
    code, out, _ = command("check", study, "--json")
    assert code == cli.DONE
    assert json.loads(out)["files"][0]["rejects"] == 1


def test_a_folder_without_zone_says_what_to_add(command, gpu_log, study_folder):
    folder = study_folder({"gpu.csv": gpu_log(ROWS)}, toml=None)
    code, out, _ = command("check", folder)
    assert code == cli.NOT_GOOD_ENOUGH
    assert "timezone" in out


def test_init_writes_a_study_that_check_understands(command, gpu_log, study_folder):
    folder = study_folder({"gpu.csv": gpu_log(ROWS)}, toml=None)
    code, out, _ = command("init", folder)
    assert code == cli.DONE
    assert out.strip() == str(folder / "study.toml")
    text = (folder / "study.toml").read_text()
    assert "timezone" in text
    assert command("init", folder)[0] == cli.USAGE


def test_ingest_rejects_findings_trace_export(command, study):
    assert command("ingest", study)[0] == cli.DONE
    code, out, _ = command("rejects", study, "--json")
    assert code == cli.DONE
    assert [r["raw"].strip() for r in json.loads(out)] == ["[N/A]"]
    assert command("findings", study)[0] == cli.DONE
    assert command("findings", study, "--severity", "silly")[0] == cli.USAGE
    code, out, _ = command("export", study, "--format", "csv")
    assert code == cli.DONE
    assert (study / "out" / "tables" / "readings.csv").is_file()
    assert command("export", study, "--format", "xls")[0] == cli.USAGE


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("[stduy]\n", "study"),
        ('[study]\ntimezone = "Mars/Base"\n', "Mars/Base"),
        ("[study\n", "line 1"),
    ],
)
def test_a_wrong_configuration_is_one_clear_line_and_exit_2(command, gpu_log, study_folder, toml, said):
    code, _, err = command("check", study_folder({"gpu.csv": gpu_log(ROWS)}, toml))
    assert code == cli.USAGE
    assert said in err
    assert "Traceback" not in err


def test_a_missing_folder_is_said(command, tmp_path):
    code, _, err = command("check", tmp_path / "nowhere")
    assert code == cli.USAGE
    assert "nowhere" in err


def test_formats_lists_every_adapter(command):
    code, out, _ = command("formats", "--json")
    assert code == cli.DONE
    assert {r["adapter"] for r in json.loads(out)} == {a.name for a in ADAPTERS}


def test_every_verb_has_a_help_with_an_example_and_stands_in_the_readme(command):
    readme = (ROOT / "README.md").read_text()
    for verb in (c.name or c.callback.__name__ for c in cli.app.registered_commands):
        code, out, _ = command(verb, "--help")
        assert code == cli.DONE
        assert re.search(r"Example: joulebook " + verb, out), verb
        assert f"joulebook {verb}" in readme, f"README.md does not show joulebook {verb}"
