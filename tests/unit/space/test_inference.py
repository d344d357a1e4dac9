"""Search spaces guessed from values that were tried."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recollect.space.inference import InferredRange, infer_notation, infer_parent, infer_space, infer_values
from recollect.space.space import Space

POWERS = [10.0**k for k in range(-3, 4)]


def inferred(configs: list[dict[str, Any]], **options: bool) -> Space:
    space = infer_space(configs, **({"log_scales": True, "list_tiny_ranges": False} | options))
    assert space is not None
    return space


def test_an_inferred_space_holds_all_that_was_tried() -> None:
    configs = [{"c": 10.0**k, "n": k, "kernel": "rbf" if k else "poly", "flag": bool(k)} for k in range(-3, 4)]
    space = inferred(configs)
    X = space.encode(configs)
    place = space.names.index("c")
    assert np.allclose(X[:, place], np.linspace(0, 1, 7)), "seven powers of ten are even on a log scale"
    assert space.decode(X) == configs


def test_without_configurations_there_is_no_space() -> None:
    assert infer_space([], log_scales=True, list_tiny_ranges=True) is None


@pytest.mark.parametrize(("list_tiny_ranges", "names"), [(False, ("x",)), (True, ("tiny", "x"))])
def test_a_range_too_small_is_left_out_or_listed(list_tiny_ranges: bool, names: tuple[str, ...]) -> None:
    configs = [{"x": 0.0, "tiny": 1e-15}, {"x": 1.0, "tiny": 2e-15}]
    assert inferred(configs, list_tiny_ranges=list_tiny_ranges).names == names


def test_values_that_json_cannot_hold_are_left_out() -> None:
    assert inferred([{"x": 0.0, "layers": [1, 2]}, {"x": 1.0, "layers": [3]}], list_tiny_ranges=True).names == ("x",)


@pytest.mark.parametrize(
    ("values", "notation"),
    [
        ([3, 1, 2], (1, 3)),
        ([1, 2.5, 3], (1.0, 3.0)),
        ([4, 4], 4),
        ([True, False], [True, False]),
        (["b", "a", "b"], ["b", "a"]),
        (["a", "a"], "a"),
        ([1, "a", None], [1, "a", None]),
        (POWERS, (1e-3, 1e3, "log")),
        ([1, 10, 100], (1, 100, "log")),
        ([0.0, *POWERS], (0.0, 1e3)),
        ([1.0, 5.0, 9.0], (1.0, 9.0)),
        ([1.0, 51.0, 100.0], (1.0, 100.0)),
    ],
)
def test_values_become_a_range_choices_or_a_constant(values: list[Any], notation: Any) -> None:
    found = infer_notation(values, log_scales=True)
    assert found == notation
    assert type(found) is type(notation)
    if isinstance(notation, tuple):
        assert [type(end) for end in found] == [type(end) for end in notation]


def test_a_log_scale_is_inferred_only_on_request() -> None:
    assert infer_values(POWERS, log_scales=False) == InferredRange(1e-3, 1e3, False)


def test_the_parent_of_a_hyperparameter_decides_alone_where_it_is_present() -> None:
    kernels = ["rbf", "rbf", "poly", "linear"]
    solver = ["a", "b", "a", "b"]
    assert infer_parent([True, True, False, False], {"solver": solver, "kernel": kernels}, missing="") == (
        "kernel",
        ["rbf"],
    )
    assert infer_parent([True, False, False, True], {"solver": solver, "kernel": kernels}, missing="") is None


def test_a_parent_has_to_say_more_than_where_it_is_missing_itself() -> None:
    assert infer_parent([True, True, False], {"kernel": ["rbf", "poly", ""]}, missing="") is None


def test_tiny_bounds_are_rounded_outwards() -> None:
    values = [1.0269416e-08, 3.1e-06, 9.9998765e-05, 0.001]
    low, high, log = infer_notation(values, log_scales=True)
    assert (low, high, log) == (1.02694e-08, 0.001, "log")
    space = inferred([{"x": value} for value in values])
    assert space.decode(space.encode([{"x": value} for value in values])) == [{"x": value} for value in values]
    assert infer_notation([0.5, 1 + 1.23456789e-8], log_scales=False) == (0.5, 1 + 1.23456789e-8)
    assert infer_notation([-1.0269416e-08, 1.0269416e-08], log_scales=False) == (-1.02695e-08, 1.02695e-08)
    assert infer_notation([1e-15, 2e-15], log_scales=False) == (1e-15, 2e-15), "nothing would be left of this range"
