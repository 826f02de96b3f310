import json
import re
import shlex
from pathlib import Path

import pytest

from joulebook_pipelines import cli, cli_results
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
    code, out, err = command("check", folder)
    assert code == cli.NOT_GOOD_ENOUGH
    assert out.count("carry no zone") == 1
    assert f"joulebook init {folder}" in err
    assert "joulebook init" not in command("ingest", folder)[1]
    code, out, err = command("run", folder, "-q", "--no-report")
    assert code == cli.NOT_GOOD_ENOUGH
    assert f"joulebook init {folder}" in err
    command("init", folder)
    assert "joulebook init" not in command("run", folder, "-q", "--no-report")[2]


def test_init_writes_a_study_that_check_understands(command, gpu_log, study_folder):
    folder = study_folder({"gpu.csv": gpu_log(ROWS)}, toml=None)
    code, out, err = command("init", folder)
    assert code == cli.DONE
    assert out.strip() == str(folder / "study.toml")
    assert f"answer the 1 place marked FILL IN in it, then: joulebook run {folder}" in err
    text = (folder / "study.toml").read_text()
    assert "timezone" in text
    assert command("init", folder)[0] == cli.USAGE


def test_what_is_true_of_many_files_is_said_once(command, gpu_log, study_folder):
    folder = study_folder({f"gpu{i}.csv": gpu_log(ROWS[:3]) for i in range(6)}, toml=None)
    code, out, _ = command("check", folder)
    assert code == 1
    assert out.count("carry no zone") == 1
    assert "  likewise gpu1.csv, gpu2.csv, gpu3.csv, gpu4.csv, gpu5.csv\n" in out


def test_init_wants_a_folder_that_is_there(command, gpu_log, study_folder):
    folder = study_folder({"gpu.csv": gpu_log(ROWS)}, toml=None)
    assert "there is no such folder" in command("init", folder / "nowhere")[2]
    assert "is a file; name the folder it is in" in command("init", folder / "gpu.csv")[2]


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
    commands = [c for app in (cli.app, cli_results.app) for c in app.registered_commands]
    for verb in (c.name or c.callback.__name__ for c in commands):
        code, out, _ = command(verb, "--help")
        assert code == cli.DONE
        assert re.search(r"Example: joulebook " + verb, out), verb
        assert f"joulebook {verb}" in readme, f"README.md does not show joulebook {verb}"


def test_without_a_verb_the_help_is_shown_whole(command):
    code, out, err = command()
    assert (code, err) == (cli.USAGE, "")
    assert "Usage: joulebook" in out
    listed = out.partition("Commands:")[2].partition("Example:")[0]
    assert "weekly" in listed
    assert "..." not in listed  # no line on a verb is cut


def test_a_number_is_traced_in_words_and_what_is_missing_is_named(command, study):
    assert command("run", study, "-q", "--no-report")[0] == cli.DONE
    run_id = _runs(command, study)
    code, out, _ = command("trace", study, run_id, "energy_j")
    assert code == cli.DONE
    head, line = out.splitlines()
    # 120 s at 300, 301, 302 W in turn, half a second of each end apart: close to 301 W times 120 s
    value = float(re.match(r"energy_j = ([\d.e+]+) ", head)[1])
    assert value == pytest.approx(301 * 120, rel=0.01)
    assert " at the board: " in head
    assert re.search(
        r"gpu\.csv, lines 2 to \d+: \d+ readings of gpu:0, read as nvidia-smi-csv \(SHA-256 [0-9a-f]{12}…\)", line
    )
    code, _, err = command("trace", study, run_id, "energy_j", "--scope", "rack")
    assert (code, "it is known at: board" in err) == (cli.NOT_GOOD_ENOUGH, True)
    assert f"there are: {run_id}" in command("trace", study, "nope", "energy_j")[2]
    assert "mean_power_w" in command("trace", study, run_id, "energy")[2]


def _runs(command, study):
    return re.search(r"there are: (\S+)", command("trace", study, "nope", "energy_j")[2])[1]


def test_results_are_found_by_their_own_folder_too(command, study, tmp_path):
    results = tmp_path / "results"
    assert command("ingest", study, "-o", results)[0] == cli.DONE
    assert command("rejects", results)[1] == command("rejects", study, "-o", results)[1]
    code, _, err = command("findings", study)
    assert code == cli.USAGE
    assert f"joulebook run {study}" in err
    assert "-o" in err


def test_examples_of_the_help_work_as_they_stand(command, study, tmp_path, monkeypatch):
    assert command("run", study, "-q", "--no-report")[0] == cli.DONE
    run_id = _runs(command, study)
    monkeypatch.chdir(tmp_path)
    ran = []
    for one in cli_results.app.registered_commands:
        words = shlex.split(one.epilog.removeprefix("Example: joulebook "))
        words = [{"my-logs/": str(study), "train-1": run_id, "node": "board"}.get(w, w) for w in words]
        if words[0] == "baseline":
            continue  # two minutes are no baseline
        assert command(*words)[0] == cli.DONE, words
        ran.append(words[0])
    assert len(ran) >= 5
    assert (tmp_path / "tables" / "readings.csv").is_file()
