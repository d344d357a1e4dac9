"""Files that are only appended to, so that work can be stopped at any time: by Ctrl-C, kill -9 or a full disk.

Whole lines are written with one call and reach the disk before it returns. A line that was cut off in the middle is
dropped when the file is opened again; one for which there is no room leaves the file as it was.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from pathlib import Path

from recollect.errors import InputError, StorageError
from recollect.files import make_folder, put


def open_lines(path: Path, head: str = "") -> str:
    """Return the whole lines of a file, as one text; the file is begun with ``head`` if there is none."""
    if not path.exists():
        make_folder(path.parent)
        put(path, head.encode("utf-8"))
        return head
    try:
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(path, whole)
        return content[:whole].decode("utf-8")
    except OSError as error:
        raise StorageError(f"{path}: the file cannot be read and written: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected text: {error}") from error


def append_lines(path: Path, text: str) -> None:
    """Add whole lines, all or none of them."""
    data = text.encode("utf-8")
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND)
    except OSError as error:
        raise StorageError(f"{path}: the file cannot be written: {error.strerror or error}") from error
    try:
        before = os.fstat(handle).st_size
        try:
            written = os.write(handle, data)
            if written < len(data):
                raise OSError(f"only {written} of {len(data)} bytes could be written")
            os.fsync(handle)
        except OSError as error:
            os.ftruncate(handle, before)
            raise StorageError(f"{path}: {error}; what was written before is kept") from error
    finally:
        os.close(handle)


def csv_line(cells: Iterable[object]) -> str:
    """Return cells as a line of a CSV file."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\n").writerow(list(cells))
    return buffer.getvalue()
