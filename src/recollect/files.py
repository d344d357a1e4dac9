"""Files put in place whole or not at all, and their folders."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from recollect.errors import StorageError


def put(path: Path, content: bytes) -> None:
    """Write a file beside its place and move it there; what was there before stays until then."""
    temporary = path.with_name(f"{path.name}.{uuid4().hex}.tmp")  # its own, whichever process of whichever host writes
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        raise StorageError(f"{path}: the file cannot be written: {error.strerror or error}") from error
    finally:
        # After a success it is not there any more; where it could not be made it cannot be removed either.
        with suppress(OSError):
            temporary.unlink()


def make_folder(path: Path) -> None:
    """Make a folder with those above it, if it is not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{path}: the folder cannot be made: {error.strerror or error}") from error
