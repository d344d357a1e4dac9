"""Optuna's journals, in a file or in Redis."""

from __future__ import annotations

import json
import warnings
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.errors import StorageError

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.storages.journal import BaseJournalBackend

REDIS_ENTRIES_PER_REQUEST = 1000


def journal_file(path: Path) -> BaseStorage:
    """Open a journal file, which is created if it does not exist."""
    from optuna.storages.journal import JournalFileBackend

    return _journal(path, JournalFileBackend(str(path)))


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
