"""Every adapter against its fixtures: golden outputs, full accounting, and damage that must not change what is whole.

A fixture is ``tests/fixtures/<adapter>/<input>``. Beside it: ``<input>.golden.json`` (made with
``JOULEBOOK_UPDATE_GOLDEN=1``, then read by eye) and, where study.toml would have to say something,
``<input>.options.json`` with fields of ``Options``. Three more keys steer these tests: ``"_named": true`` (the file is
read because study.toml names the adapter, not because it is recognised), ``"_probe": false`` (its rows are not
independent cells), ``"_context": true`` (other lines give a line its stamp or meaning).
"""

from __future__ import annotations

import codecs
import json
import os
import re
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from joulebook import schema
from joulebook_pipelines import recognise
from joulebook_pipelines.adapters import ADAPTERS
from joulebook_pipelines.logs import text
from joulebook_pipelines.logs.contract import Log, LogRefusedError, Options, Part

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
UPDATE = os.environ.get("JOULEBOOK_UPDATE_GOLDEN") == "1"
DOCUMENTS = (".json", ".xml", ".sqlite", ".gz", ".xz", ".zst")
PROBE = "~probe~"
TIME_RULES = {"no-such-time", "row-without-time", "no-such-hour"}
KEYS = {"line", "device", "ts_utc", "span_s"}


@dataclass(frozen=True)
class Fixture:
    adapter: str
    path: Path

    @property
    def says(self) -> dict[str, Any]:
        beside = self.path.with_name(self.path.name + ".options.json")
        return json.loads(beside.read_text()) if beside.exists() else {}

    @property
    def options(self) -> Options:
        said = {k: v for k, v in self.says.items() if not k.startswith("_")}
        if "devices" in said:
            said["devices"] = tuple(said["devices"])
        return Options(**said)

    @property
    def golden(self) -> Path:
        return self.path.with_name(self.path.name + ".golden.json")

    def __str__(self) -> str:
        return f"{self.adapter}/{self.path.name}"


def _fixtures() -> list[Fixture]:
    found = [
        Fixture(folder.name, path)
        for folder in sorted(FIXTURES.iterdir())
        if folder.is_dir() and folder.name in {a.name for a in ADAPTERS}
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.endswith((".golden.json", ".options.json"))
    ]
    return found


ALL = _fixtures()


@dataclass(frozen=True)
class Outcome:
    """All parts of a file as one."""

    readings: pl.DataFrame
    rejects: pl.DataFrame
    parts: tuple[Part, ...]

    def joined(self, name: str) -> pl.DataFrame:
        frames = [f for p in self.parts if (f := getattr(p, name)) is not None and f.height]
        return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame()


def read(adapter: str, path: Path, options: Options, name: str | None = None) -> Outcome:
    """Parse a file whole; raises what the adapter raises."""
    head = text.head(path, name or path.name)
    parts = tuple(recognise.named(adapter).parse(Log(path, head, options)))
    outcome = Outcome(pl.DataFrame(), pl.DataFrame(), parts)
    return Outcome(outcome.joined("readings"), outcome.joined("rejects"), parts)


@cache
def said(fixture: Fixture) -> Outcome | str:
    """Return what the undamaged fixture says, or why it is refused."""
    try:
        return read(fixture.adapter, fixture.path, fixture.options)
    except LogRefusedError as error:
        return str(error)


def whole(fixture: Fixture) -> Outcome | None:
    """Return what the undamaged fixture says, ``None`` where it is refused."""
    outcome = said(fixture)
    return outcome if isinstance(outcome, Outcome) else None


def _is_read(fixture: Fixture, what: bytes = b'{\n"lines"') -> bool:
    """Tell from its golden file, without reading it, what a fixture is for; reading all of them takes long."""
    return fixture.golden.exists() and what in fixture.golden.read_bytes()


