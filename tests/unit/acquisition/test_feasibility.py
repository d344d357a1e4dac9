"""Failures lower the value of their surroundings, successes raise it again, nothing is excluded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recollect import FAILED as FAILURE
from recollect import Optimizer, Run
from recollect.acquisition.feasibility import MIN_FEASIBILITY, fit_feasibility, weigh_by_feasibility
from recollect.acquisition.functions import PreparedAcquisition, SmoothScore
from recollect.numerics.arrays import KernelShape
from recollect.surrogate.gp import make_gp
from recollect.surrogate.kernels import Hyperparameters

FAR = np.array([[0.9, 0.9], [0.85, 0.95], [0.95, 0.8]])
NEAR = np.array([[0.1, 0.12]])
FAILED = np.array([[0.1, 0.1]])
NO_FAILURE = np.empty((0, 2))


def target(X: Any, *, categorical: Any = (False, False), conditional: bool = False) -> Any:
    shape = KernelShape(np.array(categorical), conditional)
    return make_gp(X, np.arange(float(len(X))), shape=shape, hyper=Hyperparameters(1.0, np.full(2, 0.3), 1e-6))


def prepared(score: Any) -> PreparedAcquisition:
    smooth = SmoothScore(score, lambda X: (score(X), np.ones(X.shape)), np.ones(2))
    return PreparedAcquisition(score, lambda x: x, smooth)


def probability(model: Any, failed: Any, at: Any) -> Any:
    flat = prepared(lambda X: np.zeros(len(X)))
    return np.exp(weigh_by_feasibility(flat, model.X, failed, shape=model.shape).score(at))


def dense_probability(evaluated: Any, failed: Any, at: Any) -> Any:
    """One minus the mean of a process on 0 for success and 1 for failure, around the mean of all, written out."""
    length = 0.5 * np.sqrt(evaluated.shape[1] / 6)

    def kernel(A: Any, B: Any) -> Any:
        t = np.sqrt(5) * np.linalg.norm(A[:, None] - B[None], axis=2) / length
        return (1 + t + t**2 / 3) * np.exp(-t)

    Z = np.concatenate([evaluated, failed])
    r = np.repeat([0.0, 1.0], [len(evaluated), len(failed)])
    failure = r.mean() + kernel(at, Z) @ np.linalg.solve(kernel(Z, Z) + 0.01 * np.eye(len(Z)), r - r.mean())
    return np.clip(1 - failure, MIN_FEASIBILITY, 1.0)


def test_without_failures_the_score_is_untouched() -> None:
    own = prepared(lambda X: X[:, 0])
    assert weigh_by_feasibility(own, target(FAR).X, NO_FAILURE, shape=target(FAR).shape) is own


def test_it_is_one_minus_the_mean_of_a_process_on_failures() -> None:
    rng = np.random.default_rng(0)
    X, failed, at = rng.random((8, 2)), rng.random((4, 2)), rng.random((30, 2))
    expected = dense_probability(X, failed, at)
    assert expected.min() < 0.3
    assert expected.max() > 0.9
    np.testing.assert_allclose(probability(target(X), failed, at), expected, rtol=1e-8)


def test_it_is_low_near_a_failure_and_high_near_successes() -> None:
    model = target(FAR)
    near, far = (probability(model, FAILED, at)[0] for at in (NEAR, FAR[:1]))
    assert near < 0.1
    assert far > 0.95
    assert probability(model, FAILED, FAILED)[0] < 0.02


def test_far_from_all_trials_it_is_the_part_that_succeeded() -> None:
    far = np.array([[90.0, 90.0]])
    assert probability(target(FAR), FAILED, far)[0] == pytest.approx(3 / 4)
    assert probability(target(FAR[:1]), np.repeat(FAILED, 9, axis=0), far)[0] == pytest.approx(1 / 10)


def test_successes_around_a_failure_raise_it_again() -> None:
    around = np.array([[0.1, 0.15], [0.05, 0.1], [0.14, 0.08]])
    lonely = probability(target(FAR), FAILED, NEAR)[0]
    crowded = probability(target(np.concatenate([FAR, around])), FAILED, NEAR)[0]
    assert crowded > 0.5 > 5 * lonely


def test_it_never_falls_below_the_floor_nor_exceeds_one() -> None:
    many = 0.5 + 0.01 * np.random.default_rng(0).standard_normal((30, 2))
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 21), np.linspace(0, 1, 21)), axis=-1).reshape(-1, 2)
    got = probability(target(FAR), many, grid)
    assert got.max() <= 1.0
    assert got.min() == pytest.approx(MIN_FEASIBILITY)


def test_the_logarithm_is_added_and_minus_infinity_stays() -> None:
    model = target(FAR)
    own = prepared(lambda X: np.where(X[:, 0] > 0.5, -np.inf, 2.5))
    weighted = weigh_by_feasibility(own, model.X, FAILED, shape=model.shape).score
    assert weighted(FAR).tolist() == [-np.inf] * 3
    assert weighted(NEAR)[0] == pytest.approx(2.5 + np.log(probability(model, FAILED, NEAR)[0]))


def test_gradients_agree_with_finite_differences() -> None:
    rng = np.random.default_rng(1)
    X, failed, at = rng.random((8, 2)), rng.random((4, 2)), rng.random((30, 2))
    model = fit_feasibility(X, failed, shape=target(X).shape)
    values, gradients = model.log_probability_with_gradient(at)
    np.testing.assert_allclose(values, np.log(dense_probability(X, failed, at)), rtol=1e-7, atol=1e-9)
    inside = (values < -1e-6) & (values > np.log(MIN_FEASIBILITY) + 1e-6)
    assert inside.sum() > 10
    for j, move in enumerate(1e-6 * np.eye(2)):
        slopes = (model.log_probability(at + move) - model.log_probability(at - move)) / 2e-6
        np.testing.assert_allclose(gradients[inside, j], slopes[inside], rtol=1e-4, atol=1e-5)
    assert not gradients[~inside].any()


def test_score_and_smooth_score_agree() -> None:
    model = target(FAR)
    weighted = weigh_by_feasibility(prepared(lambda X: X[:, 0]), model.X, FAILED, shape=model.shape)
    assert weighted.smooth is not None
    at = np.random.default_rng(2).random((20, 2))
    np.testing.assert_allclose(weighted.smooth.evaluate(at)[0], weighted.score(at), rtol=1e-10)


def test_another_choice_or_another_activity_is_far_from_a_failure() -> None:
    X = np.array([[0.0, 0.9], [1.0, 0.9]])
    failed = np.array([[0.0, 0.1]])
    by_choice = target(X, categorical=(True, False))
    same, other = probability(by_choice, failed, np.array([[0.0, 0.1], [1.0, 0.1]]))
    assert same < 0.02
    assert other > 0.6
    by_activity = target(np.array([[0.2, np.nan], [0.2, 0.9]]), conditional=True)
    off, on = probability(by_activity, np.array([[0.2, 0.4]]), np.array([[0.2, np.nan], [0.2, 0.4]]))
    assert off > 0.95
    assert on < 0.1


def test_repeated_failures_of_one_configuration_are_no_numerical_trouble() -> None:
    got = probability(target(FAR), np.repeat(FAILED, 40, axis=0), np.concatenate([FAILED, FAR]))
    assert np.isfinite(got).all()
    assert got[0] == pytest.approx(MIN_FEASIBILITY)


@pytest.mark.parametrize("name", ["rgpe-taf", "rgpe-mogp", "tstr-taf", "rgpe-ei"])
def test_a_model_that_knows_one_success_is_not_sent_from_one_failing_corner_to_the_next(name: str) -> None:
    names = "abcde"

    def value(config: Any) -> float | None:
        if abs(config["a"]) > 0.8:
            return None
        return float(sum((config[name] - 0.1 * place) ** 2 for place, name in enumerate(names)))

    space: Any = dict.fromkeys(names, (-1.0, 1.0))
    rng = np.random.default_rng(0)
    configs = [dict(zip(names, rng.uniform(-0.8, 0.8, 5), strict=True)) for _ in range(15)]
    past = Run("before", configs, [value(config) for config in configs])
    optimizer = Optimizer(space, [past], name, horizon=15, seed=0)
    for _ in range(15):
        config = optimizer.ask()
        found = value(config)
        optimizer.tell(config, FAILURE if found is None else found)
    assert sum(not trial.ok for trial in optimizer.run.trials) <= 7
    assert optimizer.run.y.min() < optimizer.run.y[0]
