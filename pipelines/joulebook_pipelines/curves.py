"""Curves by hour that study.toml names: carbon intensity or price, as a CSV of time and value."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from joulebook_pipelines.config_errors import ConfigError
from joulebook_pipelines.logs import local_time, stamps


def read(path: Path, zone: str | None) -> pl.DataFrame:
    """Return ``start_utc, value`` of a curve, in order of time.

    Parameters
    ----------
    path
        CSV with a header; the first column is the start of each hour, the first numeric column behind it the value.
    zone
        Zone of stamps without an offset.

    Raises
    ------
    ConfigError
        The file has no such columns, a cell cannot be read, or stamps carry no zone and none is given.
    """
    try:
        raw = pl.read_csv(path, infer_schema=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ConfigError(f"{path}: cannot be read as CSV: {str(error).splitlines()[0]}") from None
    if raw.width < 2 or raw.is_empty():
        raise ConfigError(f"{path}: needs a header and two columns, time and value per kWh")
    time = raw.columns[0]
    try:
        form = stamps.detect(raw[time].head(200).to_list())
    except stamps.StampError as error:
        raise ConfigError(f"{path}: {error}") from None
    if not form.aware and zone is None:
        raise ConfigError(f"{path}: its times carry no zone; add timezone to [study]")
    utc = local_time.Localiser(None if form.aware else zone).to_utc(
        raw.select(stamps.parse(pl.col(time), form)).to_series()
    )
    value = pl.Series(dtype=pl.Float64)
    for name in raw.columns[1:]:
        value = raw[name].str.strip_chars().cast(pl.Float64, strict=False)
        if value.null_count() < raw.height:
            break
    bad = (value.is_null() | utc.is_null()).arg_true()
    if len(bad):
        line = int(bad[0]) + 2
        raise ConfigError(f"{path}:{line}: {raw.row(int(bad[0]))!r} is not a time and a number")
    return pl.DataFrame({"start_utc": utc, "value": value}).sort("start_utc")
