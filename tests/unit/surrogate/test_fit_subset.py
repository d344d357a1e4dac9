"""Hyperparameters fitted to a part of the data serve all of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect.surrogate.fit import FitSettings, extend_to_all, fit_gp, rows_to_fit
from recollect.surrogate.gp import GP
from recollect.surrogate.prior import TARGET_PRIOR

SETTINGS = FitSettings(TARGET_PRIOR, restarts=2)


def data(n: int) -> tuple[Any, Any]:
    X = np.random.default_rng(0).random((n, 3))
    y = 10.0 + 5.0 * np.sin(4 * X[:, 0]) + 20.0 * (X[:, 1] - 0.4) ** 2
    return X, y


def fitted(X: Any, y: Any, size: int, seed: int = 1) -> GP:
    rng = np.random.default_rng(seed)
    rows = rows_to_fit(y, size, rng)
    return extend_to_all(fit_gp(X[rows], y[rows], settings=SETTINGS, rng=rng), X, y, SETTINGS)


def test_the_model_contains_all_data_and_predicts_as_well_as_a_fit_to_all() -> None:
    X, y = data(120)
    new, truth = data(150)[0][120:], data(150)[1][120:]
    part, whole = fitted(X, y, 50), fit_gp(X, y, settings=SETTINGS, rng=np.random.default_rng(1))
    assert part.n == 120
    errors = [np.sqrt(np.mean((gp.mean(new) - truth) ** 2)) for gp in (part, whole)]
    assert errors[0] < 0.1 * np.std(truth)
    assert errors[0] < 2 * errors[1]


def test_amplitude_and_noise_keep_their_size_in_units_of_the_targets() -> None:
    X, y = data(120)
    noisy = y + 0.5 * np.random.default_rng(2).standard_normal(len(y))
    gp = fitted(X, noisy, 80)
    assert 0.25 < np.sqrt(gp.hyper.noise) * gp.s < 1.0


def test_the_best_half_is_always_part_of_the_fit() -> None:
    X, y = data(60)
    outlier = y.copy()
    outlier[int(np.argmin(y))] -= 1000.0  # without this row, the amplitude would be about 0.001
    for seed in range(3):
        gp = fitted(X, outlier, 20, seed=seed)
        assert gp.hyper.amplitude > 0.1
