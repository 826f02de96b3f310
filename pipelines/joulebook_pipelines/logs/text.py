"""Bytes of a log as UTF-8 blocks of whole lines with their physical line numbers, bounded in memory.

Compressed files are read as they are; encodings are found from the first bytes. Nothing is dropped here: a byte that
cannot be decoded becomes U+FFFD, a NUL stays, and only a line longer than :data:`LONGEST_LINE` is cut, said so. Colours of a
terminal are no part of the text.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

from joulebook_pipelines.logs import encodings, packed, terminal
from joulebook_pipelines.logs.block import Block

HEAD_BYTES = 1 << 16
"""How much of a file is looked at to recognise it: enough for preambles of hundreds of lines."""

BLOCK_BYTES = 1 << 23
"""Size of a block: large enough that splitting costs nothing, small enough that its memory is used again by the next one."""

TAIL_BYTES = 1 << 14
"""Size of the last lines of a block that are kept back, to be read with a line that has no end."""

LONGEST_LINE = 1 << 22
"""No log line is longer than 4 MiB; a longer one is damage (a file without line ends) and is cut there."""

LARGEST_EXPANSION = 400
"""A text log compresses 5 to 100 times; beyond this a compressed file is taken for a bomb."""

LEAST_BOMB_BYTES = 1 << 28
"""What unpacks to less than 256 MiB is no danger, however well it was packed."""


class LogRefusedError(Exception):
    """A file cannot be read honestly; the message says why and what would help."""


@dataclass(frozen=True)
class Head:
    """The beginning of a file: its name, its first bytes as text, and how it is encoded."""

    name: str
    text: str
    encoding: str
    complete: bool

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines of the head without their ends; the last one may be cut unless ``complete``."""
        return tuple(self.text.split("\n"))

    @cached_property
    def top(self) -> tuple[int, str]:
        """Number, from 1, and text of the first line that is not blank, where a header stands; ``(1, "")`` without one."""
        return next(((i, line) for i, line in enumerate(self.lines, 1) if line.strip()), (1, ""))


def head(path: Path, name: str) -> Head:
    """Return the beginning of a file.

    Raises
    ------
    LogRefusedError
        The file is empty, binary, or its compression is damaged.
    """
    try:
        with packed.open_bytes(path) as file:
            raw = file.read(HEAD_BYTES)
    except packed.UNREADABLE as error:
        raise LogRefusedError(f"{name}: cannot be read: {error}") from None
    if not raw.strip(b"\x00 \r\n\t"):
        raise LogRefusedError(f"{name}: the file is empty; remove it from the study or check the tool that wrote it")
    if len(raw) == HEAD_BYTES and not re.search(rb"[\r\n]", raw) and raw.lstrip()[:1] not in {b"{", b"[", b"<"}:
        refuse_long_line(path, name)
    encoding = encodings.of(raw)
    raw = encodings.unmixed(raw, encoding)
    text = raw.decode(encoding, errors="replace").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return Head(name, terminal.plain(text), encoding, len(raw) < HEAD_BYTES)


