"""Gradients of predictions agree with finite differences, in mixed and conditional spaces."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from recollect.numerics.arrays import KernelShape
from recollect.surrogate.gp import GP, make_gp
from recollect.surrogate.kernels import Hyperparameters

D = 4
STEP = 1e-6


def model(*, categorical: bool = False, conditional: bool = False, noise: float = 1e-4) -> GP:
    rng = np.random.default_rng(3)
    X = rng.random((25, D))
    if categorical:
        X[:, 1] = rng.integers(3, size=len(X))
    if conditional:
        X[::3, 2] = np.nan
    y = 40.0 + 7.0 * np.nan_to_num(X) @ np.arange(1.0, 5.0) + np.sin(6 * X[:, 0])
    hyper = Hyperparameters(1.7, np.array([0.3, 0.9, 0.5, 1.4]), noise)
    return make_gp(X, y, shape=KernelShape(np.arange(D) == (1 if categorical else -1), conditional), hyper=hyper)


def points(gp: GP) -> Any:
    X = np.random.default_rng(4).random((12, D))
    X[:, gp.shape.categorical] = 1.0
    if gp.shape.conditional:
        X[::2, 2] = np.nan
    return X


MODELS = {
    "numerical": model(),
    "categorical": model(categorical=True),
    "conditional": model(conditional=True),
    "almost without noise": model(noise=1e-10),
    "rows that observe another function": replace(model(), across=np.linspace(0.2, 0.5, 25)),
}


@pytest.mark.parametrize("name", MODELS)
def test_predictions_are_the_same_with_and_without_gradients(name: str) -> None:
    gp = MODELS[name]
    X = points(gp)
    for got, expected in zip(gp.predict_with_gradient(X)[:2], gp.predict(X), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_agree_with_finite_differences(name: str) -> None:
    gp = MODELS[name]
    X = points(gp)
    _, variance, mean_gradient, variance_gradient = gp.predict_with_gradient(X)
    assert variance.min() > 1e-6
    for j, move in enumerate(STEP * np.eye(D)):
        if gp.shape.categorical[j]:
            assert not mean_gradient[:, j].any()
            assert not variance_gradient[:, j].any()
            continue
        (above, wide), (below, narrow) = gp.predict(X + move), gp.predict(X - move)
        active = ~np.isnan(X[:, j])
        for got, expected in ((mean_gradient, above - below), (variance_gradient, wide - narrow)):
            scale = np.abs(got).max()
            np.testing.assert_allclose(got[active, j], expected[active] / (2 * STEP), rtol=1e-4, atol=1e-5 * scale)
            assert not got[~active, j].any()


def test_the_variance_has_no_gradient_at_its_floor() -> None:
    gp = model(noise=1e-11)
    _, variance, _, gradient = gp.predict_with_gradient(gp.X[:3])
    assert variance.max() <= 1e-9 * gp.s**2
    assert not gradient[variance <= 1.001e-10 * gp.s**2].any()
