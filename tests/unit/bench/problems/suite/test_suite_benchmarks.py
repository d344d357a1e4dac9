"""The search spaces of the embedded suite, and what is measured in them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from recollect.bench.problems.suite.suite_benchmarks import SUITE, configurations, search_space, suite_space
from recollect.errors import InputError
from recollect.numerics.arrays import unique_rows


def test_the_suite_mirrors_the_six_benchmarks_of_the_paper() -> None:
    assert SUITE == ("own-adaboost", "own-svm-grid", "own-glmnet", "own-svm", "own-xgboost", "own-mlp")


@pytest.mark.parametrize(
    ("name", "dimensions", "conditional", "categorical"),
    [
        ("own-adaboost", 2, 0, 0),
        ("own-svm-grid", 6, 0, 0),
        ("own-glmnet", 2, 0, 0),
        ("own-svm", 4, 2, 1),
        ("own-xgboost", 10, 4, 1),
        ("own-mlp", 7, 0, 0),
    ],
)
def test_dimensions_and_conditions_are_those_of_the_paper(
    name: str, dimensions: int, conditional: int, categorical: int
) -> None:
    space = search_space(name)
    assert len(space.names) == dimensions
    assert sum(condition is not None for condition in space.conditions) == conditional
    assert int(space.categorical.sum()) == categorical


@pytest.mark.parametrize(("name", "count"), [*zip(SUITE, (108, 288, 200, 200, 200, 200), strict=True)])
def test_configurations_are_distinct_points_of_their_space(name: str, count: int) -> None:
    configs = configurations(name)
    X = search_space(name).encode(configs)
    assert len(configs) == count == len(unique_rows(X))
    for config, active in zip(configs, search_space(name).activity(X), strict=True):
        assert set(config) == {key for key, on in zip(search_space(name).names, active, strict=True) if on}


def test_the_grid_of_support_vector_machines_has_168_radial_108_polynomial_and_12_linear_points() -> None:
    configs = configurations("own-svm-grid")
    kernels = Counter(kernel for config in configs for kernel in ("rbf", "polynomial", "linear") if config[kernel] == 1)
    assert kernels == {"rbf": 168, "polynomial": 108, "linear": 12}
    for config in configs:
        assert config["rbf"] + config["polynomial"] + config["linear"] == 1
        assert config["rbf"] or config["log10_gamma"] == 0  # unused is 0, as in the paper's files
        assert (config["log10_degree"] == 0) == (not config["polynomial"])


@pytest.mark.parametrize(("column", "values", "last"), [("iterations", (50, 100, 200), 300), ("depth", (2, 4, 8), 10)])
def test_both_columns_of_the_adaboost_grid_are_on_a_log_scale(column: str, values: tuple[int, ...], last: int) -> None:
    space = search_space("own-adaboost")
    X = space.encode([{"iterations": 1, "depth": 1} | {column: value} for value in values])
    # a factor of two is the same step everywhere; an integer is a cell of (ConfigSpace) 0.49999 to both sides of it
    step = np.log(2) / np.log((last + 0.49999) / (1 - 0.49999))
    assert np.diff(X[:, space.names.index(column)]) == pytest.approx([step, step], abs=1e-9)


@pytest.mark.parametrize("name", SUITE[2:])
def test_random_configurations_spread_over_the_whole_scale_of_every_number(name: str) -> None:
    space = search_space(name)
    X = space.encode(configurations(name))
    for column, categorical in enumerate(space.categorical):
        values = X[~np.isnan(X[:, column]), column]
        if categorical:
            assert min(Counter(values).values()) > 40
        else:
            assert np.abs(np.quantile(values, [0.1, 0.5, 0.9]) - [0.1, 0.5, 0.9]).max() < 0.15


def test_only_active_hyperparameters_are_in_a_configuration() -> None:
    for config in configurations("own-svm"):
        assert ("gamma" in config) == (config["kernel"] == "radial")
        assert ("degree" in config) == (config["kernel"] == "polynomial")


def test_random_floats_have_six_significant_digits() -> None:
    for config in configurations("own-glmnet"):
        for value in config.values():
            assert value == float(f"{value:.6g}")


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(InputError, match="did you mean 'own-xgboost'"):
        suite_space("own-xgbost")
