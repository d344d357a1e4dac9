"""Lists of dicts, as GridSearchCV takes them: what is tried is what one of the dicts has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import ParameterGrid

from recollect import Optimizer, SpaceError, compile_space
from recollect.space.sampling import sobol, uniform

SVC = [
    {"kernel": ["rbf", "sigmoid"], "C": [0.1, 1.0, 10.0], "gamma": [0.01, 0.1, 1.0]},
    {"kernel": ["linear"], "C": [0.1, 1.0, 10.0, 100.0]},
    {"kernel": ["poly"], "C": [1.0], "degree": [2, 3]},
]


def canonical(configs: Any) -> set[tuple[tuple[str, Any], ...]]:
    return {tuple(sorted(config.items())) for config in configs}


def test_the_space_holds_exactly_the_points_of_the_grid() -> None:
    space = compile_space(SVC)
    grid = list(ParameterGrid(SVC))
    assert len(space.encode(grid)) == len(grid)
    drawn = space.decode(uniform(space, 3000, np.random.default_rng(0)))
    assert canonical(drawn) == canonical(grid)


def test_ranges_of_different_widths_are_kept_apart() -> None:
    dicts = [
        {"booster": ["tree"], "lr": (0.01, 0.1, "log"), "depth": (2, 4)},
        {"booster": "linear", "lr": (0.05, 1.0, "log")},
    ]
    space = compile_space(dicts)
    for config in space.decode(sobol(space, 256, np.random.default_rng(0))):
        low, high = (0.01, 0.1) if config["booster"] == "tree" else (0.05, 1.0)
        assert low <= config["lr"] <= high
        assert ("depth" in config) == (config["booster"] == "tree")


def test_the_optimizer_asks_for_points_of_one_dict_only() -> None:
    optimizer = Optimizer(SVC, method="gp", seed=0)
    grid = canonical(ParameterGrid(SVC))
    for number in range(14):
        config = optimizer.ask()
        assert canonical([config]) <= grid
        optimizer.tell(config, float(number % 5))


def test_one_dict_in_a_list_is_that_dict() -> None:
    assert compile_space([{"a": (0.0, 1.0)}]).names == ("a",)


@pytest.mark.parametrize(
    ("dicts", "reason"),
    [
        ([{"a": [1, 2]}, {"b": [1, 2]}], "needs a hyperparameter that tells them apart.*the first dict has 'a'"),
        ([{"a": [1, 2]}, {"a": [2, 3]}], "tells them apart"),
        ([{"k": ["x"], "a": (0.0, 1.0)}, {"k": ["y"], "a": [1, 2]}], "'a': expected choices in all dicts"),
        ([{"k": ["x"], "a": (0.1, 1.0)}, {"k": ["y"], "a": (0.1, 1.0, "log")}], "'a': expected .*same scale"),
        ([{"k": ["x"], "a": set()}, {"k": ["y"]}], "'a': expected"),
    ],
)
def test_lists_that_make_no_space_are_refused(dicts: Any, reason: str) -> None:
    with pytest.raises(SpaceError, match=reason):
        compile_space(dicts)
