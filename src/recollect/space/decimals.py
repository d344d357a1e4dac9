"""The shortest decimal number behind a code, so that people read 0.01 and not 0.010000000000000002.

A float hyperparameter's code u is computed from its value v by a rounding, increasing function. Going back, many values
may share one code, or none may have it exactly. `shortest_decimal` picks the value with the fewest significant digits
whose code is bitwise u.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from recollect.numerics.arrays import FloatArray

MAX_DIGITS = 17
"""Seventeen significant digits name every double."""

ULPS = 8
"""How far around the computed inverse doubles are tried when no short decimal fits."""

ROUNDS = 4
"""How often the code is replaced by that of its computed inverse; the second round finds one."""


Map = Callable[[FloatArray], FloatArray]


def shortest_decimal(u: float, forward: Map, backward: Map) -> float:
    """Return the shortest decimal v with forward(v) == u bitwise; if no double has that code, take the nearest code.

    ``backward`` must return values inside the bounds; ``forward`` must return nan outside of them.
    """
    for _ in range(ROUNDS):
        raw = float(backward(np.array([u]))[0])
        tries = _candidates(raw)
        hits = np.flatnonzero(forward(tries) == u)
        if hits.size:
            return float(tries[hits[0]])
        u = float(forward(np.array([raw]))[0])
    return raw


def _candidates(raw: float) -> FloatArray:
    """List decimals near ``raw`` by increasing number of digits, then the doubles around it, nearest first."""
    decimals = [0.0]
    for digits in range(1, MAX_DIGITS + 1):
        mantissa, exponent = f"{raw:.{digits - 1}e}".split("e")
        whole, power = int(mantissa.replace(".", "")), int(exponent) - digits + 1
        decimals += [float(f"{whole + shift}e{power}") for shift in (0, -1, 1)]
    steps = np.arange(1, ULPS + 1)
    around = raw + np.concatenate(([0], np.stack((steps, -steps), axis=1).ravel())) * np.spacing(abs(raw))
    return np.concatenate((decimals, around))
