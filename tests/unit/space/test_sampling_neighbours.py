"""Neighbours: how many, how far, and never outside."""

from __future__ import annotations

from typing import Any

import ConfigSpace as CS
import numpy as np
import pytest
from scipy import stats

from recollect.errors import InputError
from recollect.space.sampling import gaussian_moves, one_exchange
from recollect.space.space import compile_space


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.mark.parametrize(("u", "step"), [(0.5, 0.05), (0.0, 0.2), (0.97, 0.2), (0.3, 10.0)])
def test_float_neighbours_are_truncated_normal(u: float, step: float) -> None:
    space = compile_space({"a": (0.0, 1.0)})
    Y, _ = one_exchange(space, np.array([[u]]), rng(), step=step, per_column=2000)
    assert stats.kstest(Y[:, 0], stats.truncnorm(-u / step, (1 - u) / step, loc=u, scale=step).cdf).pvalue > 0.01


@pytest.mark.parametrize("u", [0.0, 0.3, 1.0])
def test_float_neighbours_move_even_with_a_vanishing_step(u: float) -> None:
    space = compile_space({"a": (-3.0, 7.0)})
    Y, _ = one_exchange(space, np.array([[u]]), rng(), step=1e-30)
    assert Y.shape == (4, 1)
    assert (u != Y).all()
    assert ((Y >= 0) & (Y <= 1)).all()


@pytest.mark.parametrize("spec", [(1, 5), (1, 3), (1, 5, "log"), CS.OrdinalHyperparameter("a", list("vwxyz"))])
def test_short_integers_and_ordinals_have_all_others_as_neighbours(spec: Any) -> None:
    space = compile_space({"a": spec})
    column = space.columns[0]
    everything = [column.value(u) for u in column.snap(np.linspace(0, 1, 300))]
    for value in set(everything):
        Y, _ = one_exchange(space, space.encode([{"a": value}]), rng(), step=1e-6)
        assert sorted(config["a"] for config in space.decode(Y)) == sorted(set(everything) - {value})


def test_long_integers_have_distinct_other_cells_as_neighbours() -> None:
    space = compile_space({"a": (1, 5000)})
    X = space.encode([{"a": value} for value in (1, 2500, 5000)])
    Y, owner = one_exchange(space, X, rng(), step=0.2, per_column=6)
    assert np.bincount(owner).tolist() == [6, 6, 6]
    assert len(np.unique(np.column_stack((owner, Y)), axis=0)) == 18
    assert not (Y[:, 0] == X[owner, 0]).any()


def test_no_integer_is_its_own_neighbour_or_a_neighbour_twice() -> None:
    space = compile_space({"a": (1, 10)})
    X = np.repeat(space.encode([{"a": value} for value in range(1, 11)]), 20, axis=0)
    Y, owner = one_exchange(space, X, rng(), step=0.15)
    assert len(np.unique(np.column_stack((owner, Y)), axis=0)) == len(Y)
    assert not (Y[:, 0] == X[owner, 0]).any()
    assert set(np.bincount(owner)) <= {1, 2, 3, 4}


def test_long_integers_follow_the_gaussian() -> None:
    space = compile_space({"a": (0, 999)})
    X = np.repeat(space.encode([{"a": 300}]), 500, axis=0)
    Y, _ = one_exchange(space, X, rng(), step=0.1)
    assert stats.kstest(Y[:, 0], stats.truncnorm(-3, 7, loc=X[0, 0], scale=0.1).cdf).pvalue > 0.01


@pytest.mark.parametrize(("value", "near"), [(1, [2]), (50, [49, 51]), (100, [99])])
def test_long_integers_fall_back_to_adjacent_cells(value: int, near: list[int]) -> None:
    space = compile_space({"a": (1, 100, "log")})
    Y, _ = one_exchange(space, space.encode([{"a": value}]), rng(), step=1e-9)
    assert [config["a"] for config in space.decode(Y)] == near


def test_categoricals_have_all_other_choices_as_neighbours() -> None:
    space = compile_space({"a": list("pqrstuvw"), "b": "constant"})
    Y, _ = one_exchange(space, space.encode([{"a": "r"}]), rng(), step=0.1)
    assert sorted(config["a"] for config in space.decode(Y)) == sorted("pqstuvw")


