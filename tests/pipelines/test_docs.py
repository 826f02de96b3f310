"""The documentation holds: what it shows is executed, what it links to is there, what it includes is what the code says."""

import datetime as dt
import json
import os
import re
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import pytest

from joulebook_pipelines import (
    accuracy,
    cli,
    cli_results,
    config,
    documentation,
    notebook_kernels,
    notebooks,
    open_store,
    run,
)
from joulebook_pipelines.adapters import ADAPTERS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TUTORIAL = DOCS / "tutorial.md"
WRITTEN = [TUTORIAL, ROOT / "README.md", *sorted(p for p in DOCS.glob("*.md") if p != TUTORIAL)]
"""The tutorial comes first: it writes study.toml and runs the study that the other pages go on with."""
PAGES = [*WRITTEN, ROOT / "ARCHITECTURE.md"]
TEMPLATES = notebooks.TEMPLATES

BLOCK = re.compile(r"((?:^<!-- [^\n]* -->\n)*)^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!-- (not run|exit|file|include): (.*?) -->")


@dataclass(frozen=True)
class Block:
    page: Path
    language: str
    text: str
    said: dict[str, str]

    @property
    def commands(self):
        """The joulebook commands of a console block, without their comments."""
        lines = re.findall(r"^\$ (joulebook .*)$", self.text, re.MULTILINE)
        return [shlex.split(line, comments=True)[1:] for line in lines]


def blocks(page):
    return [
        Block(page, language, text, dict(COMMENT.findall(comments)))
        for comments, language, text in BLOCK.findall(page.read_text(encoding="utf-8"))
    ]


# A small study of each kind

T0 = dt.datetime(2026, 11, 16, 1, tzinfo=dt.UTC)
CHINA = dt.timedelta(hours=8)


def watts(second, runs):
    """A card that idles at 60 W and works at 300 W, with a stall every 30 s."""
    working = any(a <= second < b for a, b in runs)
    return 60.0 + (240.0 if second % 30 > 3 else 90.0) * working + (second * 7 % 11) / 10


def gpu_csv(seconds, runs, offset=CHINA):
    rows = ["timestamp, index, name, power.draw [W], utilization.gpu [%]"]
    for s in range(seconds):
        stamp = (T0 + offset + dt.timedelta(seconds=s)).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
        rows.append(f"{stamp}, 0, SIM, {watts(s, runs):.2f} W, 50 %")
    return "\n".join(rows) + "\n"


def meter_csv(seconds, runs):
    rows = ["time,power_w"]
    for s in range(seconds):
        stamp = T0 + CHINA + dt.timedelta(seconds=s + 5)
        rows.append(f"{stamp:%Y-%m-%d %H:%M:%S},{90 + 1.2 * watts(s, runs):.1f}")
    return "\n".join(rows) + "\n"


def train_jsonl(runs):
    lines = []
    for i, (start, end) in enumerate(runs):
        for step, second in enumerate(range(start + 5, end + 1, 5)):
            stamp = (T0 + dt.timedelta(seconds=second)).isoformat().replace("+00:00", "Z")
            lines.append(
                {
                    "time": stamp,
                    "run": f"pretrain-{i + 1}",
                    "step": step + 1,
                    "tokens": 1000,
                    "batch_size": 8,
                    "loss": 9 / (step + 2),
                }
            )
    return "\n".join(json.dumps(line) for line in lines) + "\n"


def run_tables(runs, names, extra):
    parts = []
    for (start, end), name, keys in zip(runs, names, extra, strict=True):
        a, b = (f"{T0 + dt.timedelta(seconds=s):%Y-%m-%dT%H:%M:%SZ}" for s in (start, end))
        parts.append(f'[[run]]\nid = "{name}"\nstart = {a}\nend = {b}\ntokens = 1000000\n{keys}\n')
    return "\n".join(parts)


