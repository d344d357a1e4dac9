"""Floats through the unit interval and back: exact where that is possible, stable everywhere."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from recollect.space.sampling import uniform
from recollect.space.space import compile_space

quick = settings(deadline=None, max_examples=150, derandomize=True)

FLOAT_RANGES = [(0.0, 1.0), (-5.0, 5.0), (0.1, 0.9), (2.0, 60.0), (-0.003, 97.125), (0.0, 100.0), (-100.0, 100.0)]
LOG_RANGES = [(2.0**-10, 2.0**10), (1e-4, 1e-1), (1.0, 1e5), (1e-8, 1.0), (0.5, 0.75), (1e-12, 1e12), (1.0, 1e200)]


@quick
@given(st.sampled_from(FLOAT_RANGES), st.floats(0, 1), st.integers(0, 13))
def test_linear_floats_of_thirteen_decimals_round_trip_exactly(
    bounds: tuple[float, float], t: float, decimals: int
) -> None:
    value = round(bounds[0] + t * (bounds[1] - bounds[0]), decimals)
    assume(bounds[0] <= value <= bounds[1])
    space = compile_space({"v": bounds})
    assert space.decode(space.encode([{"v": value}])) == [{"v": value}]


@quick
@given(st.sampled_from(LOG_RANGES), st.floats(0, 1), st.integers(1, 12))
def test_log_floats_of_twelve_digits_round_trip_exactly(bounds: tuple[float, float], t: float, digits: int) -> None:
    value = float(f"{bounds[0] * (bounds[1] / bounds[0]) ** t:.{digits - 1}e}")
    assume(bounds[0] <= value <= bounds[1])
    space = compile_space({"v": (*bounds, "log")})
    assert space.decode(space.encode([{"v": value}])) == [{"v": value}]


@pytest.mark.parametrize("bounds", [(1e-4, 1e-1), (1.0, 1e5)])
def test_thousands_of_log_points_survive_bitwise(bounds: tuple[float, float]) -> None:
    space = compile_space({"v": (*bounds, "log")})
    X = uniform(space, 3000, np.random.default_rng(1))
    np.testing.assert_array_equal(space.encode(space.decode(X)), X)


@quick
@given(st.sampled_from([(0.1, 0.9), (-5.0, 5.0), (57.001, 59.001, "log"), (1e-8, 1.0, "log")]), st.floats(0, 1))
def test_no_decimal_with_fewer_digits_has_the_same_code(bounds: Any, u: float) -> None:
    space = compile_space({"v": bounds})
    (config,) = space.decode(np.array([[u]]))
    digits = len(Decimal(repr(config["v"])).normalize().as_tuple().digits)
    assume(digits > 1)
    with localcontext(prec=digits - 1) as context:
        for rounding in (ROUND_FLOOR, ROUND_CEILING):
            context.rounding = rounding
            shorter = float(+Decimal(repr(config["v"])))
            if bounds[0] <= shorter <= bounds[1]:
                assert space.encode([{"v": shorter}]) != space.encode([config])


@quick
@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.booleans(), st.lists(st.floats(0, 1), min_size=1, max_size=10))
def test_every_float_cell_decodes_to_a_stable_value(start: float, width: float, log: bool, codes: list[float]) -> None:
    lower = round(abs(start) + 1e-3 if log else start, 6)
    upper = round(lower + width, 6)
    space = compile_space({"v": (lower, upper, "log")[: 3 if log else 2]})
    configs = space.decode(np.array(codes)[:, None])
    again = space.encode(configs)
    # How much of the unit interval the relative spacing of doubles, 2^-52, amounts to.
    spacing = 2.0**-52 * (1 / np.log(upper / lower) if log else max(abs(lower), abs(upper)) / (upper - lower))
    np.testing.assert_allclose(again[:, 0], codes, rtol=0, atol=spacing + 2.0**-52)
    assert space.decode(again) == configs
