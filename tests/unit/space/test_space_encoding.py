"""Configurations to codes and back: formulas, order, types, and everything that is refused."""

from __future__ import annotations

import math
from typing import Any

import ConfigSpace as CS
import numpy as np
import pytest

from recollect.errors import ConfigError
from recollect.space.space import Space, compile_space


def svm() -> CS.ConfigurationSpace:
    source = CS.ConfigurationSpace()
    kernel = CS.CategoricalHyperparameter("kernel", ["linear", "polynomial", "radial"])
    gamma = CS.UniformFloatHyperparameter("gamma", 2.0**-10, 2.0**10, log=True)
    degree = CS.UniformIntegerHyperparameter("degree", 2, 5)
    source.add(kernel, gamma, degree, CS.UniformFloatHyperparameter("cost", 2.0**-10, 2.0**10, log=True))
    source.add(CS.EqualsCondition(gamma, kernel, "radial"), CS.EqualsCondition(degree, kernel, "polynomial"))
    return source


def xgboost() -> CS.ConfigurationSpace:
    source = CS.ConfigurationSpace()
    booster = CS.CategoricalHyperparameter("booster", ["gblinear", "gbtree"])
    trees = [
        CS.UniformIntegerHyperparameter("max_depth", 1, 15),
        CS.UniformFloatHyperparameter("min_child_weight", 1, 2**7, log=True),
        CS.UniformFloatHyperparameter("colsample_bytree", 0, 1),
        CS.UniformFloatHyperparameter("colsample_bylevel", 0, 1),
    ]
    source.add(
        booster,
        CS.UniformIntegerHyperparameter("nrounds", 1, 5000),
        CS.UniformFloatHyperparameter("eta", 2.0**-10, 1, log=True),
        CS.UniformFloatHyperparameter("subsample", 0, 1),
        CS.UniformFloatHyperparameter("lambda", 2.0**-10, 2.0**10, log=True),
        CS.UniformFloatHyperparameter("alpha", 2.0**-10, 2.0**10, log=True),
        *trees,
    )
    source.add(*(CS.EqualsCondition(child, booster, "gbtree") for child in trees))
    return source


def mixed() -> Space:
    return compile_space(
        {
            "rate": (0.0, 2.0),
            "log_rate": (1e-4, 1e-1, "log"),
            "depth": (1, 15),
            "units": (16, 1024, "log"),
            "kind": ["b", "a", 3, None],
            "fixed": "adam",
            "level": CS.OrdinalHyperparameter("level", ["low", "mid", "high"], default_value="mid"),
        }
    )


GOOD: dict[str, Any] = {
    "rate": 0.5,
    "log_rate": 0.01,
    "depth": 3,
    "units": 100,
    "kind": 3,
    "fixed": "adam",
    "level": "high",
}


def widened(value: float, low: float, high: float) -> float:
    return (value - (low - 0.49999)) / (high - low + 0.99998)


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("rate", 0.0, 0.0),
        ("rate", 2.0, 1.0),
        ("rate", 0.5, 0.25),
        ("log_rate", 1e-4, 0.0),
        ("log_rate", 1e-1, 1.0),
        ("log_rate", 1e-3, 1 / 3),
        ("depth", 1, widened(1, 1, 15)),
        ("depth", 8, widened(8, 1, 15)),
        ("depth", 15, widened(15, 1, 15)),
        ("units", 16, math.log(16 / 15.50001) / math.log(1024.49999 / 15.50001)),
        ("units", 100, math.log(100 / 15.50001) / math.log(1024.49999 / 15.50001)),
        ("units", 1024, math.log(1024 / 15.50001) / math.log(1024.49999 / 15.50001)),
        ("kind", "b", 0.0),
        ("kind", None, 3.0),
        ("fixed", "adam", 0.0),
        ("level", "low", widened(0, 0, 2)),
        ("level", "high", widened(2, 0, 2)),
    ],
)
def test_codes_follow_the_formulas(name: str, value: Any, code: float) -> None:
    space = mixed()
    x = space.encode([GOOD | {name: value}])[0]
    assert x[space.names.index(name)] == pytest.approx(code, rel=1e-13, abs=1e-15)
    assert space.decode(x[None, :])[0][name] == value