def refuse_long_line(path: Path, name: str) -> None:
    """Refuse a file for its first line longer than :data:`LONGEST_LINE`; one that has no such line passes.

    A document may be one long line: this is only asked where a file could not be read.

    Raises
    ------
    LogRefusedError
        The line, its length, and what to do.
    """
    # A line that is too long holds whole pieces without an end, so only the ends of pieces are looked at.
    size, line, length, seen = max(LONGEST_LINE // 4, 1), 1, 0, 0
    with packed.open_bytes(path) as file:
        most = path.stat().st_size if packed.is_plain(path) else LEAST_BOMB_BYTES
        while seen <= most and (piece := file.read(size)):
            seen += len(piece)
            piece = piece.replace(b"\r", b"\n")
            first = piece.find(b"\n")
            length += len(piece) if first < 0 else first
            if first < 0:
                continue
            if length > LONGEST_LINE:
                break
            line += piece.count(b"\n")
            length = len(piece) - piece.rfind(b"\n") - 1
    if length > LONGEST_LINE:
        raise LogRefusedError(
            f"{name}:{line}: is a line of {length:,} bytes, and no line of a log is longer than {LONGEST_LINE:,}: its line ends are "
            f"lost, or it is damage; take the line out (sed '{line}d'), or export the file again with one reading a line"
        )


def can_resume(path: Path, head_: Head, at: int) -> bool:
    """Tell whether reading may begin at a byte: behind the end of a line of a plain UTF-8 file."""
    with path.open("rb") as file:
        file.seek(max(at - 1, 0))
        return head_.encoding == "utf-8" and packed.is_plain(path) and file.read(1) == b"\n"


def blocks(
    path: Path,
    head_: Head,
    size: int | None = None,
    *,
    from_byte: int = 0,
    from_line: int = 1,
    to_byte: int | None = None,
) -> Iterator[Block]:
    """Yield the file in blocks of whole lines.

    Parameters
    ----------
    path, head_
        The file.
    size
        Bytes of a block.
    from_byte, from_line
        Where to begin, of a plain file, and the number of the line that begins there.
    to_byte
        Where to end, of a plain file: one that is still written to is read as it was at one moment.

    Raises
    ------
    LogRefusedError
        A compressed file is damaged or expands beyond :data:`LARGEST_EXPANSION`.
    """
    line, size = from_line, size or BLOCK_BYTES
    held: Block | None = None
    try:
        with packed.open_bytes(path) as file:
            if from_byte:
                file.seek(from_byte)
            bytes_ = (to_byte - from_byte) if to_byte is not None and packed.is_plain(path) else None
            bounded = _bounded(_utf8_pieces(file, head_.encoding, size, bytes_), path, head_.name)
            for piece in map(terminal.without_codes, _whole_lines(bounded)):
                if held is not None and not piece.endswith(b"\n") and piece.find(b"\n") < 0:
                    # A last line without end is judged beside its neighbours, so it comes in one block with them.
                    held = Block(held.first_line, held.data + piece)
                    continue
                if held is not None:
                    yield held
                    line += held.count
                held = Block(line, piece)
    except packed.UNREADABLE as error:
        raise LogRefusedError(f"{head_.name}: damaged after line {line}: {error}") from None
    if held is not None:
        yield from (held,) if held.data.endswith(b"\n") else _apart(held)


def _bounded(pieces: Iterator[bytes], path: Path, name: str) -> Iterator[bytes]:
    """Yield the pieces of a file until they are more than any log unpacks to."""
    seen, most = 0, max(LARGEST_EXPANSION * path.stat().st_size, LEAST_BOMB_BYTES)
    for piece in pieces:
        seen += len(piece)
        if seen > most:
            raise LogRefusedError(
                f"{name}: expands to more than {LARGEST_EXPANSION} times its size; unpack it by hand if it is a log"
            )
        yield piece


def _whole_lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield pieces that end at line ends, but for the last one; a line that goes on too long is cut."""
    rest = b""
    for piece in pieces:
        cut = piece.rfind(b"\n") + 1
        if cut == 0:
            rest = (rest + piece)[:LONGEST_LINE]
        elif cut == len(piece) and not rest:
            yield piece
        else:
            yield rest + piece[:cut] if rest else piece[:cut]
            rest = piece[cut:]
    if rest:
        yield rest


def pieces(path: Path, head_: Head, size: int = BLOCK_BYTES) -> Iterator[bytes]:
    r"""Yield the file as UTF-8 with ``\n`` line ends, in pieces that may end inside a line; nothing is cut.

    Raises
    ------
    LogRefusedError
        A compressed file is damaged or expands beyond :data:`LARGEST_EXPANSION`.
    """
    seen = 0
    try:
        with packed.open_bytes(path) as file:
            for piece in _bounded(_utf8_pieces(file, head_.encoding, size), path, head_.name):
                seen += len(piece)
                yield piece
    except packed.UNREADABLE as error:
        raise LogRefusedError(f"{head_.name}: damaged after {seen} bytes: {error}") from None


def _apart(block: Block) -> tuple[Block, ...]:
    """Split off the last lines of a file without final line end, so that what must be read with care is small."""
    cut = block.data.rfind(b"\n", 0, max(len(block.data) - TAIL_BYTES, 0)) + 1
    last = block.data[cut:] + b"\n"
    if cut == 0:
        return (Block(block.first_line, last, terminated=False),)
    first = Block(block.first_line, block.data[:cut])
    return first, Block(block.first_line + first.count, last, terminated=False)


def _lines(file: IO[bytes], size: int, left: int) -> bytes:
    """Read about ``size`` bytes, on to the end of a line: the rest of one would be copied in front of the next piece."""
    if isinstance(file, io.BufferedReader) and isinstance(file.raw, io.FileIO) and file.seekable():
        # Where that end lies is looked up first, for the piece to be read in one: to add to it copies all of it.
        begin = file.tell()
        file.seek(begin + size)
        size += len(file.readline(LONGEST_LINE))
        file.seek(begin)
        return file.read(min(size, left))
    raw = file.read(min(size, left))
    return raw if not raw or raw.endswith(b"\n") else raw + file.readline(min(LONGEST_LINE, left - len(raw)))


def _utf8_pieces(file: IO[bytes], encoding: str, size: int, bytes_: int | None = None) -> Iterator[bytes]:
    r"""Yield UTF-8 with ``\n`` line ends and without a byte-order mark, in pieces that may end inside a line."""
    left = bytes_ if bytes_ is not None else 1 << 62
    decoder = None if encoding == "utf-8" else codecs.getincrementaldecoder(encoding)(errors="replace")
    first, carry = True, b""
    while True:
        raw = _lines(file, size, left) if decoder is None else file.read(min(size, left))
        left -= len(raw)
        raw = encodings.unmixed(raw, encoding)
        piece = raw if decoder is None else decoder.decode(raw, final=not raw).encode()
        if first:
            piece, first = piece.removeprefix(codecs.BOM_UTF8), False
        piece = carry + piece
        # A carriage return at the very end may be half of a line end: keep it for the next piece.
        carry = b"\r" if raw and piece.endswith(b"\r") else b""
        piece = piece.removesuffix(b"\r") if carry else piece
        if b"\r" in piece:
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if piece:
            yield piece
        if not raw:
            return
