"""Random search with more trials at a time, computed from one run; how alike the tasks of a benchmark are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from recollect import InputError, Optimizer
from recollect.bench import from_table, load
from recollect.bench.analysis.statistics import random_multiple, task_agreement

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


@pytest.mark.parametrize(("values", "factor"), [([1.0, 2.0], 0), ([1.0, 2.0], 3), ([], 1), ([[1.0]], 1)])
def test_impossible_factors_and_shapes_are_refused(values: list[float], factor: int) -> None:
    with pytest.raises(InputError, match="expected"):
        random_multiple(values, factor)


def test_agreement_of_tasks_is_that_of_their_errors_on_the_shared_list(tmp_path: Path) -> None:
    rows = [f"{task},{x},{error}" for x in range(5) for task, error in (("a", x), ("b", x**2), ("c", -x), ("d", x % 2))]
    path = tmp_path / "t.csv"
    path.write_text("task,x,error\n" + "\n".join(rows))
    expected = spearmanr([[x, x**2, -x, x % 2] for x in range(5)]).statistic
    np.testing.assert_allclose(task_agreement(from_table(path)), expected, atol=1e-14)
    path.write_text("task,x,error\na,1,0.5\na,2,0.6\nb,2,0.1\nb,3,0.2\n")
    with pytest.raises(InputError, match="measured at different configurations"):
        task_agreement(from_table(path))


def test_agreement_of_formulas_is_measured_at_random_points() -> None:
    one, same, other = (task_agreement(load("branin"), points=64, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    np.testing.assert_allclose(one, other, atol=0.3)
    np.testing.assert_allclose(np.diag(one), 1.0)
