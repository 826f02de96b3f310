"""Meter tables end to end: what the store holds, against numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import ingest, recognise
from joulebook_pipelines.logs import local_time, stamps, text
from joulebook_pipelines.logs.contract import Head, Log, LogRefusedError, Options
from joulebook_pipelines.store import Store, open_store

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "meter-csv"
SHARED = Path(__file__).resolve().parents[2].parent / "shared"
UTC = Options(timezone="UTC")


class Stored:
    """What the store holds of one file."""

    def __init__(self, path: Path, store: Store, options: Options) -> None:
        (self.outcome,) = ingest.ingest((ingest.SourceFile(path, path.name, "meter", options=options),), store)
        self.readings = store.table("readings").sort("line", "device")
        self.rejects = store.table("rejects").sort("line")
        self.codes = {f.code for f in self.outcome.findings}

    def mean_w(self, device: str) -> float:
        return float(self.readings.filter(pl.col("device") == device)["power_w"].mean())  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Yield one store for all: each ingest forgets the file of the one before."""
    with open_store(tmp_path_factory.mktemp("meter") / "study.duckdb", read_only=False) as opened:
        yield opened


def _energy_j(readings: pl.DataFrame) -> float:
    seconds = readings["ts_utc"].diff().dt.total_microseconds() / 1e6
    mean = (readings["power_w"] + readings["power_w"].shift(1)) / 2
    return float((seconds * mean).sum())


def test_german_meter_with_preamble(store: Store) -> None:
    stored = Stored(FIXTURES / "german_preamble.csv", store, Options(scope="node", timezone="Europe/Berlin"))
    assert (stored.outcome.readings, stored.outcome.rejects) == (4, 0)
    assert stored.mean_w("node") == pytest.approx((1310.5 + 970 + 1104 + 1100.5) / 4)
    counter = stored.readings["energy_counter_j"]
    assert counter[-1] - counter[0] == pytest.approx(0.055 * 3.6e6)
    assert _energy_j(stored.readings) == pytest.approx(60 * (1140.25 + 1037 + 1102.25))
    assert str(stored.readings["ts_utc"][0]) == "2026-04-05 07:00:00+00:00"


def test_both_passes_of_the_autumn_hour_are_kept(store: Store) -> None:
    stored = Stored(FIXTURES / "autumn.csv", store, Options(scope="facility", timezone="Europe/Berlin"))
    starts = stored.readings["ts_utc"].dt.offset_by("-15m")
    assert (stored.outcome.readings, stored.outcome.rejects) == (11, 0)
    assert str(starts[0]) == "2026-10-24 23:30:00+00:00" and str(starts[-1]) == "2026-10-25 02:00:00+00:00"
    assert (starts.diff().drop_nulls().dt.total_seconds() == 900).all()
    # 0.200 to 0.290 in steps of 0.010, and 0.210 once more
    assert float(stored.readings["energy_j"].sum()) / 3.6e6 == pytest.approx(2.45 + 0.21)


def test_a_row_that_comes_twice_is_set_aside(store: Store) -> None:
    stored = Stored(FIXTURES / "offset_repeated.csv", store, Options(scope="facility", interval_label="start"))
    assert (stored.outcome.readings, stored.outcome.rejects) == (5, 1)
    assert stored.rejects["rule"].to_list() == ["duplicate-reading"]
    assert float(stored.readings["energy_j"].sum()) / 3.6e6 == pytest.approx(0.51 + 0.62 + 0.68 + 0.79 + 0.88)


def test_an_unknown_scope_is_said(store: Store) -> None:
    stored = Stored(FIXTURES / "epoch_ms.csv", store, Options())
    assert "scope-unknown" in stored.codes


def test_columns_make_any_table_readable() -> None:
    head = text.head(FIXTURES / "inlet.csv", "inlet.csv")
    assert recognise.adapter_for(head, columns_given=True).name == "meter-csv"
    with pytest.raises(LogRefusedError, match="name it: columns"):
        recognise.adapter_for(head)


def test_fixed_offset_in_place_of_a_zone() -> None:
    form = stamps.detect(["2026-04-05 09:00:00"])
    log = Log(Path("log.csv"), Head("log.csv", "", "utf-8", True))
    ahead = replace(log, options=Options(utc_offset_s=19_800.0))
    clock = local_time.localiser(ahead, form, 2, "2026-04-05 09:00:00")
    naive = pl.Series(["2026-04-05 09:00:00"]).str.to_datetime(time_unit="us")
    assert str(clock.to_utc(naive)[0]) == "2026-04-05 03:30:00+00:00"
    with pytest.raises(LogRefusedError, match=r"log\.csv:2: .*timezone"):
        local_time.localiser(log, form, 2, "2026-04-05 09:00:00")


