"""Properties of narrowed spaces on random spaces, with the old space and ConfigSpace as the judges."""

from __future__ import annotations

from typing import Any

import ConfigSpace as CS
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.helpers.space_strategies import seeds, sources

from recollect.space.narrowing import narrow
from recollect.space.sampling import uniform
from recollect.space.space import compile_space
from recollect.transfer.search_box import BoxRule, bounding_box, past_box

quick = settings(
    deadline=None,
    max_examples=60,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@quick
@given(sources(), seeds, st.integers(1, 4))
def test_the_box_of_optima_holds_them_and_keeps_the_structure(source: Any, seed: int, count: int) -> None:
    space = compile_space(source)
    rng = np.random.default_rng(seed)
    optima = uniform(space, count, rng)
    configs = space.decode(optima)
    box = bounding_box(space, optima)
    assert box.contains(optima).all()
    small = narrow(space, box.ranges(space))
    assert small.names == space.names
    assert small.condition_texts == space.condition_texts
    assert sorted(small.forbidden_texts) == sorted(space.forbidden_texts)
    np.testing.assert_array_equal(np.isnan(small.encode(configs)), np.isnan(optima))
    drawn = uniform(small, 15, rng)
    inside = small.decode(drawn)
    np.testing.assert_array_equal(np.isnan(space.encode(inside)), np.isnan(drawn))
    for config in inside:
        CS.Configuration(small.source, values=config)
        CS.Configuration(space.source, values=config)


@quick
@given(sources(), seeds, st.integers(1, 4))
def test_values_drawn_from_the_box_lie_between_those_of_the_optima(source: Any, seed: int, count: int) -> None:
    space = compile_space(source)
    rng = np.random.default_rng(seed)
    optima = uniform(space, count, rng)
    small = narrow(space, bounding_box(space, optima).ranges(space))
    kinds = CS.UniformFloatHyperparameter | CS.UniformIntegerHyperparameter
    referred = {parent.name for name in source for parent in source.parents_of[name]}
    referred |= {word for text in space.forbidden_texts for word in text.replace("(", " ").replace(")", " ").split()}
    configs, drawn = space.decode(optima), small.decode(uniform(small, 15, rng))
    for name in set(space.names) - referred:
        values = [config[name] for config in configs if name in config]
        if values and isinstance(source[name], kinds):
            # ConfigSpace's 13 decimals round outward
            assert all(
                min(values) - 1.1e-13 <= config[name] <= max(values) + 1.1e-13 for config in drawn if name in config
            )


@quick
@given(sources(), seeds, st.integers(1, 8))
def test_the_slack_box_lies_within_the_bounding_box(source: Any, seed: int, count: int) -> None:
    space = compile_space(source)
    optima = uniform(space, count, np.random.default_rng(seed))
    whole, tight = past_box(space, optima, BoxRule()), past_box(space, optima, BoxRule(slack=True))
    assert (whole.lower <= tight.lower).all()
    assert (tight.lower <= tight.upper).all()
    assert (tight.upper <= whole.upper).all()
    narrow(space, tight.ranges(space))
