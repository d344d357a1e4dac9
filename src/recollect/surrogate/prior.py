"""What is believed about hyperparameters before seeing data: bounds and prior densities.

Densities are evaluated at the natural value, without a Jacobian term, although the search runs over logarithms::

    ln p(a) = -(ln a)^2 / 2 - ln(a sqrt(2 pi))                     amplitude: log-normal
    ln p(v) = ln(ln(1 + 3 c^2 / v^2) + 1e-10)                      noise: horseshoe with scale c

    ln p(l) = (k - 1) ln l - r l + const                           length scales: gamma, only if asked for

In the paper length scales have no density; their bounds are the prior (`PAPER_PRIOR`). With few points and many
columns that lets one length scale collapse and the others run to their bound. `TARGET_PRIOR` adds a weak gamma density
with mode 1/3 of the cube; it is what the new task's model is fitted with (measured in docs/results.md).

Without a density for length scales there are many optima. Random starts all over the bounds mostly begin where no two
rows correlate, and end on plateaus near there: in several columns one short length scale is enough. Those of
`PAST_PRIOR`, which past runs are fitted with, are not as short (benchmarks/starts.py, docs/performance.md).
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
    """Bounds in natural units and the parameters of the densities; ``use_priors=False`` leaves the bounds alone.

    ``shortest_start`` is the shortest length scale from which a fit begins at random; below the bound it says nothing.
    """

    amplitude_bounds: Bounds = (math.exp(-10.0), math.exp(2.0))
    lengthscale_bounds: Bounds = (math.exp(-6.754111155189306), math.exp(0.0858637988771976))
    noise_bounds: Bounds = (math.exp(-25.0), math.exp(2.0))
    amplitude_log_std: float = 1.0
    horseshoe_scale: float = 0.1
    lengthscale_gamma: tuple[float, float] | None = None
    use_priors: bool = True
    shortest_start: float = 0.0

    def __post_init__(self) -> None:
        """Check the bounds and the parameters of the densities."""
        for name in ("amplitude_bounds", "lengthscale_bounds", "noise_bounds"):
            low, high = getattr(self, name)
            if not 0.0 < low <= high < math.inf:
                raise InputError(f"Prior: expected {name} with 0 < lower <= upper < inf, got {(low, high)}")
        if not (self.amplitude_log_std > 0.0 and self.horseshoe_scale > 0.0):
            raise InputError(
                "Prior: expected amplitude_log_std and horseshoe_scale to be positive, "
                f"got {self.amplitude_log_std} and {self.horseshoe_scale}"
            )
        shape, rate = self.lengthscale_gamma or (1.0, 1.0)
        if not (1.0 <= shape < math.inf and 0.0 < rate < math.inf):
            raise InputError(f"Prior: expected lengthscale_gamma (shape >= 1, rate > 0), got {self.lengthscale_gamma}")
        if not 0.0 <= self.shortest_start <= self.lengthscale_bounds[1]:
            most = self.lengthscale_bounds[1]
            raise InputError(f"Prior: expected shortest_start from 0 to {most}, got {self.shortest_start}")

    def log_density(
        self, log_amplitude: FloatArray, log_noise: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """``ln p(a) + ln p(v)`` (s,) and its derivatives by ``ln a`` and ``ln v``; zeros when the densities are off."""
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
        """``sum ln p(l)`` (s,) up to a constant, and its derivatives by ``ln l`` (s, d); zeros without a density."""
        if self.lengthscale_gamma is None or not self.use_priors:
            return np.zeros(len(log_lengthscales)), np.zeros(log_lengthscales.shape)
        shape, rate = self.lengthscale_gamma
        lengths = np.exp(log_lengthscales)
        return np.sum((shape - 1.0) * log_lengthscales - rate * lengths, axis=1), (shape - 1.0) - rate * lengths

    def log_bounds(self, d: int) -> FloatArray:
        """Bounds of ``(ln a, ln l_1, ..., ln l_d, ln v)``, shape (d + 2, 2)."""
        rows = [self.amplitude_bounds, *[self.lengthscale_bounds] * d, self.noise_bounds]
        return np.asarray(np.log(np.array(rows)))

    def clip(self, hyper: Hyperparameters) -> Hyperparameters:
        """The nearest hyperparameters within the bounds."""
        return Hyperparameters(
            float(np.clip(hyper.amplitude, *self.amplitude_bounds)),
            np.clip(hyper.lengthscales, *self.lengthscale_bounds),
            float(np.clip(hyper.noise, *self.noise_bounds)),
        )

    def draw_starts(self, count: int, d: int, *, rng: np.random.Generator) -> FloatArray:
        """Random starting points ``(count, d + 2)`` in log space, moved into the bounds.

        Amplitude and noise come from their densities, length scales log-uniformly from those that are not too short.
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
PAST_PRIOR = Prior(shortest_start=0.15)
TARGET_PRIOR = Prior(lengthscale_gamma=(3.0, 6.0))
