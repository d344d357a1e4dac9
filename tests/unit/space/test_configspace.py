"""Spaces written as dicts, and spaces that are refused."""

from __future__ import annotations

import math
from typing import Any

import ConfigSpace as CS
import numpy as np
import pytest

from recollect.errors import InputTypeError, SpaceError
from recollect.space.space import compile_space


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ((0.0, 1.0), CS.UniformFloatHyperparameter("h", 0.0, 1.0)),
        ((1, 2.5), CS.UniformFloatHyperparameter("h", 1.0, 2.5)),
        ((0.1, 1.0, "log"), CS.UniformFloatHyperparameter("h", 0.1, 1.0, log=True)),
        ((1, 9), CS.UniformIntegerHyperparameter("h", 1, 9)),
        ((np.int64(1), 9, "log"), CS.UniformIntegerHyperparameter("h", 1, 9, log=True)),
        ((np.float64(1), 9), CS.UniformFloatHyperparameter("h", 1.0, 9.0)),
        ((np.float32(0.5), 9.0), CS.UniformFloatHyperparameter("h", 0.5, 9.0)),
        (["a", None, 2, 2.5, False], CS.CategoricalHyperparameter("h", ["a", None, 2, 2.5, False])),
        ([(1, 2), (3,)], CS.CategoricalHyperparameter("h", [(1, 2), (3,)])),
        ("adam", CS.Constant("h", "adam")),
        (3, CS.Constant("h", 3)),
        (0.5, CS.Constant("h", 0.5)),
        (True, CS.Constant("h", True)),
        (None, CS.Constant("h", None)),
        ((2.0, 2.0), CS.Constant("h", 2.0)),
        (CS.OrdinalHyperparameter("h", ["s", "l"]), CS.OrdinalHyperparameter("h", ["s", "l"])),
    ],
)
def test_dict_forms_make_the_hyperparameters_they_name(spec: Any, expected: Any) -> None:
    made = compile_space({"h": spec}).source["h"]
    assert made == expected
    assert type(made) is type(expected)


def test_tuple_choices_round_trip() -> None:
    space = compile_space({"h": [(1, 2), (3,)]})
    assert space.decode(space.encode([{"h": (3,)}])) == [{"h": (3,)}]


@pytest.mark.parametrize(
    ("mapping", "reason"),
    [
        ({}, "empty"),
        ({3: (0, 1)}, r"name of a hyperparameter .* got 3 \(int\)"),
        ({"": (0, 1)}, "name of a hyperparameter"),
        ({"\ud800": (0, 1)}, "name of a hyperparameter"),
        ({"h": (2.0, 1.0)}, r"'h': expected the lower bound before the upper, got 2.0 and 1.0"),
        ({"h": (0.0, 1.0, "log")}, "'h': a log scale needs a lower bound above 0, got 0.0"),
        ({"h": (-1, 5, "log")}, "'h': a log scale needs a lower bound above 0, got -1"),
        ({"h": (math.nan, 1.0)}, "'h': expected finite numbers"),
        ({"h": (0.0, math.inf)}, "'h': expected finite numbers"),
        ({"h": (True, False)}, "'h': expected finite numbers"),
        ({"h": ("a", "b")}, "'h': expected finite numbers.* choices go in a list"),
        ({"h": (1, 2, 3)}, "'h': a range is"),
        ({"h": (1, 2, "linear")}, "'h': a range is"),
        ({"h": (1,)}, "'h': a range is"),
        ({"h": []}, "'h': expected at least one choice"),
        ({"h": ["a", "b", "a"]}, "'h': choices must differ .* 'a' occurs twice"),
        ({"h": [1, True]}, "'h': choices must differ .* True occurs twice"),
        ({"h": [[1], [2]]}, "'h': choices must be hashable"),
        ({"h": [math.nan, 1.0]}, "'h': nan cannot be a choice"),
        ({"h": {"a": 1}}, r"'h': expected .* got \{'a': 1\}"),
        ({"h": {1, 2}}, r"'h': expected \(lo, hi\)"),
        ({"h": math.nan}, "'h': a constant must be finite"),
        ({"h": (1e-15, 1.0, "log")}, "'h': ConfigSpace keeps 13 decimals .* 1e-15 would become 0.0"),
        ({"h": (-1e-15, 1.0)}, "'h': ConfigSpace keeps 13 decimals"),
        ({"h": (1.0, 1.0 + 1e-14)}, "'h': the bounds .* agree in the 13 decimals"),
        ({"h": (0.0, 1e300)}, "'h': bounds must lie within"),
        ({"h": (0.0, 10**400)}, "'h': bounds must lie within"),
        ({"h": (-(10**400), 0.5)}, "'h': bounds must lie within"),
        ({"h": (np.float64(0.5), 10**400)}, "'h': bounds must lie within"),
        ({"h": (0, 2**51)}, "'h': integers must lie within .* use a float"),
        ({"h": (0, 2**63)}, "'h': integers must lie within .* use a float"),
        ({"h": (0, 10**400)}, "'h': integers must lie within .* use a float"),
        ({"h": (-(10**400), 0)}, "'h': integers must lie within .* use a float"),
        ({"h": (1, 10**400, "log")}, "'h': integers on a log scale must lie within"),
        ({"h": (1, 2**41, "log")}, "'h': integers on a log scale must lie within"),
        ({"h": CS.Constant("g", 1)}, "under 'h' has the name 'g'"),
        ({"h": CS.NormalFloatHyperparameter("h", 0, 1, -3, 3)}, "'h' is a NormalFloatHyperparameter.* use Uniform"),
        ({"h": CS.BetaIntegerHyperparameter("h", 2, 2, 0, 9)}, "'h' is a BetaIntegerHyperparameter.* use Uniform"),
        ({"h": CS.Constant("h", [1])}, "'h': choices must be hashable"),
    ],
)
def test_bad_dicts_are_refused_with_the_reason(mapping: Any, reason: str) -> None:
    with pytest.raises(SpaceError, match=reason):
        compile_space(mapping)


def test_nan_among_the_choices_of_a_hyperparameter_is_refused() -> None:
    with pytest.raises(SpaceError, match="'h': nan cannot be a choice"):
        compile_space(CS.ConfigurationSpace({"h": CS.CategoricalHyperparameter("h", [1.0, math.nan])}))


def test_an_empty_configuration_space_is_refused() -> None:
    with pytest.raises(SpaceError, match="empty"):
        compile_space(CS.ConfigurationSpace())


@pytest.mark.parametrize("space", [None, 3, [("a", (0, 1))], [], [{"a": (0, 1)}, 3]])
def test_other_types_are_refused(space: Any) -> None:
    with pytest.raises(InputTypeError, match=r"expected a dict, a list of dicts, .*, a ConfigurationSpace or a Space"):
        compile_space(space)
