"""What the written pages take from the project: a time line of the sample study, and sources shown in full.

``python -m joulebook_pipelines.documentation docs sample_data/node`` makes both again.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from joulebook import plots
from joulebook.plots import style as look
from joulebook_pipelines import config, console, run
from joulebook_pipelines.store import Store, open_store

POINTS = 500
"""Bins of the drawn time line: about two pixels each, and a file well below 200 kB."""

SCOPES = ("node", "board")
"""Boundaries that are drawn, widest first."""

_INCLUDED = re.compile(r"(<!-- include: (\S+) -->\n```(\w+)\n).*?(\n```\n)", re.DOTALL)


def timeline(store: Store) -> str:
    """Return the time line of a study's longest run as an SVG file that stands alone.

    Parameters
    ----------
    store
        An analysed study.

    Returns
    -------
    str
        The same text for the same study.
    """
    bands = [store.timeline(s, POINTS).with_columns(pl.lit(s).alias("scope")) for s in SCOPES]
    power = pl.concat(b for b in bands if not b.is_empty())
    runs = store.aligned_runs().sort(pl.col("start_utc") - pl.col("end_utc"), "run_id")
    first = runs["run_id"][0]
    idle = store.results(first).filter(metric="idle_power_w", scope=SCOPES[0], device="")["value"]
    starts = runs.sort("start_utc", "run_id").group_by(ts_utc="start_utc", maintain_order=True)
    events = starts.agg(label=pl.col("run_id").str.join(", "))
    with look.settings():
        figure = Figure(figsize=(9.0, 3.6), facecolor="white")
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    plots.timeline(
        power, segments=_segments(store), phases=store.table("phases"), idle_w=idle[0] if idle.len() else None, events=events,
        timezone=str(store.study.get("study.timezone") or "UTC"), ax=ax,
    )  # fmt: skip
    return _as_svg(figure)


def _segments(store: Store) -> pl.DataFrame:
    """Return the segments of one instrument: that of the first card where cards were cut, else of the whole."""
    rows = store.table("segments").sort("start_utc", "end_utc")
    for scope in reversed(SCOPES):
        mine = rows.filter(pl.col("scope") == scope)
        if mine.height:
            return mine.filter(pl.col("device") == mine["device"].min())
    return rows


def _as_svg(figure: Figure) -> str:
    """Return a figure as SVG without dates and with coordinates to a tenth of a point."""
    with tempfile.TemporaryDirectory(prefix="joulebook-") as folder, look.settings():
        file = Path(folder) / "figure.svg"
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None}, pad_inches=0.1)
        text = file.read_text(encoding="utf-8")
    text = re.sub(
        r'(?<= d=")[^"]*(?=")', lambda m: re.sub(r"-?\d+\.\d+", lambda n: f"{float(n.group()):.1f}", m.group()), text
    )
    return re.sub(r"[ \t]+\n", "\n", text)


def included(page: str, root: Path) -> str:
    """Return a page whose blocks after ``<!-- include: PATH -->`` hold the files as they are now.

    Parameters
    ----------
    page
        Markdown.
    root
        Folder that the paths are relative to.

    Examples
    --------
    >>> included("No block.", Path("."))
    'No block.'
    """
    return _INCLUDED.sub(
        lambda m: m.group(1) + (root / m.group(2)).read_text(encoding="utf-8").rstrip("\n") + m.group(4), page
    )


def main(docs: str, sample: str) -> None:
    """Make the picture again, and fill the pages' included blocks."""
    folder = Path(docs)
    with tempfile.TemporaryDirectory(prefix="joulebook-") as out:
        result = run.analyse(config.load(Path(sample)), Path(out))
        with open_store(result.store) as store:
            (folder / "timeline.svg").write_text(timeline(store), encoding="utf-8")
    console.say(str(folder / "timeline.svg"))
    for page in sorted(folder.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if (filled := included(text, folder.resolve().parent)) != text:
            page.write_text(filled, encoding="utf-8")
            console.say(str(page))


if __name__ == "__main__":
    main(*sys.argv[1:])
