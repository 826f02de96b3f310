import datetime as dt
import html.parser
import json
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from joulebook import schema
from joulebook_pipelines import cli, open_store, weekly
from joulebook_pipelines.weekly import site, sparkline, words

MONDAY = dt.datetime(2026, 9, 21, 8, tzinfo=dt.UTC)
"""Of week 2026-W39; the ninth week from it is 2026-W47."""
WEEK = "2026-W47"
EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "ci"
NASTY = "<script>alert(1)</script> & 'x'"


def rows_of(run_id, energy_j, tokens):
    numbers = {
        ("board", "energy_j"): 0.7 * energy_j, ("node", "energy_j"): energy_j, ("node", "energy_per_token_j"): energy_j / tokens,
        ("node", "tokens_per_j"): tokens / energy_j, ("board", "mfu_ratio"): 0.4, ("facility", "carbon_kg"): energy_j / 3.6e6 * 0.5,
        ("facility", "cost"): energy_j / 3.6e6 * 0.2, ("node", "cv_ratio"): 0.02, ("node", "stall_energy_j"): 0.01 * energy_j,
        ("node", "idle_power_w"): 800.0, ("node", "stable_power_w"): energy_j / 3600,
    }  # fmt: skip
    return [
        {"run_id": run_id, "scope": scope, "device": "", "phase": "", "metric": m, "value": v, "lo": 0.99 * v, "hi": 1.01 * v,
         "n": 3600, "method": "made", "reason": "", "stage": "energy"}
        for (scope, m), v in numbers.items()
    ]  # fmt: skip


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """Where stores are kept for the tests that want the same one."""
    return tmp_path_factory.mktemp("shelf"), {}


@pytest.fixture
def make(tmp_path, shelf):
    """Write the store of an analysed study: three runs a week of each variant, the last week dearer by a factor."""
    place, made = shelf

    def write(name="node7", *, folder=None, **options):
        key = (name, *sorted(options.items()))
        if key not in made:
            made[key] = write_store(place / str(len(made)), name, **options)
        return Path(shutil.copytree(made[key], tmp_path / (folder or name)))

    return write


def write_store(folder, name, *, weeks=9, variants=("base",), last=1.0, per_week=3, overlap=False):
    rng = np.random.default_rng(5)
    runs, results = [], []
    for w in range(weeks):
        for v, variant in enumerate(variants):
            for r in range(per_week):
                start = MONDAY + dt.timedelta(weeks=w, days=r, hours=0 if overlap else 3 * v)
                run_id = f"w{w}-{variant}-{r}"
                labels = json.dumps({"variant": variant})
                runs.append({"run_id": run_id, "host": "node", "start_utc": start, "end_utc": start + dt.timedelta(hours=2),
                             "origin": "study.toml", "tokens": 1e9, "batch_size": 64.0, "labels": labels})  # fmt: skip
                factor = last if w == weeks - 1 else 1.0
                results += rows_of(run_id, 3e7 * factor * float(np.exp(rng.normal(0, 0.004))), 1e9)
    path = folder / "out" / "study.duckdb"
    path.parent.mkdir(parents=True)
    finding = {"run_id": f"w{weeks - 1}-{variants[0]}-0", "stage": "energy", "code": "gap-not-bridged", "severity": "warning",
               "subject": NASTY, "message": f"A gap of 12 s; {NASTY}", "evidence": "{}"}  # fmt: skip
    with open_store(path, read_only=False) as store:
        for table, rows in (("runs", runs), ("results", results), ("findings", [finding])):
            store.insert(table, schema.conform(pl.DataFrame(rows), table))
        store.remember({"study.name": name})
        store.remember({"site.currency": "EUR"})
    (path.parent / "report.html").write_text("<p>the report</p>")
    return path.parent.parent


