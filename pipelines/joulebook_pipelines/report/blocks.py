"""What a section of the page is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from markupsafe import Markup

from joulebook_pipelines.shown import Mark, Number, aligned

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
    template = "table"

    def cells(self) -> list[list[Inline | Number]]:
        """Return the rows with their numbers aligned; what all numbers of a column share is marked in its head only."""
        letters = {reason: mark for mark, reason in self.notes()}
        made = [list(row) for row in self.rows]
        for at, shared in enumerate(self.heads()):
            spots = [i for i, row in enumerate(made) if isinstance(row[at], Number)]
            column = aligned([row[at] for row in (made[i] for i in spots)])  # pyrefly: ignore[bad-argument-type]
            for i, n in zip(spots, column, strict=True):
                own = (letters[n.reason],) if n.refused and n.reason in letters else ()
                made[i][at] = replace(n, marks=own + tuple(m for m in n.marks if m not in shared))
        return made

    def heads(self) -> list[tuple[Mark, ...]]:
        """Return per column the marks that every number in it carries: once at the top is read, on each row is noise."""
        found = []
        for at in range(len(self.columns)):
            marks = [n.marks for row in self.rows if isinstance(n := row[at], Number) and not n.refused]
            found.append(tuple(m for m in marks[0] if all(m in own for own in marks)) if len(marks) > 1 else ())
        return found

    def notes(self) -> list[tuple[Mark, str]]:
        """Return why numbers are missing: one lettered note a reason, told below the table."""
        numbers = (n for row in self.rows for n in row if isinstance(n, Number))
        reasons = dict.fromkeys(n.reason for n in numbers if n.refused and n.reason not in ("", "–"))
        return [(Mark(_letter(i), f"#{self.anchor}-{_letter(i)}"), reason) for i, reason in enumerate(reasons)]

    def kinds(self) -> list[str]:
        """Return per column ``text``, ``number`` or ``interval`` (a number with an interval beside it)."""
        found = []
        for at in range(len(self.columns)):
            numbers = [n for row in self.rows if isinstance(n := row[at], Number)]
            wide = any(n.interval for n in numbers)
            found.append("interval" if wide else "number" if numbers else "text")
        return found


def _letter(at: int) -> str:
    """Return a to z, then aa, ab and so on."""
    return (_letter(at // 26 - 1) if at >= 26 else "") + chr(ord("a") + at % 26)


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


@dataclass(frozen=True)
class Brief:
    """The page's answers in a line each: what is asked, and the answer."""

    lines: Sequence[tuple[str, Inline]]
    template = "brief"


Block = Text | Items | Picture | Table | Fold | Tiles | Brief


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
