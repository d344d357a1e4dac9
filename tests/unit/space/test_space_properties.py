"""Properties of compiled spaces on random spaces, with ConfigSpace itself as the judge."""

from __future__ import annotations

import itertools
from typing import Any

import ConfigSpace as CS
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.helpers.space_strategies import seeds, sources

from recollect.numerics.arrays import unique_rows
from recollect.space.columns import Interval
from recollect.space.sampling import enumerate_space, gaussian_moves, latin_hypercube, one_exchange, sobol, uniform
from recollect.space.space import Space, compile_space

quick = settings(
    deadline=None,
    max_examples=30,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def vector_of(space: Space, config: dict[str, Any]) -> np.ndarray:
    """ConfigSpace's own vector of a configuration."""
    source = space.source
    return np.array([source[name].to_vector(config[name]) if name in config else np.nan for name in source])


def accepted(space: Space, config: dict[str, Any]) -> None:
    CS.Configuration(space.source, values=config)


@quick
@given(sources(), seeds)
def test_every_sampled_point_is_a_configuration_for_configspace(source: Any, seed: int) -> None:
    space = compile_space(source)
    rng = np.random.default_rng(seed)
    for draw in (uniform, latin_hypercube, sobol):
        X = draw(space, 7, rng)
        assert len(X) == 7 or draw is latin_hypercube
        for config in space.decode(X):
            accepted(space, config)


@quick
@given(sources(), seeds)
def test_sampled_points_survive_decoding_and_encoding_bitwise(source: Any, seed: int) -> None:
    space = compile_space(source)
    X = uniform(space, 10, np.random.default_rng(seed))
    np.testing.assert_array_equal(space.encode(space.decode(X)), X)
    np.testing.assert_array_equal(space.canonical(X), X)


@quick
@given(sources(), seeds)
def test_any_points_decode_to_configurations_that_survive_encoding(source: Any, seed: int) -> None:
    space = compile_space(source)
    rng = np.random.default_rng(seed)
    X = space.repair(
        rng.random((10, len(space.names))) * np.where(space.categorical, np.maximum(space.sizes - 1, 1), 1)
    )
    X = X[space.legal(X)]
    configs = space.decode(X)
    codes = space.encode(configs)
    assert space.decode(codes) == configs
    np.testing.assert_array_equal(space.encode(space.decode(codes)), codes)
    np.testing.assert_allclose(codes, space.canonical(X), rtol=0, atol=1e-14)


@quick
@given(sources(), seeds)
def test_activity_is_that_of_configspace(source: Any, seed: int) -> None:
    space = compile_space(source)
    rng = np.random.default_rng(seed)
    X = np.stack([column.from_unit(rng.random(20)) for column in space.columns], axis=1)
    active = space.activity(X)
    for config, mask in zip(space.decode(X), active, strict=True):
        on = {name for name, flag in zip(space.names, mask, strict=True) if flag}
        assert on == set(config) == source.get_active_hyperparameters(vector_of(space, config))


@quick
@given(sources(), seeds)
def test_legality_is_that_of_configspace(source: Any, seed: int) -> None:
    space = compile_space(source)
    rng = np.random.default_rng(seed)
    X = np.stack([column.from_unit(rng.random(20)) for column in space.columns], axis=1)
    X = space.repair(X)
    for config, legal in zip(space.decode(X), space.legal(X), strict=True):
        vector = vector_of(space, config)
        assert legal == (not any(part.is_forbidden_vector(vector) for part in source.forbidden_clauses))


@quick
@given(sources(), seeds)
def test_configurations_sampled_by_configspace_round_trip(source: Any, seed: int) -> None:
    space = compile_space(source)
    source.seed(seed)
    for config in source.sample_configuration(10):
        try:
            accepted(space, dict(config))
        except ValueError:  # ConfigSpace's own sampler errs on deep conditions and on forbidden log integers
            continue
        given_values, (back,) = dict(config), space.decode(space.encode([config]))
        assert back.keys() == given_values.keys()
        for column in space.columns:
            if column.name in back and isinstance(column, Interval) and column.log:
                assert back[column.name] == pytest.approx(given_values[column.name], rel=1e-12)
            elif column.name in back:
                assert back[column.name] == given_values[column.name]


@quick
@given(sources(), seeds)
def test_repair_keeps_proper_points_and_completes_the_others(source: Any, seed: int) -> None:
    space = compile_space(source)
    rng = np.random.default_rng(seed)
    X = uniform(space, 10, rng)
    np.testing.assert_array_equal(space.repair(X), X)
    holes = np.where(rng.random(X.shape) < 0.5, np.nan, X)
    fixed = space.repair(holes)
    np.testing.assert_array_equal(~np.isnan(fixed), space.activity(fixed))
    defaults = np.broadcast_to([column.default for column in space.columns], X.shape)
    filled = ~np.isnan(fixed) & np.isnan(holes)
    np.testing.assert_array_equal(fixed[filled], defaults[filled])


@quick
@given(sources(finite=True))
def test_enumeration_lists_every_legal_configuration_once(source: Any) -> None:
    space = compile_space(source)
    assume(space.size() <= 300)
    values = [[column.value(float(u)) for u in column_codes(column)] for column in space.columns]
    expected = set()
    for full in itertools.product(*values):
        config = dict(zip(space.names, full, strict=True))
        for name in space.names:  # parents come first, so one pass of ConfigSpace's judgement settles the children
            if name not in source.get_active_hyperparameters(vector_of(space, config)):
                del config[name]
        try:
            accepted(space, config)
        except ValueError:
            continue
        expected.add(tuple(config.items()))
    listed = enumerate_space(space, 300)
    assert listed is not None
    assert len(listed) == len(expected)
    assert {tuple(config.items()) for config in space.decode(listed)} == expected
    assert enumerate_space(space, int(space.size()) - 1) is None


def column_codes(column: Any) -> np.ndarray:
    cells = np.arange(float(column.size))
    return cells if column.categorical else column.centres(cells)


@quick
@given(sources(), seeds, st.sampled_from([1e-9, 0.05, 0.2, 3.0]))
def test_exchange_neighbours_differ_in_one_free_choice(source: Any, seed: int, step: float) -> None:
    space = compile_space(source)
    rng = np.random.default_rng(seed)
    X = uniform(space, 5, rng)
    Y, owner = one_exchange(space, X, rng, step=step)
    assert (np.diff(owner) >= 0).all()
    assert space.legal(Y).all()
    np.testing.assert_array_equal(space.canonical(Y), Y)
    both = ~np.isnan(Y) & ~np.isnan(X[owner])
    changed = both & (X[owner] != Y)
    np.testing.assert_array_equal(changed.sum(axis=1), 1)
    switched_on = ~np.isnan(Y) & np.isnan(X[owner])
    defaults = np.broadcast_to([column.default for column in space.columns], Y.shape)
    np.testing.assert_array_equal(Y[switched_on], defaults[switched_on])
    for config in space.decode(Y[:5]):
        accepted(space, config)


@quick
@given(sources(), seeds, st.sampled_from([1e-9, 0.1, 3.0]))
def test_gaussian_moves_keep_the_choices_and_stay_inside(source: Any, seed: int, step: float) -> None:
    space = compile_space(source)
    rng = np.random.default_rng(seed)
    X = uniform(space, 5, rng)
    Y, owner = gaussian_moves(space, X, rng, step=step, count=6)
    assert space.legal(Y).all()
    np.testing.assert_array_equal(space.canonical(Y), Y)
    both = ~np.isnan(Y) & ~np.isnan(X[owner])
    assert not (both & (X[owner] != Y))[:, space.categorical].any()
    assert (both & (X[owner] != Y)).any(axis=1).all()


@quick
@given(sources(), seeds)
def test_unique_rows_are_those_of_a_set_of_configurations(source: Any, seed: int) -> None:
    space = compile_space(source)
    X = uniform(space, 6, np.random.default_rng(seed))
    X = X[np.random.default_rng(seed).integers(6, size=20)]
    seen: list[int] = []
    for row in range(20):
        if not any(np.array_equal(X[row], X[other], equal_nan=True) for other in seen):
            seen.append(row)
    assert unique_rows(X).tolist() == seen
