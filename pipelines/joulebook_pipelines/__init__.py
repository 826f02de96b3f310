"""All input and output of joulebook: adapters, store, stages, reports, command line."""

from importlib.metadata import version

__version__ = version("joulebook")

from joulebook_pipelines.store import Store, open_store

__all__ = ["Store", "__version__", "open_store"]
