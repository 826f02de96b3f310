"""The first screen of a week: did it get worse, how sure is that, what to do, and what the week used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from markupsafe import Markup

from joulebook import weekly_change
from joulebook_pipelines.report.blocks import copyable
from joulebook_pipelines.weekly import words
from joulebook_pipelines.weekly.verdicts import StudyWeek

NAMED = 6
"""Studies that are named in a sentence; more are counted."""


def brief(studies: Sequence[StudyWeek], weeks: int) -> list[tuple[str, Markup]]:
    """Return questions and answers.

    Parameters
    ----------
    studies
        The studies that have runs in the week.
    weeks
        How many weeks before are looked at.
    """
    return [
        ("Did it get worse?", _verdict(studies, weeks)),
        ("How sure", _sure(studies)),
        ("What to do", _advice(studies)),
        ("Used", _used(studies)),
    ]


def worse(studies: Sequence[StudyWeek]) -> list[tuple[str, str]]:
    """Return a sentence a regression and a drift, each with its class."""
    return [
        *(("error", line) for s in studies for line in words.regressions(s)),
        *(("warning", line) for s in studies for line in words.drifts(s)),
    ]


def _worse_studies(studies: Sequence[StudyWeek]) -> list[tuple[int, StudyWeek]]:
    return [(at, s) for at, s in enumerate(studies, start=1) if s.verdict == "regression"]


def _verdict(studies: Sequence[StudyWeek], weeks: int) -> Markup:
    bad = _worse_studies(studies)
    if bad:
        links = [Markup('<a href="#study-{}">{}</a>').format(at, s.name) for at, s in bad[:NAMED]]
        more = f" and {len(bad) - NAMED} more" if len(bad) > NAMED else ""
        of = words.count(len(studies), "study", "studies")
        return Markup('<span class="wrong">▲ Yes</span>: {} of {}: {}{}.').format(
            len(bad), of, Markup(", ").join(links), more
        )
    if words.unsaid(studies):
        return Markup('<span class="look">Cannot be said</span>: no number could be held against the weeks before.')
    return Markup('<span class="ok">✓ No</span>: nothing against the {} before, as far as can be told.').format(
        words.count(weeks, "week")
    )


def _sure(studies: Sequence[StudyWeek]) -> Markup:
    found = Counter(v for s in studies for v in s.change.frame["verdict"])
    compared, refused = sum(found.values()) - found["refused"], found["refused"]
    if not compared:
        return Markup("No comparison could be made; each of {} says why.").format(refused)
    text = f"{words.count(compared, 'comparison')}; what is called worse holds with 95 %, corrected for their number."
    return Markup("{}{}").format(text, f" {refused} more could not be made; each says why." if refused else "")


def _advice(studies: Sequence[StudyWeek]) -> Markup:
    bad = _worse_studies(studies)
    if bad:
        at, first = max(bad, key=lambda pair: _largest(pair[1]))
        link = Markup('<a href="#study-{}">{}</a>').format(at, first.name)
        text = (
            "Look for what changed since the week before in {}, which moved most: code, data, driver, room temperature."
        )
        return Markup(text).format(link)
    if any(line for s in studies for line in words.drifts(s)):
        return Markup("Look at the idle machine: its power creeps (below).")
    reasons = Counter(r for s in studies for r in s.shown.filter(s.shown["verdict"] == "refused")["reason"])
    if reasons and set(reasons) == {weekly_change.FIRST}:
        return Markup("Nothing yet: the weeks to come are held against this one.")
    if reasons:
        return Markup("Make more numbers comparable; most often: {}.").format(reasons.most_common(1)[0][0])
    return Markup("Nothing.")


def _largest(study: StudyWeek) -> float:
    return max(map(abs, study.change.regressions["effect_ratio"]), default=0.0)


def _used(studies: Sequence[StudyWeek]) -> Markup:
    """Return what the week used in all."""
    sums = [words.total("energy_j", words.add([s.energy for s in studies]))]
    if any(s.carbon.value is not None for s in studies):
        sums.append(words.total("carbon_kg", words.add([s.carbon for s in studies])))
    priced = [s for s in studies if s.cost.value is not None]
    for currency in sorted({s.history.currency for s in priced}):
        costs = [s.cost for s in priced if s.history.currency == currency]
        sums.append(words.total("cost", words.add(costs), currency))
    runs, count = sum(s.runs for s in studies), words.count(len(studies), "study", "studies")
    told = Markup(", ").join(map(copyable, sums))
    return Markup("{} of {}, each at its widest measured boundary: {}.").format(words.count(runs, "run"), count, told)
