"""Prior of a Gaussian process's hyperparameters: bounds and densities.

Densities are evaluated at the natural value, without a Jacobian term, although the search runs over logarithms::

    ln p(a) = -(ln a)^2 / 2 - ln(a sqrt(2 pi))                     amplitude: log-normal
    ln p(v) = ln(ln(1 + 3 c^2 / v^2) + 1e-10)                      noise: horseshoe with scale c
    ln p(l) = (k - 1) ln l - r l + const                           length scales: gamma, optional

In the paper, length scales have no density; their bounds are the prior (`PAPER_PRIOR`). With few points and many
columns that lets one length scale collapse and the others run to their bound. `TARGET_PRIOR` adds a weak gamma density
with mode 1/3 of the cube; the new task's model is fitted with it (measured: the page results).

Without a density for length scales there are many optima. Random starts all over the bounds mostly begin where no two
rows correlate, and end on plateaus nearby: with several columns, one short length scale is enough. The random starts of
`SOURCE_PRIOR`, with which past runs are fitted, are therefore not as short (benchmarks/quality/gp_fit_starts.py,
the page performance).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray
from recollect.surrogate.kernels import Hyperparameters

Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Prior:
    """Bounds and densities of the hyperparameters, in natural units."""

    amplitude_bounds: Bounds = (math.exp(-10.0), math.exp(2.0))
    lengthscale_bounds: Bounds = (math.exp(-6.754111155189306), math.exp(0.0858637988771976))  # of every length scale
    noise_bounds: Bounds = (math.exp(-25.0), math.exp(2.0))  # of the noise variance
    amplitude_log_std: float = 1.0  # standard deviation of the logarithm of the amplitude
    horseshoe_scale: float = 0.1  # c of the noise's density
    lengthscale_gamma: tuple[float, float] | None = None  # shape k and rate r of the length scales' density, if any
    use_priors: bool = True  # False leaves only the bounds
    shortest_start: float = 0.0  # shortest length scale of a random starting point; no effect below the lower bound

    def __post_init__(self) -> None:
        """Check the bounds and the parameters of the densities."""
        for name in ("amplitude_bounds", "lengthscale_bounds", "noise_bounds"):
            low, high = getattr(self, name)
            if not 0.0 < low <= high < math.inf:
                raise InputError(f"Prior: expected {name} with 0 < lower <= upper < inf, got {(low, high)}")
        if not (self.amplitude_log_std > 0.0 and self.horseshoe_scale > 0.0):
            got = f"{self.amplitude_log_std} and {self.horseshoe_scale}"
            raise InputError(f"Prior: expected amplitude_log_std and horseshoe_scale to be positive, got {got}")
        shape, rate = self.lengthscale_gamma or (1.0, 1.0)
        if not (1.0 <= shape < math.inf and 0.0 < rate < math.inf):
            raise InputError(f"Prior: expected lengthscale_gamma (shape >= 1, rate > 0), got {self.lengthscale_gamma}")
        longest = self.lengthscale_bounds[1]
        if not 0.0 <= self.shortest_start <= longest:
            raise InputError(f"Prior: expected shortest_start from 0 to {longest}, got {self.shortest_start}")

    def log_density(
        self, log_amplitude: FloatArray, log_noise: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return ``ln p(a) + ln p(v)`` (s,) and its derivatives by ``ln a`` and ``ln v``; zeros without densities."""
        if not self.use_priors:
            return np.zeros(log_amplitude.shape), np.zeros(log_amplitude.shape), np.zeros(log_amplitude.shape)
        precision = self.amplitude_log_std**-2
        amplitude = -0.5 * precision * log_amplitude**2 - log_amplitude - 0.5 * math.log(2.0 * math.pi / precision)
        amplitude_slope = -(1.0 + precision * log_amplitude)
        width = 3.0 * self.horseshoe_scale**2
        squared = np.exp(np.maximum(2.0 * log_noise, -690.0))  # not zero: it is divided by
        spike = np.log1p(width / squared)
        noise_slope = -2.0 * width / np.maximum((width + squared) * spike, 1e-14)
        return amplitude + np.log(spike + 1e-10), amplitude_slope, noise_slope

    def lengthscale_log_density(self, log_lengthscales: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ``sum ln p(l)`` (s,) up to a constant, and its derivatives by ``ln l`` (s, d); or zeros."""
        if self.lengthscale_gamma is None or not self.use_priors:
            return np.zeros(len(log_lengthscales)), np.zeros(log_lengthscales.shape)
        shape, rate = self.lengthscale_gamma
        lengths = np.exp(log_lengthscales)
        return np.sum((shape - 1.0) * log_lengthscales - rate * lengths, axis=1), (shape - 1.0) - rate * lengths

    def log_bounds(self, d: int) -> FloatArray:
        """Return the bounds of ``(ln a, ln l_1, ..., ln l_d, ln v)``, shape (d + 2, 2)."""
        rows = [self.amplitude_bounds, *[self.lengthscale_bounds] * d, self.noise_bounds]
        return np.asarray(np.log(np.array(rows)))

    def clip(self, hyper: Hyperparameters) -> Hyperparameters:
        """Return the nearest hyperparameters within the bounds."""
        return Hyperparameters(
            float(np.clip(hyper.amplitude, *self.amplitude_bounds)),
            np.clip(hyper.lengthscales, *self.lengthscale_bounds),
            float(np.clip(hyper.noise, *self.noise_bounds)),
        )

    def draw_starts(self, count: int, d: int, *, rng: np.random.Generator) -> FloatArray:
        """Draw starting points ``(count, d + 2)`` in log space, within the bounds.

        Amplitude and noise come from their densities; length scales are log-uniform above the shortest.
        """
        bounds = self.log_bounds(d)
        low = bounds[:, 0].copy()
        low[1:-1] = math.log(max(self.lengthscale_bounds[0], self.shortest_start))
        theta = rng.uniform(low, bounds[:, 1], size=(count, d + 2))
        theta[:, 0] = self.amplitude_log_std * rng.standard_normal(count)
        noise = np.abs(rng.standard_normal(count) * self.horseshoe_scale * rng.standard_cauchy(count))
        theta[:, -1] = np.log(np.maximum(noise, self.noise_bounds[0]))
        return np.clip(theta, bounds[:, 0], bounds[:, 1])


PAPER_PRIOR = Prior()
SOURCE_PRIOR = Prior(shortest_start=0.15)
TARGET_PRIOR = Prior(lengthscale_gamma=(3.0, 6.0))
