"""Synthetic benchmarks: families of formulas whose parameters differ from task to task.

Notation: x (d,) the hyperparameters x1..xd in their own units, P (m, d) several points; T the number of a task.

    alpine-1d     x sin(x + pi + T pi/12) + x/10 on [-10, 10]
    quadratic-3d  (a/2) |x|^2 + b sum(x) + 3c on [-5, 5]^3; a, b, c uniform in [0.1, 10] from a stream seeded with T
    branin        s f(x - t) + o on [-5, 10] x [0, 15], each shift |t| <= 1.5
    hartmann-3, hartmann-6   the same on the unit cube, |t| <= 0.1
    forrester     a (6x - 2)^2 sin(12x - 4) + b (x - 1/2) + c on [0, 1]; a in [0.5, 1.5], b in [-10, 10], c in [-5, 5]

Scales s are log-uniform in [1/2, 2], offsets o uniform in [-1, 1]; all are drawn from a stream seeded with the family's
seed and T, so that task T does not depend on the number of tasks.

Best values are exact. Quadratic: it is separable. Branin: no point of the plane is below s*t (10/8pi), and the minimum
at (pi, 2.275) stays inside for every shift. Hartmann: the coordinates of a stationary point of a sum of Gaussian bumps
are averages of the centres', all inside the cube, and so is the shifted optimum. In one dimension: `extremes`. Worst
values are attained; a dense search finds them: `highest`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from recollect.bench.benchmark import About, Benchmark, Task
from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray
from recollect.space.space import compile_space

Formula = Callable[[FloatArray], FloatArray]
Bounds = tuple[tuple[float, float], ...]
Instance = tuple[Formula, float, float]  # values at P (m, d), best, worst

BRANIN_BOUNDS: Bounds = ((-5.0, 10.0), (0.0, 15.0))
BRANIN_BEST = 10.0 / (8.0 * np.pi)
HARTMANN_HEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN_3 = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
HARTMANN_3_CENTRES = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])
HARTMANN_3_OPTIMUM = np.array([0.11458887665506897, 0.55564889461693, 0.8525469846866774])
HARTMANN_6 = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
HARTMANN_6_CENTRES = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
HARTMANN_6_OPTIMUM = np.ravel(
    [
        (0.20168951100670542, 0.15001069182345797, 0.476873974221897),
        (0.27533243049405607, 0.31165161660011324, 0.6573005340656203),
    ]
)


def alpine_1d(tasks: int = 6) -> Benchmark:
    """Return Alpine-1D, T = 0 .. tasks - 1."""
    bounds: Bounds = ((-10.0, 10.0),)

    def create(number: int) -> Instance:
        def values(P: FloatArray) -> FloatArray:
            x = P[:, 0]
            return x * np.sin(x + np.pi + number * np.pi / 12) + 0.1 * x

        return values, *extremes(values, bounds[0])

    citation = (
        "M. Feurer, B. Letham, E. Bakshy: Scalable Meta-Learning for Bayesian Optimization. arXiv:1802.02219, 2018"
    )
    return _family("alpine-1d", bounds, create, tasks=tasks, citation=citation)


def quadratic_3d(tasks: int = 30) -> Benchmark:
    """Return Quadratic-3D, T = 0 .. tasks - 1."""
    bounds: Bounds = ((-5.0, 5.0),) * 3

    def create(number: int) -> Instance:
        a, b, c = np.random.default_rng(number).uniform(0.1, 10.0, 3)

        def values(P: FloatArray) -> FloatArray:
            return np.asarray(a / 2 * (P**2).sum(axis=1) + b * P.sum(axis=1) + 3 * c)

        # Each coordinate on its own: a parabola with its lowest point at -b/a, and as b > 0 its highest at 5.
        return values, float(values(np.full((1, 3), max(-b / a, -5.0)))[0]), float(values(np.full((1, 3), 5.0))[0])

    citation = "V. Perrone et al.: Scalable Hyperparameter Transfer Learning. NeurIPS 2018"
    return _family("quadratic-3d", bounds, create, tasks=tasks, citation=citation)


def branin(tasks: int = 30, *, seed: int = 0) -> Benchmark:
    """Return shifted and scaled Branin functions."""

    def create(number: int) -> Instance:
        return _transformed(branin_values, BRANIN_BEST, BRANIN_BOUNDS, max_shift=1.5, stream=[seed, number])

    return _family("branin", BRANIN_BOUNDS, create, tasks=tasks, citation="F. H. Branin: IBM J. Res. Dev. 16(5), 1972")


def hartmann_3(tasks: int = 30, *, seed: int = 0) -> Benchmark:
    """Return shifted and scaled Hartmann functions of three variables."""
    return _hartmann("hartmann-3", tasks, seed, HARTMANN_3, HARTMANN_3_CENTRES, HARTMANN_3_OPTIMUM)


def hartmann_6(tasks: int = 30, *, seed: int = 0) -> Benchmark:
    """Return shifted and scaled Hartmann functions of six variables."""
    return _hartmann("hartmann-6", tasks, seed, HARTMANN_6, HARTMANN_6_CENTRES, HARTMANN_6_OPTIMUM)


def forrester(tasks: int = 30, *, seed: int = 0) -> Benchmark:
    """Return Forrester functions with different amplitudes, slopes and offsets."""
    bounds: Bounds = ((0.0, 1.0),)

    def create(number: int) -> Instance:
        a, b, c = np.random.default_rng([seed, number]).uniform([0.5, -10.0, -5.0], [1.5, 10.0, 5.0])

        def values(P: FloatArray) -> FloatArray:
            x = P[:, 0]
            return np.asarray(a * (6 * x - 2) ** 2 * np.sin(12 * x - 4) + b * (x - 0.5) + c)

        return values, *extremes(values, bounds[0])

    citation = "A. Forrester, A. Sobester, A. Keane: Engineering Design via Surrogate Modelling. Wiley 2008"
    return _family("forrester", bounds, create, tasks=tasks, citation=citation)


FAMILIES: dict[str, Callable[[], Benchmark]] = {
    **{"alpine-1d": alpine_1d, "quadratic-3d": quadratic_3d, "branin": branin},
    **{"hartmann-3": hartmann_3, "hartmann-6": hartmann_6, "forrester": forrester},
}


def branin_values(P: FloatArray) -> FloatArray:
    """Return Branin's function at P (m, 2)."""
    x, y = P[:, 0], P[:, 1]
    bent = y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6
    return bent**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10


