"""The baseline book: a Parquet file of named baselines of a machine, to which studies add over time."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from joulebook import baseline, baseline_book
from joulebook_pipelines.config_errors import ConfigError
from joulebook_pipelines.store import Store


def read(path: Path) -> pl.DataFrame:
    """Return the entries of a book; a book that is not there yet has none.

    Raises
    ------
    ConfigError
        The file is no book.
    """
    if not path.is_file():
        return pl.DataFrame(schema=baseline_book.ENTRY_SCHEMA)
    try:
        book = pl.read_parquet(path)
        return book.select(pl.col(c).cast(t) for c, t in baseline_book.ENTRY_SCHEMA.items())
    except pl.exceptions.PolarsError as error:
        raise ConfigError(f"{path}: is no baseline book: {str(error).splitlines()[0]}") from None


def add(path: Path, store: Store, name: str, scope: str) -> baseline_book.Drift:
    """Add a study's baseline to a book and return how the book's baselines moved.

    The baseline is the mean of the runs' stable powers; its interval comes from the spread between them, or from the run
    itself where there is one only. The same study and day take the place of their earlier entry.

    Parameters
    ----------
    path
        The book; made where it is missing.
    store
        An analysed study.
    name
        Name of the baseline, e.g. of the reference model.
    scope
        Boundary.

    Raises
    ------
    ConfigError
        The study has no stable power at that scope, or its runs differ in what must be equal.
    """
    entry = _entry(store, name, scope)
    others = read(path).filter(~((pl.col("name") == name) & (pl.col("scope") == scope) & (pl.col("date") == entry["date"][0])
                                 & (pl.col("study") == entry["study"][0])))  # fmt: skip
    whole = pl.concat([others, entry])
    path.parent.mkdir(parents=True, exist_ok=True)
    whole.write_parquet(path)
    return baseline_book.drift(whole)


def _entry(store: Store, name: str, scope: str) -> pl.DataFrame:
    rows = store.results().filter(
        (pl.col("metric") == "stable_power_w")
        & (pl.col("scope") == scope)
        & (pl.col("device") == "")
        & pl.col("value").is_not_null()
    )
    if rows.is_empty():
        raise ConfigError(f"{store.path}: no run has a stable power at {scope}; its findings say why")
    runs = store.runs().join(rows.select("run_id", mean_w="value", lo="lo", hi="hi"), on="run_id")
    model = ", ".join(sorted({m for m in store.table("channels").filter(pl.col("scope") == scope)["model"] if m}))
    conditioned = runs.select("run_id", "mean_w", batch_size=pl.col("batch_size").cast(pl.String))
    combined = baseline.combine(conditioned)
    if combined.estimate.value is None:
        raise ConfigError(f"{store.path}: {combined.estimate.reason}")
    # With one or two runs there is no spread to speak of: the interval reaches over what each run says of itself.
    lo, hi = (combined.estimate.lo, combined.estimate.hi) if runs.height > 2 else (runs["lo"].min(), runs["hi"].max())
    return pl.DataFrame([{
        "name": name, "scope": scope, "date": runs["start_utc"].min().date(), "study": str(store.study.get("study.name", "")),  # pyrefly: ignore[missing-attribute]
        "runs": runs.height, "mean_w": combined.estimate.value, "lo": lo, "hi": hi, "device_model": model, "power_limit_w": None,
        "batch_size": runs["batch_size"][0],
    }], schema=baseline_book.ENTRY_SCHEMA)  # fmt: skip
