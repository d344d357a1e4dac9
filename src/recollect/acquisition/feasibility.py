"""Feasibility: how likely a candidate is to succeed, where trials have failed.

Notation: ``Z (n, d)`` all finished trials, ``r (n,)`` their failure indicator; ``X (m, d)`` candidates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from recollect.acquisition.functions import PreparedAcquisition
from recollect.numerics.arrays import FloatArray, KernelShape
from recollect.numerics.linalg import cholesky, solve_posdef
from recollect.surrogate.kernels import (
    Hyperparameters,
    covariance,
    cross_covariance,
    cross_covariance_and_slope,
    distance_gradient,
)

INDICATOR_NOISE = 0.01
MIN_FEASIBILITY = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Feasibility:
    """How likely a candidate is to succeed, judged by the trials so far.

    Failures often depend on the configuration: the model is too large, the training too long. The acquisition value is
    therefore multiplied by a probability of feasibility, as is usual under unknown constraints. It is one minus the
    posterior mean of a Gaussian process on the failure indicator ``r`` (0 = succeeded, 1 = failed), with the space's
    kernel shape, one length scale for all columns, and enough noise that a single failure among successes counts as bad
    luck. Far from all trials it is the share of trials that succeeded. If it were 1 there, a model that knows one
    success would send one trial after another into the corners of the cube, each far from all earlier failures. It
    never falls below `MIN_FEASIBILITY`: only the failed configurations themselves are excluded for good.
    """

    Z: FloatArray  # (n, d) all finished trials
    rate: float  # of failure
    alpha: FloatArray  # (n,)
    shape: KernelShape
    hyper: Hyperparameters

    def log_probability(self, X: FloatArray) -> FloatArray:
        """Return the log probability of success (m,)."""
        failure = self.rate + cross_covariance(X, self.Z, shape=self.shape, hyper=self.hyper) @ self.alpha
        return np.asarray(np.log(np.clip(1.0 - failure, MIN_FEASIBILITY, 1.0)))

    def log_probability_with_gradient(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the log probability of success (m,), and its gradient (m, d), zero where it is clipped."""
        k, w = cross_covariance_and_slope(X, self.Z, shape=self.shape, hyper=self.hyper)
        success = 1.0 - self.rate - k @ self.alpha
        gradient = -distance_gradient(w * self.alpha, X, self.Z, shape=self.shape, hyper=self.hyper)
        inside = (success > MIN_FEASIBILITY) & (success < 1.0)
        clipped = np.clip(success, MIN_FEASIBILITY, 1.0)
        return np.asarray(np.log(clipped)), np.where(inside, 1.0 / clipped, 0.0)[:, None] * gradient


def fit_feasibility(evaluated: FloatArray, failed: FloatArray, *, shape: KernelShape) -> Feasibility:
    """Return the model of failures, given the trials that succeeded ``(n, d)`` and those that failed ``(f, d)``."""
    # Half the typical distance of two random points of the unit cube: sqrt(d / 6) / 2.
    length = 0.5 * math.sqrt(shape.d / 6.0)
    hyper = Hyperparameters(1.0, np.full(shape.d, length), INDICATOR_NOISE)
    Z = np.concatenate([evaluated, failed])
    r = np.concatenate([np.zeros(len(evaluated)), np.ones(len(failed))])
    rate = r.mean()
    A = covariance(Z, Z, shape=shape, hyper=hyper)
    A.flat[:: len(Z) + 1] += INDICATOR_NOISE
    return Feasibility(Z, float(rate), solve_posdef(cholesky(A, 1.0)[0], r - rate), shape, hyper)


def weigh_by_feasibility(
    prepared: PreparedAcquisition, evaluated: FloatArray, failed: FloatArray, *, shape: KernelShape
) -> PreparedAcquisition:
    """Add the log probability of feasibility to a log score: how likely a candidate is to succeed."""
    if len(failed) == 0:
        return prepared
    feasibility = fit_feasibility(evaluated, failed, shape=shape)
    smooth = prepared.smooth

    def score(X: FloatArray) -> FloatArray:
        return np.asarray(prepared.score(X) + feasibility.log_probability(X))

    if smooth is None:
        return replace(prepared, score=score)
    evaluate = smooth.evaluate

    def with_gradient(X: FloatArray) -> tuple[FloatArray, FloatArray]:
        (values, gradients), (logs, slopes) = evaluate(X), feasibility.log_probability_with_gradient(X)
        return values + logs, gradients + slopes

    return replace(prepared, score=score, smooth=replace(smooth, score=score, evaluate=with_gradient))
