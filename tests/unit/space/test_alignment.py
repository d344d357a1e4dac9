"""Past configurations carried into a new space, rule by rule."""

from __future__ import annotations

import math
import time
from fractions import Fraction
from typing import Any

import ConfigSpace as CS
import numpy as np
import pytest

from recollect.errors import InputTypeError
from recollect.space.alignment import Alignment, align, align_all
from recollect.space.config_columns import ConfigColumns
from recollect.space.space import Space, compile_space

FLOAT = compile_space({"x": (0.0, 10.0)})
LOG = compile_space({"x": (1e-2, 1e2, "log")})
INTEGER = compile_space({"x": (1, 10)})
LOG_INTEGER = compile_space({"x": (4, 64, "log")})
CHOICE = compile_space({"x": ["rbf", "poly"]})
ORDINAL = compile_space({"x": CS.OrdinalHyperparameter("x", ["s", "m", "l"])})
CONSTANT = compile_space({"x": 3, "y": (0.0, 1.0)})

NUMBER = "'x' is not a finite number"
WHOLE = "'x' is not an integer"
POSITIVE = "'x' is not positive, as its log scale requires"


def network() -> Space:
    """kernel -> degree (poly only) -> shift (degree above 3 only); cost always."""
    source = CS.ConfigurationSpace()
    kernel = CS.CategoricalHyperparameter("kernel", ["rbf", "poly"], default_value="poly")
    degree = CS.UniformIntegerHyperparameter("degree", 2, 5, default_value=4)
    shift = CS.UniformFloatHyperparameter("shift", 0.0, 2.0, default_value=0.5)
    source.add(kernel, degree, shift, CS.UniformFloatHyperparameter("cost", 0.0, 1.0))
    source.add(CS.EqualsCondition(degree, kernel, "poly"), CS.GreaterThanCondition(shift, degree, 3))
    return compile_space(source)


NETWORK = network()


def only(result: Alignment, **expected: dict[str, int]) -> None:
    """Check all four counts; what is not named must be empty."""
    for kind in ("filled", "ignored", "outside", "dropped"):
        assert getattr(result, kind) == expected.get(kind, {}), kind
    assert result.identical == (not expected)


def cells(result: Alignment, space: Space) -> list[dict[str, float]]:
    """The active cells of every row by name."""
    return [{name: u for name, u in zip(space.names, row, strict=True) if not math.isnan(u)} for row in result.X]


def test_valid_configurations_are_encoded_as_ever() -> None:
    configs = [
        {"kernel": "rbf", "cost": 0.3},
        {"kernel": "poly", "degree": 2, "cost": 1},
        {"kernel": "poly", "degree": 5, "shift": 0.1, "cost": 0.0},
        {"kernel": "rbf", "degree": None, "shift": None, "cost": 0.7},
    ]
    result = align(NETWORK, configs)
    np.testing.assert_array_equal(result.X, NETWORK.encode(configs))
    assert result.kept.tolist() == [0, 1, 2, 3]
    assert result.kept.dtype == np.intp
    assert str(result) == ""
    only(result)


def test_no_configurations_give_no_rows() -> None:
    result = align(NETWORK, [])
    assert result.X.shape == (0, 4)
    assert result.kept.shape == (0,)
    assert result.kept.dtype == np.intp
    assert str(result) == ""
    only(result)


@pytest.mark.parametrize(
    ("space", "value", "code"),
    [
        (FLOAT, 2.5, 0.25),
        (FLOAT, -5.0, -0.5),
        (FLOAT, 15, 1.5),
        (FLOAT, -9.8, -0.98),
        (FLOAT, 19.8, 1.98),
        (LOG, 1.0, 0.5),
        (LOG, 1e-4, -0.5),
        (LOG, 1e5, 1.75),
        (INTEGER, 10, (10 - 0.50001) / 9.99998),
        (INTEGER, 0, (0 - 0.50001) / 9.99998),
        (INTEGER, -9, (-9 - 0.50001) / 9.99998),
        (INTEGER, 20, (20 - 0.50001) / 9.99998),
        (LOG_INTEGER, 1, math.log(1 / 3.50001) / math.log(64.49999 / 3.50001)),
        (LOG_INTEGER, 500, math.log(500 / 3.50001) / math.log(64.49999 / 3.50001)),
    ],
)
def test_numbers_are_mapped_by_value_even_outside_the_range(space: Space, value: float, code: float) -> None:
    result = align(space, [{"x": value}])
    assert result.X[0, 0] == pytest.approx(code, rel=1e-12)
    only(result, **({} if 0 <= code <= 1 else {"outside": {"x": 1}}))


