"""Draws, designs and enumeration on spaces small enough to know the answer."""

from __future__ import annotations

from typing import Any

import ConfigSpace as CS
import numpy as np
import pytest
from scipy import stats

from recollect.errors import InputError, SpaceError
from recollect.numerics.arrays import unique_rows
from recollect.space.columns import Choices
from recollect.space.sampling import enumerate_space, latin_hypercube, sobol, uniform
from recollect.space.space import Space, compile_space


def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def with_clauses(clauses_of: Any, **hyperparameters: Any) -> Space:
    source = CS.ConfigurationSpace(hyperparameters)
    source.add(*clauses_of(source))
    return compile_space(source)


def contradiction(**hyperparameters: Any) -> Space:
    """A space whose clauses leave nothing; ConfigSpace itself refuses to build it in the ordinary way."""
    source = CS.ConfigurationSpace(hyperparameters)
    with pytest.raises(ValueError, match="orbidden"):
        source.add(CS.ForbiddenInClause(source["a"], [1, 2, 3]))
    return compile_space(source)


@pytest.mark.parametrize("draw", [uniform, latin_hypercube, sobol])
def test_floats_are_uniform_on_their_scale(draw: Any) -> None:
    space = compile_space({"a": (-3.0, 7.0), "b": (1e-4, 1.0, "log")})
    X = draw(space, 512, rng())
    assert X.shape == (512, 2)
    for column in X.T:
        assert stats.kstest(column, "uniform").pvalue > 0.01


def test_uniform_draws_honour_the_weights_of_choices() -> None:
    space = compile_space({"a": CS.CategoricalHyperparameter("a", ["x", "y", "z", "w"], weights=[0, 1, 3, 0])})
    counts = np.bincount(uniform(space, 4000, rng())[:, 0].astype(int), minlength=4)
    assert counts[[0, 3]].tolist() == [0, 0]
    assert counts[2] / 4000 == pytest.approx(0.75, abs=0.03)
    (column,) = space.columns
    assert isinstance(column, Choices)
    np.testing.assert_array_equal(column.from_unit_by_weight(np.array([0.0, 0.25, 1.0 - 2.0**-53])), [1, 2, 2])


@pytest.mark.parametrize("log", [False, True])
def test_integers_are_drawn_in_proportion_to_their_cells(log: bool) -> None:
    space = compile_space({"a": (1, 4, "log")[: 3 if log else 2]})
    values = [config["a"] for config in space.decode(uniform(space, 4000, rng()))]
    edges = np.array([0.50001, 1.5, 2.5, 3.5, 4.49999])
    share = np.diff(np.log(edges) if log else edges)
    np.testing.assert_allclose(np.bincount(values, minlength=5)[1:] / 4000, share / share.sum(), atol=0.03)


@pytest.mark.parametrize("draw", [latin_hypercube, sobol])
def test_designs_give_every_choice_its_share_whatever_its_weight(draw: Any) -> None:
    weighted = CS.CategoricalHyperparameter("a", ["x", "y", "z", "w"], weights=[1, 1, 1, 97])
    X = draw(compile_space({"a": weighted, "b": (0.0, 1.0)}), 64, rng())
    assert np.bincount(X[:, 0].astype(int)).tolist() == [16, 16, 16, 16]


def test_a_latin_hypercube_has_one_float_in_every_stratum() -> None:
    X = latin_hypercube(compile_space({"a": (-3.0, 7.0), "b": (1e-4, 1.0, "log")}), 50, rng())
    np.testing.assert_array_equal(np.sort(np.floor(X * 50 + 1e-9), axis=0), np.tile(np.arange(50)[:, None], (1, 2)))


def test_a_latin_hypercube_drops_repeated_points() -> None:
    X = latin_hypercube(compile_space({"a": [1, 2], "b": [3, 4]}), 40, rng())
    assert len(X) == len(unique_rows(X)) == 4


def test_deactivated_points_coincide_in_a_latin_hypercube() -> None:
    source = CS.ConfigurationSpace({"a": [1, 2], "b": (0.0, 1.0)})
    source.add(CS.EqualsCondition(source["b"], source["a"], 2))
    X = latin_hypercube(compile_space(source), 10, rng())
    assert len(X) == 6
    assert np.isnan(X[:, 1]).sum() == 1


