"""Properties of alignment on random pairs of spaces, against the rules written out for one value at a time."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import ConfigSpace as CS
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.helpers.space_strategies import seeds, sources

from recollect.space.alignment import align
from recollect.space.sampling import uniform
from recollect.space.space import Space, compile_space

quick = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)

odd_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-300, 300),
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(-100, 200),
    st.sampled_from([math.nextafter(bound, side) for bound in (0.1, 0.5, 0.9, 1, 2, 60) for side in (-999, 999)]),
    st.sampled_from(["x", "p", "s", "c", "only", "", 10, 3, 0.5, 2.5, (1,), [2], np.int64(3), np.float32(2.5)]),
)
odd_configs = st.dictionaries(st.sampled_from("abcdefgh"), odd_values)


def drawn(space: Space, count: int, seed: int) -> list[dict[str, Any]]:
    return space.decode(uniform(space, count, np.random.default_rng(seed)))


def same(value: Any, choice: Any) -> bool:
    try:
        return hash(value) == hash(choice) and bool(value == choice)
    except TypeError:
        return False


def position_code(choices: list[Any], value: Any, *, ordinal: bool) -> float | None:
    hits = [position for position, choice in enumerate(choices) if same(value, choice)]
    if not hits:
        return None
    return (hits[0] + 0.49999) / (len(choices) - 1 + 2 * 0.49999) if ordinal else float(hits[0])


def number_code(hyperparameter: Any, value: Any) -> float | None:
    number = isinstance(value, int | float | np.int64 | np.float32) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or (hyperparameter.log and value <= 0):
        return None
    low, high, v = float(hyperparameter.lower), float(hyperparameter.upper), float(value)
    if isinstance(hyperparameter, CS.UniformIntegerHyperparameter):
        if v != round(v):
            return None
        low, high = low - 0.49999, high + 0.49999
    elif v != min(max(v, low), high):
        # As everywhere, a float that misses a bound by no more than ConfigSpace's rounding of bounds is the bound.
        v = next((bound for bound in (low, high) if abs(v - bound) <= min(1e-13, 1e-6 * abs(bound))), v)
    if hyperparameter.log:
        low, high, v = math.log(low), math.log(high), math.log(v)
    code = (v - low) / (high - low)
    return code if -0.99 < code < 1.99 else None


def literal_code(hyperparameter: Any, value: Any) -> float | None:
    """The code of one value by the formulas of the encoding, or None if the configuration must be dropped."""
    if isinstance(hyperparameter, CS.CategoricalHyperparameter):
        return position_code(list(hyperparameter.choices), value, ordinal=False)
    if isinstance(hyperparameter, CS.OrdinalHyperparameter):
        return position_code(list(hyperparameter.sequence), value, ordinal=len(hyperparameter.sequence) > 1)
    return number_code(hyperparameter, value)


def literal(space: Space, config: dict[str, Any]) -> tuple[list[float] | None, Counter[tuple[str, str]]]:
    """Align one configuration by the rules; None if it is dropped. Counts are keyed by kind and hyperparameter."""
    row, counts = np.full(len(space.names), np.nan), Counter[tuple[str, str]]()
    counts.update(("ignored", name) for name in config if name not in space.names)
    for position, name in enumerate(space.names):
        hyperparameter, column, value = space.source[name], space.columns[position], config.get(name)
        probe = np.where(np.isnan(row), [other.default for other in space.columns], row)
        if not space.activity(probe[None])[0, position]:
            counts["ignored", name] += value is not None
        elif isinstance(hyperparameter, CS.Constant):
            row[position] = 0.0
            there = name in config and (value is not None or same(None, column.value(0.0)))
            counts["ignored", name] += there and not same(value, column.value(0.0))
        elif value is None and not (name in config and literal_code(hyperparameter, None) is not None):
            row[position] = column.default
            counts["filled", name] += 1
        else:
            code = literal_code(hyperparameter, value)
            if code is None:
                return None, Counter()
            row[position] = code
            counts["outside", name] += not column.categorical and not 0 <= code <= 1
    return row.tolist(), +counts


@quick
@given(sources(), seeds)
def test_configurations_of_the_same_space_are_encoded_bitwise_as_ever(source: Any, seed: int) -> None:
    space = compile_space(source)
    configs = drawn(space, 10, seed)
    result = align(space, configs)
    np.testing.assert_array_equal(result.X, space.encode(configs))
    assert result.kept.tolist() == list(range(len(configs)))
    assert result.identical
    assert str(result) == ""


@quick
@given(sources(), sources(), seeds, st.lists(odd_configs, max_size=8))
def test_alignment_follows_the_rules_value_by_value(old: Any, new: Any, seed: int, odd: list[dict[str, Any]]) -> None:
    space = compile_space(new)
    # Odd values on top of valid configurations: a change in one place alone is what drops, fills or ignores.
    base = drawn(space, len(odd), seed)
    configs = [*drawn(compile_space(old), 10, seed), *odd, *(own | some for own, some in zip(base, odd, strict=False))]
    result = align(space, configs)
    expected = [literal(space, config) for config in configs]
    kept = [number for number, (row, _) in enumerate(expected) if row is not None]
    assert result.kept.tolist() == kept
    rows = np.array([expected[number][0] for number in kept]).reshape(len(kept), len(space.names))
    np.testing.assert_allclose(result.X, rows, rtol=0, atol=1e-12)
    totals = sum((expected[number][1] for number in kept), Counter[tuple[str, str]]())
    for kind in ("filled", "ignored", "outside"):
        assert getattr(result, kind) == {name: count for (of, name), count in totals.items() if of == kind}
    assert sum(result.dropped.values()) == len(configs) - len(kept)


@quick
@given(sources(), st.lists(odd_configs, max_size=8))
def test_a_cell_is_nan_exactly_where_the_new_space_is_inactive(new: Any, configs: list[dict[str, Any]]) -> None:
    space = compile_space(new)
    X = align(space, configs).X
    np.testing.assert_array_equal(~np.isnan(X), space.activity(X))
    np.testing.assert_array_equal(space.repair(X), X)


@quick
@given(
    st.sampled_from([(0.0, 1.0), (-5.0, 5.0), (0.1, 0.9), (1, 15), (-3, 4), (2.0, 60.0, "log"), (16, 512, "log")]),
    st.lists(st.integers(-2000, 2000).map(lambda tenth: tenth / 10), min_size=2, max_size=50, unique=True),
)
def test_the_order_of_values_is_the_order_of_codes(spec: tuple[Any, ...], values: list[float]) -> None:
    space = compile_space({"v": spec})
    result = align(space, [{"v": value} for value in sorted(values)])
    assert (np.diff(result.X[:, 0]) > 0).all()
