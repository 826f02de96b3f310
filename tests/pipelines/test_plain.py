"""Plain rows at machine speed say exactly what the careful way says, and what Python's own numbers and dates say."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulebook_pipelines import recognise
from joulebook_pipelines.ingest import SourceFile, ingest
from joulebook_pipelines.logs import plain, plain_scan, stamps, text
from joulebook_pipelines.logs.contract import Block, Log, Options, Part
from joulebook_pipelines.store import open_store

SMI = (
    "timestamp, index, uuid, power.draw [W], utilization.gpu [%], pstate, memory.used [MiB]",
    "2026/11/02 09:00:00.{ms:03d}, {card}, GPU-{card}, {w:.2f} W, {u} %, P0, 1024 MiB",
)
PTD = (
    "",
    "Time,11-02-2026 09:00:00.{ms:03d},Watts,{w:.3f},Volts,230.10,Amps,1.500,PF,0.98,Mark,run_{card}",
)
POWERCAP = ("timestamp,package-0_uj,dram_uj", "2026-11-02T09:00:00.{ms:03d}Z,{us},{u}000")
LOGS = {"nvidia-smi-csv": SMI, "ptdaemon": PTD, "powercap": POWERCAP}


def _lines(adapter: str, count: int) -> list[str]:
    header, row = LOGS[adapter]
    rows = [
        row.format(ms=2 * i, card=i % 3, w=300 + i / 7, u=10 + i % 80, us=10_000_000 * (i + 1)) for i in range(count)
    ]
    return ([header] if header else []) + rows


def _read(adapter: str, path: Path) -> tuple[pl.DataFrame, pl.DataFrame, list[Part]]:
    log = Log(path, text.head(path, path.name), Options(timezone="Europe/Berlin", scope="node"))
    parts = list(recognise.named(adapter).parse(log))
    frames = [
        pl.concat([f for p in parts if (f := getattr(p, name)) is not None] or [pl.DataFrame()], how="diagonal_relaxed")
        for name in ("readings", "rejects")
    ]
    return frames[0], frames[1], parts


def _met_plain_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gathers the heights of plain rows as they are read."""
    met: list[int] = []
    whole = plain.Scanner._rows

    def rows(self: plain.Scanner, block: Block, *arrays: object) -> plain.Rows:
        made = whole(self, block, *arrays)
        met.append(made.frame.height)
        return made

    monkeypatch.setattr(plain.Scanner, "_rows", rows)
    return met


def _both(
    adapter: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[tuple[pl.DataFrame, pl.DataFrame, list[Part]]]:
    answers = []
    for least in (0, 1 << 40):
        monkeypatch.setattr(plain, "LEAST_BYTES", least)
        answers.append(_read(adapter, path))
    return answers


DAMAGES = (
    (), ("[N/A]", "", "oops"), ('"5"',), ("1e3", "65535", "-1"), ("0", "+4", "1,5"), ("nan", "12 kW", "\x00"), ("30:00", "ü"),
)  # fmt: skip
"""What is damaged in one file; quotes stay alone, because all of a block is split in another way then."""


@pytest.mark.parametrize("adapter", LOGS)
def test_the_quick_way_says_what_the_careful_way_says(adapter, tmp_path, monkeypatch):
    path = tmp_path / "log.csv"
    clean = _lines(adapter, 180)
    met = _met_plain_rows(monkeypatch)
    for damages in DAMAGES:
        lines = list(clean)
        for place, damage in reversed([*enumerate(damages)]):  # from behind: lines that are put in move what follows
            for at, cell in ((7, 1), (8, 3), (20, 3), (40, -1), (41, 0)):
                cells = lines[60 * place + at].split(",")
                cells[cell % len(cells)] = f" {damage}"
                lines[60 * place + at] = ",".join(cells)
            lines[60 * place + 30 : 60 * place + 30] = [damage, clean[0]]
        path.write_text("\n".join(lines) + "\n")
        met.clear()
        (quick, quick_rejects, parts), (careful, careful_rejects, slow) = _both(adapter, path, monkeypatch)
        assert sum(met) > 120, damages
        names = [c for c in careful.columns if c in quick.columns]
        assert quick.select(names).sort("line", "device").equals(careful.select(names).sort("line", "device")), damages
        assert set(quick.columns) == set(careful.columns)
        if careful_rejects.height:
            order = ["line", "column_name"]
            assert quick_rejects.sort(order).equals(careful_rejects.sort(order)), damages
        assert sum(p.lines for p in parts) == sum(p.lines for p in slow) == len(lines)
        assert [c for p in parts for c in p.channels] == [c for p in slow for c in p.channels]


@pytest.mark.parametrize("odd", ["", "back", "twice"])
def test_what_stands_device_by_device_is_counted_and_kept_as_line_by_line(odd, tmp_path, monkeypatch):
    lines = _lines("powercap", 180)
    if odd == "back":
        lines[90], lines[120] = lines[120], lines[90]
    elif odd == "twice":
        lines[90:90] = lines[80:90]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    kept = []
    for least in (0, 1 << 40):
        monkeypatch.setattr(plain, "LEAST_BYTES", least)
        with open_store(tmp_path / f"{least}.duckdb", read_only=False) as store:
            source = SourceFile(path, "log", "node", None, Options(timezone="UTC"))
            (outcome,) = ingest((source,), store)
            tables = [store.table(t).sort(pl.all()) for t in ("readings", "channels", "rejects", "findings")]
            kept.append((outcome, tables))
    (quick, quick_tables), (careful, careful_tables) = kept
    assert quick == careful
    assert (quick.readings, quick.rejects) == (360, 20 if odd == "twice" else 0)
    for one, other in zip(quick_tables, careful_tables, strict=True):
        assert one.equals(other)


def test_a_key_in_a_damaged_line_is_no_card(tmp_path, monkeypatch):
    row = "2026/11/02 09:00:00.{:03d}, GPU-{}, 300.00, P0"
    lines = ["timestamp, uuid, power.draw, pstate", *(row.format(i, "ab"[i % 2]) for i in range(20))]
    lines += ["2026/11/02 09:00:00.100, GPU-x", "2026/11/02 09:00:00.101, GPU-y, oops, P0"]
    lines += [row.format(200 + i, "abc"[i % 3]) for i in range(21)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    met = _met_plain_rows(monkeypatch)
    (quick, _, _), (careful, _, _) = _both("nvidia-smi-csv", path, monkeypatch)
    assert met == [20, 21]
    assert quick.sort("line")["device"].to_list() == careful.sort("line")["device"].to_list()
    assert quick.sort("line").tail(3)["device"].to_list()[:2] == ["gpu:0", "gpu:1"]


def test_large_files_are_read_the_quick_way(tmp_path, monkeypatch):
    path = tmp_path / "log.csv"
    path.write_text("\n".join(_lines("nvidia-smi-csv", 60)) + "\n")
    monkeypatch.setattr(plain, "LEAST_BYTES", 0)
    met = []
    monkeypatch.setattr("joulebook_pipelines.logs.table.convert", met.append)
    readings, _, _ = _read("nvidia-smi-csv", path)
    assert readings.height == 60
    assert not met


def _scan(cell: str, kind: int, unit: str = "", form: stamps.StampForm | None = None) -> plain.Rows | Block:
    cells = [plain.Cell("x", kind, unit), plain.Cell("last", plain_scan.NUMBER)]
    scanner = plain.Scanner(cells, ",", form)
    before, plain.LEAST_BYTES = plain.LEAST_BYTES, 0
    try:
        return next(iter(scanner.read(Block(1, f"{cell},1\n".encode()))))
    finally:
        plain.LEAST_BYTES = before


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 10**14), st.integers(0, 14), st.booleans(), st.sampled_from(["", " W", "W", "  W "]),
)  # fmt: skip
def test_numbers_are_those_of_python(mantissa, places, negative, unit):
    digits = str(mantissa).zfill(places + 1)
    shown = ("-" if negative else "") + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)
    rows = _scan(shown + unit, plain_scan.NUMBER, "W")
    assert isinstance(rows, plain.Rows)
    assert rows.frame["x"][0] == float(shown)


