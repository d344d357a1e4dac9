"""Fitted hyperparameters kept on disk, so that a past run is fitted once and not at every start.

One SQLite file, ``fits.sqlite3``, in the user's cache folder: the folder named by ``RECOLLECT_CACHE``; else
``XDG_CACHE_HOME/recollect`` or ``~/.cache/recollect``, on Windows ``LOCALAPPDATA/recollect``, on macOS
``~/Library/Caches/recollect``.  A row is the content hash of a fit, the version of the format, and the logarithms of
the hyperparameters as 64-bit floats.  Many processes may use the file at once: a rollback journal works on network
folders too, and whoever finds the file locked waits.

The cache is a convenience.  When it cannot be used (no permission, full disk, locked for too long), one
``RecollectWarning`` says why, and the fits are simply made again; a damaged file is moved aside.  At most ``MOST_ROWS``
fits are kept: the oldest go first.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recollect.errors import RecollectWarning
from recollect.numerics.arrays import FloatArray
from recollect.system import UserFolder

if TYPE_CHECKING:
    import sqlite3

FORMAT = 1  # of the table and of its rows
MOST_ROWS = 200_000
PATIENCE = 10.0  # seconds to wait for another process
_AT_ONCE = 500  # keys in one question; SQLite allows 999 in old versions
CACHE = UserFolder(
    variable="RECOLLECT_CACHE",
    fallback="recollect",
    windows="recollect",
    mac="Caches/recollect",
    xdg=("XDG_CACHE_HOME", ".cache"),
)

_CREATE = (
    "CREATE TABLE IF NOT EXISTS fits (age INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, "
    "version INTEGER NOT NULL, theta BLOB NOT NULL)"
)


class FitCache:
    """Hyperparameters by content hash, in the file ``path``; nothing is opened before it is used."""

    __slots__ = ("_off", "_patience", "path")

    def __init__(self, path: str | os.PathLike[str], *, patience: float = PATIENCE) -> None:
        """Name the file; ``patience`` is how long to wait, in seconds, while another process has it locked."""
        self.path = Path(path)
        self._patience = patience
        self._off = False

    @classmethod
    def default(cls) -> FitCache:
        """The cache of this user."""
        return cls(cache_folder() / "fits.sqlite3")

    def get(self, keys: Iterable[bytes]) -> dict[bytes, FloatArray]:
        """Those of the keys that are known, with their logarithms of hyperparameters."""
        wanted = list(keys)
        found: dict[bytes, FloatArray] = {}
        with self._guarded("read"):
            if self._off or not wanted or not self.path.exists():
                return found
            with self._connected() as connection:
                if _version(connection) == 0:
                    return found
                for begin in range(0, len(wanted), _AT_ONCE):
                    some = wanted[begin : begin + _AT_ONCE]
                    marks = ",".join("?" * len(some))
                    question = f"SELECT key, theta FROM fits WHERE version = ? AND key IN ({marks})"
                    for key, theta in connection.execute(question, (FORMAT, *some)):
                        if len(theta) % 8 == 0:
                            found[bytes(key)] = np.frombuffer(theta, dtype="<f8").astype(np.float64)
        return found

    def put(self, fits: Mapping[bytes, FloatArray]) -> None:
        """Keep fits; those that are already there are replaced."""
        rows = [(key, FORMAT, np.asarray(theta, dtype="<f8").tobytes()) for key, theta in fits.items()]
        with self._guarded("write"):
            if self._off or not rows:
                return
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._connected() as connection:
                connection.execute("BEGIN IMMEDIATE")
                if _version(connection) == 0:
                    connection.execute(_CREATE)
                    connection.execute(f"PRAGMA user_version = {FORMAT}")
                connection.executemany("INSERT OR REPLACE INTO fits (key, version, theta) VALUES (?, ?, ?)", rows)
                connection.execute("DELETE FROM fits WHERE age <= (SELECT max(age) FROM fits) - ?", (MOST_ROWS,))
                connection.execute("COMMIT")

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """A connection for one operation: nothing to share between threads or to inherit by a forked process."""
        import sqlite3

        connection = sqlite3.connect(self.path, timeout=self._patience, isolation_level=None)
        try:
            yield connection
        finally:
            connection.close()  # rolls back what was not committed

    @contextmanager
    def _guarded(self, purpose: str) -> Iterator[None]:
        """Turn a failure of the file into a warning; after it the cache is off, or the damaged file out of the way."""
        import sqlite3

        try:
            yield
        except (sqlite3.Error, OSError) as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary code, without its refinements
            if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                self._move_aside(error)
            else:
                self._give_up(f"cannot {purpose} {self.path}: {error}")

    def _move_aside(self, error: Exception) -> None:
        """Rename a damaged file, and its journal, which must not be applied to a new one."""
        number = 1
        while (place := self.path.with_name(f"{self.path.name}.damaged-{number}")).exists():
            number += 1
        try:
            self.path.rename(place)
            journal = self.path.with_name(f"{self.path.name}-journal")
            if journal.exists():
                journal.rename(place.with_name(f"{place.name}-journal"))
        except OSError as refused:
            self._give_up(f"{self.path} is damaged ({error}) and cannot be moved aside: {refused}")
            return
        self._warn(f"{self.path} is damaged ({error}); it was moved to {place.name}, and a new file is begun")

    def _give_up(self, reason: str) -> None:
        self._off = True
        self._warn(f"{reason}; past runs are fitted without the cache")

    def _warn(self, reason: str) -> None:
        warnings.warn(f"cache of fitted past runs: {reason}", RecollectWarning, stacklevel=2)


def cache_folder() -> Path:
    """Folder of this user's caches; see the head of the module."""
    return CACHE.path()


def _version(connection: sqlite3.Connection) -> int:
    """Format of the file; 0 for a new one."""
    import sqlite3

    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version not in (0, FORMAT):
        raise sqlite3.NotSupportedError(f"expected format {FORMAT}, got {version} of another version of recollect")
    return version
