"""The learned prior for copula processes against scipy, plain algebra and functions whose moments are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
from scipy.stats import norm

from recollect.errors import InputError, NumericalError
from recollect.neural import copula_prior
from recollect.neural.copula_prior import (
    CopulaPrior,
    PreparedCopulaPrior,
    Training,
    draw_batches,
    learning_rate,
    negative_log_likelihood,
    train,
)
from recollect.numerics.arrays import KernelShape
from recollect.surrogate.fit import FitSettings, fit_gp
from recollect.surrogate.gp import make_gp
from recollect.surrogate.prior import TARGET_PRIOR
from recollect.surrogate.scaling import copula
from recollect.transfer.sources import SourceData

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
MIXED = KernelShape(np.array([True, False, False]), True)
LINE = KernelShape(np.zeros(1, dtype=bool), False)
SIZES = np.array([3, 100, 100])
QUICK = CopulaPrior(Training(hidden=(16, 16), steps=150))


def mixed(n: int, seed: int) -> tuple[Array, Array]:
    """Points with a categorical column first, and a last column that is inactive for the third choice."""
    rng = np.random.default_rng(seed)
    code = rng.integers(3, size=n).astype(float)
    X = np.column_stack((code, rng.random(n), np.where(code == 2, np.nan, rng.random(n))))
    return X, code - 1.0 + np.sin(5.0 * X[:, 1]) + 0.1 * rng.standard_normal(n)


def prepare(
    settings: CopulaPrior = QUICK, *, past: list[SourceData] | None = None, seed: int = 0
) -> PreparedCopulaPrior:
    runs = [SourceData(str(i), X, copula(y)) for i, (X, y) in ((i, mixed(30, i)) for i in range(4))]
    data = runs if past is None else past
    return settings.prepare(data, shape=MIXED, sizes=SIZES, rng=np.random.default_rng(seed))


@pytest.fixture(scope="module")
def learned() -> PreparedCopulaPrior:
    return prepare()


def test_likelihood_is_that_of_each_score_at_its_own_point() -> None:
    rng = np.random.default_rng(0)
    z, mean, std = rng.standard_normal(7), rng.standard_normal(7), rng.random(7) + 0.1
    found = negative_log_likelihood(jnp.asarray(z), mean=jnp.asarray(mean), std=jnp.asarray(std))
    assert found.shape == (7,)
    np.testing.assert_allclose(found, -norm.logpdf(z, mean, std), rtol=2e-5)


def test_mean_and_standard_deviation_of_a_heteroscedastic_function_are_recovered() -> None:
    rng = np.random.default_rng(1)
    past = []
    for i in range(10):
        x = rng.random((200, 1))
        past.append(SourceData(str(i), x, np.sin(3.0 * x[:, 0]) + (0.1 + 0.6 * x[:, 0]) * rng.standard_normal(200)))
    network = CopulaPrior().prepare(past, shape=LINE, sizes=np.array([100]), rng=rng).network
    query = np.linspace(0.05, 0.95, 19)[:, None]
    mean, std = network.moments(query)
    assert np.abs(mean - np.sin(3.0 * query[:, 0])).max() < 0.2
    np.testing.assert_allclose(std, 0.1 + 0.6 * query[:, 0], atol=0.12)


def test_past_runs_without_any_spread_leave_a_usable_prior() -> None:
    x = np.linspace(0.0, 1.0, 1100)[:, None]
    prior = CopulaPrior().prepare(
        [SourceData("flat", x, np.zeros(1100))], shape=LINE, sizes=np.array([100]), rng=np.random.default_rng(0)
    )
    mean, variance = prior.fit(x[::200], copula(x[::200, 0]), start=None, rng=np.random.default_rng(0)).predict(x)
    assert np.isfinite(mean).all()
    assert np.all((variance > 0.0) & np.isfinite(variance))


def test_forward_pass_is_plain_algebra_with_rectifiers_and_softplus(learned: PreparedCopulaPrior) -> None:
    X, _ = mixed(11, 50)
    code, rest = X[:, :1], np.nan_to_num(X[:, 1:], nan=-1.0)
    x, begin = np.hstack((rest, (code == np.arange(3)).astype(float))), 0
    flat = learned.network.flat
    for a, b in ((5, 16), (16, 16), (16, 2)):
        x = x @ flat[begin : begin + a * b].reshape(a, b) + flat[begin + a * b : begin + (a + 1) * b]
        x = np.maximum(x, 0.0) if b != 2 else x
        begin += (a + 1) * b
    mean, std = learned.network.moments(X)
    np.testing.assert_allclose(mean, x[:, 0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(std, np.log1p(np.exp(x[:, 1])) + 1e-11, rtol=1e-10)


def test_prediction_is_the_residual_process_on_the_original_columns_brought_back(learned: PreparedCopulaPrior) -> None:
    X, y = mixed(9, 60)
    z = copula(y)
    model = learned.fit(X, z, start=None, rng=np.random.default_rng(2))
    query, _ = mixed(40, 61)
    (m, s), (m_q, s_q) = learned.network.moments(X), learned.network.moments(query)
    settings = FitSettings(TARGET_PRIOR, 10, True)
    gp = fit_gp(X, (z - m) / s, categorical=[True, False, False], settings=settings, rng=np.random.default_rng(2))
    residual, variance = gp.predict(query)
    mean, spread = model.predict(query)
    np.testing.assert_allclose(mean, m_q + s_q * residual, rtol=1e-12)
    np.testing.assert_allclose(spread, s_q**2 * variance, rtol=1e-12)
    np.testing.assert_allclose(model.mean(query), mean, rtol=1e-12)
    np.testing.assert_array_equal(model.X, X)
    np.testing.assert_array_equal(model.y, z)
    assert mean.dtype == spread.dtype == np.float64


def test_nothing_is_dropped_at_prediction_and_the_same_seed_gives_the_same_model(learned: PreparedCopulaPrior) -> None:
    X, y = mixed(8, 70)
    query, _ = mixed(20, 71)
    models = [prior.fit(X, copula(y), start=None, rng=np.random.default_rng(0)) for prior in (learned, prepare())]
    np.testing.assert_array_equal(models[0].predict(query), models[0].predict(query))
    np.testing.assert_array_equal(models[0].predict(query), models[1].predict(query))
    assert not np.array_equal(learned.network.flat, prepare(seed=1).network.flat)


def test_dropout_takes_part_in_training_and_no_dropout_means_none(learned: PreparedCopulaPrior) -> None:
    without = prepare(replace(QUICK, training=replace(QUICK.training, dropout=0.0)))
    assert not np.allclose(without.network.flat, learned.network.flat, atol=1e-3)


def test_the_learning_rate_is_multiplied_by_a_fifth_after_every_thousand_steps() -> None:
    rate = learning_rate(Training())
    found = [float(rate(done)) for done in (0, 999, 1000, 1999, 2000, 2999)]
    np.testing.assert_allclose(found, [1e-2, 1e-2, 2e-3, 2e-3, 4e-4, 4e-4], rtol=1e-6)


def test_training_follows_the_learning_rate() -> None:
    """Far from the scores Adam moves the bias of the mean by the learning rate in every step."""
    training = Training(hidden=(4,), dropout=0.0, steps=6, rate=0.01, decay=1e-4, decay_every=2)
    batches = draw_batches(training, 4, rng=np.random.default_rng(0))
    data = {"X": jnp.zeros((4, 1)), "z": jnp.full(4, 1e4)}
    flat = train(jnp.zeros(18), batches, **data, widths=(1, 4, 2), training=training)
    assert float(flat[-2]) == pytest.approx(0.02, rel=0.01)


def test_rows_are_drawn_with_replacement_from_the_real_ones_only() -> None:
    batches = draw_batches(Training(steps=50, batch=64), 5, rng=np.random.default_rng(0))
    rows = np.asarray(batches.rows)
    assert rows.shape == (50, 64)
    assert np.unique(rows).tolist() == [0, 1, 2, 3, 4]
    assert len(np.unique(np.asarray(batches.keys), axis=0)) == 50


def test_conditioning_conditions_the_process_on_the_residuals(learned: PreparedCopulaPrior) -> None:
    X, y = mixed(10, 80)
    z, query = copula(y), mixed(20, 81)[0]
    model = learned.fit(X[:8], z[:8], start=None, rng=np.random.default_rng(0))
    more = model.condition(X[8:], z[8:])
    m, s = learned.network.moments(X)
    gp = make_gp(X[:8], (z[:8] - m[:8]) / s[:8], shape=MIXED, hyper=model.gp.hyper)
    gp = gp.condition(X[8:], (z[8:] - m[8:]) / s[8:])
    m_q, s_q = learned.network.moments(query)
    np.testing.assert_allclose(more.mean(query), m_q + s_q * gp.mean(query), rtol=1e-10)
    np.testing.assert_array_equal(more.X, X)
    np.testing.assert_array_equal(more.y, z)
    assert model.condition(np.empty((0, 3)), np.empty(0)) is model
    with pytest.raises(InputError, match="shape"):
        model.condition(np.zeros((1, 2)), np.zeros(1))


def test_a_warm_fit_starts_from_the_previous_hyperparameters(
    learned: PreparedCopulaPrior, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[object, int]] = []

    def recording(X: Array, r: Array, *, settings: FitSettings, start: object, **rest: object) -> object:
        seen.append((start, settings.restarts))
        return fit_gp(X, r, settings=settings, start=start, **rest)

    monkeypatch.setattr(copula_prior, "fit_gp", recording)
    X, y = mixed(8, 90)
    rng = np.random.default_rng(0)
    first = learned.fit(X[:7], copula(y[:7]), start=None, rng=rng)
    learned.fit(X, copula(y), start=first, rng=rng)
    learned.fit(X, copula(y), start="nonsense", rng=rng)
    assert seen == [(None, 10), (first.gp.hyper, 2), (None, 10)]


@pytest.mark.parametrize("z", [[0.0], [0.0, 0.0, 0.0], [1.0, -1.0, 1.0, -1.0]])
def test_one_observation_constants_and_ties_give_finite_predictions(
    learned: PreparedCopulaPrior, z: list[float]
) -> None:
    X = np.repeat(mixed(1, 5)[0], len(z), axis=0)
    mean, variance = learned.fit(X, z, start=None, rng=np.random.default_rng(0)).predict(mixed(30, 6)[0])
    assert np.isfinite(mean).all()
    assert np.all((variance > 0.0) & np.isfinite(variance))


def test_without_past_runs_the_model_is_the_plain_process() -> None:
    X, y = mixed(9, 20)
    z, query = copula(y), mixed(25, 21)[0]
    model = prepare(past=[]).fit(X, z, start=None, rng=np.random.default_rng(4))
    settings = FitSettings(TARGET_PRIOR, 10, True)
    plain = fit_gp(X, z, categorical=MIXED.categorical, settings=settings, rng=np.random.default_rng(4))
    np.testing.assert_allclose(model.predict(query), plain.predict(query), rtol=1e-6)


def test_training_that_never_ends_in_finite_numbers_is_a_numerical_error(monkeypatch: pytest.MonkeyPatch) -> None:
    trainings = 0

    def sick(flat: jax.Array, batches: object, **rest: object) -> jax.Array:
        nonlocal trainings
        trainings += 1
        return flat * (1.0 if trainings == 12 + 3 else jnp.nan)

    monkeypatch.setattr(copula_prior, "train", sick)
    with pytest.raises(NumericalError, match=r"4 past runs \(120 observations\) .* 11 times"):
        prepare()
    assert trainings == 11
    assert np.isfinite(prepare().network.flat).all()
    assert trainings == 15


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="at least 1"):
        Training(hidden=())
    with pytest.raises(InputError, match="at least 1"):
        Training(batch=0)
    with pytest.raises(InputError, match="dropout"):
        Training(dropout=1.0)
    with pytest.raises(InputError, match="columns"):
        prepare(past=[SourceData("narrow", np.zeros((2, 2)), np.arange(2.0))])