@pytest.mark.parametrize("fixture", ALL, ids=str)
def test_a_fixture_is_read_as_kept(fixture: Fixture) -> None:
    """All that is asked of every fixture, in one: thousands of tests of a millisecond cost more than what they do."""
    _golden(fixture)
    if not fixture.says.get("_named"):  # read because study.toml names the adapter
        _recognised(fixture)
    outcome = whole(fixture)
    if outcome is not None:
        _frames_keep_the_contract(outcome)
        if fixture.path.suffix not in DOCUMENTS:
            _lines_are_counted(fixture, outcome)


# Golden outputs


def _rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    def shown(value: Any) -> Any:
        if isinstance(value, float):
            return float(f"{value:.12g}")
        return value.isoformat() if hasattr(value, "isoformat") else value

    return [{k: shown(v) for k, v in row.items() if v is not None} for row in frame.iter_rows(named=True)]


def _told(fixture: Fixture) -> dict[str, list[Any] | str | int]:
    outcome = said(fixture)
    if isinstance(outcome, str):
        return {"refused": outcome}
    parts = outcome.parts
    channels = {c.device: asdict(c) for p in parts for c in p.channels}
    told: dict[str, list[Any] | str | int] = {
        "lines": sum(p.lines for p in parts),
        "tool_version": next((p.tool_version for p in parts if p.tool_version), ""),
        "channels": list(channels.values()),
        "findings": [
            {"code": f.code, "severity": str(f.severity), "message": f.message} for p in parts for f in p.findings
        ],
    }
    order = {"readings": ("line", "device", "ts_utc"), "rejects": ("line", "device", "column_name")}
    for name in ("readings", "rejects", "runs", "steps", "phases"):
        frame = outcome.joined(name)
        if name in order and frame.height:
            frame = frame.sort(order[name], nulls_last=False, maintain_order=True)
        told[name] = _rows(frame)
    return {k: v for k, v in told.items() if v not in ("", [])}


def _as_text(told: dict[str, list[Any] | str | int]) -> str:
    """Write one row a line, so that a golden file can be read by eye and a change shows as one line."""
    out = []
    for key, value in told.items():
        if isinstance(value, list):
            rows = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in value)
            out.append(f"{json.dumps(key)}: [\n{rows}\n]")
        else:
            out.append(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(out) + "\n}\n"


def _golden(fixture: Fixture) -> None:
    told = _told(fixture)
    if UPDATE:
        fixture.golden.write_text(_as_text(told), encoding="utf-8")
    assert told == json.loads(fixture.golden.read_text(encoding="utf-8"))


def _recognised(fixture: Fixture) -> None:
    found = recognise.adapter_for(
        text.head(fixture.path, fixture.path.name), columns_given=bool(fixture.options.columns)
    )
    assert found.name == fixture.adapter


def test_every_adapter_has_a_fixture_that_is_read() -> None:
    read_ones = {f.adapter for f in ALL if _is_read(f)}
    assert read_ones >= {a.name for a in ADAPTERS if (FIXTURES / a.name).is_dir()}


# What the frames promise


def _frames_keep_the_contract(outcome: Outcome) -> None:
    known = {c.device for p in outcome.parts for c in p.channels}
    scopes = {c.scope for p in outcome.parts for c in p.channels}
    assert scopes <= {*schema.SCOPES, ""}
    readings = outcome.readings
    if readings.height:
        assert set(readings.columns) <= {*KEYS, *schema.QUANTITY_NAMES}
        assert readings["ts_utc"].dtype == schema.UTC
        assert readings["ts_utc"].null_count() == 0 and readings["line"].null_count() == 0
        assert set(readings["device"].unique()) <= known, "a device without a channel"
        assert readings.select("line", "device", "ts_utc").is_unique().all(), "one row per line and device"
        quantities = [c for c in readings.columns if c in schema.QUANTITY_NAMES]
        assert readings.select(pl.any_horizontal(pl.col(quantities).is_not_null())).to_series().all()
        numeric = readings.select(pl.col(pl.Float64))
        assert all(s.drop_nulls().is_finite().all() for s in numeric), "NaN or infinity in readings"
    if outcome.rejects.height:
        assert set(outcome.rejects.columns) == {"line", "device", "column_name", "rule", "raw"}
        cells = outcome.rejects.filter(pl.col("column_name") != "")
        assert cells.select("line", "device", "column_name").is_unique().all(), "a cell was rejected twice"
    for name in ("runs", "steps", "phases"):
        frame = outcome.joined(name)
        if frame.height:
            table = "logged_runs" if name == "runs" else name
            schema.conform(frame, table)


def _lines_are_counted(fixture: Fixture, outcome: Outcome) -> None:
    lines = _lines(fixture.path)
    assert sum(p.lines for p in outcome.parts) == len(lines)
    if outcome.readings.height:
        assert outcome.readings["line"].max() <= len(lines)


def _lines(path: Path) -> list[str]:
    """Return the physical lines without relying on the code under test for line ends."""
    return _decoded(path.read_bytes())[0].removesuffix("\n").split("\n")


def _decoded(raw: bytes) -> tuple[str, str]:
    for bom, name in ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF8, "utf-8-sig")):
        if raw.startswith(bom):
            return re.sub(r"\r\n?", "\n", raw.decode(name, errors="replace")), name
    try:
        return re.sub(r"\r\n?", "\n", raw.decode("utf-8")), "utf-8"
    except UnicodeDecodeError:
        return re.sub(r"\r\n?", "\n", raw.decode("cp1252", errors="replace")), "cp1252"


