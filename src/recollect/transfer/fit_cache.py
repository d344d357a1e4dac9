"""A cache of fitted hyperparameters on disk, so that a past run is fitted once and not at every start.

One SQLite file, ``fits.sqlite3`` (`recollect.disk_cache`). An entry is the content hash of a fit, with the logarithms
of the hyperparameters as 64-bit floats; a fit that fails the checksum is repeated. Of more than `MAX_CACHED_FITS` fits
the oldest are removed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from recollect.disk_cache import LOCK_TIMEOUT, CacheKind, DiskCache
from recollect.numerics.arrays import FloatArray

ROW_FORMAT = 2
MAX_CACHED_FITS = 200_000


class FitCache:
    """Hyperparameters by content hash, in the file ``path``; nothing is opened before it is used."""

    __slots__ = ("_cache",)

    def __init__(self, path: str | os.PathLike[str] | None = None, *, lock_timeout: float = LOCK_TIMEOUT) -> None:
        """Name the file, by default that of this user; ``lock_timeout`` are the seconds to wait while it is locked."""
        title, consequence = "fitted past runs", "past runs are fitted without the cache"
        kind = CacheKind("fits", "theta", ROW_FORMAT, MAX_CACHED_FITS, title, consequence)
        self._cache = DiskCache(kind, path, lock_timeout=lock_timeout)

    @classmethod
    def default(cls) -> FitCache:
        """Return the cache of this user."""
        return cls()

    @property
    def path(self) -> Path:
        """The file."""
        return self._cache.path

    def get(self, keys: Iterable[bytes]) -> dict[bytes, FloatArray]:
        """Return the logarithms of the hyperparameters of those keys that are in the cache."""
        found = self._cache.read(keys).items()
        whole = ((key, content) for key, content in found if len(content) % 8 == 0)
        return {key: np.frombuffer(content, dtype="<f8").astype(np.float64) for key, content in whole}

    def put(self, fits: Mapping[bytes, FloatArray]) -> None:
        """Write fits; those that are already there are replaced."""
        self._cache.write({key: np.asarray(theta, dtype="<f8").tobytes() for key, theta in fits.items()})