def make_studies(folder):
    """Write the folders that the pages speak of: logs to begin with, a sweep, a campaign."""
    (folder / "my-logs").mkdir()
    runs = [(60, 300), (330, 540)]
    (folder / "my-logs" / "gpu.csv").write_text(gpu_csv(600, runs))
    (folder / "my-logs" / "meter.csv").write_text(meter_csv(600, runs))
    (folder / "my-logs" / "train.jsonl").write_text(train_jsonl(runs))

    short = [(20 + 50 * i, 60 + 50 * i) for i in range(12)]
    (folder / "my-sweep").mkdir()
    (folder / "my-sweep" / "gpu.csv").write_text(gpu_csv(640, short, dt.timedelta(0)))
    sizes = [f"batch_size = {8 << i % 4}\ntokens_to_target = {(3 + i % 4) * 1e8}" for i in range(12)]
    (folder / "my-sweep" / "study.toml").write_text(
        '[study]\ntimezone = "UTC"\n\n' + run_tables(short, [f"bs{i}" for i in range(12)], sizes)
        + '\n[[sweep]]\nname = "batch"\nknob = "batch_size"\n'
    )  # fmt: skip
    (folder / "my-campaign").mkdir()
    (folder / "my-campaign" / "gpu.csv").write_text(gpu_csv(340, short[:6], dt.timedelta(0)))
    variants = [f'labels = {{ variant = "{"baseline" if i < 3 else "data-pipeline"}" }}' for i in range(6)]
    (folder / "my-campaign" / "study.toml").write_text(
        '[study]\ntimezone = "UTC"\n\n' + run_tables(short[:6], [f"r{i}" for i in range(6)], variants)
        + '\n[[campaign]]\nname = "november"\nscope = "board"\norder = ["baseline", "data-pipeline"]\n'
    )  # fmt: skip


# What is shown is executed


def registered():
    return {c.name or c.callback.__name__ for app in (cli.app, cli_results.app) for c in app.registered_commands}


def execute(arguments):
    """Run one command in the folder of the studies; return its exit code."""
    study = Path(arguments[1] if len(arguments) > 1 else ".") / "study.toml"
    held = study.read_text() if arguments[0] == "init" and study.is_file() else None
    if held is not None:  # the reader of the page begins without one
        study.unlink()
    try:
        return cli.run_command(arguments)
    finally:
        if held is not None:
            study.write_text(held)


class NoKernels:
    """Stands for kernels where no notebook is executed."""

    def __init__(self, _folder):
        pass

    def close(self):
        pass


def test_every_command_and_python_block_runs(tmp_path, monkeypatch, capfd):
    make_studies(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        run, "code_digest", lambda: "the same"
    )  # code that is edited meanwhile would make stages run again
    verbs = registered()
    ran = []
    for page in WRITTEN:
        space = {}
        for block in blocks(page):
            if "not run" in block.said:
                assert block.said["not run"].strip()
                continue
            if "file" in block.said:
                Path(block.said["file"]).write_text(block.text)
            for arguments in (a for a in block.commands if a[0] in verbs):  # others fail the next test
                with monkeypatch.context() as patched:  # notebooks take seconds each: one, for one study
                    patched.setattr(notebooks, "TEMPLATES", TEMPLATES[:1] if "my-logs/" in arguments else ())
                    if "my-logs/" not in arguments:
                        patched.setattr(notebook_kernels, "Kernels", NoKernels)
                    code = execute(arguments)
                said = capfd.readouterr()
                assert code == int(block.said.get("exit", 0)), (
                    f"{page.name}: joulebook {shlex.join(arguments)}\n{said.out}{said.err}"
                )
                assert "a notebook failed" not in said.err, said.err
                ran.append(arguments[0])
            if block.language == "python" and "include" not in block.said:
                code = compile(block.text, f"{page.name}: {block.text.splitlines()[0]}", "exec")
                exec(code, space)
                ran.append("python")
        if (store := space.get("store")) is not None:
            store.close()
        if page == TUTORIAL:
            assert (tmp_path / "my-logs" / "out" / "report.html").is_file()
            assert len(list((tmp_path / "my-logs" / "out" / "notebooks").glob("*.ipynb"))) == 1
    assert {"init", "check", "run", "findings", "rejects", "trace", "export", "formats", "python"} <= set(ran)
    plt.close("all")
    with open_store(tmp_path / "my-campaign" / "out") as store:
        first = documentation.timeline(store)
        assert first == documentation.timeline(store)
    assert first.lstrip().startswith("<?xml")
    assert "<dc:date>" not in first


def test_every_verb_of_a_command_line_exists():
    verbs = registered()
    shown = {m for p in PAGES for m in re.findall(r"[`$] ?joulebook ([a-z]+)", p.read_text())}
    assert {"init", "check", "run"} <= shown
    assert shown <= verbs


