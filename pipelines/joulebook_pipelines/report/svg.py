"""Figures as SVG that belongs to the page: its font, its colours in light and dark, a text alternative, small."""

from __future__ import annotations

import io
import re

from markupsafe import Markup, escape
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.figure import Figure

from joulebook.plots import style as look

_VARIABLES = {
    look.INK: "currentColor",
    look.MUTED: "var(--muted)",
    look.GRID: "var(--line)",
    look.BLUE: "var(--blue)",
    look.ORANGE: "var(--orange)",
    look.GREEN: "var(--green)",
    look.VERMILLION: "var(--vermillion)",
    look.SKY: "var(--sky)",
    look.PURPLE: "var(--purple)",
    look.YELLOW: "var(--yellow)",
    look.GREY: "var(--grey)",
}
_DPI = 72
"""Units of an SVG to the inch."""
_MARGIN_IN = 0.1
_COLOUR = re.compile("|".join(map(re.escape, _VARIABLES)), re.IGNORECASE)
_PATH = re.compile(r'(?<= d=")[^"]*(?=")')
_LONG = re.compile(r"-?\d+\.\d{2,}")
_ID = re.compile(r' id="([^"]*)"')
_USED = re.compile(r'(?:url\(#|href="#)([^)"]+)')
_FONT = re.compile(r"(font: [^;\"]*?px )[^;\"]*|font-family: [^;\"]*;?")


def of_figure(figure: Figure, *, anchor: str, title: str, alternative: str) -> Markup:
    """Return a figure as inline SVG.

    Parameters
    ----------
    figure
        The figure, drawn in the project's style.
    anchor
        Name that makes the ids inside unique on the page.
    title, alternative
        What it is, and what there is to see, for those who cannot.

    Returns
    -------
    Markup
        The ``<svg>`` element.
    """
    text = _drawn(figure)
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = _COLOUR.sub(lambda m: _VARIABLES[m.group().lower()], text)
    text = _PATH.sub(lambda m: re.sub(r"\s+", " ", _LONG.sub(_rounded, m.group())).strip(), text)
    text = _FONT.sub(lambda m: f"{m.group(1)}var(--font)" if m.group(1) else "", text)
    used = set(_USED.findall(text))
    text = _ID.sub(lambda m: f' id="{anchor}-{m.group(1)}"' if m.group(1) in used else "", text)
    text = _USED.sub(lambda m: m.group().replace("#", f"#{anchor}-"), text)
    text = re.sub(r">\s*\n\s*<", "><", text)
    named = (
        f'<svg role="img" aria-labelledby="{anchor}-title {anchor}-desc"',
        f'<title id="{anchor}-title">{escape(title)}</title><desc id="{anchor}-desc">{escape(alternative)}</desc>',
    )
    text = text.replace("<svg", named[0], 1)
    return Markup(text.replace(">", f">{named[1]}", 1).strip())


def _drawn(figure: Figure) -> str:
    """Return the figure cut to what is drawn.

    It is measured once and drawn once; ``bbox_inches="tight"`` would draw it a second time before.
    """
    held = io.StringIO()
    with look.settings():
        figure.dpi = _DPI
        renderer = RendererSVG(*figure.bbox.size, io.StringIO())
        around = figure.get_tightbbox(renderer).padded(_MARGIN_IN)
        figure.savefig(held, format="svg", bbox_inches=around, facecolor="none", metadata={"Date": None})
    return held.getvalue()


def _rounded(match: re.Match[str]) -> str:
    return f"{float(match.group()):.1f}"
