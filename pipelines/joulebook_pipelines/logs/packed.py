"""Compressed files as the bytes that they hold."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from pathlib import Path
from typing import IO, cast

import zstandard

_MAGIC = {b"\x1f\x8b": "gz", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zst", b"PK\x03\x04": "zip", b"BZh": "bz2"}

UNREADABLE = (OSError, EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile, zstandard.ZstdError)
"""What reading a file that is damaged raises."""


def open_bytes(path: Path) -> IO[bytes]:
    """Open a plain, .gz, .bz2, .xz, .zst or .zip file for reading its content, told by its first bytes, not by its name.

    Raises
    ------
    OSError
        An archive holds not just one file, or one that cannot be opened without a word.
    """
    with path.open("rb") as file:
        magic = file.read(6)
    kind = next((k for m, k in _MAGIC.items() if magic.startswith(m)), None)
    if kind == "gz":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    if kind == "xz":
        return cast("IO[bytes]", lzma.open(path, "rb"))
    if kind == "bz2":
        return cast("IO[bytes]", bz2.open(path, "rb"))
    if kind == "zip":
        return _only_member(path)
    if kind == "zst":
        return cast("IO[bytes]", io.BufferedReader(zstandard.open(path, "rb")))
    return path.open("rb")


def _only_member(path: Path) -> IO[bytes]:
    """Open the one file that an archive holds."""
    archive = zipfile.ZipFile(path)
    members = [m for m in archive.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX/")]
    why = "nothing" if not members else f"{len(members)} files ({', '.join(m.filename for m in members[:3])} …)"
    try:
        if any(m.filename == "[Content_Types].xml" for m in members):
            raise OSError("is a spreadsheet or document; save its table as CSV")
        if len(members) != 1:
            raise OSError(f"is an archive of {why}; unpack it and name the logs in it")
        return archive.open(members[0])
    except RuntimeError as error:
        raise OSError(f"is an archive that cannot be opened ({error}); unpack it") from None
    finally:
        # The member that is open keeps the file open.
        archive.close()


def is_plain(path: Path) -> bool:
    """Tell whether a file is not compressed."""
    with path.open("rb") as file:
        return not file.read(6).startswith(tuple(_MAGIC))