@pytest.mark.parametrize(("space", "inside"), [(FLOAT, 7.0), (LOG, 7.0), (INTEGER, 7), (LOG_INTEGER, 7)])
@pytest.mark.parametrize("kind", [float, int, np.float64, np.float32, np.int64, np.uint8, Fraction])
def test_every_kind_of_number_is_read_by_value(space: Space, inside: float, kind: Any) -> None:
    result = align(space, [{"x": kind(7)}])
    np.testing.assert_array_equal(result.X, space.encode([{"x": inside}]))
    only(result)


@pytest.mark.parametrize(("space", "value"), [(FLOAT, 10.0 + 2e-14), (LOG, 100.0 + 2e-14), (LOG, 0.01 - 2e-15)])
def test_a_bound_missed_by_rounding_is_the_bound(space: Space, value: float) -> None:
    result = align(space, [{"x": value}])
    np.testing.assert_array_equal(result.X, space.encode([{"x": value}]))
    only(result)


@pytest.mark.parametrize(
    ("space", "value", "reason"),
    [
        *[
            (space, value, NUMBER)
            for space in (FLOAT, LOG, INTEGER, LOG_INTEGER)
            for value in ("7", "", True, np.True_, math.nan, math.inf, -math.inf, np.float32("nan"), [7], 7j, 10**400)
        ],
        *[(space, value, WHOLE) for space in (INTEGER, LOG_INTEGER) for value in (2.5, -2.5, 1e-9, 4 + 1e-9, 70.5)],
        *[(space, value, POSITIVE) for space in (LOG, LOG_INTEGER) for value in (0, -1, 0.0, -0.0, -1e30)],
        (LOG, -2.5, POSITIVE),
        (CHOICE, "sigmoid", "'x' is not one of ['rbf', 'poly']"),
        (CHOICE, 0, "'x' is not one of ['rbf', 'poly']"),
        (CHOICE, ["rbf"], "'x' is not one of ['rbf', 'poly']"),
        (ORDINAL, "xl", "'x' is not one of ['s', 'm', 'l']"),
        (ORDINAL, 1, "'x' is not one of ['s', 'm', 'l']"),
        *[(FLOAT, value, "'x' is too far outside the range [0.0, 10.0]") for value in (-9.9, 19.91, 1e308, -1e308)],
        *[(LOG, value, "'x' is too far outside the range [0.01, 100.0]") for value in (1e-6, 1e6, 5e-324, 1.7e308)],
        (
            compile_space({"x": (1e10, 1e12, "log")}),
            5e-324,
            "'x' is too far outside the range [10000000000.0, 1000000000000.0]",
        ),
        *[(INTEGER, value, "'x' is too far outside the range [1, 10]") for value in (-10, 21, 10**300, -(10**300))],
        *[(LOG_INTEGER, value, "'x' is too far outside the range [4, 64]") for value in (1200, 10**300, 1.7e308)],
    ],
)
def test_a_configuration_is_dropped_with_the_reason(space: Space, value: Any, reason: str) -> None:
    result = align(space, [{"x": value}])
    assert result.X.shape == (0, 1)
    assert result.kept.tolist() == []
    only(result, dropped={reason: 1})


@pytest.mark.parametrize("space", [FLOAT, LOG, INTEGER, LOG_INTEGER])
def test_no_kept_code_comes_near_the_marker_of_inactive_cells(space: Space) -> None:
    values = [*range(-40, 40), *np.geomspace(1e-9, 1e9, 200)]
    codes = align(space, [{"x": value} for value in values]).X
    assert len(codes) > 5
    assert codes.min() > -0.99
    assert codes.max() < 1.99


@pytest.mark.parametrize(
    ("hyperparameter", "code"),
    [
        (CS.UniformFloatHyperparameter("x", 0.0, 10.0, default_value=2.0), 0.2),
        (CS.UniformIntegerHyperparameter("x", 1, 10, default_value=8), (8 - 0.50001) / 9.99998),
        (CS.CategoricalHyperparameter("x", ["u", "v", "w"], default_value="w"), 2.0),
        (CS.OrdinalHyperparameter("x", ["s", "m", "l"], default_value="m"), 0.5),
    ],
)
@pytest.mark.parametrize("config", [{}, {"x": None}])
def test_what_is_lacking_gets_the_default(hyperparameter: Any, code: float, config: dict[str, Any]) -> None:
    result = align(compile_space({"x": hyperparameter}), [config])
    assert result.X[0, 0] == pytest.approx(code, rel=1e-12)
    only(result, filled={"x": 1})