# Accounting: every non-empty cell of a known column is in readings or in rejects, exactly once


MOST_PROBED = 3

_PROBABLE = [
    f for f in ALL
    if f.path.suffix in {".csv", ".tsv"} and f.says.get("_probe", True) and _is_read(f, b'\n"readings": [')
]  # fmt: skip
PROBED = [f for i, f in enumerate(_PROBABLE) if i < MOST_PROBED or _PROBABLE[i - MOST_PROBED].adapter != f.adapter]
"""The first files of each adapter; each probe reads a whole file, and the next would tell the same."""


def _separator(line: str, another: str) -> str:
    """Return what separates cells: the first of the usual signs that both lines have equally often."""
    return next((s for s in "\t;|," if line.count(s) == another.count(s) > 0), ",")


def _counted(outcome: Outcome) -> tuple[Counter[int], Counter[int]]:
    """Return how many values and how many rejected non-empty cells (stamps aside) each line has."""
    quantities = [c for c in outcome.readings.columns if c in schema.QUANTITY_NAMES]
    held = outcome.readings.select("line", n=pl.sum_horizontal(pl.col(q).is_not_null() for q in quantities))
    values: Counter[int] = Counter()
    for line, count in held.group_by("line").sum().iter_rows():
        values[line] = count
    if outcome.rejects.is_empty():
        return values, Counter()
    cells = outcome.rejects.filter(
        (pl.col("column_name") != "") & (pl.col("raw").str.strip_chars() != "")
        & ~pl.col("rule").is_in(["no-such-time", "no-such-hour"])
    )  # fmt: skip
    return values, Counter(cells["line"].to_list())