def test_attributes_describe_the_columns() -> None:
    space = mixed()
    assert space.names == ("depth", "fixed", "kind", "level", "log_rate", "rate", "units")
    assert space.sizes.tolist() == [15, 1, 4, 3, 0, 0, 1009]
    assert space.categorical.tolist() == [False, True, True, False, False, False, False]
    assert space.varying.tolist() == [True, False, True, True, True, True, True]
    assert not space.conditional
    assert space.size() == math.inf
    assert compile_space({"a": [1, 2, 3], "b": (0, 4), "c": 7}).size() == 15.0
    assert "depth, fixed" in repr(space)


def test_arrays_and_fields_are_read_only() -> None:
    space = mixed()
    for array in (space.categorical, space.sizes, space.varying, space.default):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        space.names = ()  # type: ignore[misc]


def test_a_compiled_space_is_returned_as_it_is() -> None:
    space = mixed()
    assert compile_space(space) is space


def test_columns_are_ordered_by_depth_then_name() -> None:
    assert compile_space(svm()).names == ("cost", "kernel", "degree", "gamma")
    assert compile_space(xgboost()).names == (
        *("alpha", "booster", "eta", "lambda", "nrounds", "subsample"),
        *("colsample_bylevel", "colsample_bytree", "max_depth", "min_child_weight"),
    )


def test_a_child_comes_after_its_deepest_parent() -> None:
    source = CS.ConfigurationSpace({"z": [0, 1], "y": [0, 1], "a": [0, 1], "b": [0, 1]})
    source.add(CS.EqualsCondition(source["y"], source["z"], 0))
    source.add(
        CS.AndConjunction(
            CS.EqualsCondition(source["a"], source["y"], 0), CS.EqualsCondition(source["a"], source["z"], 0)
        )
    )
    assert compile_space(source).names == ("b", "z", "y", "a")


def test_the_default_is_that_of_configspace() -> None:
    for source in (svm(), xgboost()):
        space = compile_space(source)
        assert space.decode(space.default[None, :]) == [dict(source.get_default_configuration())]


def test_svm_configurations_leave_out_what_is_inactive() -> None:
    space = compile_space(svm())
    X = space.encode(
        [{"kernel": "linear", "cost": 1.0}, {"kernel": "polynomial", "cost": 0.5, "degree": 3, "gamma": None}]
    )
    np.testing.assert_array_equal(np.isnan(X), [[False, False, True, True], [False, False, False, True]])
    assert X[0, 0] == 0.5
    assert space.decode(X)[1] == {"cost": 0.5, "kernel": "polynomial", "degree": 3}


def test_no_configurations_encode_to_no_rows() -> None:
    assert mixed().encode([]).shape == (0, 7)
    assert mixed().decode(np.empty((0, 7))) == []


def test_decoded_values_are_native_and_choices_are_the_original_objects() -> None:
    space = mixed()
    numpy_config = {
        **{"rate": np.float32(0.5), "log_rate": np.float64(0.01), "depth": np.int32(3), "units": np.uint16(100)},
        **{"kind": np.int64(3), "fixed": np.str_("adam"), "level": np.str_("high")},
    }
    (config,) = space.decode(space.encode([numpy_config]))
    assert config == GOOD
    assert [type(config[name]) for name in GOOD] == [type(value) for value in GOOD.values()]


def test_whole_floats_are_integers_and_integers_are_floats() -> None:
    space = mixed()
    np.testing.assert_array_equal(
        space.encode([GOOD | {"depth": 3.0, "rate": 1}]), space.encode([GOOD | {"rate": 1.0}])
    )