def test_none_is_a_value_where_it_is_a_choice() -> None:
    space = compile_space({"x": ["a", None], "y": None})
    result = align(space, [{"x": None}, {"x": None, "y": None}, {"y": None}])
    assert [row["x"] for row in cells(result, space)] == [1.0, 1.0, 0.0]
    only(result, filled={"x": 1})


def test_an_ordinal_is_never_outside() -> None:
    result = align(ORDINAL, [{"x": "s"}, {"x": "l"}, {"x": "huge"}])
    np.testing.assert_array_equal(result.X, ORDINAL.encode([{"x": "s"}, {"x": "l"}]))
    only(result, dropped={"'x' is not one of ['s', 'm', 'l']": 1})


def test_the_twelfth_choice_is_not_too_far_outside() -> None:
    space = compile_space({"x": [f"choice {number}" for number in range(12)]})
    result = align(space, [{"x": "choice 11"}])
    assert result.X.tolist() == [[11.0]]
    only(result)


def test_choices_are_matched_by_value_not_by_position() -> None:
    result = align(CHOICE, [{"x": "poly"}, {"x": np.str_("rbf")}])
    assert result.X.tolist() == [[1.0], [0.0]]
    only(result)


def test_unknown_hyperparameters_are_ignored() -> None:
    result = align(FLOAT, [{"x": 1.0, "seed": 1}, {"x": 2.0, "seed": None, "fold": [3]}, {"x": 3.0}])
    np.testing.assert_allclose(result.X, [[0.1], [0.2], [0.3]], rtol=1e-12)
    only(result, ignored={"seed": 2, "fold": 1})


def test_another_constant_in_the_past_is_ignored_and_the_new_one_is_used() -> None:
    configs = [{"x": value, "y": 0.5} for value in (3, 3.0, 4, "three", math.nan, None)] + [{"y": 0.5}]
    result = align(CONSTANT, configs)
    assert result.X.tolist() == [[0.0, 0.5]] * 7
    only(result, ignored={"x": 3})


def test_other_choices_are_dropped_even_when_a_single_one_is_left() -> None:
    result = align(compile_space({"x": ["rbf"]}), [{"x": "poly"}, {"x": "rbf"}, {}])
    assert result.X.tolist() == [[0.0]] * 2
    assert result.kept.tolist() == [1, 2]
    only(result, filled={"x": 1}, dropped={"'x' is not one of ['rbf']": 1})


def test_a_child_is_filled_where_its_parent_switches_it_on() -> None:
    result = align(NETWORK, [{"kernel": "poly", "cost": 0.5}, {"kernel": "rbf", "cost": 0.5}])
    degree = (4 - 1.50001) / 3.99998
    assert cells(result, NETWORK) == [
        {"kernel": 1.0, "cost": 0.5, "degree": pytest.approx(degree), "shift": 0.25},
        {"kernel": 0.0, "cost": 0.5},
    ]
    only(result, filled={"degree": 1, "shift": 1})


def test_a_filled_parent_switches_its_children_on() -> None:
    result = align(NETWORK, [{"degree": 2, "shift": 1.0, "cost": 0.5}, {"degree": 5, "shift": 1.0, "cost": 0.5}])
    assert [set(row) for row in cells(result, NETWORK)] == [{"kernel", "cost", "degree"}, set(NETWORK.names)]
    only(result, filled={"kernel": 2}, ignored={"shift": 1})


def test_a_child_is_ignored_where_its_parent_switches_it_off() -> None:
    configs = [
        {"kernel": "rbf", "degree": 3, "cost": 0.5},
        {"kernel": "rbf", "degree": "no degree", "shift": -100.0, "cost": 0.5},
        {"kernel": "poly", "degree": 3, "shift": 1.0, "cost": 0.5},
    ]
    result = align(NETWORK, configs)
    assert [set(row) for row in cells(result, NETWORK)] == [{"kernel", "cost"}] * 2 + [{"kernel", "cost", "degree"}]
    only(result, ignored={"degree": 2, "shift": 2})


def test_a_parent_outside_its_range_still_decides_about_its_children() -> None:
    result = align(NETWORK, [{"kernel": "poly", "degree": degree, "shift": 1.0, "cost": 0.5} for degree in (0, 7)])
    assert ["shift" in row for row in cells(result, NETWORK)] == [False, True]
    only(result, outside={"degree": 2}, ignored={"shift": 1})


