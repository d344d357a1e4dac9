"""Optuna's journals, in a file or in Redis.

A killed writer or a full disk may leave a part of a line at the end of a file. Optuna would append to it and could then
read nothing from there on. Here, whoever writes next moves it to a file beside the journal first.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from recollect._warnings import warn_caller
from recollect.errors import StorageError

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.storages.journal import BaseJournalBackend

REDIS_ENTRIES_PER_REQUEST = 1000
INCOMPLETE_SUFFIX = ".incomplete"
"""Added to the name of a journal: the file for lines that were not written to their end."""

BLOCK = 2**14  # bytes
WRITE_SECONDS = 0.5  # a line that is incomplete for so long is not being written at this moment


def journal_file(path: Path) -> BaseStorage:
    """Open a journal file, which is created if it does not exist."""
    from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

    class RepairingLock(JournalFileSymlinkLock):
        """The lock that a writer holds; it mends the end of the file before anything is written."""

        def acquire(self) -> bool:
            super().acquire()
            try:
                _mend(path)
            except BaseException:
                self.release()
                raise
            return True

    return _journal(path, JournalFileBackend(str(path), lock_obj=RepairingLock(str(path))))


def incomplete_end(path: Path) -> bytes:
    """Return what is at the end of a journal file and no whole line, b"" if all lines are."""
    for pause in (WRITE_SECONDS, 0.0):
        with path.open("rb") as file:
            line = _last_line(file)[1]
        if _is_whole(line):
            return b""
        time.sleep(pause)
    return line


def _mend(path: Path) -> None:
    """End the last line of a journal if only its end is missing, or move it to another file; its lock is held."""
    with path.open("r+b") as file:
        start, line = _last_line(file)
        if _is_whole(line):
            return
        if _is_whole(line + b"\n"):
            file.write(b"\n")
            return
        if start == 0 and not line.startswith(b"{"):
            raise StorageError(f"{path}: expected a journal of Optuna, but its only line is {line[:40]!r}")
        rest = path.with_name(path.name + INCOMPLETE_SUFFIX)
        with rest.open("ab") as kept:
            kept.write(line.removesuffix(b"\n") + b"\n")
        file.truncate(start)
    message = f"{path}: the last line had not been written to its end: what there was of it is now in {rest}"
    warn_caller(message)


def _last_line(file: BinaryIO) -> tuple[int, bytes]:
    """Return where the last line of a file starts, and the line; the file is at its end then."""
    start = end = file.seek(0, os.SEEK_END)
    tail, size = b"", BLOCK
    while start > 0 and b"\n" not in tail[:-1]:
        start, size = max(0, end - size), 2 * size
        file.seek(start)
        tail = file.read(end - start)
    place = tail.rfind(b"\n", 0, -1) + 1
    return start + place, tail[place:]


def _is_whole(line: bytes) -> bool:
    """Whether a line is an entry with its end, or there is none."""
    try:
        return not line or (line.endswith(b"\n") and isinstance(json.loads(line), dict))
    except ValueError:
        return False


def _journal(where: str | Path, backend: BaseJournalBackend) -> BaseStorage:
    from optuna.storages import JournalStorage

    try:
        return JournalStorage(backend)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise StorageError(f"{where}: expected a journal of Optuna: {error}") from error


def journal_redis(address: str, name: str) -> BaseStorage:
    """Open a journal in Redis; ``name`` is what messages call it."""
    from optuna.storages.journal import JournalRedisBackend

    class SafeRedisBackend(JournalRedisBackend):
        """A journal without Optuna's snapshots: they are pickles, and whoever writes one can run code here."""

        def load_snapshot(self) -> None:
            return None

        def save_snapshot(self, snapshot: bytes) -> None:
            pass

        def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
            """Read many entries per request, since all must be read without a snapshot."""
            last = int(self._redis.get(f"{self._prefix}:log_number") or -1)
            for start in range(log_number_from, last + 1, REDIS_ENTRIES_PER_REQUEST):
                end = min(start + REDIS_ENTRIES_PER_REQUEST, last + 1)
                entries: list[Any] = self._redis.mget([self._key_log_id(number) for number in range(start, end)])
                if None in entries:  # one is being written: Optuna waits for it
                    yield from super().read_logs(start)
                    return
                yield from map(json.loads, entries)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna calls it experimental
        return _journal(name, SafeRedisBackend(address))
