"""The best of finitely many candidates: the highest score, ties at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from recollect.acquisition.maximize import best_candidate

CANDIDATES = np.arange(6.0)[:, None]


def scoring(values: list[float]) -> Any:
    return lambda X: np.array(values)[X[:, 0].astype(int)]


@pytest.mark.parametrize("values", [[1, 5, 2, 3, 4, 0], [-9, -1, -2, -3, -4, -5], [0, 1e300, 0, 0, 0, 0]])
def test_the_highest_score_wins_whatever_the_generator(values: list[float]) -> None:
    for seed in range(5):
        chosen, score = best_candidate(scoring(values), CANDIDATES, np.random.default_rng(seed))
        assert (chosen, score) == (1, max(values))


@pytest.mark.parametrize(
    ("values", "winners"),
    [
        ([3, 1, 3, 0, 3, 2], [0, 2, 4]),
        ([0] * 6, range(6)),
        ([-np.inf] * 6, range(6)),
        ([np.nan] * 6, range(6)),
        ([np.nan, 1, np.nan, 1, -np.inf, 0], [1, 3]),
        ([np.nan, -np.inf, np.nan, -np.inf, -np.inf, np.nan], range(6)),
    ],
)
def test_among_equals_the_choice_is_uniform_and_nan_never_beats_a_number(values: list[float], winners: Any) -> None:
    rng = np.random.default_rng(1)
    chosen = [best_candidate(scoring(values), CANDIDATES, rng) for _ in range(1200)]
    counts = np.bincount([index for index, _ in chosen], minlength=6)
    assert set(np.flatnonzero(counts)) == set(winners)
    assert chisquare(counts[list(winners)]).pvalue > 1e-3
    assert not any(np.isnan(score) for _, score in chosen)


def test_a_single_candidate_is_chosen() -> None:
    assert best_candidate(lambda _: np.array([-np.inf]), CANDIDATES[:1], np.random.default_rng(0)) == (0, -np.inf)
