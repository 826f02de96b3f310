"""One self-contained page from a store, and the same numbers as JSON. It computes nothing: each number is a row."""

from joulebook_pipelines.report.as_json import to_json
from joulebook_pipelines.report.page import render

__all__ = ["render", "to_json"]
