"""Entries of a search space in all the ways in which people write them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from ConfigSpace import CategoricalHyperparameter, Float, Integer, OrdinalHyperparameter
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from scipy import stats

from recollect import SpaceError, compile_space
from recollect.space.columns import Choices, Interval, SpaceColumn, Steps
from recollect.space.sampling import sobol
from recollect.space.serialization import from_json, to_json


def column_of(entry: Any) -> SpaceColumn:
    (column,) = compile_space({"p": entry}).columns
    return column


@pytest.mark.parametrize(
    "entry",
    [
        (1e-3, 1e3, "log"),
        [1e-3, 1e3, "log"],  # from JSON
        stats.loguniform(1e-3, 1e3),
        stats.reciprocal(1e-3, 1e3),
        stats.loguniform(1e-4, 1e2, scale=10),
        FloatDistribution(1e-3, 1e3, log=True),
        {"low": 1e-3, "high": 1e3, "log": True},
        Float("p", (1e-3, 1e3), log=True),
    ],
)
def test_a_float_range_on_a_log_scale(entry: Any) -> None:
    column = column_of(entry)
    assert isinstance(column, Interval)
    assert (column.lower, column.upper, column.log) == (pytest.approx(1e-3), pytest.approx(1e3), True)


@pytest.mark.parametrize(
    "entry", [(2.0, 5.0), stats.uniform(2, 3), stats.uniform(loc=2, scale=3), {"low": 2.0, "high": 5.0}]
)
def test_a_float_range(entry: Any) -> None:
    column = column_of(entry)
    assert isinstance(column, Interval)
    assert (column.lower, column.upper, column.log) == (2.0, 5.0, False)


@pytest.mark.parametrize(
    "entry",
    [
        (1, 9),
        range(1, 10),
        range(9, 0, -1),
        stats.randint(1, 10),
        stats.randint(0, 9, loc=1),
        IntDistribution(1, 9),
        Integer("p", (1, 9)),
        {"low": 1, "high": 9},
        {"low": 1, "high": 9, "step": 1},
    ],
)
def test_a_range_of_integers(entry: Any) -> None:
    column = column_of(entry)
    assert isinstance(column, Steps)
    assert (column.lower, column.size, column.choices) == (1, 9, None)


@pytest.mark.parametrize("entry", [range(10**12), {"low": 0, "high": 10**12 - 1, "step": 1}])
def test_a_range_of_very_many_integers_is_not_listed_and_loses_none(entry: Any) -> None:
    column = column_of(entry)
    assert isinstance(column, Steps)
    assert (column.lower, column.size) == (0, 10**12)


@pytest.mark.parametrize(
    ("entry", "plain"),
    [
        ([*np.arange(2, 5)], (2, 3, 4)),
        ([np.str_("a"), np.bool_(False), np.float32(0.5)], ("a", False, 0.5)),
        ({"choices": [np.int64(1), np.int64(5)]}, (1, 5)),
        (np.int64(3), (3,)),
        (np.bool_(True), (True,)),
    ],
)
def test_scalars_of_numpy_become_plain_values_which_a_memory_can_store(entry: Any, plain: tuple[Any, ...]) -> None:
    space = compile_space({"p": entry})
    (column,) = space.columns
    assert isinstance(column, Choices | Steps)
    assert [(type(choice), choice) for choice in column.choices or ()] == [(type(value), value) for value in plain]
    assert from_json(to_json(space)).names == ("p",)


@pytest.mark.parametrize(
    ("entry", "choices"),
    [
        (range(2, 11, 4), (2, 6, 10)),
        (IntDistribution(2, 10, step=4), (2, 6, 10)),
        ({"low": 2, "high": 13, "step": 4}, (2, 6, 10)),
        ({"low": 0.1, "high": 0.4, "step": 0.1}, (0.1, 0.2, 0.3, 0.4)),
        ({"low": 0, "high": 1, "step": 0.5}, (0.0, 0.5, 1.0)),
        (FloatDistribution(0, 1, step=0.5), (0.0, 0.5, 1.0)),
        ([16, 32, 64], (16, 32, 64)),
        ([3, 2.5, 1], (3, 2.5, 1)),
        (np.logspace(-1, 1, 3), (0.1, 1.0, 10.0)),
        (np.array([1, 2, 4]), (1, 2, 4)),
        ({"choices": ["small", "large"], "ordered": True}, ("small", "large")),
        (OrdinalHyperparameter("p", ["a", "b"]), ("a", "b")),
    ],
)
def test_ordered_choices(entry: Any, choices: tuple[Any, ...]) -> None:
    column = column_of(entry)
    assert isinstance(column, Steps)
    assert column.choices == choices
    assert [type(choice) for choice in column.choices] == [type(choice) for choice in choices]


@pytest.mark.parametrize(
    "entry",
    [
        ["a", "b", "c"],
        [1, 3, 2],
        [1, 2],
        [True, False],
        [1, "a", 2],
        ["a", "b", "log"],
        {"choices": [1, 2, "log"]},
        [0.1, None, 0.2],
        np.array(["a", "b", "c"]),
        {"choices": [1, 2, 3], "ordered": False},
        CategoricalDistribution([1, 2, 3]),
        CategoricalHyperparameter("p", [1, 2, 3]),
    ],
)
def test_choices_without_an_order(entry: Any) -> None:
    assert isinstance(column_of(entry), Choices)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (stats.expon(scale=100), r"uniform on a linear or a log scale .* got expon; .* \(1.01, 461\)"),
        (stats.norm(), "got norm"),
        (stats.loguniform(1, 10, loc=1), "got loguniform"),
        (stats.uniform, "with its parameters, .*; got uniform"),
        (range(0), "the range is empty"),
        (np.zeros((2, 2)), r"one dimension, got shape \(2, 2\)"),
        (np.array([]), "at least one choice"),
        ({"low": 0, "high": 10**6, "step": 2}, "at most 1000 values"),
        ({"low": 3, "high": 1, "step": 1}, "the lower first"),
        ({1, 2}, "expected .* got {1, 2} .set."),
    ],
)
def test_what_has_no_place_in_a_space_is_refused_with_a_remedy(entry: Any, reason: str) -> None:
    with pytest.raises(SpaceError, match=f"'p': .*{reason}"):
        compile_space({"p": entry})


def test_notations_may_be_mixed() -> None:
    space = compile_space({"a": stats.loguniform(1e-3, 1), "b": IntDistribution(1, 3), "c": range(2), "d": ["x", "y"]})
    points = sobol(space, 16, np.random.default_rng(0))
    assert np.array_equal(space.encode(space.decode(points)), points)


def test_a_step_may_be_a_fraction() -> None:
    space = compile_space({"x": {"low": Fraction(0), "high": 1, "step": Fraction(1, 4)}})
    assert [column.choices for column in space.columns] == [(0.0, 0.25, 0.5, 0.75, 1.0)]
