"""One search space and a model for each task of a problem."""

from __future__ import annotations

import numpy as np
from tests.helpers.example_memory import COMPILED, example_run, points, stored_tasks

from recollect import Run
from recollect.analysis.memory_tasks import common_points, common_space
from recollect.space.serialization import to_json
from recollect.space.space import compile_space


def test_the_space_that_most_tasks_have_is_common_and_of_equals_the_newest() -> None:
    other = compile_space({"x": (0.0, 2.0)})
    two_to_one = common_space(stored_tasks(example_run("a"), Run("b", [], [], space=other), example_run("c")))
    assert two_to_one is not None
    assert to_json(two_to_one.space) == to_json(COMPILED)
    assert (two_to_one.tasks, two_to_one.inferred) == (2, False)
    even = common_space(stored_tasks(example_run("a"), Run("b", [], [], space=other)))
    assert even is not None
    assert to_json(even.space) == to_json(other)


def test_nothing_tried_anywhere_has_no_common_space() -> None:
    assert common_space(stored_tasks(Run("a", [], []))) is None


def test_common_points_hold_the_space_and_what_was_tried_each_once() -> None:
    X = COMPILED.encode(points(10))
    found = common_points(COMPILED, [X, X[:5]])
    assert len(found) == 512 + 10
    assert {tuple(row) for row in X} <= {tuple(row) for row in found}
    many = np.random.default_rng(0).random((5000, 2))
    assert len(common_points(COMPILED, [many])) == 512 + 1536