def test_constants_may_be_left_out_and_always_come_back() -> None:
    space = mixed()
    config = {name: value for name, value in GOOD.items() if name != "fixed"}
    assert space.decode(space.encode([config])) == [GOOD]


def test_single_choices_and_empty_ranges_are_constants() -> None:
    space = compile_space({"a": ["x"], "b": (2.0, 2.0), "c": CS.OrdinalHyperparameter("c", ["y"]), "d": (4, 4, "log")})
    assert space.sizes.tolist() == [1, 1, 1, 1]
    assert space.categorical.all()
    assert space.decode(space.encode([{}])) == [{"a": "x", "b": 2.0, "c": "y", "d": 4}]


def test_configurations_of_configspace_are_accepted() -> None:
    source = xgboost()
    space = compile_space(source)
    source.seed(3)
    configs = source.sample_configuration(50)
    for config, back in zip(configs, space.decode(space.encode(configs)), strict=True):
        assert back == pytest.approx(dict(config), rel=1e-12)


def test_canonical_snaps_clips_and_deactivates() -> None:
    space = compile_space(svm())
    X = np.array([[1.2, 1.4, 0.1, 0.3], [-0.1, 5.0, 0.1, 0.3], [0.3, -1.0, np.nan, 0.3]])
    expected = [[1.0, 1.0, widened(2, 2, 5), np.nan], [0.0, 2.0, np.nan, 0.3], [0.3, 0.0, np.nan, np.nan]]
    np.testing.assert_allclose(space.canonical(X), expected, rtol=1e-15)
    np.testing.assert_array_equal(space.canonical(space.canonical(X)), space.canonical(X))
    X[:, 1] = 1.0
    assert np.isnan(space.canonical(X)[2, 2]), "canonical fills nothing"


@pytest.mark.parametrize(
    ("bounds", "value"),
    [
        ((0.0, 1.0), 0.1),
        ((0.0, 1.0), 1e-300),
        ((-0.1, 0.7), 0.0),
        ((1e-5, 1e5), 0.00123456789),
        ((1e6, 1e6 + 1), 1000000.3),
        ((2.0**-10, 2.0**10, "log"), 2.0**-10),
        ((2.0**-10, 2.0**10, "log"), 2.0**10),
        ((2.0**-10, 2.0**10, "log"), 0.3),
        ((1e-13, 1e200, "log"), 1.23456789012),
        ((1e-6, 1.0, "log"), 3e-5),
    ],
)
def test_short_decimals_come_back_as_they_went_in(bounds: Any, value: float) -> None:
    space = compile_space({"v": bounds})
    assert space.decode(space.encode([{"v": value}])) == [{"v": value}]


def test_a_rounded_code_decodes_to_the_shortest_decimal() -> None:
    space = compile_space({"v": (-1000.0, 1000.0)})
    noisy = space.encode([{"v": 0.1 + 2e-14}])
    assert space.decode(noisy) == [{"v": 0.1}], "0.1 has the same code and fewer digits"


def test_values_at_a_bound_that_configspace_rounded_are_accepted() -> None:
    lower, upper = 0.00123456789019, 1 / 3
    space = compile_space({"v": (lower, upper, "log")})
    assert space.source["v"].lower > lower
    assert space.source["v"].upper < upper
    np.testing.assert_array_equal(space.encode([{"v": lower}, {"v": upper}]), [[0.0], [1.0]])
    for outside in (lower - 1e-9, upper + 1e-9):
        with pytest.raises(ConfigError, match="'v': expected a number"):
            space.encode([{"v": outside}])


@pytest.mark.parametrize(
    "bounds", [(2**50 - 9, 2**50), (-(2**50), 2**50), (2**40 - 9, 2**40, "log"), (1, 2**40, "log")]
)
def test_large_integers_are_told_apart(bounds: Any) -> None:
    space = compile_space({"v": bounds})
    configs = [{"v": bounds[1] - k} for k in range(9)]
    assert space.decode(space.encode(configs)) == configs
    assert len(np.unique(space.encode(configs))) == 9
