"""The templates of the site, in the look of the report."""

from __future__ import annotations

from collections.abc import MutableMapping
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from joulebook_pipelines.report.blocks import copyable, footmarks


@cache
def environment() -> Environment:
    """Return the templates, with the report's style, script and table as they stand there."""
    own = PackageLoader("joulebook_pipelines.weekly", "templates")
    report = PackageLoader("joulebook_pipelines.report", "templates")
    made = Environment(
        loader=ChoiceLoader([own, report]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["footmarks"] = footmarks
    made.filters["copyable"] = copyable
    inlined: MutableMapping[str, Any] = made.globals
    for name, loader, file in (("css", report, "page.css"), ("own_css", own, "weekly.css"), ("js", report, "page.js")):
        inlined[name] = Markup(loader.get_source(made, file)[0])
    return made