@pytest.mark.parametrize("probed", PROBED, ids=str)
def test_every_cell_of_a_known_column_is_accounted_for(probed: Fixture, tmp_path: Path) -> None:
    outcome, lines = whole(probed), _lines(probed.path)
    assert outcome is not None
    whole_rows = set(outcome.readings["line"].to_list())
    known: list[int] = []
    cells: list[str] = []
    header = lines[: min(whole_rows) - 1]
    for at in sorted(whole_rows, reverse=True):  # a line that alone settles the form of the file cannot be probed
        separator = probed.options.delimiter or _separator(lines[at - 1], lines[min(whole_rows) - 1])
        cells = lines[at - 1].split(separator)
        # A column is asked for once an adapter, because each probe reads a whole file: where its title should mean
        # something else in another file, the cells do not add up there.
        titles = header[-1].split(separator) if header else []
        names = titles if len(set(titles)) == len(cells) else [f"{i} of {header}" for i in range(len(cells))]
        told = _TOLD.setdefault((probed.adapter, str(probed.options)), {})
        asked = {
            i: told[names[i]] if names[i] in told else _is_value(probed, tmp_path, lines, at, separator, i)
            for i in range(len(cells))
            if cells[i].strip()
        }
        known = [i for i, is_value in asked.items() if is_value]
        if known:
            told.update({names[i]: is_value for i, is_value in asked.items()})
            break
    assert known, "no column holds a value"
    rejected_lines = (
        set(outcome.rejects.filter(pl.col("column_name") == "")["line"].to_list()) if outcome.rejects.height else set()
    )
    values, rejected = _counted(outcome)
    for number in sorted(whole_rows | (set(outcome.rejects["line"].to_list()) if outcome.rejects.height else set())):
        row = lines[number - 1].split(separator)
        if number in rejected_lines or len(row) != len(cells):
            continue
        assert values[number] + rejected[number] == sum(1 for i in known if row[i].strip(' "')), (
            f"line {number}: {lines[number - 1]!r}"
        )


_TOLD: dict[tuple[str, str], dict[str, bool]] = {}


def _is_value(fixture: Fixture, tmp_path: Path, lines: list[str], at: int, separator: str, column: int) -> bool:
    """Put a word into a cell: of a column with values it ends as one rejected cell, else nothing may change."""
    cells = lines[at - 1].split(separator)
    cells[column] = PROBE
    path = tmp_path / fixture.path.name
    path.write_text("\n".join([*lines[: at - 1], separator.join(cells), *lines[at:]]) + "\n", encoding="utf-8")
    before = whole(fixture)
    assert before is not None
    try:
        after = read(fixture.adapter, path, fixture.options)
    except LogRefusedError:
        return False
    found = (
        after.rejects.filter(pl.col("raw").str.contains(PROBE, literal=True)) if after.rejects.height else after.rejects
    )
    if not found.height:
        named = any(PROBE in str(v) for p in after.parts for c in p.channels for v in asdict(c).values())
        quantities = [c for c in before.readings.columns if c not in {"performance_state", "throttle_reasons"}]
        words = [c for c in after.readings.columns if c in {"performance_state", "throttle_reasons"}]
        texts = any(PROBE in str(v) for v in after.readings.select(words).iter_rows())
        assert named or texts or after.readings.select(quantities).equals(before.readings.select(quantities)), cells
        return texts
    cell = found.filter(pl.col("column_name") != "")
    assert found.height == 1, "the cell is accounted for more than once"
    return cell.height == 1 and cell["rule"][0] not in TIME_RULES


# Damage: nothing is raised but a refusal, no whole line changes its meaning, and nothing disappears without a word


DAMAGED = {name: [f for f in ALL if f.adapter == name and _is_read(f)] for name in sorted({f.adapter for f in ALL})}


@st.composite
def damages(draw: st.DrawFn, raw: bytes, first: int) -> bytes:
    """Return the bytes with one to three injuries behind the first ``first`` bytes."""
    data = bytearray(raw)
    for _ in range(draw(st.integers(1, 3))):
        if len(data) <= first + 1:
            break
        at = draw(st.integers(first, len(data) - 1))
        kind = draw(st.sampled_from(["cut", "flip", "insert", "delete", "nul", "double", "word"]))
        if kind == "cut":
            del data[at:]
        elif kind == "flip":
            data[at] = draw(st.integers(0, 255))
        elif kind == "insert":
            data[at:at] = draw(st.binary(min_size=1, max_size=12))
        elif kind == "delete":
            del data[at : at + draw(st.integers(1, 40))]
        elif kind == "nul":
            data[at:at] = b"\x00" * draw(st.integers(1, 70))
        elif kind == "double":
            end = draw(st.integers(at, min(at + 120, len(data))))
            data[at:at] = data[at:end]
        else:
            data[at:at] = draw(
                st.sampled_from([b"N/A", b"nan", b"-1", b"9.99999999e+37", b"inf", b",", b";", b'"', b"\n"])
            )
    return bytes(data)


