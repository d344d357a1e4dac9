"""The density of length scales against scipy and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import gamma

from recollect.errors import InputError
from recollect.numerics.arrays import KernelShape
from recollect.surrogate.fit import FitSettings, NegativeLogPosterior, RowPairs, fit_gp
from recollect.surrogate.prior import PAPER_PRIOR, TARGET_PRIOR, Prior
from recollect.surrogate.scaling import standardize


def test_the_density_is_the_gamma_density_up_to_a_constant() -> None:
    logs = np.log([[0.1, 0.5], [0.3, 1.0]])
    ours, _ = TARGET_PRIOR.lengthscale_log_density(logs)
    theirs = gamma(3.0, scale=1 / 6.0).logpdf(np.exp(logs)).sum(axis=1)
    assert ours[0] - ours[1] == pytest.approx(theirs[0] - theirs[1])


def test_the_objective_has_the_right_gradient_with_the_density() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.random((15, 3)), rng.normal(size=15)
    shape = KernelShape(np.zeros(3, dtype=bool), False)
    objective = NegativeLogPosterior([RowPairs(X, shape)], [standardize(y)[0]], prior=TARGET_PRIOR)
    theta = np.log([0.7, 0.3, 0.5, 0.9, 0.01])
    _, (gradient,) = objective(theta[None])
    step = 1e-6 * np.eye(5)
    numeric = (objective(theta + step)[0] - objective(theta - step)[0]) / 2e-6
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-6)


def test_the_paper_has_no_density_and_switching_densities_off_removes_it() -> None:
    for prior in (PAPER_PRIOR, Prior(lengthscale_gamma=(3.0, 6.0), use_priors=False)):
        value, slopes = prior.lengthscale_log_density(np.log([[0.2, 0.9]]))
        assert value.tolist() == [0.0]
        assert not slopes.any()


def test_the_density_keeps_length_scales_from_their_bounds_when_data_are_few() -> None:
    rng = np.random.default_rng(3)
    X = rng.random((8, 6))
    y = rng.normal(size=8)
    plain = fit_gp(X, y, settings=FitSettings(PAPER_PRIOR), rng=np.random.default_rng(0)).hyper.lengthscales
    kept = fit_gp(X, y, settings=FitSettings(TARGET_PRIOR), rng=np.random.default_rng(0)).hyper.lengthscales
    assert np.any(np.isclose(plain, PAPER_PRIOR.lengthscale_bounds[1]))
    assert kept.max() < 0.9
    assert kept.min() > 0.05


@pytest.mark.parametrize("pair", [(0.5, 6.0), (3.0, 0.0), (3.0, float("inf"))])
def test_a_density_that_makes_no_sense_is_refused(pair: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="lengthscale_gamma"):
        Prior(lengthscale_gamma=pair)
