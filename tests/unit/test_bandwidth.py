"""Choosing rho: three strategies against hand-made tables."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from recollect import InputError
from recollect.transfer.bandwidth import RHO_GRID, rho_from_benchmark, rho_from_other_benchmarks, rho_from_other_tasks
from recollect.transfer.weighting import TwoStageWeighting

# On svm rho = 0.1 is best by far on task a only; 0.5 is best on b and c. On glmnet 0.9 is best, on trees 0.5.
SCORES = {
    0.9: {"svm": {"a": 0.9, "b": 0.30, "c": 0.30}, "glmnet": {"g": 0.10}, "trees": {"t": 0.50, "u": 0.50}},
    0.1: {"svm": {"a": 0.0, "b": 0.40, "c": 0.40}, "glmnet": {"g": 0.60}, "trees": {"t": 0.30, "u": 0.30}},
    0.5: {"svm": {"a": 0.8, "b": 0.20, "c": 0.20}, "glmnet": {"g": 0.30}, "trees": {"t": 0.10, "u": 0.30}},
}


def test_other_benchmarks_count_the_same_however_many_tasks_they_have() -> None:
    assert rho_from_other_benchmarks(SCORES, "svm") == 0.5  # (0.3 + 0.2) / 2 against (0.1 + 0.5) / 2
    for left_out in ("trees", "glmnet", "never run"):
        means = {
            rho: np.mean([np.mean(list(tasks.values())) for name, tasks in results.items() if name != left_out])
            for rho, results in SCORES.items()
        }
        assert rho_from_other_benchmarks(SCORES, left_out) == min(means, key=lambda rho: means[rho])


def test_the_target_task_has_no_say_in_its_own_bandwidth() -> None:
    assert rho_from_benchmark(SCORES, "svm") == 0.1
    assert rho_from_other_tasks(SCORES, "svm", "a") == 0.5
    assert rho_from_other_tasks(SCORES, "svm", "b") == 0.1


def test_a_benchmark_is_optimal_for_itself() -> None:
    assert [rho_from_benchmark(SCORES, name) for name in ("svm", "glmnet", "trees")] == [0.1, 0.9, 0.5]


@pytest.mark.parametrize("order", list(itertools.permutations((0.9, 0.1, 0.5))))
def test_of_equally_good_values_the_smallest_is_taken_in_whatever_order_they_come(order: tuple[float, ...]) -> None:
    assert rho_from_benchmark({rho: {"svm": {"a": 0.25}} for rho in order}, "svm") == 0.1


def test_every_value_of_the_grid_is_a_bandwidth() -> None:
    assert len(RHO_GRID) == 13
    assert [TwoStageWeighting(rho).rho for rho in RHO_GRID] == sorted(RHO_GRID)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rho_from_benchmark({}, "svm"), "at least one value of rho"),
        (lambda: rho_from_benchmark(SCORES, "nn"), "no results on benchmark 'nn'; there are 'svm', 'glmnet', 'trees'"),
        (lambda: rho_from_other_tasks(SCORES, "svm", "z"), "has no task 'z'; it has 'a', 'b', 'c'"),
        (lambda: rho_from_other_tasks(SCORES, "glmnet", "g"), "tasks of 'glmnet' other than 'g', got none"),
        (lambda: rho_from_other_benchmarks({0.1: {"svm": {"a": 0.1}}}, "svm"), "other than 'svm'"),
        (lambda: rho_from_benchmark({0.1: {"s": {"a": 1.0}}, 0.2: {"s": {"b": 1.0}}}, "s"), "0.2 and 0.1 differ"),
        (lambda: rho_from_benchmark({0.1: {"s": {"a": float("nan")}}}, "s"), "got nan for task 'a' of 's'"),
        (lambda: rho_from_benchmark({0.1: {"s": {}}}, "s"), "got no task of 's'"),
    ],
)
def test_results_that_cannot_be_compared_are_refused(call: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()  # type: ignore[operator]
