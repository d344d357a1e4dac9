"""The box of past optima: bounded columns, contents, ranges."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from typing import Any

import ConfigSpace as CS
import numpy as np
import pytest

from recollect.errors import InputError
from recollect.space.narrowing import narrow
from recollect.space.sampling import enumerate_space, uniform
from recollect.space.space import Space, compile_space
from recollect.transfer.search_box import Box, BoxRule, bounding_box, past_box, slack_bounds, slack_box

NAN, INF = math.nan, math.inf


def switched() -> Space:
    source = CS.ConfigurationSpace(
        {
            "kernel": ["linear", "polynomial", "radial"],
            "cost": CS.UniformFloatHyperparameter("cost", 2**-10, 2**10, log=True),
            "shift": (-5.0, 5.0),
            "units": CS.UniformIntegerHyperparameter("units", 16, 512, log=True),
        }
    )
    source.add(
        gamma := CS.UniformFloatHyperparameter("gamma", 1e-4, 1, log=True),
        degree := CS.UniformIntegerHyperparameter("degree", 2, 10),
    )
    source.add(CS.EqualsCondition(gamma, source["kernel"], "radial"))
    source.add(CS.EqualsCondition(degree, source["kernel"], "polynomial"))
    return compile_space(source)


RADIAL: dict[str, Any] = {"kernel": "radial", "cost": 1.0, "shift": 0.3, "units": 100, "gamma": 0.01}
LINEAR: dict[str, Any] = {"kernel": "linear", "cost": 0.1, "shift": -0.7, "units": 33}
CUBIC: dict[str, Any] = {"kernel": "polynomial", "cost": 8.0, "shift": 0.3, "units": 64, "degree": 3}
NINTH: dict[str, Any] = CUBIC | {"degree": 9, "units": 65}


def boxed(*optima: dict[str, Any]) -> tuple[Space, Box]:
    space = switched()
    return space, bounding_box(space, space.encode(list(optima)))


def test_the_box_spans_the_optima_in_every_ordered_column() -> None:
    space, box = boxed(RADIAL, LINEAR, CUBIC, NINTH)
    assert box.ranges(space) == {
        "cost": (0.1, 8.0),
        "shift": (-0.7, 0.3),
        "units": (33, 100),
        "degree": (3, 9),
        "gamma": (0.01, 0.01),
    }
    kernel = space.names.index("kernel")
    assert (box.lower[kernel], box.upper[kernel]) == (-INF, INF)
    X = space.encode([RADIAL, LINEAR, CUBIC, NINTH])
    np.testing.assert_array_equal(np.delete(box.lower, kernel), np.delete(np.nanmin(X, axis=0), kernel))
    np.testing.assert_array_equal(np.delete(box.upper, kernel), np.delete(np.nanmax(X, axis=0), kernel))


def test_a_column_that_no_optimum_uses_keeps_its_full_range() -> None:
    space, box = boxed(LINEAR, CUBIC)
    gamma = space.names.index("gamma")
    assert (box.lower[gamma], box.upper[gamma]) == (0.0, 1.0)
    assert "gamma" not in box.ranges(space)
    assert narrow(space, box.ranges(space)).columns[gamma].expected() == space.columns[gamma].expected()


def test_one_past_run_gives_a_point() -> None:
    space, box = boxed(RADIAL)
    bounded = ~space.categorical & (np.array(space.names) != "degree")
    np.testing.assert_array_equal(box.lower[bounded], box.upper[bounded])
    ranges = box.ranges(space)
    assert ranges == {name: (RADIAL[name], RADIAL[name]) for name in ("cost", "shift", "units", "gamma")}
    small = narrow(space, ranges)
    assert {name for name, varies in zip(small.names, small.varying, strict=True) if varies} == {"kernel", "degree"}
    assert box.contains(space.encode([RADIAL, LINEAR])).tolist() == [True, False]


def test_the_narrowed_space_holds_every_optimum_and_nothing_outside() -> None:
    space, box = boxed(RADIAL, LINEAR, CUBIC, NINTH)
    small = narrow(space, box.ranges(space))
    small.encode([RADIAL, LINEAR, CUBIC, NINTH])
    drawn = small.decode(uniform(small, 300, np.random.default_rng(0)))
    assert box.contains(space.encode(drawn)).all()
    assert not box.contains(uniform(space, 300, np.random.default_rng(0))).all()


def test_membership_is_decided_by_every_cell_that_is_active() -> None:
    space, box = boxed(LINEAR, CUBIC, NINTH)
    rows = {
        "as an optimum": (LINEAR, True),
        "between": (CUBIC | {"units": 50, "degree": 7, "cost": 0.5}, True),
        "another kernel, gamma never bounded": (RADIAL | {"gamma": 1.0, "units": 40}, True),
        "one cell too low": (LINEAR | {"units": 32}, False),
        "one cell too high": (NINTH | {"degree": 10}, False),
        "float too low": (LINEAR | {"cost": 0.0999999}, False),
        "float too high": (LINEAR | {"shift": 0.300001}, False),
    }
    X = space.encode([config for config, _ in rows.values()])
    assert dict(zip(rows, box.contains(X).tolist(), strict=True)) == {
        name: inside for name, (_, inside) in rows.items()
    }


def test_rounding_does_not_push_an_optimum_out_of_its_box() -> None:
    box = Box(np.array([0.2, 0.5]), np.array([0.4, 0.5]))
    assert box.contains([[0.2 - 9e-10, 0.5 + 9e-10], [0.4 + 9e-10, NAN], [NAN, NAN]]).all()
    assert not box.contains([[0.2 - 2e-9, 0.5], [0.4 + 2e-9, 0.5], [0.3, 0.5 + 2e-9], [NAN, 0.5 - 2e-9]]).any()


def test_grid_points_inside_are_those_between_the_optima() -> None:
    space = compile_space({"a": (0, 6), "b": (1, 100, "log"), "c": ["x", "y"]})
    optima = [{"a": 2, "b": 4, "c": "x"}, {"a": 5, "b": 31, "c": "x"}, {"a": 3, "b": 7, "c": "x"}]
    grid = enumerate_space(space, 10_000)
    assert grid is not None
    inside = bounding_box(space, space.encode(optima)).contains(grid)
    for config, kept in zip(space.decode(grid), inside, strict=True):
        assert kept == (2 <= config["a"] <= 5 and 4 <= config["b"] <= 31)


@pytest.mark.parametrize("make", [bounding_box, slack_box])
def test_optima_outside_the_range_count_as_at_its_end(make: Any) -> None:
    space = compile_space({"a": (0, 6), "b": (0.0, 1.0), "c": (1, 100, "log")})
    box = make(space, np.array([[1.05, -0.2, 1.3], [1.2, 0.25, 1.01]]))
    assert box.ranges(space) == {"a": (6, 6), "b": (0.0, 0.25), "c": (100, 100)}
    assert box.contains(space.encode([{"a": 6, "b": 0.1, "c": 100}, {"a": 5, "b": 0.1, "c": 100}])).tolist() == [1, 0]


def test_ranges_that_reach_from_end_to_end_are_not_cut() -> None:
    space = compile_space({"a": (0, 6), "b": (0.0, 1.0), "c": CS.OrdinalHyperparameter("c", ["s", "m", "l"])})
    X = space.encode([{"a": 0, "b": 0.0, "c": "s"}, {"a": 6, "b": 1.0, "c": "m"}])
    assert bounding_box(space, X).ranges(space) == {"c": ("s", "m")}


def test_boxes_are_read_only() -> None:
    _, box = boxed(RADIAL)
    with pytest.raises(ValueError, match="read-only"):
        box.lower[0] = 0.0
    with pytest.raises(FrozenInstanceError):
        box.upper = box.lower  # type: ignore[misc]


def crowd(space: Space, count: int) -> np.ndarray:
    """Most optima close together, and every eighth in a corner of the space."""
    rng = np.random.default_rng(0)
    X = np.clip(0.5 + 0.05 * rng.standard_normal((count, len(space.names))), 0, 1)
    X[::8] = rng.integers(0, 2, X[::8].shape)
    return space.canonical(np.where(space.categorical, 2.0, X))


def test_the_rule_chooses_the_box() -> None:
    space = switched()
    X = crowd(space, 48)
    whole, tight = past_box(space, X, BoxRule()), past_box(space, X, BoxRule(slack=True))
    np.testing.assert_array_equal(whole.upper, bounding_box(space, X).upper)
    np.testing.assert_array_equal(tight.upper, slack_box(space, X).upper)
    assert (tight.lower >= whole.lower).all()
    assert (tight.upper <= whole.upper).all()
    assert whole.contains(X).all()


def test_the_slack_box_leaves_outliers_outside() -> None:
    space = compile_space(dict.fromkeys("abcdefgh", (0.0, 1.0)) | {"n": (0, 1000)})
    X = crowd(space, 48)
    box = slack_box(space, X)
    inside = box.contains(X)
    assert not inside[::8].any()
    assert np.delete(inside, np.s_[::8]).mean() > 0.8


def test_a_slack_box_through_a_cell_takes_the_whole_cell() -> None:
    space = compile_space(dict.fromkeys("abcd", (0, 7)))
    X = space.encode([dict.fromkeys("abcd", 7)] + [dict.fromkeys("abcd", 3)] * 59)
    # One outlier holds the edge at 3 + 8 / (2 k d lambda) = 4.67: 5 is in, 6 is out.
    box = slack_box(space, X)
    assert box.ranges(space) == dict.fromkeys("abcd", (3, 5))
    inside = box.contains(space.encode([dict.fromkeys("abcd", n) for n in range(8)]))
    assert np.flatnonzero(inside).tolist() == [3, 4, 5]


def test_slack_columns_without_order_or_use_are_left_out() -> None:
    space = switched()
    X = crowd(space, 48)  # all radial: no degree
    box = slack_box(space, X)
    kernel, degree = space.names.index("kernel"), space.names.index("degree")
    assert (box.lower[kernel], box.upper[kernel]) == (-INF, INF)
    assert (box.lower[degree], box.upper[degree]) == (0.0, 1.0)
    rest = ~space.categorical & (np.array(space.names) != "degree")
    lower, upper = slack_bounds(X[:, rest], 0.01)
    np.testing.assert_allclose(box.lower[rest], lower, atol=2e-3)  # integers move to the centre of their cell
    np.testing.assert_allclose(box.upper[rest], upper, atol=2e-3)


def test_the_first_lambda_that_leaves_few_enough_outside_is_taken() -> None:
    space = compile_space(dict.fromkeys("abcdefgh", (0.0, 1.0)))
    X = np.random.default_rng(1).random((60, 8))
    outside = []
    for strength in np.arange(1, 11) / 100:
        lower, upper = slack_bounds(X, float(strength))
        outside.append(int((~Box(lower, upper).contains(X)).sum()))
    assert outside[0] < 25 < outside[-1]
    first, last = slack_bounds(X, 0.01), slack_bounds(X, 0.1)
    np.testing.assert_array_equal(slack_box(space, X).lower, first[0])
    np.testing.assert_array_equal(slack_box(space, X, allowed=outside[0]).upper, first[1])
    # None leaves fewer outside than the first, as the box shrinks with lambda: the last it is.
    assert min(outside) == outside[0]
    np.testing.assert_array_equal(slack_box(space, X, allowed=outside[0] - 1).upper, last[1])


def test_a_space_without_order_has_a_box_without_bounds() -> None:
    space = compile_space({"a": ["x", "y"], "b": 3})
    for rule in (BoxRule(), BoxRule(slack=True)):
        box = past_box(space, space.encode([{"a": "x"}]), rule)
        assert box.ranges(space) == {}
        assert box.contains(space.encode([{"a": "x"}, {"a": "y"}])).all()


@pytest.mark.parametrize("rule", [BoxRule(), BoxRule(slack=True)])
@pytest.mark.parametrize(
    ("optima", "message"),
    [
        (np.empty((0, 6)), "at least one past run, got none"),
        (np.zeros((2, 5)), r"past optima must have shape \(any, 6\), got \(2, 5\)"),
        (np.zeros(6), r"must have shape \(any, 6\), got \(6,\)"),
        (np.full((1, 6), INF), "must be finite"),
    ],
)
def test_optima_that_make_no_box_are_refused(rule: BoxRule, optima: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        past_box(switched(), optima, rule)


def test_points_and_spaces_of_another_size_are_refused() -> None:
    _, box = boxed(RADIAL)
    with pytest.raises(InputError, match=r"points must have shape \(any, 6\), got \(1, 2\)"):
        box.contains(np.zeros((1, 2)))
    with pytest.raises(InputError, match="expected a space of 6 hyperparameters, got 1"):
        box.ranges(compile_space({"a": (0, 1)}))
