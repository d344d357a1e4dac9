"""Past runs as predictors: units, subsets, edges, bad input."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.errors import InputError
from recollect.numerics.arrays import KernelShape
from recollect.surrogate.gp import GP, make_gp
from recollect.surrogate.kernels import Hyperparameters
from recollect.transfer.sources import SourceData, SourceFit, Sources

SHAPE = KernelShape(np.zeros(2, dtype=bool), False)
QUERY = np.random.default_rng(1).random((7, 2))


def make_run(task: str, n: int, seed: int, *, centre: float = 0.0, scale: float = 1.0) -> SourceData:
    rng = np.random.default_rng(seed)
    return SourceData(task, rng.random((n, 2)), centre + scale * rng.standard_normal(n))


def some_theta(k: int) -> np.ndarray:
    rng = np.random.default_rng(k)
    return np.log(np.column_stack((rng.uniform(0.5, 2, k), rng.uniform(0.2, 1, (k, 2)), rng.uniform(1e-4, 0.1, k))))


RUNS = (
    make_run("a", 12, 0, centre=50.0, scale=8.0),
    make_run("b", 2, 1, scale=1e-4),
    make_run("c", 30, 2, centre=-3.0),
)
SOURCES = Sources(RUNS, shape=SHAPE, theta=some_theta(3))
SCALES = np.array([[run.y.std()] for run in RUNS])


def one_by_one(sources: Sources) -> list[GP]:
    return [
        make_gp(sources.data(i).X, sources.data(i).y, shape=sources.shape, hyper=sources.hyper(i))
        for i in range(len(sources))
    ]


def relative(value: np.ndarray, wanted: np.ndarray, scale: np.ndarray) -> None:
    np.testing.assert_allclose(value / scale, wanted / scale, rtol=1e-9, atol=1e-9)


def test_predictions_are_in_the_units_of_each_run() -> None:
    gps, scale = one_by_one(SOURCES), SCALES
    mean, variance = SOURCES.posterior(QUERY)
    relative(SOURCES.means(QUERY), np.array([gp.mean(QUERY) for gp in gps]), scale)
    relative(mean, np.array([gp.predict(QUERY)[0] for gp in gps]), scale)
    relative(variance, np.array([gp.predict(QUERY)[1] for gp in gps]), scale**2)
    relative(SOURCES.covariances(QUERY, QUERY), np.array([gp.joint(QUERY)[1] for gp in gps]), scale[:, :, None] ** 2)


def test_reinterpolated_variances_are_in_the_units_of_each_run() -> None:
    standardized = Sources(
        [SourceData(r.task, r.X, (r.y - r.y.mean()) / r.y.std()) for r in RUNS], shape=SHAPE, theta=SOURCES.theta
    )
    X_t = QUERY[:3]
    value, unit = SOURCES.reinterpolated(X_t)(QUERY), standardized.reinterpolated(X_t)(QUERY)
    np.testing.assert_allclose(value, SCALES**2 * unit, rtol=1e-6)
    assert np.all(unit[:, :3] < 1e-9)
    assert np.all(unit[:, 3:] > 1e-9)


def test_the_runs_and_their_hyperparameters_can_be_read() -> None:
    assert SOURCES.tasks == ("a", "b", "c")
    assert len(SOURCES) == 3
    assert SOURCES.data(2) is RUNS[2]
    assert SOURCES.hyper(1).log() == pytest.approx(SOURCES.theta[1])


@pytest.mark.parametrize("subset", [[2, 0], [1], [0, 0, 2], [], np.array([2, 1], dtype=np.uint8)])
def test_a_subset_chooses_rows_in_their_order(subset: list[int]) -> None:
    whole, rows = SOURCES.posterior(QUERY), np.array(subset, dtype=int)
    X_t = QUERY[:2]
    np.testing.assert_allclose(SOURCES.means(QUERY, subset), whole[0][rows], rtol=1e-12)
    np.testing.assert_allclose(SOURCES.posterior(QUERY, subset)[1], whole[1][rows], rtol=1e-9)
    covariances = SOURCES.covariances(QUERY, X_t)
    np.testing.assert_allclose(SOURCES.covariances(QUERY, X_t, subset), covariances[rows], rtol=1e-9, atol=1e-12)
    variances = SOURCES.reinterpolated(X_t)(QUERY)
    np.testing.assert_allclose(SOURCES.reinterpolated(X_t, subset)(QUERY), variances[rows], rtol=1e-9)


@pytest.mark.parametrize("subset", [[3], [-1], [0.0], [[0]], [True, False, True], 1])
def test_subsets_that_do_not_exist_are_refused(subset: object) -> None:
    for ask in (SOURCES.means, SOURCES.posterior, lambda X, m: SOURCES.covariances(X, X, m), SOURCES.reinterpolated):
        with pytest.raises(InputError, match="from 0 to 2"):
            ask(QUERY, subset)


@pytest.mark.parametrize("centre", [0.0, -7.25, 0.1, 1e9])
def test_a_constant_run_predicts_its_constant(centre: float) -> None:
    constant = SourceData("flat", RUNS[0].X, np.full(12, centre))
    sources = Sources([RUNS[0], constant], shape=SHAPE, theta=some_theta(2))
    mean, variance = sources.posterior(QUERY)
    assert (mean[1] == centre).all()
    assert np.isfinite(variance).all()
    assert (variance > 0).all()
    assert np.isfinite(sources.covariances(QUERY, QUERY)).all()
    assert np.isfinite(sources.reinterpolated(QUERY[:2])(QUERY)).all()


def test_copies_of_one_run_predict_the_same() -> None:
    theta = np.repeat(some_theta(1), 3, axis=0)
    sources = Sources([RUNS[0]] * 3, shape=SHAPE, theta=theta)
    means = sources.means(QUERY)
    np.testing.assert_array_equal(means[0], means[1])
    np.testing.assert_array_equal(means[0], means[2])


def test_repeated_rows_in_a_run_are_no_obstacle() -> None:
    X = np.repeat(RUNS[0].X[:3], 4, axis=0)
    repeated = SourceData("again", X, np.arange(12.0))
    theta = some_theta(1)
    theta[:, -1] = -25.0
    sources = Sources([repeated], shape=SHAPE, theta=theta)
    assert np.isfinite(sources.means(QUERY)).all()
    variance = sources.reinterpolated(np.vstack((X, QUERY[:2])))(np.vstack((X, QUERY)))
    assert np.all(variance[:, :14] < 1e-7)
    assert np.all(variance[:, 14:] > 0.0)


@pytest.mark.parametrize("scale", [1e-200, 1e200, 1e-310])
def test_targets_of_any_magnitude_give_finite_positive_variances(scale: float) -> None:
    sources = Sources([make_run("far", 6, 3, scale=scale)], shape=SHAPE, theta=some_theta(1))
    mean, variance = sources.posterior(QUERY)
    assert np.isfinite(mean).all()
    assert np.isfinite(variance).all()
    assert (variance > 0.0).all()


def test_one_run_and_one_point_are_enough() -> None:
    sources = Sources(RUNS[:1], shape=SHAPE, theta=some_theta(1))
    np.testing.assert_allclose(sources.means(QUERY[:1]), [one_by_one(sources)[0].mean(QUERY[:1])], rtol=1e-9)


def test_no_runs_and_no_points_give_empty_answers() -> None:
    nobody = Sources([], shape=SHAPE, theta=np.zeros((0, 4)))
    assert nobody.means(QUERY).shape == (0, 7)
    assert nobody.posterior(QUERY)[1].shape == (0, 7)
    assert nobody.covariances(QUERY, QUERY[:2]).shape == (0, 7, 2)
    assert nobody.reinterpolated(QUERY)(QUERY).shape == (0, 7)
    assert SOURCES.means(QUERY[:0]).shape == (3, 0)
    assert SOURCES.posterior(QUERY[:0])[1].shape == (3, 0)
    assert SOURCES.covariances(QUERY[:0], QUERY).shape == (3, 0, 7)
    assert SOURCES.covariances(QUERY, QUERY[:0]).shape == (3, 7, 0)


def test_nothing_can_be_changed_from_outside() -> None:
    X, y = np.random.default_rng(0).random((3, 2)), np.arange(3.0)
    run = SourceData("mine", X, y)
    X[:], y[:] = 9.0, 9.0
    assert run.X.max() < 1.0
    for values in (run.X, run.y, SOURCES.theta):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((1, 2)), [1.0], "'t'.*at least 2 observations, got 1"),
        (np.zeros((0, 2)), [], "'t'.*n >= 1"),
        (np.zeros((2, 2)), [1.0, np.nan], "'t'.*finite targets"),
        (np.full((2, 2), np.inf), [1.0, 2.0], "'t'.*inf"),
        (np.zeros((3, 2)), [1.0, 2.0], r"'t'.*\(3, 2\)"),
        (np.zeros(2), [1.0, 2.0], "'t'.*expected X"),
    ],
)
def test_a_run_that_cannot_be_fitted_is_refused_by_name(X: np.ndarray, y: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SourceData("t", X, np.array(y))


@pytest.mark.parametrize("theta", [np.zeros((2, 4)), np.zeros((3, 3)), np.full((3, 4), np.nan)])
def test_hyperparameters_that_do_not_fit_the_runs_are_refused(theta: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"\(3, 4\)"):
        Sources(RUNS, shape=SHAPE, theta=theta)


def test_runs_and_points_of_another_space_are_refused() -> None:
    with pytest.raises(InputError, match=r"'a'.*3 columns.*\(12, 2\)"):
        Sources(RUNS, shape=KernelShape(np.zeros(3, dtype=bool), False), theta=np.zeros((3, 5)))
    for ask in (SOURCES.means, SOURCES.posterior, SOURCES.reinterpolated, SOURCES.reinterpolated(QUERY)):
        with pytest.raises(InputError, match=r"\(m, 2\)"):
            ask(np.zeros((4, 3)))


@pytest.mark.parametrize("wrong", [{"restarts": -1}, {"max_observations": 1}, {"max_fit_observations": 0}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        SourceFit(**wrong)


def test_hyperparameters_of_a_run_are_a_value() -> None:
    assert isinstance(SOURCES.hyper(0), Hyperparameters)
    assert SOURCES.hyper(0).lengthscales.shape == (2,)
