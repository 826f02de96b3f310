"""What a section of the page is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from joulebook_pipelines.report.shown import Mark, Number, aligned

Inline = str | Markup


@dataclass(frozen=True)
class Text:
    """A paragraph; a plain ``str`` is escaped."""

    body: Inline
    kind: str = "p"
    template = "text"


@dataclass(frozen=True)
class Items:
    """A list of paragraphs."""

    items: Sequence[Inline]
    ordered: bool = False
    template = "items"


@dataclass(frozen=True)
class Picture:
    """A drawing with its caption; the text alternative is inside the SVG."""

    svg: Markup
    caption: str
    anchor: str
    template = "picture"


@dataclass(frozen=True)
class Column:
    """A column: its title and the unit in the header."""

    title: str
    unit: str = ""


@dataclass(frozen=True)
class Table:
    """A table; columns of ``Number`` are aligned at the decimal point with the interval beside them."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Inline | Number]]
    caption: str
    anchor: str
    notes: Sequence[tuple[Mark, str]] = ()
    template = "table"

    def cells(self) -> list[list[Inline | Number]]:
        """Return the rows with their numbers aligned."""
        made = [list(row) for row in self.rows]
        for at in range(len(self.columns)):
            spots = [i for i, row in enumerate(made) if isinstance(row[at], Number)]
            column = aligned([row[at] for row in (made[i] for i in spots)])  # type: ignore[misc]
            for i, n in zip(spots, column, strict=True):
                made[i][at] = n
        return made

    def kinds(self) -> list[str]:
        """Return per column ``text``, ``number`` or ``interval`` (a number with an interval or a reason beside it)."""
        found = []
        for at in range(len(self.columns)):
            numbers = [n for row in self.rows if isinstance(n := row[at], Number)]
            wide = any(n.interval or (n.refused and n.reason != "–") for n in numbers)
            found.append("interval" if wide else "number" if numbers else "text")
        return found


@dataclass(frozen=True)
class Fold:
    """Details on demand."""

    title: Inline
    blocks: Sequence[Block]
    anchor: str = ""
    opened: bool = False
    template = "fold"


@dataclass(frozen=True)
class Tile:
    """One check: its state as colour and word, and what it opens."""

    name: str
    state: str
    word: str
    summary: str
    blocks: Sequence[Block]
    anchor: str


@dataclass(frozen=True)
class Tiles:
    """A strip of checks."""

    tiles: Sequence[Tile]
    template = "tiles"


Block = Text | Items | Picture | Table | Fold | Tiles


@dataclass(frozen=True)
class Section:
    """A question of the reader and its answer."""

    anchor: str
    title: str
    blocks: Sequence[Block] = field(default_factory=tuple)


def copyable(shown: Number) -> Markup:
    """Return a number in running text: value and unit to copy, ± or interval, footnote marks."""
    if shown.refused:
        return Markup('<span class="refused">– <small>({})</small></span>').format(shown.reason)
    body = Markup('<span class="num" data-copy="{}">{}</span>').format(shown.plain, shown.sentence.strip())
    if shown.interval and not shown.half:
        body += Markup(' <span class="interval">{}</span>').format(shown.interval)
    return body + footmarks(shown.marks)


def footmarks(marks: Sequence[Mark]) -> Markup:
    """Return footnote marks as links."""
    links = (Markup('<a href="{}">{}</a>').format(m.href, m.text) for m in marks)
    return Markup('<sup class="marks">{}</sup>').format(Markup(" ").join(links)) if marks else Markup("")
