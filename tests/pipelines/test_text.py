import bz2
import gzip
import json
import lzma
import zipfile

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from joulebook_pipelines import recognise
from joulebook_pipelines.logs import text
from joulebook_pipelines.logs.contract import Log


def _read(path, size=text.BLOCK_BYTES):
    head = text.head(path, path.name)
    return list(text.blocks(path, head, size))


def _lines(blocks):
    return [(b.first_line + i, line) for b in blocks for i, line in enumerate(b.lines)]


@pytest.mark.parametrize(
    "encode",
    [
        lambda s: s.encode(), lambda s: s.encode("utf-8-sig"), lambda s: s.encode("utf-16"), lambda s: s.encode("utf-16-be"),
        lambda s: s.replace("\n", "\r\n").encode(), lambda s: gzip.compress(s.encode()), lambda s: lzma.compress(s.encode()),
        lambda s: zstandard.compress(s.encode()),
    ],
)  # fmt: skip
def test_the_same_text_comes_out_of_every_encoding_and_compression(tmp_path, encode):
    content = "time, power [W]\n" + "".join(f"{i}, {i}.5 W\n" for i in range(200))
    path = tmp_path / "log.csv"
    path.write_bytes(encode(content))
    expected = list(enumerate(content.split("\n")[:-1], start=1))
    assert _lines(_read(path)) == expected
    assert _lines(_read(path, size=64)) == expected


@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\r\n\x00\ufeff\x1b"), max_size=12),
        min_size=1,
        max_size=30,
    )
)
def test_blocks_of_any_size_hold_each_line_once_with_its_number(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("t") / "log.txt"
    path.write_text("x" + "\n".join(lines), encoding="utf-8", newline="")
    for size in (3, 17, 1 << 20):
        found = _lines(_read(path, size=size))
        whole = ("x" + "\n".join(lines)).split("\n")
        # A file that ends with a line end has no further, empty line.
        assert found == list(enumerate(whole[:-1] if whole[-1] == "" else whole, start=1))


@pytest.mark.parametrize(
    ("first", "then"), [("utf-8", "utf-16-le"), ("utf-16", "utf-8"), ("utf-8-sig", "utf-16"), ("utf-16", "ascii")]
)
def test_what_another_program_appended_in_its_own_encoding_is_read(tmp_path, first, then):
    one = "".join(f"2026/11/02 09:00:{i:02d}.000, 0, {i}.50 W\r\n" for i in range(7))
    two = "".join(f"2026/11/02 10:00:{i:02d}.000, 0, 1{i}.50 W\r\n" for i in range(9))
    path = tmp_path / "log.csv"
    path.write_bytes(one.encode(first) + two.encode(then) + one.encode(first.removesuffix("-sig")))
    expected = (one + two + one).replace("\r\n", "\n").split("\n")[:-1]
    assert [line.lstrip("\ufeff") for _, line in _lines(_read(path))] == expected


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_colours_and_clearings_of_a_terminal_are_no_part_of_a_line(tmp_path, encoding):
    shown = (
        "\x1b[H\x1b[2J\x1b[3J\x1b[1;32mtime\x1b(B\x1b[m, power [W]\x1b[K\n",
        "1, \x1b[38;5;196m250.5 W\x1b[0m\n",
        "#033[31m2, 71.0 W#033[0m\n",
        "\x1b]0;node7: ~\x07\x1b[?25l3, 70.0 W\x1b[?25h",
    )
    path = tmp_path / "log.csv"
    path.write_bytes("".join(shown).encode(encoding))
    expected = ["time, power [W]", "1, 250.5 W", "2, 71.0 W", "3, 70.0 W"]
    for size in (16, 1 << 20):
        assert [line for _, line in _lines(_read(path, size))] == expected
    assert list(text.head(path, path.name).lines) == expected


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_files_that_were_put_one_behind_the_other_each_begin_with_a_mark(tmp_path, encoding):
    path = tmp_path / "log.csv"
    path.write_bytes(("\ufefftime,power\n1,2\n" * 3).encode(encoding))
    for size in (12, 1 << 20):
        assert [line for _, line in _lines(_read(path, size))] == ["time,power", "1,2"] * 3
    assert list(text.head(path, path.name).lines)[:-1] == ["time,power", "1,2"] * 3


def test_a_jump_to_a_place_of_the_screen_stays_as_what_follows_it_is_of_another_line(tmp_path):
    path = tmp_path / "log.txt"
    path.write_bytes(b"power 71 W\x1b[5;12H250 W\n")
    assert _lines(_read(path)) == [(1, "power 71 W\x1b[5;12H250 W")]


def test_a_last_line_without_end_is_told(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b"a\nb\nc")
    assert [b.terminated for b in _read(path)] == [False]


def test_empty_damaged_and_bomb_files_are_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "LEAST_BOMB_BYTES", 1 << 20)
    empty, cut, bomb = tmp_path / "empty.csv", tmp_path / "cut.gz", tmp_path / "bomb.gz"
    empty.write_bytes(b"\n\n")
    cut.write_bytes(gzip.compress(b"line\n" * 10_000)[:-20])
    bomb.write_bytes(gzip.compress(b"0" * (8 << 20), compresslevel=9))
    with pytest.raises(text.LogRefusedError, match=r"empty\.csv"):
        text.head(empty, "empty.csv")
    with pytest.raises(text.LogRefusedError, match=r"cut\.gz"):
        _read(cut)
    with pytest.raises(text.LogRefusedError, match=r"bomb\.gz"):
        _read(bomb)


