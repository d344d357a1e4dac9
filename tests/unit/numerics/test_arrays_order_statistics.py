"""Running best values and rank correlations."""

from __future__ import annotations

import numpy as np
from scipy.stats import spearmanr

from recollect.numerics.arrays import best_so_far, rank_correlations


def test_a_run_that_only_failed_so_far_has_no_best() -> None:
    assert best_so_far([float("nan"), float("nan"), 2.0]).tolist() == [np.inf, np.inf, 2.0]


def test_rank_correlations_are_those_of_scipy_with_ties() -> None:
    rows = np.random.default_rng(1).integers(0, 6, (5, 40)).astype(float)
    np.testing.assert_allclose(rank_correlations(rows), spearmanr(rows, axis=1).statistic, atol=1e-14)
    rows[2] = 0.5
    flat = rank_correlations(rows)
    assert np.isnan(flat[2]).all()
    assert np.isnan(flat[:, 2]).all()
    assert np.isfinite(flat[np.ix_([0, 1, 3, 4], [0, 1, 3, 4])]).all()
