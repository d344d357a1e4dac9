"""Files that are only appended to, so that work can be stopped at any time: by Ctrl-C, kill -9 or a full disk.

Whole lines are written with one call and reach the disk before it returns. A line that was cut off in the middle is
dropped when the file is opened again; one for which there is no room leaves the file as it was.
"""

from __future__ import annotations

import os
from pathlib import Path

from recollect.errors import StorageError
from recollect.files import put


def open_lines(path: Path, head: str = "") -> str:
    """Return the whole lines of a file, as one text; the file is begun with ``head`` if there is none."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        put(path, head.encode("utf-8"))
        return head
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
    return content[:whole].decode("utf-8")


def append_lines(path: Path, text: str) -> None:
    """Add whole lines, all or none of them."""
    data = text.encode("utf-8")
    handle = os.open(path, os.O_WRONLY | os.O_APPEND)
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