def test_a_line_that_never_ends_is_cut_and_does_not_fill_the_memory(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b"head\n" + b"7" * (3 * text.LONGEST_LINE))
    assert sum(len(b.data) for b in _read(path, size=1 << 20)) <= text.LONGEST_LINE + 10


@pytest.mark.parametrize("first", [b"timestamp, index, power.draw [W]\n", b""])
def test_a_line_that_is_too_long_is_the_cause_of_the_refusal(tmp_path, monkeypatch, first):
    monkeypatch.setattr(text, "LONGEST_LINE", 1 << 17)
    path = tmp_path / "log.csv"
    path.write_bytes(first + b"2026/03/02 10:00:00.000, 0, 1.00 W" + b"x" * (1 << 18))
    with pytest.raises(
        text.LogRefusedError, match=rf"^log\.csv:{1 + bool(first)}: is a line of 262,178 bytes.*sed '\dd'"
    ):
        list(recognise.adapter_for(text.head(path, "log.csv")).parse(Log(path, text.head(path, "log.csv"))))


def test_a_whole_document_may_be_one_long_line(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "LONGEST_LINE", 1 << 15)
    path = tmp_path / "log.json"
    rows = [{"time": 1_700_000_000 + i, "power_w": 200.0 + i % 7} for i in range(2_000)]
    path.write_text(json.dumps(rows), encoding="utf-8")
    head = text.head(path, "log.json")
    parts = recognise.adapter_for(head).parse(Log(path, head))
    assert sum(p.readings.height for p in parts if p.readings is not None) == 2_000


def test_an_archive_of_one_log_is_read_and_of_several_is_refused(tmp_path):
    one, two, sheet = tmp_path / "one.zip", tmp_path / "two.zip", tmp_path / "sheet.xlsx"
    for path, names in ((one, ["a.csv"]), (two, ["a.csv", "b.csv"]), (sheet, ["[Content_Types].xml"])):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in names:
                archive.writestr(name, "a\nb\n")
    assert [b.data for b in _read(one)] == [b"a\nb\n"]
    with pytest.raises(text.LogRefusedError, match=r"two\.zip: .*archive of 2 files \(a\.csv, b\.csv"):
        text.head(two, "two.zip")
    with pytest.raises(text.LogRefusedError, match=r"sheet\.xlsx: .*save its table as CSV"):
        text.head(sheet, "sheet.xlsx")
    one.write_bytes(one.read_bytes()[:-30])
    with pytest.raises(text.LogRefusedError, match=r"one\.zip"):
        text.head(one, "one.zip")
    (tmp_path / "log.bz2").write_bytes(bz2.compress(b"a\nb\n"))
    assert [b.data for b in _read(tmp_path / "log.bz2")] == [b"a\nb\n"]
