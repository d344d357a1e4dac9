"""Files read whole and written whole or not at all, with errors that name the file and the reason."""

from __future__ import annotations

import gzip
import zlib
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from recollect.errors import InputError, StorageError

# Tables of results pack 3 to 30 times; a file made to fill the memory packs 1,000 times.
MAX_UNPACKED, UNPACKED_ANYWAY, MAX_RATIO = 2 * 2**30, 64 * 2**20, 200  # bytes, bytes, unpacked by packed


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file beside its destination and move it there; until then an older file stays as it was."""
    temporary = path.with_name(f"{path.name}.{uuid4().hex}.tmp")  # unique across processes and hosts
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        raise StorageError(f"{path}: the file cannot be written: {error.strerror or error}") from error
    finally:
        # After a success it no longer exists; where it could not be created it cannot be removed either.
        with suppress(OSError):
            temporary.unlink()


def make_folder(path: Path) -> None:
    """Create a folder and its parents unless it exists."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{path}: the folder cannot be created: {error.strerror or error}") from error


def _unpack(path: Path) -> bytes:
    """Return the content of a .gz file; InputError for one that would fill the memory."""
    limit = min(MAX_UNPACKED, max(UNPACKED_ANYWAY, MAX_RATIO * path.stat().st_size))
    with gzip.open(path) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        megabytes = f"{limit / 2**20:,.0f} MB"
        raise InputError(
            f"{path}: expected at most {megabytes} of text in a .gz file of this size; unpack it to read it"
        )
    return content


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file, unzipped if its name ends in .gz; InputError for a file that has none."""
    try:
        content = _unpack(path) if path.suffix == ".gz" else path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file") from error
    except IsADirectoryError as error:
        raise InputError(f"{path}: expected a file, but this is a folder") from error
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: the file cannot be read: {error}") from error
    if b"\0" in content:
        raise InputError(f"{path}: expected text in UTF-8, got a binary file (or text in UTF-16)")
    try:
        text = content.decode("utf-8-sig")  # spreadsheets write a byte order mark, which is not part of the text
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}, line {line}: expected text in UTF-8: {error.reason}") from error
    if not text.strip():
        raise InputError(f"{path}: the file is empty")
    return text