def test_every_row_has_its_own_step() -> None:
    space = compile_space({"a": (0.0, 1.0)})
    X = np.full((2, 1), 0.5)
    Y, owner = one_exchange(space, X, rng(), step=np.array([1e-6, 0.1]), per_column=50)
    spread = [np.abs(Y[owner == row] - 0.5).max() for row in (0, 1)]
    assert spread[0] < 1e-5
    assert spread[1] > 0.05
    Y, owner = gaussian_moves(space, X, rng(), step=np.array([1e-6, 0.1]), count=50)
    spread = [np.abs(Y[owner == row] - 0.5).max() for row in (0, 1)]
    assert spread[0] < 1e-5
    assert spread[1] > 0.05


def test_children_switch_with_their_parent_and_are_exchanged_only_while_active() -> None:
    source = CS.ConfigurationSpace({"p": ["on", "off"], "c": (0.0, 1.0)})
    source.add(CS.EqualsCondition(source["c"], source["p"], "on"))
    space = compile_space(source)
    Y, owner = one_exchange(space, space.encode([{"p": "off"}, {"p": "on", "c": 0.3}]), rng(), step=0.2)
    assert owner.tolist() == [0, 1, 1, 1, 1, 1]
    np.testing.assert_array_equal(Y[0], [0.0, 0.5])
    switched = Y[1:][Y[1:, 0] == 1.0]
    np.testing.assert_array_equal(switched, [[1.0, np.nan]])
    assert not np.isnan(Y[1:][Y[1:, 0] == 0.0]).any()


def test_forbidden_neighbours_are_left_out() -> None:
    source = CS.ConfigurationSpace({"a": ["x", "y", "z"], "b": ["x", "y", "z"]})
    source.add(CS.ForbiddenInClause(source["a"], ["y"]))
    space = compile_space(source)
    Y, _ = one_exchange(space, space.encode([{"a": "x", "b": "x"}]), rng(), step=0.2)
    assert sorted(map(tuple, Y)) == [(0.0, 1.0), (0.0, 2.0), (2.0, 0.0)]


def test_nothing_that_varies_gives_no_neighbours() -> None:
    space = compile_space({"a": 1, "b": ["only"]})
    for Y, owner in (
        one_exchange(space, space.encode([{}]), rng(), step=0.2),
        gaussian_moves(space, space.encode([{}]), rng(), step=0.2, count=3),
        one_exchange(space, np.empty((0, 2)), rng(), step=0.2),
    ):
        assert Y.shape == (0, 2)
        assert owner.shape == (0,)


def test_gaussian_moves_move_all_numbers_at_once() -> None:
    space = compile_space({"a": (0.0, 1.0), "b": (0.0, 1.0), "c": ["x", "y"], "d": (1, 1000)})
    X = space.encode([{"a": 0.5, "b": 0.5, "c": "y", "d": 500}])
    Y, owner = gaussian_moves(space, X, rng(), step=0.01, count=2000)
    assert len(Y) == len(owner) == 2000
    assert (Y[:, 2] == 1.0).all()
    assert (Y[:, :2] != 0.5).all()
    np.testing.assert_allclose((Y - X)[:, [0, 1, 3]].std(axis=0), 0.01, rtol=0.1)
    np.testing.assert_array_equal(space.canonical(Y), Y)


def test_gaussian_moves_that_stay_are_left_out() -> None:
    space = compile_space({"a": (1, 3), "b": ["x", "y"]})
    Y, owner = gaussian_moves(space, space.encode([{"a": 2, "b": "x"}]), rng(), step=1e-6, count=50)
    assert len(Y) == len(owner) == 0


@pytest.mark.parametrize("step", [0.0, -1.0, np.nan, np.inf, [0.1, 0.2, 0.3], [[0.1], [0.1]]])
def test_bad_steps_are_refused(step: Any) -> None:
    space = compile_space({"a": (0.0, 1.0)})
    X = np.full((2, 1), 0.5)
    with pytest.raises(InputError, match="positive finite step, one or one for each of the 2 rows"):
        one_exchange(space, X, rng(), step=step)
    with pytest.raises(InputError, match="positive finite step"):
        gaussian_moves(space, X, rng(), step=step, count=1)


def test_bad_counts_are_refused() -> None:
    space = compile_space({"a": (0.0, 1.0)})
    with pytest.raises(InputError, match="per_column >= 1, got 0"):
        one_exchange(space, np.full((1, 1), 0.5), rng(), step=0.1, per_column=0)
    with pytest.raises(InputError, match="count >= 0, got -1"):
        gaussian_moves(space, np.full((1, 1), 0.5), rng(), step=0.1, count=-1)
