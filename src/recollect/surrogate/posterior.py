"""What the decision needs of a belief about the new task's function, whatever model it comes from.

Notation: ``X (n, d)`` evaluated points, nan = inactive; ``y (n,)`` their values on the scale the model was fitted on.
"""

from __future__ import annotations

from typing import Protocol, Self

from recollect.numerics.arrays import FloatArray


class Posterior(Protocol):
    """A function as far as it is known; `gp.GP` is one."""

    @property
    def X(self) -> FloatArray:
        """The evaluated points (n, d)."""

    def mean(self, X: FloatArray, /) -> FloatArray:
        """Posterior mean (m,)."""

    def predict(self, X: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and variance (m,) of the latent function."""

    def condition(self, X_new: FloatArray, y_new: FloatArray, /) -> Self:
        """Return the belief as if more had been observed."""
