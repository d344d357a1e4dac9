"""The multi-task model as a joint model of past runs and the new task."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.multitask_data import ONE, points, some_hyper, tasks, theta_of

from recollect.errors import InputError
from recollect.surrogate.fit import FitSettings, fit_gp
from recollect.surrogate.gp import make_gp
from recollect.surrogate.kernels import Hyperparameters
from recollect.surrogate.multitask import MultiTaskSettings, TaskHyperparameters, fit_multitask, make_multitask
from recollect.surrogate.prior import TARGET_PRIOR
from recollect.transfer.joint import ONE_SECOND_SIZE, MultiTaskModel, TaskPosterior
from recollect.transfer.sources import SourceData

NO_SIZES = np.zeros(1, np.intp)


def wave(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.sin(7.0 * x[:, 0]) + 0.5 * np.cos(15.0 * x[:, 0]))


def two_waves(sign: float, n: int = 4) -> tuple[SourceData, np.ndarray, np.ndarray]:
    past, X = np.linspace(0, 1, 25)[:, None], np.linspace(0, 0.55, n)[:, None]
    return SourceData("past", past, 100.0 + 30.0 * sign * wave(past)), X, wave(X)


def learned(past: list[SourceData], model: MultiTaskModel | None = None, seed: int = 0):
    rng = np.random.default_rng(seed)
    return (model or MultiTaskModel()).prepare(past, shape=ONE, sizes=NO_SIZES, rng=rng)


@pytest.mark.parametrize(("sign", "n"), [(1.0, 4), (-1.0, 7)])
def test_a_past_run_that_is_a_copy_or_the_negative_of_the_task_helps_far_from_its_observations(sign, n) -> None:
    past, X, y = two_waves(sign, n)
    fit = learned([past]).fit(X, y, start=None, rng=np.random.default_rng(1))
    alone = fit_gp(X, y, settings=FitSettings(TARGET_PRIOR), rng=np.random.default_rng(1))
    far = np.linspace(0.7, 1, 20)[:, None]
    error, lone_error = (np.sqrt(np.mean((model.mean(far) - wave(far)) ** 2)) for model in (fit, alone))
    assert sign * fit.model.hyper.correlations[-1, 0] > 0.7
    assert error < 0.5 * lone_error
    assert (fit.predict(far)[1] < alone.predict(far)[1]).all()


def test_an_unrelated_past_run_has_little_influence() -> None:
    past, X, _ = two_waves(1.0, 25)
    other = np.cos(23.0 * X[:, 0] + 1.0) * (1.0 - X[:, 0])
    fit = learned([past]).fit(X, other, start=None, rng=np.random.default_rng(1))
    assert abs(fit.model.hyper.correlations[-1, 0]) < 0.6
    np.testing.assert_allclose(fit.mean(X), other, atol=0.1)


def test_one_observation_suffices_to_follow_past_runs_that_agree() -> None:
    past, _, _ = two_waves(1.0)
    also = SourceData("also", past.X[::2], wave(past.X[::2]) + 5.0)
    fit = learned([past, also]).fit([[0.5]], [3.0], start=None, rng=np.random.default_rng(1))
    x = np.linspace(0, 1, 50)[:, None]
    assert np.corrcoef(fit.mean(x), wave(x))[0, 1] > 0.9
    assert fit.mean([[0.5]])[0] == pytest.approx(3.0, abs=0.2)


EDGES = {
    "single": ([[0.5]], [1.0]),
    "constant": ([[0.1], [0.5], [0.9]], [2.0, 2.0, 2.0]),
    "ties": ([[0.1], [0.5], [0.9], [0.7]], [2.0, 1.0, 2.0, 1.0]),
    "repeated": ([[0.5], [0.5], [0.5]], [1.0, 2.0, 1.5]),
    "same as past": (np.linspace(0, 1, 25)[:, None], wave(np.linspace(0, 1, 25)[:, None])),
    "huge": ([[0.1], [0.5], [0.9]], [-1e300, 0.0, 1e300]),
    "tiny": ([[0.1], [0.5], [0.9]], [1e-300, 2e-300, 4e-300]),
}


@pytest.mark.parametrize("edge", list(EDGES))
def test_odd_data_give_finite_predictions_and_positive_variances(edge: str) -> None:
    past, _, _ = two_waves(1.0)
    flat = SourceData("flat", [[0.2], [0.2], [0.8]], [1.0, 1.0, 1.0])
    X, y = EDGES[edge]
    past_tasks = learned([past, flat, past])
    fit = past_tasks.fit(X, y, start=None, rng=np.random.default_rng(1))
    for model in (fit, past_tasks.fit(X, y, start=fit, rng=np.random.default_rng(1)), fit.condition(X, y)):
        mean, variance = model.predict(np.linspace(-0.1, 1.1, 9)[:, None])
        assert np.isfinite(mean).all()
        assert np.isfinite(variance).all()
        assert (variance > 0).all()
    np.testing.assert_array_equal(fit.X, X)
    np.testing.assert_array_equal(fit.model.y[fit.model.task == fit.task], y)


def test_a_task_posterior_is_the_last_task_of_its_model() -> None:
    Xs, ys, shape = tasks("conditional")
    model = make_multitask(Xs, ys, shape=shape, hyper=some_hyper())
    view, X = TaskPosterior(model), points(5, "conditional", np.random.default_rng(0))
    np.testing.assert_array_equal(view.X, Xs[2])
    assert view.task == 2
    np.testing.assert_array_equal(view.mean(X), model.mean(X, task=2))
    np.testing.assert_array_equal(view.predict(X), model.predict(X, task=2))
    after = view.condition(X[:2], [1.0, 2.0])
    np.testing.assert_array_equal(after.model.y[after.model.task == 2], [*ys[2], 1.0, 2.0])
    np.testing.assert_array_equal(after.X, np.vstack((Xs[2], X[:2])))


def test_without_past_runs_the_fit_is_that_of_a_single_process() -> None:
    _, X, y = two_waves(1.0, 9)
    fit = learned([]).fit(X, y, start=None, rng=np.random.default_rng(0))
    alone = fit_gp(X, y, settings=FitSettings(TARGET_PRIOR, restarts=0), rng=np.random.default_rng(0))
    assert fit.model.log_posterior == pytest.approx(alone.log_posterior, abs=1e-3)
    x = np.linspace(0, 1, 9)[:, None]
    np.testing.assert_allclose(fit.mean(x), alone.mean(x), atol=0.01)
    assert fit.model.hyper.correlations.shape == (1, 1)


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[TaskHyperparameters, int]]:
    """Starting points and numbers of restarts of all fits."""
    calls: list[tuple[TaskHyperparameters, int]] = []

    def noted(*args, start, settings, **rest):
        calls.append((start, settings.restarts))
        return fit_multitask(*args, start=start, settings=settings, **rest)

    monkeypatch.setattr("recollect.transfer.joint.fit_multitask", noted)
    return calls


def test_the_first_fit_starts_with_the_new_task_as_an_average_of_the_past_ones(starts) -> None:
    past, X, y = two_waves(1.0, 8)
    past_tasks = learned([past, past.at(np.arange(9))], MultiTaskModel(rank=2, restarts=1))
    past_tasks.fit(X, y, start=None, rng=np.random.default_rng(0))
    found, (first, restarts) = past_tasks.hyper, starts[-1]
    assert restarts == 1
    np.testing.assert_array_equal(first.lengthscales, found.lengthscales)
    np.testing.assert_allclose(first.shared[:, 0], [*found.shared[:, 0], found.shared[:, 0].mean()])
    np.testing.assert_allclose(first.own, [*found.own, np.sqrt(found.own.prod())])
    np.testing.assert_allclose(first.noise, [*found.noise, np.sqrt(found.noise.prod())])
    assert first.shared[:, 1].any()


def test_a_fit_starts_from_the_previous_one_and_from_nothing_else(starts) -> None:
    past, X, y = two_waves(1.0, 8)
    past_tasks = learned([past, past], MultiTaskModel(rank=2, restarts=1))
    before = past_tasks.fit(X[:7], y[:7], start=None, rng=np.random.default_rng(0))
    cold = starts[-1][0]
    past_tasks.fit(X, y, start=before, rng=np.random.default_rng(0))
    assert starts[-1] == (before.model.hyper, 0)
    stranger = make_gp(X, y, shape=ONE, hyper=Hyperparameters.default(1))
    fewer_tasks = learned([past]).fit(X, y, start=None, rng=np.random.default_rng(0))
    for start in (stranger, fewer_tasks):
        past_tasks.fit(X, y, start=start, rng=np.random.default_rng(0))
        assert starts[-1][1] == 1
        np.testing.assert_array_equal(theta_of(starts[-1][0]), theta_of(cold))


def test_the_same_random_numbers_give_the_same_fit() -> None:
    past, X, y = two_waves(1.0)
    fits = [
        learned([past], MultiTaskModel(restarts=2)).fit(X, y, start=None, rng=np.random.default_rng(4))
        for _ in range(2)
    ]
    np.testing.assert_array_equal(theta_of(fits[0].model.hyper), theta_of(fits[1].model.hyper))


def test_too_many_past_observations_are_refused_with_a_reason_and_a_way_out() -> None:
    run = SourceData("run", np.linspace(0, 1, 8)[:, None], np.arange(8.0))
    with pytest.raises(InputError) as error:
        learned([run] * 3, MultiTaskModel(max_observations=23))
    for words in (
        "at most 23",
        "got 24 from 3 runs",
        "cubic",
        "0.1 seconds per suggestion",
        "fewer past runs",
        "rgpe-taf",
    ):
        assert words in str(error.value)
    with pytest.raises(InputError, match="at most 23"):
        MultiTaskModel(max_observations=23).check([run] * 3)
    MultiTaskModel(max_observations=24).check([run] * 3)
    assert learned([run] * 3, MultiTaskModel(max_observations=24)).hyper is not None
    many = SourceData("many", np.linspace(0, 1, 2 * ONE_SECOND_SIZE)[:, None], np.arange(2.0 * ONE_SECOND_SIZE))
    with pytest.raises(InputError, match=rf"at most {ONE_SECOND_SIZE} .* got {2 * ONE_SECOND_SIZE} .* 8\.0 seconds"):
        learned([many])


BAD = {
    "no tasks": (lambda: make_multitask([], [], shape=ONE, hyper=some_hyper(1, 0, d=1)), "at least one task"),
    "uneven": (lambda: make_multitask([[[0.0]]], [], shape=ONE, hyper=some_hyper(1, 0, d=1)), "got 1 and 0"),
    "columns": (lambda: make_multitask([[[0.0, 1.0]]], [[1.0]], shape=ONE, hyper=some_hyper(1, 0, d=1)), "task 0"),
    "empty task": (lambda: make_multitask([np.empty((0, 1))], [[]], shape=ONE, hyper=some_hyper(1, 0, d=1)), "n >= 1"),
    "nan": (lambda: make_multitask([[[0.0]]], [[np.nan]], shape=ONE, hyper=some_hyper(1, 0, d=1)), "finite targets"),
    "hyper": (lambda: make_multitask([[[0.0]]], [[1.0]], shape=ONE, hyper=some_hyper(2, 1, d=1)), "2 tasks with 1"),
    "task": (lambda: one_point().predict([[0.0]], task=1), "from 0 to 0, got 1"),
    "negative task": (lambda: one_point().condition([[0.0]], [1.0], task=-1), "from 0 to 0, got -1"),
    "inputs": (lambda: one_point().mean([[0.0, 1.0]], task=0), r"\(m, 1\)"),
    "new columns": (lambda: one_point().condition([[0.0, 1.0]], [1.0], task=0), r"\(m, 1\)"),
    "zero own": (lambda: TaskHyperparameters([1.0], [[1.0]], [0.0], [1.0]), "own positive"),
    "nan W": (lambda: TaskHyperparameters([1.0], [[np.nan]], [1.0], [1.0]), "shared finite"),
    "axes": (lambda: TaskHyperparameters([1.0], [1.0], [1.0], [1.0]), "with 2 axes"),
    "sizes": (lambda: TaskHyperparameters([1.0], [[1.0]], [1.0, 1.0], [1.0]), "t >= 1"),
    "rank": (lambda: MultiTaskModel(rank=-1), "rank >= 0, got -1"),
    "restarts": (lambda: MultiTaskSettings(restarts=-1), "restarts >= 0, got -1"),
    "max_observations": (lambda: MultiTaskModel(max_observations=-1), "max_observations >= 0, got -1"),
    "start": (lambda: fit_from(some_hyper(2, 1, d=1)), r"W \(1, 0\), got 1 and \(2, 1\)"),
    "past": (lambda: learned([SourceData("odd", np.zeros((2, 3)), [1.0, 2.0])]), "'odd'"),
}


def one_point():
    return make_multitask([[[0.0]]], [[1.0]], shape=ONE, hyper=some_hyper(1, 0, d=1))


def fit_from(start: TaskHyperparameters):
    rng = np.random.default_rng(0)
    return fit_multitask([[[0.0]]], [[1.0]], shape=ONE, settings=MultiTaskSettings(), start=start, rng=rng)


@pytest.mark.parametrize("case", list(BAD))
def test_bad_input_is_refused_and_named(case: str) -> None:
    call, words = BAD[case]
    with pytest.raises(InputError, match=words):
        call()
