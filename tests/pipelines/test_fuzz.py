"""Damaged and hostile files: whatever a file holds, it is read or refused, in bounded time, and nothing is invented.

The mutations are seeded; the run marked ``score`` goes on for ``JOULEBOOK_FUZZ_SECONDS`` (600 by default). A file that
broke something is kept under ``out/fuzz``.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import sqlite3
import time
import zlib
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard

from joulebook_pipelines import cli, recognise
from joulebook_pipelines.adapters import ADAPTERS
from joulebook_pipelines.logs import table, text
from joulebook_pipelines.logs.contract import Log, LogRefusedError, Options, Part

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
NAMES = [a.name for a in ADAPTERS]
SLOWEST_S = 10.0
"""No small file may take longer, even where two cores are shared by many."""

WORDS = (
    b"N/A", b"nan", b"-1", b"1e999", b"9.99999999e+37", b"18446744073709551615", b"-9223372036854775809", b"inf", b"", b",",
    b";", b"\t", b'"', b"\\", b"\n", b"\r\n", b"\r", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"{", b"}", b"[", b"]", b":",
    b"null", b"true", b"#", b"<", b"&", b"0000-00-00", b"2026-02-30 25:61:61", b"1970-01-01 00:00:00",
    b"9999-12-31 23:59:59", b"$(id)", b"'; drop table readings; --", b"../../x", b"%s%n", b"{0}", "\u202e\u0660".encode(),
    b"1,234", b"W", b"kWh", b" ", b"0", b"a" * 300,
)  # fmt: skip


def _inputs(adapter: str) -> list[Path]:
    folder = FIXTURES / adapter
    if not folder.is_dir():
        return []
    beside = (".golden.json", ".options.json", ".txt.md")
    return [p for p in sorted(folder.iterdir()) if p.is_file() and not p.name.endswith(beside)]


def _options(path: Path) -> Options:
    beside = path.with_name(path.name + ".options.json")
    said = json.loads(beside.read_text()) if beside.exists() else {}
    said = {k: tuple(v) if k == "devices" else v for k, v in said.items() if not k.startswith("_")}
    return Options(**said)


def _mutated(raw: bytes, rng: random.Random) -> bytes:
    """Return the bytes with one to five injuries."""
    data = bytearray(raw)
    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(9)
        if kind == 0:
            del data[at:]
        elif kind == 1 and data:
            data[at % len(data)] = rng.randrange(256)
        elif kind == 2:
            data[at:at] = rng.choice(WORDS)
        elif kind == 3:
            del data[at : at + rng.randint(1, 60)]
        elif kind == 4:
            data[at:at] = data[at : at + rng.randint(1, 400)]
        elif kind == 5:
            lines = data.split(b"\n")
            rng.shuffle(lines)
            data = bytearray(b"\n".join(lines))
        elif kind == 6:
            # A whole cell in place of another.
            end = min((e for e in (data.find(c, at) for c in b",;\n\t|: ") if e >= 0), default=len(data))
            data[at:end] = rng.choice(WORDS)
        elif kind == 7:
            data[at:at] = rng.randbytes(rng.randint(1, 30))
        else:
            lines = data.split(b"\n")
            other = rng.randrange(len(lines))
            lines[other] = lines[rng.randrange(len(lines))]
            data = bytearray(b"\n".join(lines))
    return bytes(data)


def _read(adapter: str, path: Path, options: Options, name: str = "file") -> list[Part]:
    return list(recognise.named(adapter).parse(Log(path, text.head(path, name), options)))


def _check(parts: list[Part], size: int) -> None:
    """Assert what holds for every file that is read at all."""
    lines = sum(p.lines for p in parts)
    assert lines <= size + 1
    devices = {c.device for p in parts for c in p.channels}
    for part in parts:
        if part.readings is not None and part.readings.height:
            readings = part.readings
            assert set(readings["device"].unique()) <= devices
            assert readings["ts_utc"].null_count() == 0
            assert all(c.drop_nulls().is_finite().all() for c in readings if c.dtype == pl.Float64)
            if "span_s" in readings.columns:
                assert (readings["span_s"].drop_nulls() >= 0).all()
        if part.rejects is not None and part.rejects.height:
            assert part.rejects["rule"].null_count() == 0
            assert int(str(part.rejects["raw"].str.len_chars().max() or 0)) <= table.LONGEST_RAW
        for frame in (part.phases, part.runs):
            if frame is not None and {"start_utc", "end_utc"} <= set(frame.columns):
                assert (frame["end_utc"] >= frame["start_utc"]).fill_null(value=True).all()


def _keep(raw: bytes, path: Path, adapter: str) -> Path:
    kept = ROOT / "out" / "fuzz" / f"{adapter}-{zlib.crc32(raw):08x}-{path.name}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(raw)
    return kept


def _fuzz(adapter: str, folder: Path, seed: int, seconds: float, most: int) -> int:
    """Read mutated fixtures of an adapter until the time or the number is used up; return how many."""
    rng, done, until = random.Random(seed), 0, time.monotonic() + seconds
    inputs = [(p, p.read_bytes(), _options(p)) for p in _inputs(adapter)]
    while inputs and done < most and (time.monotonic() < until or done == 0):
        path, raw, options = rng.choice(inputs)
        broken = _mutated(raw, rng)
        target = folder / f"broken-{path.name}"
        target.write_bytes(broken)
        began = time.process_time()  # of this process: a busy machine is no hang
        try:
            _check(_read(adapter, target, options), len(broken))
            recognise.claims(text.head(target, target.name))
        except LogRefusedError:
            pass  # by name, as the tests below ask for
        except BaseException as error:
            error.add_note(f"seed {seed}, kept as {_keep(broken, path, adapter)}")
            raise
        assert time.process_time() - began < SLOWEST_S, f"{_keep(broken, path, adapter)} is slow"
        done += 1
    return done


@pytest.mark.parametrize("adapter", NAMES)
def test_mutated_files_are_read_or_refused(adapter: str, tmp_path: Path) -> None:
    if not _inputs(adapter):
        pytest.skip("no fixture")
    assert _fuzz(adapter, tmp_path, seed=20261102, seconds=5.0, most=3)


@pytest.mark.score
def test_mutated_files_are_read_or_refused_for_ten_minutes(tmp_path: Path) -> None:
    until = time.monotonic() + float(os.environ.get("JOULEBOOK_FUZZ_SECONDS", "600"))
    seed, done = 0, 0
    while time.monotonic() < until:
        for adapter in NAMES:
            done += _fuzz(adapter, tmp_path, seed, seconds=5.0, most=40)
        seed += 1
    print(f"{done} files")  # noqa: T201
    assert done


# Hostile files


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a long line and a block small, so that a line of a gigabyte need not be written."""
    monkeypatch.setattr(text, "LONGEST_LINE", 1 << 16)
    monkeypatch.setattr(text, "BLOCK_BYTES", 1 << 17)


