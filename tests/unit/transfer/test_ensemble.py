"""The ensemble is the weighted sum of its models, and evaluates no model without weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from recollect.surrogate.gp import make_gp
from recollect.surrogate.kernels import Hyperparameters
from recollect.transfer.sources import Sources

WEIGHTS = [[0.2, 0.5, 0.3], [0.6, 0.0, 0.4], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [1.0]]


def separate_models(ensemble: Any) -> list[Any]:
    """One process for each past run, made on its own, and the target's."""
    sources = ensemble.sources
    past = [] if sources is None else range(len(sources))
    made = [make_gp(sources.data(i).X, sources.data(i).y, shape=sources.shape, hyper=sources.hyper(i)) for i in past]
    return [*made, ensemble.target]


@pytest.mark.parametrize("weights", WEIGHTS)
def test_mean_and_variance_are_sums_over_separate_models(
    toy: Callable[..., Any], query: Any, weights: list[float]
) -> None:
    ensemble = toy(weights).ensemble
    predictions = [model.predict(query) for model in separate_models(ensemble)]
    mean = sum(w * m for w, (m, _) in zip(weights, predictions, strict=True))
    variance = sum(w**2 * v for w, (_, v) in zip(weights, predictions, strict=True))
    np.testing.assert_allclose(ensemble.predict(query), [mean, variance], rtol=1e-9)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_covariance_is_the_sum_over_separate_models(toy: Callable[..., Any], query: Any, weights: list[float]) -> None:
    ensemble = toy(weights).ensemble
    A, B = query[:4], query[3:]
    expected = sum(w**2 * model.covariance(A, B) for w, model in zip(weights, separate_models(ensemble), strict=True))
    np.testing.assert_allclose(ensemble.covariance(A, B), expected, atol=1e-10)
    np.testing.assert_allclose(np.diag(ensemble.covariance(A, A)), ensemble.predict(A)[1], rtol=1e-8)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_it_agrees_with_the_dense_formulas(toy: Callable[..., Any], query: Any, weights: list[float]) -> None:
    twin = toy(weights)
    np.testing.assert_allclose(twin.ensemble.predict(query)[0], twin.mean(query), rtol=1e-8)
    np.testing.assert_allclose(twin.ensemble.covariance(query, query), twin.cov(query, query), atol=1e-9)


def test_a_source_without_weight_is_not_evaluated(
    toy: Callable[..., Any], query: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensemble = toy([0.7, 0.0, 0.3, 0.0]).ensemble
    asked: list[tuple[int, ...]] = []
    for name in ("means", "posterior"):
        genuine = getattr(Sources, name)

        def spy(self: Any, X: Any, subset: Any = None, genuine: Any = genuine) -> Any:
            asked.append(tuple(subset))
            return genuine(self, X, subset)

        monkeypatch.setattr(Sources, name, spy)
    ensemble.means(query)
    ensemble.predict(query)
    assert asked == [(0, 2), (0, 2)]
    assert ensemble.active_sources.tolist() == [0, 2]
    assert ensemble.model_weights.tolist() == [0.7, 0.3, 0.0]


def test_without_active_sources_only_the_target_is_evaluated(
    toy: Callable[..., Any], query: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensemble = toy([0.0, 0.0, 1.0]).ensemble
    for name in ("means", "posterior", "covariances"):
        monkeypatch.setattr(Sources, name, lambda *_: pytest.fail("a past run without weight was asked"))
    assert ensemble.target_only
    mean, variance = ensemble.target.predict(query)
    assert np.array_equal(ensemble.predict(query)[0], mean)
    assert np.array_equal(ensemble.predict(query)[1], variance)
    assert np.array_equal(ensemble.covariance(query, query), ensemble.target.covariance(query, query))


def test_means_at_evaluated_points_come_from_what_was_predicted_before(toy: Callable[..., Any]) -> None:
    ensemble = toy([0.4, 0.0, 0.6]).ensemble
    marked = replace(ensemble, F=np.arange(10.0).reshape(2, 5))
    assert np.array_equal(marked.means_evaluated()[0], np.arange(5.0))
    assert np.array_equal(marked.means_evaluated()[1], ensemble.target.mean(ensemble.X))


def test_visited_are_the_evaluated_and_the_pending_points(toy: Callable[..., Any]) -> None:
    twin = toy([0.4, 0.6], pending=3)
    ensemble = twin.ensemble
    assert np.array_equal(ensemble.visited, twin.visited)
    expected = [gp.mean(twin.visited) for gp in twin.dense]
    np.testing.assert_allclose(ensemble.means_visited(), expected, rtol=1e-8)


def test_pending_points_leave_the_targets_mean_and_narrow_its_variance(toy: Callable[..., Any], query: Any) -> None:
    ensemble = toy([1.0], pending=3).ensemble
    aware = ensemble.target_given_pending()
    np.testing.assert_allclose(aware.mean(query), ensemble.target.mean(query), rtol=1e-9)
    assert np.all(aware.predict(query)[1] <= ensemble.target.predict(query)[1] + 1e-12)
    noise = ensemble.target.hyper.noise * ensemble.target.s**2
    assert np.all(aware.predict(ensemble.pending)[1] < noise)


def test_a_target_without_weight_adds_no_variance_however_uncertain_it_is(toy: Callable[..., Any], query: Any) -> None:
    ensemble = toy([1.0, 0.0]).ensemble
    target = ensemble.target
    wild = make_gp(target.X, 1e6 * target.y, shape=target.shape, hyper=Hyperparameters(7.0, np.ones(2), 1.0))
    np.testing.assert_array_equal(replace(ensemble, target=wild).predict(query)[1], ensemble.predict(query)[1])