@settings(max_examples=200, deadline=None)
@given(st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2199, 12, 31)), st.sampled_from([0, 3, 6, 9]))
def test_stamps_are_those_of_python(moment, places):
    shown = moment.strftime("%Y/%m/%d %H:%M:%S")
    if places:
        shown += "." + f"{moment.microsecond:06d}000"[:places]
    form = stamps.detect(["2026/11/02 09:00:00.000"])
    rows = _scan(shown, plain_scan.STAMP, form=form)
    assert isinstance(rows, plain.Rows)
    kept = moment.microsecond - moment.microsecond % 10 ** max(6 - places, 0)
    assert rows.frame["x"][0] == moment.replace(microsecond=kept)


@pytest.mark.parametrize(
    "shown", ["2026/02/29 00:00:00", "2026/13/01 00:00:00", "2026/11/31 00:00:00", "2026/11/02 24:00:00", "2026/11/02 09:60:00",
              "2026/11/02T09:00:00", "2026-11-02 09:00:00", "2026/11/2 09:00:00", "2026/11/02 09:00:0", "2026/11/02 09:00:00.1Z"]
)  # fmt: skip
def test_what_is_no_such_stamp_is_left_to_the_careful_reader(shown):
    form = stamps.detect(["2026/11/02 09:00:00.000"])
    assert isinstance(_scan(shown, plain_scan.STAMP, form=form), Block)


@pytest.mark.parametrize(
    "shown", ["", "1e3", "+1", "1.2.3", "1-", "12345678901234567890", "9007199254740993", "W", "1 V", "1 W W"]
)
def test_what_is_no_such_number_is_left_to_the_careful_reader(shown):
    assert isinstance(_scan(shown, plain_scan.NUMBER, "W"), Block)


@pytest.mark.parametrize("line", ["1,2,x,extra", "1,2", ",2,x", "1,,x", "y,2,x"])
def test_a_row_with_another_form_is_left_to_the_careful_reader(line, monkeypatch):
    monkeypatch.setattr(plain, "LEAST_BYTES", 0)
    cells = [plain.Cell("", plain_scan.LABEL, "1"), plain.Cell("x", plain_scan.NUMBER), plain.Cell()]
    assert isinstance(next(iter(plain.Scanner(cells, ",").read(Block(1, b"1,2,x\n")))), plain.Rows)
    assert isinstance(next(iter(plain.Scanner(cells, ",").read(Block(1, f"{line}\n".encode())))), Block)
