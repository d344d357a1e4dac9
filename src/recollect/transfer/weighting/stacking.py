"""Stacking weights, WAC: coefficients of a linear regression of observations on predictions (paper section 5.3).

The regression is trained by stochastic gradient descent on 1/2 (a.c + b - z)^2 + 1e-4/2 |c|^2, one observation at a
time, with the step eta_t = eta0 t^-0.25. One step, with the residual r_j = a_j.c + b - z_j before it, is

    c <- (1 - 1e-4 eta_j) c - eta_j r_j a_j,    b <- b - eta_j r_j,

which is linear in the previous values. The residuals of a whole block of steps therefore solve one triangular system,
which is several times faster than one step after another, and the same up to rounding.

Notation: n observations, standardized to ``z (n,)``; k base models; ``A (n, k+1)`` predictions, target last, with rows
a_j; coefficients ``c (k+1,)``, intercept b.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from recollect.numerics.arrays import FloatArray
from recollect.numerics.linalg import single_threaded, solve_lower
from recollect.surrogate.gp import GP
from recollect.surrogate.scaling import normalize, standardize
from recollect.transfer.weighting import ranking
from recollect.transfer.weighting.base import StatelessWeighting, Weights, check_predictions

PENALTY = 1e-4
FIRST_STEP, POWER = 0.01, 0.25
MAX_EPOCHS = 100
TOLERANCE, MAX_IDLE_EPOCHS = 1e-3, 5  # stop after this many epochs in a row that lower the mean loss by less
SEED = 12345  # of the order in which the observations are visited
MIN_SUM, MIN_SHARE = 1e-8, 1e-3  # of a sum of coefficients to divide by; the share is that of their magnitudes
BLOCK = 64  # steps solved at a time: small matrices, however many observations there are


def stacking_weights(base: ArrayLike, loo: ArrayLike, y: ArrayLike) -> Weights:
    """Weigh by regressing the observations on the predictions of base models and target.

    ``base (k, n)`` are the predictions of the base models at the target's inputs, each in standard deviations of its
    own task; ``loo (n,)`` the leave-one-out predictions of the target model, in the units of y; ``y (n,)`` the
    observations. Everything is compared on the standardized scale, on which the ensemble adds up its models: the
    observations and the target's predictions are standardized by the observations. Base predictions are not
    standardized again over the n points, because coefficients of other predictions than the ensemble's own would say
    nothing about the ensemble.

    Weights are the coefficients divided by their sum, without the intercept. They may be negative, and none is dropped,
    with one exception: a sum that is not clearly positive (all coefficients tiny, cancelling each other, or negative in
    sum, where the division would flip every model) leaves everything to the target. Leave-one-out predictions of two
    observations, or of a model that explains little, fall where the observations rise, since leaving out a high value
    lowers the mean of the others: the target's own weight is then negative.

    Deviations from the original: every regression starts from zero instead of the previous coefficients, so that
    weights depend on the observations alone and a resumed run makes the same suggestions; and the step is shortened
    where the iteration would diverge (see ``first_step``).

    ``losses`` are mean squared errors on the standardized scale. Fewer than two observations give uniform weights.
    """
    base, loo, y = check_predictions(base, loo, y, minimum=2)
    if y.size < 2:
        return Weights.uniform(len(base))
    z, centre, scale = standardize(y)
    A = np.vstack([base, normalize(loo, centre, scale)]).T
    coefficients = descend(A, z, rng=np.random.default_rng(SEED)).coefficients
    total, magnitude = float(coefficients.sum()), float(np.abs(coefficients).sum())
    target_only = total <= max(MIN_SUM, MIN_SHARE * magnitude)
    values: FloatArray = np.append(np.zeros(len(base)), 1.0) if target_only else coefficients / total
    with np.errstate(over="ignore"):
        losses = np.square(A - z[:, None]).mean(axis=0)
    misranked, dropped = ranking.misranked_counts(base, loo, y), np.full(len(base), target_only)
    return Weights(values, losses, misranked, dropped, np.ones(len(base)))


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """A trained linear regression."""

    coefficients: FloatArray  # (p,)
    intercept: float
    epochs: int


def descend(A: FloatArray, z: FloatArray, *, rng: np.random.Generator | None) -> Regression:
    """Regress ``z (n,)`` on the columns of ``A (n, p)``, visiting the rows in random order, or as they are for None.

    With the rows as they are this is scikit-learn's ``SGDRegressor`` with ``shuffle=False`` and the constants above.
    """
    n, p = A.shape
    eta0 = first_step(A)
    model = Regression(np.zeros(p), 0.0, 0)
    if eta0 == 0.0:
        return model
    best, idle = np.inf, 0
    with single_threaded():
        while model.epochs < MAX_EPOCHS and idle < MAX_IDLE_EPOCHS:
            order = np.arange(n) if rng is None else rng.permutation(n)
            model, loss = _epoch(model, A[order], z[order], eta0)
            idle = idle + 1 if loss > best - TOLERANCE else 0
            best = min(best, loss)
    return model


def first_step(A: FloatArray) -> float:
    """Return eta0: 0.01, or less if needed so that no step increases the distance to a solution.

    A step multiplies the error by I - eta a a^T with a including the intercept's 1, which increases nothing while
    eta |a|^2 <= 2. Predictions of a hundred past runs can be too long for 0.01. Where |a|^2 overflows the step is 0.
    """
    with np.errstate(over="ignore"):
        longest = float(np.square(A).sum(axis=1).max()) + 1.0
    return min(FIRST_STEP, 2.0 / longest)


def _epoch(model: Regression, A: FloatArray, z: FloatArray, eta0: float) -> tuple[Regression, float]:
    """Visit every row of A once; return the model and the mean over the rows of the loss before the row's step."""
    coefficients, intercept, loss = model.coefficients, model.intercept, 0.0
    done = model.epochs * len(z)
    for start in range(0, len(z), BLOCK):
        rows, targets = A[start : start + BLOCK], z[start : start + BLOCK]
        t = np.arange(1, len(targets) + 1, dtype=np.float64) + (done + start)
        eta: FloatArray = eta0 * t**-POWER
        residuals, steps, shrunk = _block(rows, targets - intercept, coefficients, eta)
        coefficients = shrunk[-1] * (coefficients - (steps / shrunk) @ rows)
        intercept -= float(steps.sum())
        loss += 0.5 * float(residuals @ residuals)
    return Regression(coefficients, intercept, model.epochs + 1), loss / len(z)


