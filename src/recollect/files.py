"""Files put in place whole or not at all."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from uuid import uuid4


def put(path: Path, content: bytes) -> None:
    """Write a file beside its place and move it there; what was there before stays until then."""
    temporary = path.with_name(f"{path.name}.{uuid4().hex}.tmp")  # its own, whichever process of whichever host writes
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        # After a success it is not there any more; where it could not be made it cannot be removed either.
        with suppress(OSError):
            temporary.unlink()