def hartmann_values(P: FloatArray, steepness: FloatArray, centres: FloatArray) -> FloatArray:
    """Return a Hartmann function at P (m, d): four bumps with (4, d) steepness and centres."""
    exponents = (steepness * (P[:, None, :] - centres) ** 2).sum(axis=2)
    # Computed row by row, so that values do not depend on the number of rows.
    return np.asarray(-(np.exp(-exponents) * HARTMANN_HEIGHTS).sum(axis=1))


def extremes(values: Formula, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the lowest and highest value of a smooth function of one variable, to rounding.

    A grid of 20,001 points separates all local extrema of the functions here; each is then refined.
    """
    low, high = bounds
    x = np.linspace(low, high, 20_001)
    extrema = []
    for sign in (1.0, -1.0):
        y = sign * values(x[:, None])
        padded = np.concatenate([[np.inf], y, [np.inf]])
        centres, step = x[(y <= padded[:-2]) & (y <= padded[2:])], x[1] - x[0]
        for _ in range(6):
            near = np.clip(centres[:, None] + step * np.linspace(-1.0, 1.0, 401), low, high)
            y = sign * values(near.reshape(-1, 1)).reshape(near.shape)
            centres, step = near[np.arange(len(near)), y.argmin(axis=1)], step / 200
        extrema.append(sign * float(y.min()))
    return extrema[0], extrema[1]


def highest(values: Formula, bounds: Bounds) -> float:
    """Return the highest value that a dense search finds.

    It starts from all corners and 4,096 points drawn with a fixed seed. From the eight highest, one coordinate at a
    time moves to the best of 201 positions: twice on the whole axis, then in a neighbourhood shrinking to 1e-8 of it.
    """
    low, high = np.array(bounds).T
    drawn = low + (high - low) * np.random.default_rng(0).random((4096, len(bounds)))
    P = np.concatenate([np.array(list(itertools.product(*bounds))), drawn])
    P = P[np.argsort(-values(P), kind="stable")[:8]]
    for share in (1.0, 1.0, *(0.1 ** np.arange(1, 9))):
        for j in range(len(bounds)):
            lines = np.repeat(P[:, None, :], 201, axis=1)  # the middle one stays where it is
            places = P[:, [j]] + share * (high[j] - low[j]) * np.linspace(-1.0, 1.0, 201)
            lines[:, :, j] = np.clip(places, low[j], high[j])
            best = values(lines.reshape(-1, len(bounds))).reshape(len(P), 201).argmax(axis=1)
            P = lines[np.arange(len(P)), best]
    return float(values(P).max())


def _hartmann(
    name: str, tasks: int, seed: int, steepness: FloatArray, centres: FloatArray, at: FloatArray
) -> Benchmark:
    bounds: Bounds = ((0.0, 1.0),) * len(at)

    def plain(P: FloatArray) -> FloatArray:
        return hartmann_values(P, steepness, centres)

    def create(number: int) -> Instance:
        return _transformed(plain, float(plain(at[None, :])[0]), bounds, max_shift=0.1, stream=[seed, number])

    citation = "L. C. W. Dixon, G. P. Szego: Towards Global Optimisation 2. North-Holland 1978"
    return _family(name, bounds, create, tasks=tasks, citation=citation)


def _transformed(plain: Formula, best: float, bounds: Bounds, *, max_shift: float, stream: list[int]) -> Instance:
    """Return the function shifted by at most ``max_shift`` in every input, scaled and offset in its values."""
    rng = np.random.default_rng(stream)
    shift = rng.uniform(-max_shift, max_shift, len(bounds))
    scale, offset = 2.0 ** rng.uniform(-1.0, 1.0), rng.uniform(-1.0, 1.0)

    def values(P: FloatArray) -> FloatArray:
        return np.asarray(scale * plain(P - shift) + offset)

    return values, scale * best + offset, highest(values, bounds)


def _family(name: str, bounds: Bounds, create: Callable[[int], Instance], *, tasks: int, citation: str) -> Benchmark:
    if tasks < 1:
        raise InputError(f"{name}: expected at least one task, got {tasks}")
    space = compile_space({f"x{j}": ends for j, ends in enumerate(bounds, 1)})
    low, high = np.array(bounds).T
    title = f"{name}, a family of formulas"
    about = About(title, citation, "none needed", "recollect", "function", measured="a formula")

    def task(label: str) -> Task:
        values, best, worst = create(int(label))

        def evaluate_many(X: FloatArray) -> FloatArray:
            return values(low + np.asarray(X, dtype=np.float64) * (high - low))

        def evaluate(config: Mapping[str, Any]) -> float:
            return float(evaluate_many(space.encode([config]))[0])

        return Task(label, evaluate, evaluate_many, best, worst)

    return Benchmark(name, space, tuple(map(str, range(tasks))), None, about, task)
