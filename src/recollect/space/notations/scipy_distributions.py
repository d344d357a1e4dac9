"""Frozen distributions of SciPy, as ``RandomizedSearchCV`` takes them: uniform, loguniform and randint.

A search space has no probabilities: only distributions that are uniform on some scale can be part of it.
"""

from __future__ import annotations

import math
from typing import Any

from recollect.errors import SpaceError

UNIFORM = ("uniform", "loguniform", "reciprocal", "randint")
PERCENTILES = (0.01, 0.99)  # a range that is suggested instead of another distribution
LOG_TOLERANCE = 1e-9


def is_scipy_distribution(entry: Any) -> bool:
    """Whether this is a distribution of SciPy, frozen or not; SciPy is not imported to find out."""
    kinds = {kind.__name__ for kind in type(entry).__mro__ if kind.__module__.startswith("scipy.stats")}
    return bool(kinds & {"rv_frozen", "rv_generic"})


def entry_of_scipy(name: str, distribution: Any) -> Any:
    """Return a distribution as a range ``(lo, hi)`` or ``(lo, hi, "log")``.

    Raises:
        SpaceError: The distribution has no parameters yet, or is not uniform on a linear or a log scale.
    """
    if not hasattr(distribution, "dist"):
        example = "such as scipy.stats.loguniform(1e-3, 1e3)"
        raise SpaceError(f"{name!r}: expected a distribution with its parameters, {example}; got {distribution.name}")
    kind = distribution.dist.name
    low, high = (bound.item() if hasattr(bound, "item") else bound for bound in distribution.support())
    if kind == "randint":
        return int(low), int(high)
    if kind == "uniform":
        return float(low), float(high)
    if kind in UNIFORM and low > 0:
        middle = float(distribution.median())
        if math.isclose(math.log(middle), (math.log(low) + math.log(high)) / 2, abs_tol=LOG_TOLERANCE):
            return float(low), float(high), "log"
    first, last = (float(distribution.ppf(share)) for share in PERCENTILES)
    raise SpaceError(
        f"{name!r}: expected a distribution that is uniform on a linear or a log scale (uniform, loguniform, randint), "
        f"got {kind}; write its range instead, for example ({first:.3g}, {last:.3g}), which has 98 % of it"
    )
