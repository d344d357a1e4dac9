"""Random search with more trials at a time, computed from one run."""

from __future__ import annotations

import numpy as np
import pytest

from recollect import InputError, Optimizer
from recollect.bench.statistics import best_so_far, random_multiple

VALUES = [5.0, 7.0, 3.0, 4.0, float("nan"), 2.0, 6.0, 1.0]


@pytest.mark.parametrize(
    ("factor", "expected"),
    [(1, [5, 5, 3, 3, 3, 2, 2, 1]), (2, [5, 3, 2, 1]), (3, [3, 2]), (4, [3, 1]), (8, [1])],
)
def test_after_s_trials_the_best_of_the_first_factor_times_s_is_known(factor: int, expected: list[float]) -> None:
    assert random_multiple(VALUES, factor).tolist() == expected


def test_twice_as_many_after_ten_is_random_search_after_twenty() -> None:
    optimizer = Optimizer({"x": (0.0, 1.0)}, method="random", horizon=100)
    for _ in range(100):
        config = optimizer.ask()
        optimizer.tell(config, abs(config["x"] - 0.3))
    once, twice, often = (random_multiple(optimizer.run.y, factor) for factor in (1, 2, 10))
    np.testing.assert_array_equal(twice, once[1::2])
    assert twice[9] == once[19]
    assert len(often) == 10
    assert (np.diff(once) <= 0).all()


def test_a_run_that_only_failed_so_far_has_no_best() -> None:
    assert best_so_far([float("nan"), float("nan"), 2.0]).tolist() == [np.inf, np.inf, 2.0]


@pytest.mark.parametrize(("values", "factor"), [([1.0, 2.0], 0), ([1.0, 2.0], 3), ([], 1), ([[1.0]], 1)])
def test_impossible_factors_and_shapes_are_refused(values: list[float], factor: int) -> None:
    with pytest.raises(InputError, match="expected"):
        random_multiple(values, factor)