def _block(
    rows: FloatArray, targets: FloatArray, coefficients: FloatArray, eta: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return residuals r, steps eta r, and shrinkage s, all (m,), of m steps in a row.

    With s_j = prod_{i <= j} (1 - 1e-4 eta_i), unrolling the steps gives c_j = s_j (c_0 - sum_{i <= j} eta_i r_i a_i /
    s_i) and b_j = b_0 - sum_{i <= j} eta_i r_i, hence

        r_j + sum_{i < j} (s_{j-1} / s_i a_j.a_i + 1) eta_i r_i = s_{j-1} a_j.c_0 + b_0 - z_j.
    """
    decay = 1.0 - PENALTY * eta
    shrunk = np.asarray(np.cumprod(decay), dtype=np.float64)
    before = shrunk / decay
    system = rows @ rows.T
    system *= before[:, None] / shrunk
    system += 1.0
    system *= eta
    system.flat[:: len(eta) + 1] = 1.0
    residuals = solve_lower(system, before * (rows @ coefficients) - targets)
    return residuals, eta * residuals, shrunk


@dataclass(frozen=True, slots=True)
class StackingWeighting(StatelessWeighting):
    """WAC: coefficients of a linear regression of the observations on what the models predict."""

    allows_guard: ClassVar[bool] = False  # no source is dropped; it may get a negative weight

    def weigh(self, target: GP, F: FloatArray, *, horizon: int, rng: np.random.Generator) -> Weights:  # noqa: ARG002
        """Weigh by stacking, with the target's leave-one-out predictions."""
        return stacking_weights(F, target.loo()[0], target.y)