def _attempt(adapter: str, path: Path, options: Options) -> list[Part] | None:
    """Read a file; ``None`` where it is refused by name. Everything else is a failure."""
    began, said = time.process_time(), ""
    parts: list[Part] | None
    try:
        parts = _read(adapter, path, options, path.name)
        _check(parts, path.stat().st_size)
    except LogRefusedError as refusal:
        parts, said = None, str(refusal)
    assert parts is not None or path.name in said
    assert time.process_time() - began < SLOWEST_S
    return parts


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("adapter", NAMES)
def test_a_line_without_end(adapter: str, tmp_path: Path) -> None:
    for path, filler in product(_inputs(adapter)[:1], (b"1,", b'{"a":')):
        target = tmp_path / path.name
        target.write_bytes(path.read_bytes() + b"\n" + filler * ((3 << 16) // len(filler)))
        _attempt(adapter, target, _options(path))


COMMAS = b",\n" * 2_000


@cache
def _claimants_of_commas() -> set[str]:
    """Return who claims a file of nothing but commas, asked once for all adapters."""
    return {c.name for c in recognise.claims(text.Head("deep.txt", COMMAS.decode(), "utf-8", complete=True))}


DEEP = {
    "lists": b"[" * 30_000, "objects": b'{"a":' * 30_000, "events": b'{"traceEvents":[' + b"[" * 30_000,
    "elements": b"<a>" * 20_000, "commas": COMMAS, "quotes": b'"' * 5_000,
}  # fmt: skip


@pytest.mark.parametrize("adapter", NAMES)
def test_deep_and_empty_structures(adapter: str, tmp_path: Path) -> None:
    assert adapter not in _claimants_of_commas()
    for kind, raw in DEEP.items():
        path = tmp_path / f"{kind}.txt"
        path.write_bytes(raw)
        _attempt(adapter, path, Options(timezone="UTC"))


LAUGHS = (
    b'<?xml version="1.0"?><!DOCTYPE nvidia_smi_log [<!ENTITY a "haha">'
    + b"".join(f'<!ENTITY a{i} "{"&a" + (str(i - 1) if i else "") + ";"}{"&a;" * 9}">'.encode() for i in range(1, 12))
    + b"]><nvidia_smi_log><timestamp>&a11;</timestamp></nvidia_smi_log>"
)
OUTSIDE = (
    b'<?xml version="1.0"?><!DOCTYPE nvidia_smi_log [<!ENTITY x SYSTEM "file:///etc/hostname">]>'
    b"<nvidia_smi_log><timestamp>&x;</timestamp></nvidia_smi_log>"
)


@pytest.mark.parametrize("adapter", NAMES)
def test_entities_of_xml_are_never_expanded(adapter: str, tmp_path: Path) -> None:
    path = tmp_path / "laughs.xml"
    for raw in (LAUGHS, OUTSIDE):
        path.write_bytes(raw)
        parts = _attempt(adapter, path, Options(timezone="UTC")) or []
        told = "".join(str(f.to_dicts()) for p in parts for f in (p.readings, p.runs) if f is not None)
        assert "hahahaha" not in told
        assert Path("/etc/hostname").read_text().strip() not in told or not told


def test_a_bomb_is_refused_before_it_fills_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Megabytes from some bytes: more than any log is packed."""
    monkeypatch.setattr(text, "LEAST_BOMB_BYTES", 1 << 20)
    path = tmp_path / "bomb.jsonl.zst"
    with zstandard.open(path, "wb") as file:
        file.write(b'{"time": "2026-11-02T09:00:00Z", "step": 1, "loss": 1.0}\n')
        for _ in range(8):
            file.write(bytes(1 << 20))
    assert path.stat().st_size < 1 << 16
    with pytest.raises(LogRefusedError, match="expands"):
        for _ in text.blocks(path, text.head(path, path.name)):
            pass


def test_a_packed_file_of_packed_files_is_not_unpacked_twice(tmp_path: Path) -> None:
    path = tmp_path / "inner.csv.gz"
    path.write_bytes(gzip.compress(gzip.compress(b"time,step,loss\n" * 1000)))
    try:
        claims = recognise.claims(text.head(path, path.name))
    except LogRefusedError:
        return
    assert claims == []


def test_a_database_with_a_trap_is_refused(tmp_path: Path) -> None:
    """A view in place of the table could count for ever; names in a path must not become options of the connection."""
    path = tmp_path / "trap?mode=rwc&x='%2e.sqlite"
    with sqlite3.connect(path) as base:
        base.execute("create table StringIds (id integer, value text)")
        base.execute(
            "create view NVTX_EVENTS as with recursive n(i) as (select 1 union all select i + 1 from n) "
            "select i as start, i as end, 'x' as text, 1 as textId from n"
        )
    base.close()
    assert _attempt("nsys-nvtx", path, Options()) is None
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


LOOP = '{"time": "2026-11-02T09:00:0%dZ", "run": "%s", "step": %d, "loss": 2.5, "tokens": 10}\n'
ODD_NAMES = (
    "it's.jsonl", 'say "hi".jsonl', "'; drop table readings; --.jsonl", "$(touch pwned).jsonl", "..jsonl", "a%2e%2e%2fb.jsonl",
    "new\nline.jsonl", "<img src=x>.jsonl", "-o.jsonl", "\u202egpj.jsonl", "[a-z].jsonl", "a,b.jsonl",
)  # fmt: skip


def _study(folder: Path, files: dict[str, str], toml: str = '[study]\nname = "s"\ntimezone = "UTC"\n') -> Path:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    (folder / "study.toml").write_text(toml, encoding="utf-8")
    return folder


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def call(*arguments: object) -> tuple[int, str, str]:
        code = cli.run_command([str(a) for a in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def _everything(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_names_of_files_and_runs_stay_names(command: Callable[..., Any], tmp_path: Path) -> None:
    runs = ("'; drop table steps; --", '"../../outside"', "../../etc/passwd", "a\\\\b", "${HOME}", "<b>x</b>")
    whole = "".join(LOOP % (i, run.replace('"', '\\"'), i) for i, run in enumerate(runs, 1))
    folder = _study(tmp_path / "study", dict.fromkeys(ODD_NAMES, whole))
    before = _everything(tmp_path)
    code, out, _ = command("check", folder, "--json")
    files = {f["name"] if "name" in f else f["path"]: f for f in json.loads(out)["files"]}
    assert set(files) >= {n for n in ODD_NAMES if not n.startswith(".")}, "hidden files are passed over"
    assert code in {cli.DONE, cli.NOT_GOOD_ENOUGH}
    code, _, _ = command("ingest", folder, "-o", tmp_path / "out")
    assert code in {cli.DONE, cli.NOT_GOOD_ENOUGH}
    made = _everything(tmp_path) - before
    assert made and all(m.startswith("out/") for m in made), made


def test_a_loop_of_links_ends(command: Callable[..., Any], tmp_path: Path) -> None:
    folder = _study(tmp_path / "study", {"train.jsonl": LOOP % (1, "a", 1) + LOOP % (2, "a", 2)})
    (folder / "round").symlink_to(folder, target_is_directory=True)
    (folder / "one.jsonl").symlink_to(folder / "two.jsonl")
    (folder / "two.jsonl").symlink_to(folder / "one.jsonl")
    (folder / "gone.jsonl").symlink_to(folder / "nowhere.jsonl")
    os.mkfifo(folder / "pipe.jsonl")  # opening it would wait for ever
    code, out, err = command("check", folder)
    assert code in {cli.DONE, cli.NOT_GOOD_ENOUGH, cli.USAGE}, err
    assert "train.jsonl" in out + err
    with pytest.raises(LogRefusedError, match=r"one\.jsonl"):
        text.head(folder / "one.jsonl", "one.jsonl")


def test_a_folder_is_no_log(tmp_path: Path) -> None:
    folder = tmp_path / "folder.jsonl"
    folder.mkdir()
    with pytest.raises(LogRefusedError, match=r"folder\.jsonl"):
        text.head(folder, "folder.jsonl")