class Page(html.parser.HTMLParser):
    """What a page loads, links to and says."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.tags, self.said = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        given = dict(attrs)
        if tag == "a":
            self.links.append(given["href"])
        elif "src" in given or "href" in given:
            self.loads.append(given.get("src") or given["href"])

    def handle_data(self, data):
        self.said.append(data)


def page_of(file):
    return Page(file.read_text(encoding="utf-8"))


def site_of(tmp_path, *folders, week=WEEK, **options):
    histories = weekly.read(weekly.analysed(f) for f in folders)
    return weekly.render(histories, tmp_path / "site", [week], **options)[0]


def test_a_dearer_week_is_a_regression_on_the_page_and_for_machines(make, tmp_path):
    done = site_of(tmp_path, make(last=1.1), make("calm"))
    assert len(done.regressions) == 1, "one sentence a kind of run"
    assert "node7 (base · batch size 64): energy per million tokens at node +10." in done.regressions[0]
    data = json.loads((tmp_path / "site" / WEEK / "weekly.json").read_text())
    assert {s["study"]: s["verdict"] for s in data["studies"]} == {"calm": "indistinguishable", "node7": "regression"}
    rows = {(r["scope"], r["metric"]): r for r in data["studies"][1]["changes"]}
    assert rows["node", "energy_per_token_j"]["verdict"] == "regression"
    assert rows["node", "energy_per_token_j"]["effect_ratio"] == pytest.approx(0.1, abs=0.01)
    assert rows["node", "tokens_per_j"]["verdict"] == "regression"
    assert rows["board", "mfu_ratio"]["verdict"] == "indistinguishable"
    said = " ".join(page_of(done.page).said)
    assert "▲ Yes : 1 of 2 studies: node7 ." in " ".join(said.split())
    assert "Look for what changed since the week before in node7" in " ".join(said.split())
    assert "regression" in said
    assert "energy per million tokens" in said


def test_totals_are_sums_over_runs_at_their_widest_scope(make, tmp_path):
    data = site_of(tmp_path, make()).data["studies"][0]
    with open_store(tmp_path / "node7" / "out") as store:
        truth = store.sql(
            "select sum(value) as v from results where run_id like 'w8-%' and scope = 'node' and metric = 'energy_j'"
        )["v"][0]
    assert data["runs"] == 3
    assert data["totals"]["energy"]["value"] == pytest.approx(truth)
    assert data["totals"]["carbon"]["value"] == pytest.approx(truth / 3.6e6 * 0.5)
    assert data["totals"]["waste"]["value"] == pytest.approx(0.01 * truth)
    assert data["totals"]["cost"]["unit"] == "EUR"


def test_runs_that_overlap_on_a_host_are_not_added_up(make, tmp_path):
    totals = site_of(tmp_path, make(variants=("a", "b"), overlap=True)).data["studies"][0]["totals"]
    assert totals["energy"]["value"] is None
    assert "overlap" in totals["energy"]["reason"]


def test_only_like_is_compared_with_like(make, tmp_path):
    folder = make(variants=("a", "b"))
    with open_store(folder / "out", read_only=False) as store, store.transaction():
        store.sql("delete from runs where run_id like '%-b-%' and run_id not like 'w8-%'")
    rows = site_of(tmp_path, folder).data["studies"][0]["changes"]
    verdicts = {(r["kind"], r["verdict"]) for r in rows if r["metric"] == "energy_per_token_j"}
    assert verdicts == {("a · batch size 64", "indistinguishable"), ("b · batch size 64", "refused")}


def test_stores_of_one_name_are_one_history(make, tmp_path):
    one, other = make(), make(folder="copy")
    histories = weekly.read([one / "out" / "study.duckdb", other / "out" / "study.duckdb"])
    assert [h.name for h in histories] == ["node7"]
    assert histories[0].runs.height == 27, "a run that two stores tell of is counted once"


def test_pages_ask_for_nothing_escape_everything_and_link_within_the_site(make, tmp_path):
    done = site_of(tmp_path, make(f"odd {NASTY}", folder="odd", last=1.1), make())
    site = tmp_path / "site"
    for file in (site / "index.html", done.page):
        text, page = file.read_text(encoding="utf-8"), page_of(file)
        assert page.loads == ["data:,"]
        assert page.tags.count("script") == 1
        assert "<script>alert" not in text
        assert not re.search(r"url\((?!#)|@import|https?://", text)
        for link in page.links:
            target, _, anchor = link.partition("#")
            assert (file.parent / target).is_file() if target else f'id="{anchor}"' in text, link
    links = [x for x in page_of(done.page).links if "reports" in x]
    assert len(links) == 2


def test_the_index_keeps_the_weeks_that_were_rendered_before(make, tmp_path):
    folder = make(last=1.1)
    site_of(tmp_path, folder, week="2026-W46")
    site_of(tmp_path, folder)
    page = page_of(tmp_path / "site" / "index.html")
    assert {f"{w}/index.html" for w in ("2026-W46", WEEK)} <= set(page.links)
    assert "../2026-W46/index.html" in page_of(tmp_path / "site" / WEEK / "index.html").links
    assert "16 to 22 November 2026" in page.said


def test_rendering_again_gives_the_same_bytes(make, tmp_path):
    folder = make(last=1.1)
    site_of(tmp_path, folder)
    before = {p: p.read_bytes() for p in (tmp_path / "site").rglob("*") if p.is_file()}
    shutil.rmtree(tmp_path / "site")
    site_of(tmp_path, folder)
    assert {p: p.read_bytes() for p in (tmp_path / "site").rglob("*") if p.is_file()} == before


def test_a_calm_week_says_no_and_many_workers_write_what_one_does(make, tmp_path, monkeypatch):
    histories = weekly.read([weekly.analysed(make("calm", weeks=9))])
    weeks = histories[0].weeks[-2:]
    monkeypatch.setattr(site, "WEEKS_A_WORKER", 1)
    monkeypatch.setattr(site, "ProcessPoolExecutor", lambda workers, **_: ThreadPoolExecutor(workers))
    one, two = (weekly.render(histories, tmp_path / str(n), weeks, workers=n) for n in (1, 2))
    assert [r.page.read_bytes() for r in one] == [r.page.read_bytes() for r in two]
    assert "✓ No" in " ".join(page_of(one[-1].page).said)


def test_benchmarks_are_lists_that_trackers_read(make, tmp_path):
    site_of(tmp_path, make())
    smaller = json.loads((tmp_path / "site" / "benchmarks.json").read_text())
    bigger = json.loads((tmp_path / "site" / "benchmarks-bigger.json").read_text())
    by_name = {b["name"]: b for b in smaller}
    one = by_name["node7 / base · batch size 64 / energy_per_token_j at node"]
    assert one["value"] == pytest.approx(0.03, rel=0.01)
    assert one["unit"] == "J/token"
    assert one["range"].startswith("± ")
    assert all({"name", "unit", "value"} <= b.keys() for b in [*smaller, *bigger])
    assert {b["name"].split(" / ")[-1].split(" at ")[0] for b in bigger} == {"tokens_per_j", "mfu_ratio"}


def test_a_week_without_runs_says_so(make, tmp_path):
    done = site_of(tmp_path, make(), week="2026-W20")
    assert "No run began in this week." in page_of(done.page).said
    assert done.data["studies"] == []
    assert done.outcome == "no run began in this week"


def test_a_first_week_can_only_wait_for_the_next(make, tmp_path):
    first = site_of(tmp_path, make(), week="2026-W39")
    said = page_of(first.page).said
    assert first.outcome.startswith("cannot be said")
    assert "Nothing yet: the weeks to come are held against this one." in said
    assert any(line.startswith("No comparison could be made") for line in said)


def test_what_lies_beside_each_other_adds_up_and_what_holds_it_counts_alone(make, tmp_path):
    folder = make()
    with open_store(folder / "out", read_only=False) as store, store.transaction():
        store.sql("delete from results where scope = 'node'")
        store.sql("update results set value = 1e6, lo = 1e6, hi = 1e6 where metric = 'energy_j'")
        more = [
            {"run_id": "w8-base-0", "scope": "dram", "device": "", "phase": "", "metric": "energy_j", "value": 1e5, "lo": 1e5, "hi": 1e5},
            {"run_id": "w8-base-1", "scope": "node", "device": "", "phase": "", "metric": "energy_j", "value": 5e6, "lo": 5e6, "hi": 5e6},
        ]  # fmt: skip
        store.insert("results", schema.conform(pl.DataFrame(more), "results"))
    totals = site_of(tmp_path, folder).data["studies"][0]["totals"]
    assert totals["energy"]["value"] == pytest.approx(1.1e6 + 5e6 + 1e6)


def test_the_idle_level_drifts_from_store_to_store(make, tmp_path):
    folders = []
    for w in range(6):
        folder = make(folder=f"week{w}")
        with open_store(folder / "out", read_only=False) as store, store.transaction():
            store.sql(f"delete from runs where run_id not like 'w{w + 3}-%'")
            store.sql(f"update results set value = value * {1 + 0.01 * w} where metric = 'idle_power_w'")
        folders.append(folder)
    drift = site_of(tmp_path, *folders).data["studies"][0]["drift"]
    idle = next(r for r in drift if r["metric"] == "idle_power_w")
    assert (idle["verdict"], idle["weeks"]) == ("drifts", 6)
    assert "idle power at node drifts: +5." in (tmp_path / "site" / WEEK / "index.html").read_text()
    assert idle["drift_ratio"] == pytest.approx(0.05, abs=0.002)


def test_fail_on_regression_exits_3_and_names_it(make, tmp_path, capsys):
    folder, site = make(last=1.1), str(tmp_path / "site")
    assert cli.run_command(["weekly", str(folder), "--week", WEEK, "-o", site, "-q"]) == cli.DONE
    assert (
        cli.run_command(["weekly", str(folder), "--week", WEEK, "-o", site, "--fail-on", "regression", "-q"])
        == cli.REGRESSION
    )
    assert "energy per million tokens at node +10." in capsys.readouterr().out
    before = ["weekly", str(folder), "--week", "2026-W46", "-o", site, "--fail-on", "regression", "--json", "-q"]
    assert cli.run_command(before) == cli.DONE
    assert json.loads(capsys.readouterr().out)[0]["week"] == "2026-W46"


@pytest.mark.parametrize(("option", "said"), [(("--week", "47"), "2026-W47"), (("--fail-on", "rain"), "regression")])
def test_a_wrong_option_says_what_is_allowed(make, tmp_path, capsys, option, said):
    assert cli.run_command(["weekly", str(make()), "-o", str(tmp_path / "site"), *option]) == cli.USAGE
    assert said in capsys.readouterr().err


def test_a_study_without_a_store_is_analysed_first(study_folder, gpu_log, tmp_path):
    toml = '[study]\ntimezone = "UTC"\n[[run]]\nid = "r"\nstart = 2026-03-03T09:00:05Z\nend = 2026-03-03T09:01:35Z\n'
    folder = study_folder({"gpu.csv": gpu_log([(s, 0, f"{300 + s % 3} W") for s in range(101)])}, toml)
    assert cli.run_command(["weekly", str(folder), "-o", str(tmp_path / "site"), "-q"]) == cli.DONE
    assert (folder / "out" / "study.duckdb").is_file()
    data = json.loads((tmp_path / "site" / "2026-W10" / "weekly.json").read_text())
    assert data["studies"][0]["totals"]["energy"]["value"] == pytest.approx(90 * 301, rel=2e-3)


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--allow-file-access-from-files", "--virtual-time-budget=4000", "--dump-dom",
)  # fmt: skip
PROBE = """<script>addEventListener("load", () => {
const out = (e) => !e.closest(".scroll") && e.getBoundingClientRect().right > innerWidth + 1;
const wide = [...document.querySelectorAll("main *")].filter(out);
document.title = [innerWidth, document.documentElement.scrollWidth, wide.length].join(" "); });</script>"""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
def test_no_page_scrolls_sideways_on_a_phone(make, tmp_path):
    done = site_of(tmp_path, make(f"odd{NASTY}{'x' * 60}", folder="odd", last=1.1, variants=("a", "y" * 50)), make())
    for i, file in enumerate((done.page, tmp_path / "site" / "index.html")):
        inner = tmp_path / f"inner{i}.html"
        text = (
            file.read_text(encoding="utf-8").replace("</head>", PROBE + "</head>").replace("<details", "<details open")
        )
        inner.write_text(text, encoding="utf-8")
        # a headless window is at least 500 px wide: a frame is not
        outer = tmp_path / "outer.html"
        outer.write_text(f"""<!doctype html><iframe src="{inner.as_uri()}" width="390" height="800"></iframe><script>
            addEventListener("load", () => {{ document.title = document.querySelector("iframe").contentDocument.title; }})</script>""")
        command = [BROWSER, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", outer.as_uri()]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        inner_px, scroll_px, wide = map(int, re.search(r"<title>(.*?)</title>", run.stdout)[1].split())
        assert (inner_px, wide) == (390, 0)
        assert scroll_px <= 390


@pytest.mark.skipif(shutil.which("sh") is None or os.name == "nt", reason="needs a shell")
@pytest.mark.parametrize(
    ("codes", "status", "said"),
    [((0, 0), 0, ""), ((0, 3), 3, "weekly says"), ((1, 0), 1, "run says"), ((0, 2), 1, "weekly says")],
)
def test_the_cron_example_is_silent_unless_something_is_wrong(study_folder, gpu_log, tmp_path, codes, status, said):
    toml = '[study]\ntimezone = "UTC"\n[[run]]\nid = "r"\nstart = 2026-03-03T09:00:05Z\nend = 2026-03-03T09:01:35Z\n'
    study_folder({"gpu.csv": gpu_log([(s, 0, f"{300 + s % 3} W") for s in range(101)])}, toml).rename(tmp_path / "node")
    (tmp_path / "studies").mkdir()
    (tmp_path / "node").rename(tmp_path / "studies" / "node")
    program = tmp_path / "joulebook"
    each = "\n".join(f'[ "$1" = {verb} ] && exit {code}' for verb, code in zip(("run", "weekly"), codes, strict=True))
    program.write_text(f"""#!/bin/sh\nprintf '%s\\n' "$@" END >> "{tmp_path}/asked"\necho "$1 says"\n{each}\n""")
    program.chmod(0o755)
    places = {name: str(tmp_path / name.lower()) for name in ("STUDIES", "RESULTS", "SITE")}
    env = os.environ | places | {"WEEK": "2026-W10", "JOULEBOOK": str(program)}
    done = subprocess.run(
        [EXAMPLES / "weekly-cron.sh", "--no-report"], env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (status, said, "")
    if codes == (0, 0):
        for call in (tmp_path / "asked").read_text().split("END\n")[:-1]:
            assert cli.run_command(call.splitlines()) == cli.DONE
        assert (tmp_path / "site" / "2026-W10" / "index.html").is_file()


def test_a_sparkline_says_what_it_shows_and_survives_missing_weeks():
    points = [
        sparkline.Point("2026-W45"),
        sparkline.Point("2026-W46", 1.0, None, None, "1 J"),
        sparkline.Point(WEEK, 2.0, 1.9, 2.1, "2 <J>"),
    ]
    drawn = str(sparkline.draw(points, band=(0.9, 1.1), state="bad", title="energy"))
    assert "2026-W45: no run" in drawn
    assert "2 &lt;J&gt;" in drawn
    assert drawn.count("<circle") == 2
    assert "no week has a value" in str(sparkline.draw(points[:1], band=None, state="none", title="energy"))


def test_days_of_a_week_in_words():
    assert words.days("2026-W53") == "28 December 2026 to 3 January 2027"