def _meanings(outcome: Outcome, *, stamps: bool) -> dict[int, list[str]]:
    """Return what was read from each line, in an order of its own."""
    drop = {"line"} if stamps else {"line", "ts_utc", "span_s"}
    told: dict[int, list[str]] = defaultdict(list)
    for row in outcome.readings.iter_rows(named=True):
        told[row["line"]].append(str({k: v for k, v in row.items() if v is not None and k not in drop}))
    return defaultdict(list, {line: sorted(rows) for line, rows in told.items()})


@pytest.mark.parametrize("adapter", sorted(DAMAGED))
@settings(
    max_examples=2,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_damage_changes_nothing_that_is_whole(
    adapter: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    if not DAMAGED[adapter]:
        pytest.skip("no fixture is read")
    fixture = data.draw(st.sampled_from(DAMAGED[adapter]))
    raw = fixture.path.read_bytes()
    document = fixture.path.suffix in DOCUMENTS
    before = whole(fixture)
    assert before is not None
    first = 0 if document or before.readings.is_empty() else _first_byte(raw, before)
    broken = data.draw(damages(raw, first))
    path = tmp_path_factory.getbasetemp() / f"damaged-{adapter}-{fixture.path.name}"
    path.write_bytes(broken)
    try:
        after = read(adapter, path, fixture.options)
    except LogRefusedError:
        return
    if document or before.readings.is_empty() or _decoded(broken)[1] != _decoded(raw)[1]:
        return
    old, new = _lines(fixture.path), _lines(path)
    stamps = not fixture.says.get("_context")
    places = {line: number for number, line in enumerate(old, 1)} if len(set(old)) == len(old) else {}
    had, has = _meanings(before, stamps=stamps), _meanings(after, stamps=stamps)
    doubtful = set(after.rejects["line"].to_list()) if after.rejects.height else set()
    for number, line in enumerate(new, 1):
        if line not in places or new.count(line) > 1 or (places[line] == len(old) and not raw.endswith(b"\n")):
            continue  # a line without end is damaged as it is
        was, now = had[places[line]], has[number]
        if was != now and not fixture.says.get("_context"):
            missing = [w for w in was if w not in now]
            changed = [n for n in now if n not in was]
            assert not changed, f"line {number} {line!r} was read as {was}, now {now}"
            assert not missing or number in doubtful, f"line {number} {line!r} disappeared without a word: {was}"


def _first_byte(raw: bytes, before: Outcome) -> int:
    """Return where the second line with a reading begins: what comes before it settles the form of the file."""
    numbers = sorted(set(before.readings["line"].to_list()))
    target = numbers[min(1, len(numbers) - 1)]
    wide = raw.startswith(codecs.BOM_UTF16_LE)
    ends = [m.end() for m in re.finditer(rb"\n\x00" if wide else rb"\r\n|\n|\r", raw)]
    return ends[target - 2] if target >= 2 and len(ends) >= target - 1 else 0


def test_two_adapters_never_claim_one_file() -> None:
    for fixture in ALL:
        head = text.head(fixture.path, fixture.path.name)
        claims = recognise.claims(head)
        assert len(claims) <= 1, f"{fixture}: {[c.name for c in claims]}"


def test_names_are_in_order() -> None:
    names = [a.name for a in ADAPTERS]
    assert all(a < b for a, b in pairwise(names)), "one line an adapter, in order of name"