def test_a_large_file_is_decided_by_all_of_it(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "meter.csv"
    rows = [f"2026-04-{1 + i // 1440:02d} {i // 60 % 24:02d}:{i % 60:02d};1,{i % 1000:03d}" for i in range(9000)]
    path.write_text("\n".join(["time;power_kw", *rows, "2026-04-08 00:00;0,998"]) + "\n")
    stored = Stored(path, store, replace(UTC, scope="node"))
    assert stored.outcome.readings == 9001
    assert stored.readings["power_w"].max() == pytest.approx(1999.0)


CASES: list[tuple[str, Options, int, int, float | None, str]] = [
    ("46-ipmi-fourteen-watt-steps/input.csv", Options(), 20, 0, 103.6, ""),
    ("54-meter-german-locale-with-preamble/input.csv", replace(UTC, scope="node"), 3, 0, 1074.5, ""),
    ("55-meter-one-comma-three-digits/input.csv", replace(UTC, units={"power_w": "kW"}), 3, 0, 1180.667, ""),
    (
        "58-meter-overrange-9e37/input.tsv",
        replace(UTC, columns={"time": "1", "power_w": "2"}, units={"power_w": "W"}), 3, 3, 481.0, "header-missing",
    ),
    ("59-meter-clamp-reversed-all-negative/input.csv", Options(scope="node"), 4, 0, -405.0, "sign-reversed"),
    ("59-meter-clamp-reversed-all-negative/input.csv", Options(scope="node", sign=-1), 4, 0, 405.0, "sign-turned"),
    ("60-meter-three-phase-lost-sign/input.csv", Options(scope="node"), 12, 0, 603.333, "phase-sign-lost"),
    ("64-meter-unit-changes-from-row-to-row/input.csv", Options(scope="node"), 4, 0, 989.5, ""),
    ("65-meter-counter-ten-times-too-small/input.csv", Options(scope="node"), 6, 0, 2000.0, "counter-contradicts-power"),
    ("81-meter-autumn-hour-appears-twice/input.csv", Options(timezone="Europe/Berlin", scope="node"), 12, 0, None, ""),
    ("82-meter-spring-hour-duplicated-with-offset/input.csv", Options(scope="node"), 5, 1, None, "interval-label-assumed"),
    ("85-nvsmi-sensor-sees-a-quarter-of-the-time/input.meter.csv", replace(UTC, scope="node"), 12, 0, 275.0, ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options", "kept", "rejected", "mean_w", "code"), CASES, ids=[c[0] for c in CASES])
def test_cases(
    name: str, options: Options, kept: int, rejected: int, mean_w: float | None, code: str, store: Store
) -> None:
    path = SHARED / "cases" / name
    if not path.exists():
        pytest.skip("the collection of cases is not here")
    stored = Stored(path, store, options)
    assert (stored.outcome.readings, stored.outcome.rejects) == (kept, rejected)
    if mean_w is not None:
        main = "node" if options.scope or name.startswith("46") else "meter"
        assert stored.mean_w(main) == pytest.approx(mean_w, abs=0.001)
    if code:
        assert code in stored.codes


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("55-meter-one-comma-three-digits/input.csv", "unit"),
        ("58-meter-overrange-9e37/input.tsv", "no header line"),
    ],
)
def test_cases_refused(name: str, reason: str, store: Store) -> None:
    path = SHARED / "cases" / name
    if not path.exists():
        pytest.skip("the collection of cases is not here")
    outcome = Stored(path, store, UTC).outcome
    assert outcome.status == "refused" and reason in outcome.reason


@pytest.mark.parametrize("ruled", ["-" * 40, "=" * 40, "------ ------ ------"])
def test_a_line_drawn_under_titles_is_no_row(store: Store, tmp_path: Path, ruled: str) -> None:
    path = tmp_path / "printed.log"
    rows = "".join(f"  {1.5 * i:6.1f}   {i}.0   {70 + i}.5\n" for i in range(4))
    path.write_text(f"Monitoring started\nTime(s)  Util(%)  Power(W)\n{ruled}\n{rows}")
    stored = Stored(path, store, replace(UTC, scope="board"))
    assert stored.readings["power_w"].to_list() == [70.5, 71.5, 72.5, 73.5]
    assert stored.readings["ts_utc"].diff().drop_nulls().dt.total_milliseconds().to_list() == [1500, 1500, 1500]
