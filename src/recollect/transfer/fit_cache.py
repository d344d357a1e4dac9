"""A cache of fitted hyperparameters on disk, so that a past run is fitted once and not at every start.

One SQLite file, ``fits.sqlite3``, in the user's cache folder: the folder named by ``RECOLLECT_CACHE``; else
``XDG_CACHE_HOME/recollect`` or ``~/.cache/recollect``, on Windows ``LOCALAPPDATA/recollect``, on macOS
``~/Library/Caches/recollect``. A row is the content hash of a fit, the version of the format, and the logarithms of the
hyperparameters as 64-bit floats with a checksum; a fit that fails it is repeated. Many processes may use the file at
once: a rollback journal also works on network folders, and a process that finds the file locked waits.

The cache is a convenience. When it cannot be used (no permission, full disk, locked for too long), one
`RecollectWarning` says why, and the fits are repeated. A damaged file is moved aside. Of more than `MAX_CACHED_FITS`
fits the oldest are removed.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recollect._system import user_folder
from recollect.errors import RecollectWarning
from recollect.numerics.arrays import FloatArray

if TYPE_CHECKING:
    import sqlite3

FORMAT, ROW_FORMAT = 1, 2  # of the table; of its rows, where rows of another format are not read
MAX_CACHED_FITS = 200_000
LOCK_TIMEOUT = 10.0  # seconds to wait for another process
CHECKSUM_SIZE = 8  # bytes
_KEYS_PER_QUERY = 500  # SQLite allows 999 in old versions
_CREATE = (
    "CREATE TABLE IF NOT EXISTS fits (age INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, "
    "version INTEGER NOT NULL, theta BLOB NOT NULL)"
)


class FitCache:
    """Hyperparameters by content hash, in the file ``path``; nothing is opened before it is used."""

    __slots__ = ("_disabled", "_lock_timeout", "path")

    def __init__(self, path: str | os.PathLike[str], *, lock_timeout: float = LOCK_TIMEOUT) -> None:
        """Name the file; ``lock_timeout`` is how many seconds to wait while another process has it locked."""
        self.path, self._lock_timeout, self._disabled = Path(path), lock_timeout, False

    @classmethod
    def default(cls) -> FitCache:
        """Return the cache of this user."""
        return cls(cache_folder() / "fits.sqlite3")

    def get(self, keys: Iterable[bytes]) -> dict[bytes, FloatArray]:
        """Return the logarithms of the hyperparameters of those keys that are in the cache."""
        keys = list(keys)
        fits: dict[bytes, FloatArray] = {}
        with self._guarded("read"):
            if self._disabled or not keys or not self.path.exists():
                return fits
            with self._connected() as connection:
                if _version(connection) == 0:
                    return fits
                for begin in range(0, len(keys), _KEYS_PER_QUERY):
                    some = keys[begin : begin + _KEYS_PER_QUERY]
                    marks = ",".join("?" * len(some))
                    query = f"SELECT key, theta FROM fits WHERE version = ? AND key IN ({marks})"
                    for key, row in connection.execute(query, (ROW_FORMAT, *some)):
                        if isinstance(row, bytes) and row == _row(key, theta := row[:-CHECKSUM_SIZE]):
                            fits[key] = np.frombuffer(theta, dtype="<f8").astype(np.float64)
        return fits

    def put(self, fits: Mapping[bytes, FloatArray]) -> None:
        """Write fits; those that are already there are replaced."""
        rows = [(key, ROW_FORMAT, _row(key, np.asarray(theta, dtype="<f8").tobytes())) for key, theta in fits.items()]
        with self._guarded("write"):
            if self._disabled or not rows:
                return
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._connected() as connection:
                connection.execute("BEGIN IMMEDIATE")
                if _version(connection) == 0:
                    connection.execute(_CREATE)
                    connection.execute(f"PRAGMA user_version = {FORMAT}")
                connection.executemany("INSERT OR REPLACE INTO fits (key, version, theta) VALUES (?, ?, ?)", rows)
                connection.execute("DELETE FROM fits WHERE age <= (SELECT max(age) FROM fits) - ?", (MAX_CACHED_FITS,))
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
        self._warn(f"{reason}; past runs are fitted without the cache")

    def _warn(self, reason: str) -> None:
        warnings.warn(f"cache of fitted past runs: {reason}", RecollectWarning, stacklevel=2)


def cache_folder() -> Path:
    """Return the folder of this user's caches."""
    return user_folder("cache", "RECOLLECT_CACHE")


def _row(key: bytes, theta: bytes) -> bytes:
    """Return hyperparameters with a checksum of them and their key."""
    return theta + hashlib.blake2b(key + theta, digest_size=CHECKSUM_SIZE).digest()


def _version(connection: sqlite3.Connection) -> int:
    """Return the format of the file; 0 for a new one."""
    import sqlite3

    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version not in (0, FORMAT):
        raise sqlite3.NotSupportedError(f"expected format {FORMAT}, got {version} of another version of recollect")
    return version