def test_an_inactive_constant_is_ignored_and_an_inactive_none_is_nothing() -> None:
    source = CS.ConfigurationSpace()
    switch = CS.CategoricalHyperparameter("switch", ["on", "off"])
    constant, choice = CS.Constant("constant", 3), CS.CategoricalHyperparameter("choice", ["a", None])
    source.add(switch, constant, choice)
    source.add(*(CS.EqualsCondition(child, switch, "on") for child in (constant, choice)))
    space = compile_space(source)
    result = align(space, [{"switch": "off", "constant": 3, "choice": None}, {"switch": "off", "constant": None}])
    assert cells(result, space) == [{"switch": 1.0}] * 2
    only(result, ignored={"constant": 1})


@pytest.mark.parametrize("value", [1.7976931348623157e308, 10**300, 1200, -3, "many"])
def test_a_parent_that_is_dropped_switches_nothing(value: Any) -> None:
    source = CS.ConfigurationSpace({"child": (0.0, 1.0), "layers": (2, 10)})
    parent = CS.UniformIntegerHyperparameter("parent", 4, 64, log=True)
    source.add(parent)
    source.add(CS.GreaterThanCondition(source["child"], parent, 8))
    result = align(compile_space(source), [{"parent": value, "layers": 3}, {"parent": 5, "layers": 3}])
    assert result.kept.tolist() == [1]
    assert sum(result.dropped.values()) == 1
    assert not result.filled


@pytest.mark.parametrize("space", [FLOAT, LOG, INTEGER, LOG_INTEGER, CHOICE, ORDINAL])
def test_what_is_no_finite_number_has_no_code_anywhere(space: Space) -> None:
    assert np.isnan(space.columns[0].codes_anywhere([math.inf, -math.inf, math.nan, "7", True, None])).all()


def test_forbidden_configurations_are_kept() -> None:
    source = CS.ConfigurationSpace({"a": (0, 5), "b": (0, 5)})
    source.add(CS.ForbiddenEqualsClause(source["a"], 5))
    space = compile_space(source)
    result = align(space, [{"a": 5, "b": 1}])
    assert not space.legal(result.X).any()
    only(result)


def test_a_wholly_different_space_leaves_only_defaults() -> None:
    result = align(NETWORK, [{"trees": 10}, {"trees": 20}])
    np.testing.assert_array_equal(result.X, [NETWORK.default] * 2)
    only(result, filled=dict.fromkeys(NETWORK.names, 2), ignored={"trees": 2})


def test_a_dropped_configuration_counts_once_and_nowhere_else() -> None:
    space = compile_space({"a": (0.0, 1.0), "b": ["u", "v"], "c": (0, 9)})
    configs = [
        {"a": "bad", "b": "bad", "seed": 1},
        {"a": 1.5, "b": "bad", "c": 3},
        {"a": 0.5, "b": "u", "c": 12},
        {"a": 9.0, "b": "u", "c": 12},
        {"a": 0.5, "b": "v", "c": 2.5},
    ]
    result = align(space, configs)
    assert result.kept.tolist() == [2]
    np.testing.assert_allclose(result.X, [[0.5, 0.0, 12.49999 / 9.99998]], rtol=1e-12)
    only(
        result,
        outside={"c": 1},
        dropped={
            "'a' is not a finite number": 1,
            "'a' is too far outside the range [0.0, 1.0]": 1,
            "'b' is not one of ['u', 'v']": 1,
            "'c' is not an integer": 1,
        },
    )


def test_groups_read_together_are_those_groups_read_alone() -> None:
    groups: list[list[dict[str, Any]]] = [
        [
            {"kernel": "rbf", "cost": 0.3},
            {"kernel": "poly", "degree": 2, "cost": 1.5},
            {"kernel": "sigmoid", "cost": 0.1},
        ],
        [],
        [{"kernel": "poly", "degree": 5, "cost": 0.2, "shift": 1.0}],
        [{"kernel": "linear"}],
        [{"kernel": "poly", "cost": 0.2}, {"kernel": "rbf", "degree": 3, "cost": "x", "momentum": 1}, {"cost": 7.0}],
        [{"kernel": "rbf", "cost": 0.4, "momentum": 0.9}],
    ]
    together = align_all(NETWORK, [ConfigColumns.of(group) for group in groups])
    assert [len(result.kept) for result in together] == [2, 0, 1, 0, 1, 1]
    for result, configs in zip(together, groups, strict=True):
        alone = align(NETWORK, configs)
        np.testing.assert_array_equal(result.X, alone.X)
        np.testing.assert_array_equal(result.kept, alone.kept)
        counts = {kind: getattr(alone, kind) for kind in ("filled", "ignored", "outside", "dropped")}
        only(result, **{kind: found for kind, found in counts.items() if found})
    assert align_all(NETWORK, []) == []


