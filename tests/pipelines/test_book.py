import polars as pl
import pytest

from joulebook_pipelines import book
from joulebook_pipelines.config_errors import ConfigError
from joulebook_pipelines.store import open_store

START = pl.Series(["2026-11-02T01:00:00"]).str.to_datetime(time_unit="us").dt.replace_time_zone("UTC")


@pytest.fixture
def analysed(tmp_path):
    """Return a maker of stores with the stable powers of some runs."""

    def make(name, powers, days=0):
        with open_store(tmp_path / f"{name}.duckdb", read_only=False) as store:
            at = START.dt.offset_by(f"{days}d")
            for i, (mean_w, half_w) in enumerate(powers):
                store.insert(
                    "runs", pl.DataFrame({"run_id": [f"r{i}"], "start_utc": at, "end_utc": at.dt.offset_by("1h")})
                )
                store.insert(
                    "results",
                    pl.DataFrame({
                        "run_id": [f"r{i}"], "scope": ["node"], "device": [""], "phase": [""], "metric": ["stable_power_w"],
                        "value": [mean_w], "lo": [mean_w - half_w], "hi": [mean_w + half_w],
                    }),
                )  # fmt: skip
            store.remember({"study.name": name})
        return open_store(tmp_path / f"{name}.duckdb")

    return make


def test_a_book_grows_and_tells_of_drift(analysed, tmp_path):
    path = tmp_path / "machine.parquet"
    with analysed("january", [(500.0, 1.0), (501.0, 1.0), (499.0, 1.0)]) as store:
        assert book.add(path, store, "resnet", "node").findings == ()
    with analysed("june", [(530.0, 1.0), (531.0, 1.0), (529.0, 1.0)], days=150) as store:
        moved = book.add(path, store, "resnet", "node")
    assert book.read(path)["mean_w"].to_list() == [500.0, 530.0]
    assert [f.code for f in moved.findings] == ["baseline-drifted"]


def test_the_same_day_takes_the_place_of_its_entry(analysed, tmp_path):
    path = tmp_path / "machine.parquet"
    with analysed("january", [(500.0, 1.0)]) as store:
        book.add(path, store, "resnet", "node")
        book.add(path, store, "resnet", "node")
    entry = book.read(path).row(0, named=True)
    assert book.read(path).height == 1
    assert (entry["lo"], entry["hi"]) == (499.0, 501.0)


def test_a_scope_without_stable_power_and_a_foreign_file_are_refused(analysed, tmp_path):
    with analysed("january", [(500.0, 1.0)]) as store, pytest.raises(ConfigError, match="rack"):
        book.add(tmp_path / "machine.parquet", store, "resnet", "rack")
    (tmp_path / "text.parquet").write_text("no book")
    with pytest.raises(ConfigError, match=r"text\.parquet"):
        book.read(tmp_path / "text.parquet")
