"""Weeks: this one against those before, for one study or many, as pages and for machines."""

from joulebook_pipelines.weekly.history import History, analysed, read
from joulebook_pipelines.weekly.site import Rendered, render

__all__ = ["History", "Rendered", "analysed", "read", "render"]
