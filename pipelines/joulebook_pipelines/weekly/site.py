"""The site of weeks on disk: a page and a file for machines per week, an index over all, reports beside them."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import polars as pl

from joulebook import weekly_change, weekly_means
from joulebook_pipelines.weekly import page, verdicts, weeks_index, words
from joulebook_pipelines.weekly.history import History
from joulebook_pipelines.weekly.verdicts import StudyWeek

SCHEMA_VERSION = 1
"""Version of the layout of ``weekly.json``: rises when a key changes its meaning or goes."""
WEEKS_A_WORKER = 4
"""Weeks below which a further process takes longer to start than it saves."""
_WEEK = re.compile(r"\d{4}-W\d{2}")


@dataclass(frozen=True)
class Rendered:
    """A week that was rendered: its page, what machines read, and in words what got worse, or that nothing did."""

    week: str
    page: Path
    data: dict[str, Any]
    regressions: tuple[str, ...]
    outcome: str


def render(
    histories: Sequence[History],
    site: Path,
    weeks_wanted: Sequence[str],
    *,
    weeks: int = weekly_change.WEEKS_BEFORE,
    threshold_ratio: float = weekly_change.THRESHOLD_RATIO,
    workers: int = 1,
) -> list[Rendered]:
    """Write the pages of weeks, and the index over all weeks that the site has.

    Parameters
    ----------
    histories
        Studies over time.
    site
        Folder of the site; made where it is missing, other weeks in it are kept.
    weeks_wanted
        ISO weeks to render.
    weeks
        How many weeks before each are looked at.
    threshold_ratio
        Least effect that is called a regression.
    workers
        Processes among which many weeks are divided; each takes a second or two to start.

    Returns
    -------
    list of Rendered
        In order of the weeks.
    """
    site.mkdir(parents=True, exist_ok=True)
    reports = _reports(histories, site)
    wanted = sorted(set(weeks_wanted))
    known = sorted({*_weeks_of(site), *wanted})
    one = partial(
        _week,
        histories=histories,
        site=site,
        reports=reports,
        known=known,
        weeks=weeks,
        threshold_ratio=threshold_ratio,
    )
    done = _divided(one, wanted, min(workers, len(wanted) // WEEKS_A_WORKER))
    all_weeks = [json.loads((site / w / "weekly.json").read_text(encoding="utf-8")) for w in _weeks_of(site)]
    _write(site / "index.html", weeks_index.html(all_weeks))
    if all_weeks:
        smaller, bigger = _benchmarks(all_weeks[-1])
        _write(site / "benchmarks.json", _json(smaller))
        _write(site / "benchmarks-bigger.json", _json(bigger))
    return done


def _divided(one: Callable[[str], Rendered], wanted: Sequence[str], workers: int) -> list[Rendered]:
    """Render the weeks, among processes where they are many."""
    if workers > 1:
        try:
            # spawn, not fork: the frames' own threads do not survive a fork
            with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
                return list(pool.map(one, wanted, chunksize=-(-len(wanted) // workers)))
        except BrokenExecutor:  # no process could start or one was killed: a page written twice is the same page
            pass
    return [one(week) for week in wanted]


def _week(
    week: str, *, histories: Sequence[History], site: Path, reports: dict[str, str], known: Sequence[str], weeks: int,
    threshold_ratio: float,
) -> Rendered:  # fmt: skip
    """Write the page and the file of one week."""
    studies = [s for h in histories if (s := verdicts.judge(h, week, weeks=weeks, threshold_ratio=threshold_ratio))]
    data = _data(studies, week, reports, weeks=weeks, threshold_ratio=threshold_ratio)
    at = known.index(week)
    older, newer = known[at - 1] if at else "", known[at + 1] if at + 1 < len(known) else ""
    html = page.html(studies, week, reports=reports, weeks=weeks, newer=newer, older=older)
    _write(site / week / "index.html", html)
    _write(site / week / "weekly.json", _json(data))
    worse = tuple(line for s in studies for line in words.regressions(s))
    return Rendered(week, site / week / "index.html", data, worse, "" if worse else words.outcome(studies))


def _weeks_of(site: Path) -> list[str]:
    return sorted(p.parent.name for p in site.glob("*/weekly.json") if _WEEK.fullmatch(p.parent.name))


def _write(file: Path, text: str) -> None:
    """Write a file whole or not at all: a reader never sees half of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    held = file.with_name(f".{file.name}.{os.getpid()}")
    held.write_text(text, encoding="utf-8")
    held.replace(file)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"


def _reports(histories: Sequence[History], site: Path) -> dict[str, str]:
    """Copy each study's newest report into the site and return links to them, relative to a week's page."""
    links: dict[str, str] = {}
    taken: set[str] = set()
    for history in histories:
        if not history.reports:
            continue
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", history.name).strip(".-") or "study"
        name = next(
            n for i in range(len(taken) + 1) if (n := plain if i == 0 else f"{plain}-{i + 1}").lower() not in taken
        )
        taken.add(name.lower())
        source, target = history.reports[-1], site / "reports" / f"{name}.html"
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_file() or target.stat().st_mtime_ns != source.stat().st_mtime_ns:
            shutil.copy2(source, target)
        links[history.name] = f"../reports/{name}.html"
    return links


def _data(
    studies: Sequence[StudyWeek], week: str, reports: dict[str, str], *, weeks: int, threshold_ratio: float
) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION, "week": week, "weeks_before": weeks, "threshold_ratio": threshold_ratio,
        "regressions": sum(s.change.regressions.height for s in studies),
        "studies": [
            {
                "study": s.name, "runs": s.runs, "verdict": s.verdict, "report": reports.get(s.name),
                "totals": {k: verdicts.plain(getattr(s, k)) for k in ("energy", "carbon", "cost", "waste")},
                "changes": _finite(s.change.frame), "drift": _finite(s.drift), "findings": s.findings.to_dicts(),
            }
            for s in studies
        ],
    }  # fmt: skip


def _finite(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Return rows as plain values; what is not a number is null."""
    numbers = [c for c, t in frame.schema.items() if t == pl.Float64]
    return frame.with_columns(pl.when(pl.col(c).is_finite()).then(c).alias(c) for c in numbers).to_dicts()


def _benchmarks(data: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a week's means as trackers of benchmarks take them: where smaller is better, and where bigger is."""
    lists: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    for study in data["studies"]:
        for row in study["changes"]:
            if row["now"] is None:
                continue
            name = " / ".join(x for x in (study["study"], row["kind"], f"{row['metric']} at {row['scope']}") if x)
            unit = words.unit(row["metric"], [], study["totals"]["cost"]["unit"])
            spread = None if row["band_hi"] is None else (row["band_hi"] - row["band_lo"]) / 2
            entry = {"name": name, "unit": _unit_name(row["metric"], unit.name), "value": row["now"]}
            if spread is not None:
                entry["range"] = f"± {spread:.4g}"
            lists[row["metric"] in weekly_means.HIGHER_IS_BETTER].append(entry)
    return lists


def _unit_name(metric: str, shown_as: str) -> str:
    """Return the unit of the stored value, which is what a tracker is told."""
    if metric == "energy_per_token_j":
        return "J/token"
    if metric == "tokens_per_j":
        return "token/J"
    ends = {"_j": "J", "_w": "W", "_s": "s", "_kg": "kg", "_ratio": "ratio"}
    return next((u for end, u in ends.items() if metric.endswith(end)), shown_as)