def test_the_given_configurations_are_left_as_they_are() -> None:
    configs = [{"x": 1.0, "seed": 3}, {}]
    align(FLOAT, configs)
    assert configs == [{"x": 1.0, "seed": 3}, {}]


def test_configurations_of_configspace_are_read() -> None:
    old = CS.ConfigurationSpace({"x": (0.0, 100.0), "z": ["p", "q"]}, seed=1)
    past = old.sample_configuration(50)
    result = align(FLOAT, past)
    near = [float(config["x"]) for config in past if config["x"] < 19.9]
    np.testing.assert_allclose(result.X[:, 0], np.array(near) / 10, rtol=1e-12)
    assert 0 < len(near) < 50


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"x": 1.0}, "expected a sequence of configurations, got dict; put one in a list"),
        ("x", "expected a sequence of configurations, got str"),
        (iter([]), "expected a sequence of configurations"),
        ([{"x": 1.0}, 3], "configuration 1: expected a mapping, got 3"),
    ],
)
def test_what_is_no_list_of_configurations_is_refused(configs: Any, message: str) -> None:
    with pytest.raises(InputTypeError, match=message):
        align(FLOAT, configs)


def test_the_message_tells_everything_in_two_sentences() -> None:
    space = compile_space({"cost": (0.0, 1.0), "kernel": ["rbf", "poly"], "momentum": (0.0, 1.0)})
    configs: list[dict[str, Any]] = [
        {"cost": 1.5, "kernel": "rbf", "seed": 1},
        {"cost": 0.5, "kernel": "poly", "seed": 2, "fold": 1},
        {"cost": 0.5, "kernel": "sigmoid"},
        {"cost": "much", "kernel": "rbf"},
        {"cost": 0.1, "kernel": "linear"},
    ]
    text = str(align(space, configs))
    assert "Dropped 3 of 5 configurations" in text
    assert "In the 2 configurations kept" in text
    for part in ("'cost' is not a finite number (1)", "'kernel' is not one of ['rbf', 'poly'] (2)", "'momentum' (2)",
                 "'seed' (2) and 'fold' (1)", "range for 'cost' (1)"):  # fmt: skip
        assert part in text


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "In the 1 configuration kept, the default was filled in for 'x' (1)."),
        ({"x": 12.0}, "In the 1 configuration kept, values lie outside the range for 'x' (1)."),
        ({"x": "a", "y": 1}, "Dropped 1 of 1 configuration: 'x' is not a finite number (1)."),
        (
            {"x": 1.0} | dict.fromkeys("abcdefgh", 1),
            "In the 1 configuration kept, values were ignored for "
            "'a' (1), 'b' (1), 'c' (1), 'd' (1), 'e' (1), 'f' (1) and 2 more.",
        ),
    ],
)
def test_the_message_tells_only_what_happened(config: dict[str, Any], message: str) -> None:
    assert str(align(FLOAT, [config])) == message


def test_ten_thousand_configurations_take_a_fraction_of_a_second() -> None:
    mixed: dict[str, Any] = {f"f{i}": (0.0, 1.0) for i in range(4)}
    mixed |= {f"i{i}": (1, 50) for i in range(3)} | {f"c{i}": ["u", "v", "w"] for i in range(3)}
    space, rng = compile_space(mixed), np.random.default_rng(0)
    numbers, choices = rng.random((10_000, 10)) * 1.5, rng.integers(4, size=(10_000, 10))
    configs = [
        {f"f{i}": float(u[i]) for i in range(4)}
        | {f"i{i}": int(60 * u[4 + i]) for i in range(3)}
        | {f"c{i}": "uvwx"[c[i]] for i in range(3)}
        for u, c in zip(numbers, choices, strict=True)
    ]
    durations = []
    for _ in range(3):
        start = time.process_time()
        result = align(space, configs)
        durations.append(time.process_time() - start)
    assert 1000 < len(result.kept) < 9000
    assert min(durations) < 0.3
