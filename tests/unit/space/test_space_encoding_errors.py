"""Configurations and points that do not belong to the space, and what the error says."""

from __future__ import annotations

import math
import pickle
from typing import Any

import ConfigSpace as CS
import numpy as np
import pytest

from recollect.errors import ConfigError, InputError, InputTypeError
from recollect.space.space import Space, compile_space


def mixed() -> Space:
    return compile_space(
        {
            "rate": (0.0, 2.0),
            "log_rate": (1e-4, 1e-1, "log"),
            "depth": (1, 15),
            "units": (16, 1024, "log"),
            "kind": ["b", "a", 3, None],
            "fixed": "adam",
            "level": CS.OrdinalHyperparameter("level", ["low", "mid", "high"]),
        }
    )


GOOD: dict[str, Any] = {
    **{"rate": 0.5, "log_rate": 0.01, "depth": 3, "units": 100},
    **{"kind": 3, "fixed": "adam", "level": "high"},
}


def switched() -> Space:
    source = CS.ConfigurationSpace({"kernel": ["linear", "polynomial", "radial"], "cost": (0.0, 1.0)})
    source.add(
        gamma := CS.UniformFloatHyperparameter("gamma", 0, 1), degree := CS.UniformIntegerHyperparameter("degree", 2, 5)
    )
    source.add(CS.EqualsCondition(gamma, source["kernel"], "radial"))
    source.add(CS.EqualsCondition(degree, source["kernel"], "polynomial"))
    return compile_space(source)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("rate", 2.5, r"'rate': expected a number in \[0.0, 2.0\], got 2.5 \(float\)"),
        ("rate", -1e-9, "'rate': expected a number"),
        ("rate", "0.5", r"got '0.5' \(str\)"),
        ("rate", True, r"got True \(bool\)"),
        ("rate", np.True_, "got "),
        ("rate", math.nan, "got nan"),
        ("rate", math.inf, "got inf"),
        ("rate", 10**400, "got 1000"),
        ("rate", None, "got None"),
        ("rate", 1j, "got 1j"),
        ("rate", [0.5], r"got \[0.5\] \(list\)"),
        ("log_rate", 0.0, "'log_rate': expected a number"),
        ("depth", 2.5, r"'depth': expected an integer in \[1, 15\], got 2.5 \(float\)"),
        ("depth", 0, "got 0"),
        ("depth", 16, "got 16"),
        ("depth", True, "got True"),
        ("depth", "3", "got '3'"),
        ("depth", math.nan, "got nan"),
        ("units", 15, r"'units': expected an integer in \[16, 1024\], got 15"),
        ("kind", "c", r"'kind': expected one of \['b', 'a', 3, None\], got 'c'"),
        ("kind", ["b"], "'kind': expected one of"),
        ("fixed", "sgd", "'fixed': expected the constant 'adam', got 'sgd'"),
        ("level", "medium", r"'level': expected one of \['low', 'mid', 'high'\], got 'medium'"),
    ],
)
def test_values_that_do_not_belong_are_refused_by_name(name: str, value: Any, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"^configuration 1: .*{reason}"):
        mixed().encode([GOOD, GOOD | {name: value}])


def test_missing_hyperparameters_are_refused_by_name() -> None:
    config = {name: value for name, value in GOOD.items() if name != "depth"}
    with pytest.raises(ConfigError, match=r"configuration 0: 'depth': expected an integer .* but it is missing"):
        mixed().encode([config])


def test_missing_active_children_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"'gamma': expected a number .* but it is missing"):
        switched().encode([{"kernel": "radial", "cost": 1.0}])


def test_unknown_hyperparameters_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="configuration 0: unknown hyperparameter 'lr'; the space has depth, fixed"):
        mixed().encode([GOOD | {"lr": 0.1}])


def test_values_of_inactive_hyperparameters_are_refused_with_the_condition() -> None:
    with pytest.raises(ConfigError, match=r"configuration 0: 'degree' is inactive .* got 3; .*kernel == 'polynomial'"):
        switched().encode([{"kernel": "linear", "cost": 1.0, "degree": 3}])


@pytest.mark.parametrize("configs", [GOOD, "abc", 3, None, iter([GOOD]), np.array(0.5)])
def test_configurations_must_come_in_a_sequence(configs: Any) -> None:
    with pytest.raises(InputTypeError, match="expected a sequence of configurations"):
        mixed().encode(configs)


def test_a_configuration_must_be_a_mapping() -> None:
    with pytest.raises(InputTypeError, match="configuration 1: expected a mapping, got 3"):
        mixed().encode([GOOD, 3])  # type: ignore[list-item]


@pytest.mark.parametrize("X", [np.zeros(7), np.zeros((2, 6)), np.zeros((1, 2, 7)), 0.0])
def test_encoded_points_must_be_a_matrix_of_d_columns(X: Any) -> None:
    for method in ("decode", "canonical", "activity", "repair", "legal"):
        with pytest.raises(InputError, match=r"expected encoded points of shape \(n, 7\), got shape"):
            getattr(mixed(), method)(X)


@pytest.mark.parametrize("X", ["x", [["x"]], object(), 10**400])
def test_encoded_points_must_be_numbers(X: Any) -> None:
    with pytest.raises(InputTypeError, match="array of numbers"):
        mixed().decode(X)


def test_decoding_an_active_cell_without_value_is_refused() -> None:
    X = mixed().encode([GOOD, GOOD])
    X[1, 0] = np.nan
    with pytest.raises(InputError, match="row 1: 'depth' is active but its cell is nan"):
        mixed().decode(X)


def test_an_error_says_which_configuration_is_wrong_and_why_as_data() -> None:
    space = compile_space({"x": (0.0, 1.0)})
    with pytest.raises(ConfigError) as caught:
        space.encode([{"x": 0.5}, {"x": 2.0}])
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert (error.number, str(error)) == (1, f"configuration 1: {error.reason}")
