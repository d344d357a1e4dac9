"""Compressing the tail of bad values."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.optimizer.catalog import method
from recollect.optimizer.model import FittedModel, TransferContext, fit_model
from recollect.space.space import compile_space
from recollect.surrogate.scaling import Scaling, compress_tail, in_units_of_y, standardize, transform


def test_the_better_half_keeps_its_proportions() -> None:
    y = np.array([1.0, 2.0, 4.0, 7.0, 1e6])
    z, middle, scale = compress_tail(y)
    assert middle == 4.0
    assert scale == pytest.approx(np.sqrt((9 + 4 + 0) / 3))
    np.testing.assert_allclose(z[:3], (y[:3] - 4.0) / scale)
    np.testing.assert_allclose(z[3:], np.log1p((y[3:] - 4.0) / scale))


def test_order_and_ties_are_kept() -> None:
    rng = np.random.default_rng(0)
    y = np.round(rng.standard_cauchy(200), 1)
    z = transform(y, "tail")
    assert np.array_equal(np.argsort(y, kind="stable"), np.argsort(z, kind="stable"))
    assert np.array_equal(np.unique(y, return_inverse=True)[1], np.unique(z, return_inverse=True)[1])


def test_a_huge_value_does_not_hide_the_others() -> None:
    y = np.array([0.1, 0.2, 0.3, 0.4, 1e300])
    z = compress_tail(y)[0]
    assert np.ptp(z[:4]) > 1.0
    assert np.ptp(standardize(y)[0][:4]) < 1e-200
    assert z[4] < 1000.0


@pytest.mark.parametrize("y", [[3.0], [2.0, 2.0, 2.0], [1.0, 1.0, 1.0, 5.0], [-1e308, 1e308, 1e308], [-1e308, -1e308]])
def test_targets_without_a_better_half_are_standardised(y: list[float]) -> None:
    np.testing.assert_array_equal(compress_tail(y)[0], standardize(y)[0])
    assert np.isfinite(compress_tail(y)[0]).all()


@pytest.mark.parametrize("factor", [1e-12, 1.0, 1e250])
def test_positive_affine_maps_change_nothing(factor: float) -> None:
    y = np.array([3.0, 1.0, 4.0, 1.5, 9.0, 2.6])
    np.testing.assert_allclose(compress_tail(factor * y)[0], compress_tail(y)[0], rtol=1e-9)


@pytest.mark.parametrize("name", ["gp", "gp+paper"])
def test_predictions_at_the_observations_come_back_in_the_units_of_the_observations(name: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.random((12, 2))
    y = np.exp(6 * X[:, 0]) + X[:, 1]
    context = TransferContext(compile_space({"a": (0.0, 1.0), "b": (0.0, 1.0)}), None, None, None, 50)
    model = fit_model(method(name), context, X, y, previous=None, rng=rng)
    assert isinstance(model, FittedModel)
    for mean, value in zip(model.target.mean(X), y, strict=True):
        expected = model.in_units_of_y(float(mean), 0.1)
        assert expected is not None
        assert expected[0] == pytest.approx(value, rel=1e-3)
        assert expected[1] > 0.0


def test_a_scale_too_small_to_represent_is_not_rounded_to_zero() -> None:
    z = compress_tail([0.0, *[5e-324] * 8])[0]
    assert np.isfinite(z).all()
    assert z[0] < z[1]


def test_predictions_on_targets_that_were_standardized_instead_come_back_without_compression() -> None:
    y = np.array([1.0, 1.0, 1.0, 5.0])
    prediction = in_units_of_y(float(transform(y, "tail")[3]), 0.1, y=y, scaling="tail")
    assert prediction == pytest.approx((5.0, 0.1 * y.std()))


@pytest.mark.parametrize("scaling", ["meanvar", "tail"])
@pytest.mark.parametrize("y", [[-1e308, 1e308], [1.0, 1e308, 1e308], [-1.7e308, 0.0, 1.0, 1.7e308]])
def test_predictions_stay_finite_in_the_units_of_huge_observations(scaling: Scaling, y: list[float]) -> None:
    for mean in (-9.0, 9.0):
        assert np.isfinite(in_units_of_y(mean, 9.0, y=np.array(y), scaling=scaling) or np.nan).all()