@pytest.mark.parametrize("page", WRITTEN, ids=lambda p: p.name)
def test_toml_blocks_are_configurations(page, tmp_path):
    for block in blocks(page):
        if block.language == "toml":
            text = block.text if "[study]" in block.text else f'[study]\ntimezone = "UTC"\n{block.text}'
            tomllib.loads(text)
            (tmp_path / "study.toml").write_text(text)
            config.load(tmp_path / "study.toml", adapters=[a.name for a in ADAPTERS])


# What is linked, pictured and included is there


def anchors(page):
    titles = re.findall(
        r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_relative_links_resolve(page):
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.is_file(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(file), (
            f"{page.name} links to {target}; there are {', '.join(sorted(anchors(file)))}"
        )


def test_every_page_is_linked_from_the_readme():
    linked = set(re.findall(r"\(docs/([^)#]+)\)", (ROOT / "README.md").read_text()))
    assert {p.name for p in DOCS.glob("*.md")} - linked <= {"speed.md"}


def test_included_files_are_shown_as_they_are():
    pages = [p for p in WRITTEN if "<!-- include: " in p.read_text()]
    assert pages
    for page in pages:
        text = page.read_text()
        assert documentation.included(text, ROOT) == text, (
            f"make {page.name} again: python -m joulebook_pipelines.documentation docs sample_data/node"
        )


def test_pictures_are_small_and_whole():
    pictures = sorted(DOCS.glob("*.svg"))
    assert {"timeline.svg", "scopes.svg"} <= {p.name for p in pictures}
    for picture in pictures:
        assert picture.stat().st_size < 200_000
        assert ElementTree.parse(picture).getroot().tag.endswith("svg")
        assert not re.search(r'(?:href|src)="http', picture.read_text())


def test_architecture_names_every_dependency():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [*project["dependencies"], *(d for extra in project["optional-dependencies"].values() for d in extra)]
    names = {re.split(r"[^\w-]", d)[0] for d in listed}
    assert names
    assert names <= set(re.findall(r"`([\w-]+)`", text[text.index("## Dependencies") :]))


@pytest.mark.parametrize(
    ("title", "package"),
    [
        ("analysis", "analysis/joulebook"),
        ("pipelines", "pipelines/joulebook_pipelines"),
        ("logs", "pipelines/joulebook_pipelines/logs"),
    ],
)
def test_architecture_names_every_module_and_only_those_that_exist(title, package):
    text = (ROOT / "ARCHITECTURE.md").read_text()
    section = text[text.index(f"## Modules of {title}\n") :].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = {m for row in rows for m in re.findall(r"`(\w+?)_?…?`", row)}
    there = {p.stem for p in (ROOT / package).iterdir() if p.suffix == ".py" or (p / "__init__.py").is_file()} - {
        "__init__"
    }
    assert len(named) > 10
    assert {m for m in named if not any(t == m or t.startswith(f"{m}_") for t in there)} == set()
    # A longer name of the same beginning is a part of the module that it is named after.
    assert {t for t in there if not any(t == m or t.startswith(f"{m}_") for m in named)} == set()


# Measured accuracy


def row(**cells):
    return {"topic": "energy", "case": "a", "demand": "x <= 1", "measured": "0.5", "held": "yes"} | cells


def test_accuracy_page_is_made_from_rows(tmp_path):
    (tmp_path / "b.json").write_text(json.dumps([row(case="10,000 rows"), row(case="a | b", held="no")]))
    (tmp_path / "a.json").write_text(json.dumps([row(case="3,000 rows"), row(topic="Alignment")]))
    rows = accuracy.read(tmp_path)
    assert [r["case"] for r in rows] == ["a", "a | b", "3,000 rows", "10,000 rows"]
    page = accuracy.render(rows)
    assert "3 of 4 demands held" in page
    assert page.index("## Alignment") < page.index("## Energy")
    assert r"| a \| b | x ≤ 1 | 0.5 | **no** |" in page


def test_accuracy_rows_with_other_keys_are_an_error(tmp_path):
    (tmp_path / "a.json").write_text('[{"topic": "energy"}]')
    with pytest.raises(ValueError, match=r"a\.json"):
        accuracy.read(tmp_path)


def test_accuracy_page_stays_where_there_are_no_rows(tmp_path, capsys):
    page = tmp_path / "accuracy.md"
    page.write_text("as it is")
    accuracy.main(os.fspath(tmp_path / "nothing"), os.fspath(page))
    assert page.read_text() == "as it is"
    assert "no rows" in capsys.readouterr().out
