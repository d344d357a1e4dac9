"""Small past runs as arrays, and the fits that are made of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from recollect.surrogate.fit import FitProblem, FitSettings
from recollect.transfer import source_fitting
from recollect.transfer.sources import SourceData


def make_run(seed: int, n: int = 8) -> SourceData:
    """Return a noisy wave in two columns."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return SourceData(f"task-{seed}", X, np.sin(6.0 * X[:, 0]) + 0.1 * rng.standard_normal(n))


def record_fits(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Return a list that gets the targets of every fit from now on."""
    made: list[np.ndarray] = []
    real = source_fitting.map_estimates

    def counted(searches: Sequence[FitProblem], settings: FitSettings) -> list[np.ndarray]:
        made.extend(search.z for search in searches)
        return real(searches, settings)

    monkeypatch.setattr(source_fitting, "map_estimates", counted)
    return made
