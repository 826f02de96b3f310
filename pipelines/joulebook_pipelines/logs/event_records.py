"""Records of TensorBoard's event files: scalars with tag, step and wall-clock time, without TensorFlow.

A file is a row of records (https://www.tensorflow.org/tutorials/load_data/tfrecord): eight bytes of length, four of checksum, an
``Event`` message, four of checksum. Of the message (tensorflow/core/util/event.proto) only what a scalar needs is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

MARK = "brain.Event:"
"""The version in the first event of every file."""

_LENGTH, _CHECKSUM = 8, 4
_FLOAT, _DOUBLE = 1, 2
"""Types of tensors that hold a scalar (tensorflow/core/framework/types.proto)."""

DAMAGED = (ValueError, IndexError, struct.error, OverflowError)
"""What reading a damaged message raises."""


@dataclass(frozen=True)
class Scalar:
    """One value of one tag.

    Parameters
    ----------
    record
        Number of its record in the file, from 1.
    time_s
        Unix time [s].
    """

    record: int
    time_s: float
    step: int
    tag: str
    value: float


@dataclass(frozen=True)
class Broken:
    """A record that cannot be read, with its first bytes; ``cut`` where the file ends in it."""

    record: int
    data: bytes
    cut: bool


def read(data: bytes) -> tuple[list[Scalar | Broken], int]:
    """Return the scalars of a file in their order and the records that are damaged, and how many records there are."""
    found: list[Scalar | Broken] = []
    at, number = 0, 0
    while at < len(data):
        number += 1
        begin = at + _LENGTH + _CHECKSUM
        (length,) = struct.unpack_from("<Q", data, at) if begin <= len(data) else (0,)
        if begin + length + _CHECKSUM > len(data):
            found.append(Broken(number, data[at : at + 40], cut=True))
            break
        message = data[begin : begin + length]
        try:
            found += list(_scalars(message, number))
        except DAMAGED:
            found.append(Broken(number, message[:40], cut=False))
        at = begin + length + _CHECKSUM
    return found, number


def _scalars(message: bytes, number: int) -> Iterator[Scalar]:
    time_s, step, summaries = 0.0, 0, list[bytes]()
    for field, value in _fields(message):
        if field == 1 and isinstance(value, bytes):
            (time_s,) = struct.unpack("<d", value)
        elif field == 2 and isinstance(value, int):
            step = value - (1 << 64) if value >> 63 else value
        elif field == 5 and isinstance(value, bytes):
            summaries.append(value)
    for summary in summaries:
        for field, value in _fields(summary):
            if field == 1 and isinstance(value, bytes):
                tag, scalar = _value(value)
                if scalar is not None:
                    yield Scalar(number, time_s, step, tag, scalar)


def _value(message: bytes) -> tuple[str, float | None]:
    tag, scalar = "", None
    for field, value in _fields(message):
        if field == 1 and isinstance(value, bytes):
            tag = value.decode("utf-8", errors="replace")
        elif field == 2 and isinstance(value, bytes) and len(value) == 4:
            (scalar,) = struct.unpack("<f", value)
        elif field == 8 and isinstance(value, bytes):
            scalar = _of_tensor(value)
    return tag, scalar


def _of_tensor(message: bytes) -> float | None:
    """Return the only number of a tensor, ``None`` where it holds more or something else."""
    kind, content = 0, b""
    for field, value in _fields(message):
        if field == 1 and isinstance(value, int):
            kind = value
        elif field in {4, 5, 6} and isinstance(value, bytes):
            content = value
    if kind == _FLOAT and len(content) == 4:
        return float(struct.unpack("<f", content)[0])
    return float(struct.unpack("<d", content)[0]) if kind == _DOUBLE and len(content) == 8 else None


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field of a message: an integer, or bytes of whatever length."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if wire == 2:
            length, at = _varint(message, at)
        else:
            length = {1: 8, 5: 4}.get(wire, -1)
        if length < 0 or at + length > len(message):
            raise ValueError("no such field")
        yield key >> 3, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("no such number")