@pytest.mark.parametrize("draw", [uniform, latin_hypercube, sobol])
def test_forbidden_points_are_replaced(draw: Any) -> None:
    space = with_clauses(lambda s: [CS.ForbiddenLessThanRelation(s["a"], s["b"])], a=(0.0, 1.0), b=(0.0, 1.0))
    X = draw(space, 300, rng())
    assert len(X) == 300
    assert (X[:, 0] >= X[:, 1]).all()


def test_rejection_keeps_the_distribution_of_what_is_legal() -> None:
    space = with_clauses(lambda s: [CS.ForbiddenGreaterThanClause(s["a"], 0.5)], a=(0.0, 1.0))
    assert stats.kstest(uniform(space, 1000, rng())[:, 0] * 2, "uniform").pvalue > 0.01


def test_rare_legal_points_are_found_by_listing() -> None:
    space = with_clauses(
        lambda s: [CS.ForbiddenEqualsClause(s["a"], "usual")],
        a=CS.CategoricalHyperparameter("a", ["usual", "rare"], default_value="rare", weights=[1, 1e-12]),
        b=[1, 2],
    )
    drawn = [(config["a"], config["b"]) for config in space.decode(uniform(space, 200, rng()))]
    assert set(drawn) == {("rare", 1), ("rare", 2)}


def test_a_contradictory_finite_space_is_refused_for_certain() -> None:
    space = contradiction(a=[1, 2, 3], b=(1, 4))
    for draw in (uniform, latin_hypercube, sobol):
        with pytest.raises(SpaceError, match=r"no legal configuration: .* exclude all 12: Forbidden: a in \{1, 2, 3\}"):
            draw(space, 3, rng())
    listed = enumerate_space(space, 100)
    assert listed is not None
    assert listed.shape == (0, 2)


def test_a_contradictory_continuum_is_refused_after_bounded_effort() -> None:
    space = contradiction(a=[1, 2, 3], b=(0.0, 1.0))
    with pytest.raises(SpaceError, match=r"expected 3 legal configurations, found 0 among \d+ random ones"):
        uniform(space, 3, rng())


@pytest.mark.parametrize("draw", [uniform, latin_hypercube, sobol])
def test_no_points_is_a_valid_request_and_a_negative_number_is_not(draw: Any) -> None:
    space = compile_space({"a": (0.0, 1.0), "b": [1, 2]})
    assert draw(space, 0, rng()).shape == (0, 2)
    with pytest.raises(InputError, match="n >= 0, got -1"):
        draw(space, -1, rng())


@pytest.mark.parametrize("draw", [uniform, latin_hypercube, sobol])
def test_the_generator_alone_decides(draw: Any) -> None:
    space = compile_space({"a": (0.0, 1.0), "b": [1, 2], "c": (1, 9)})
    np.testing.assert_array_equal(draw(space, 20, rng()), draw(space, 20, rng()))


def test_enumeration_lists_the_grid_in_order() -> None:
    space = compile_space({"a": ["x", "y"], "b": (1, 3, "log"), "c": "constant"})
    listed = enumerate_space(space, 6)
    assert listed is not None
    expected = [{"a": a, "b": b, "c": "constant"} for a in ("x", "y") for b in (1, 2, 3)]
    assert space.decode(listed) == expected
    np.testing.assert_array_equal(listed, space.encode(expected))


def test_enumeration_gives_up_above_the_limit() -> None:
    assert enumerate_space(compile_space({"a": ["x", "y"], "b": (1, 3)}), 5) is None
    assert enumerate_space(compile_space({"a": ["x", "y"], "b": (0.0, 1.0)}), 10**9) is None


def test_unique_rows_are_first_occurrences_with_nan_equal() -> None:
    X = np.array([[1.0, np.nan], [0.0, 1.0], [1.0, np.nan], [-0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    assert unique_rows(X).tolist() == [0, 1, 4]
    assert unique_rows(X[::-1]).tolist() == [0, 1, 3]
    assert unique_rows(X[:0]).tolist() == []
    assert unique_rows(np.asfortranarray(X)).tolist() == [0, 1, 4]
