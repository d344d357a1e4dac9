"""A cache on disk: contents by key in one SQLite file. Each has a checksum; one that fails it counts as missing.

Many processes may use the file at once: a rollback journal also works on network folders, and a process that finds the
file locked waits. A cache is a convenience: when it cannot be used (no permission, full disk, locked for too long), one
`RecollectWarning` says why, and it counts as empty. A damaged file is moved aside. If there are too many entries, the
oldest are removed.

The files are in the user's cache folder: the folder named by ``RECOLLECT_CACHE``; else ``XDG_CACHE_HOME/recollect`` or
``~/.cache/recollect``, on Windows ``LOCALAPPDATA/recollect``, on macOS ``~/Library/Caches/recollect``.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from recollect._system import user_folder
from recollect.errors import RecollectWarning

if TYPE_CHECKING:
    import sqlite3

FORMAT = 1  # of the file
LOCK_TIMEOUT = 10.0  # seconds to wait for another process
CHECKSUM_SIZE = 8  # bytes
_KEYS_PER_QUERY = 500  # SQLite allows 999 in old versions


@dataclass(frozen=True, slots=True)
class CacheKind:
    """What a cache holds."""

    table: str  # and the name of its file
    column: str
    row_format: int  # rows of another format are not read
    limit: int  # entries
    title: str  # in warnings
    consequence: str  # of a cache that cannot be used


class DiskCache:
    """Contents by key, in the file ``path``; nothing is opened before it is used."""

    __slots__ = ("_disabled", "_kind", "_lock_timeout", "path")

    def __init__(
        self, kind: CacheKind, path: str | os.PathLike[str] | None = None, *, lock_timeout: float = LOCK_TIMEOUT
    ) -> None:
        """Name the file, by default that of this user; ``lock_timeout`` are the seconds to wait while it is locked."""
        self.path = cache_folder() / f"{kind.table}.sqlite3" if path is None else Path(path)
        self._kind, self._lock_timeout, self._disabled = kind, lock_timeout, False

    def read(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the contents of those keys that are in the cache."""
        keys = list(keys)
        found: dict[bytes, bytes] = {}
        with self._guarded("read"):
            if self._disabled or not keys or not self.path.exists():
                return found
            with self._connected() as connection:
                if _version(connection) == 0:
                    return found
                columns, table = f"key, {self._kind.column}", self._kind.table
                for begin in range(0, len(keys), _KEYS_PER_QUERY):
                    some = keys[begin : begin + _KEYS_PER_QUERY]
                    marks = ",".join("?" * len(some))
                    query = f"SELECT {columns} FROM {table} WHERE version = ? AND key IN ({marks})"
                    for key, row in connection.execute(query, (self._kind.row_format, *some)):
                        if isinstance(row, bytes) and row == _row(key, content := row[:-CHECKSUM_SIZE]):
                            found[key] = content
        return found

    def write(self, contents: Mapping[bytes, bytes]) -> None:
        """Write contents; those that are already there are replaced."""
        kind = self._kind
        rows = [(key, kind.row_format, _row(key, content)) for key, content in contents.items()]
        with self._guarded("write"):
            if self._disabled or not rows:
                return
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._connected() as connection:
                connection.execute("BEGIN IMMEDIATE")
                if _version(connection) == 0:
                    connection.execute(
                        f"CREATE TABLE IF NOT EXISTS {kind.table} (age INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, "
                        f"version INTEGER NOT NULL, {kind.column} BLOB NOT NULL)"
                    )
                    connection.execute(f"PRAGMA user_version = {FORMAT}")
                columns = f"(key, version, {kind.column})"
                connection.executemany(f"INSERT OR REPLACE INTO {kind.table} {columns} VALUES (?, ?, ?)", rows)
                oldest = f"(SELECT max(age) FROM {kind.table}) - ?"
                connection.execute(f"DELETE FROM {kind.table} WHERE age <= {oldest}", (kind.limit,))
                connection.execute("COMMIT")

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """Open a connection for one operation: threads share none, and a forked process inherits none."""
        import sqlite3

        connection = sqlite3.connect(self.path, timeout=self._lock_timeout, isolation_level=None)
        connection.text_factory = bytes  # text can only be damage, and need not be valid UTF-8
        try:
            yield connection
        finally:
            connection.close()  # rolls back what was not committed

    @contextmanager
    def _guarded(self, purpose: str) -> Iterator[None]:
        """Turn a failure of the file into a warning; then disable the cache, or move the damaged file aside."""
        import sqlite3

        try:
            yield
        except (sqlite3.Error, OSError) as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary code, without its refinements
            if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                self._move_aside(error)
            else:
                self._disable(f"cannot {purpose} {self.path}: {error}")

    def _move_aside(self, error: Exception) -> None:
        """Rename a damaged file, and its journal, which must not be applied to a new one."""
        number = 1
        while (target := self.path.with_name(f"{self.path.name}.damaged-{number}")).exists():
            number += 1
        try:
            self.path.rename(target)
            journal = self.path.with_name(f"{self.path.name}-journal")
            if journal.exists():
                journal.rename(target.with_name(f"{target.name}-journal"))
        except OSError as move_error:
            self._disable(f"{self.path} is damaged ({error}) and cannot be moved aside: {move_error}")
            return
        self._warn(f"{self.path} is damaged ({error}); it was moved to {target.name}, and a new file is started")

    def _disable(self, reason: str) -> None:
        self._disabled = True
        self._warn(f"{reason}; {self._kind.consequence}")

    def _warn(self, reason: str) -> None:
        warnings.warn(f"cache of {self._kind.title}: {reason}", RecollectWarning, stacklevel=2)


def cache_folder() -> Path:
    """Return the folder of this user's caches."""
    return user_folder("cache", "RECOLLECT_CACHE")


def _row(key: bytes, content: bytes) -> bytes:
    """Return a content with a checksum of it and its key."""
    return content + hashlib.blake2b(key + content, digest_size=CHECKSUM_SIZE).digest()


def _version(connection: sqlite3.Connection) -> int:
    """Return the format of the file; 0 for a new one."""
    import sqlite3

    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version not in (0, FORMAT):
        raise sqlite3.NotSupportedError(f"expected format {FORMAT}, got {version} of another version of recollect")
    return version
