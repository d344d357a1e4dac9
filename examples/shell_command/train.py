"""A program to tune: fits kernel ridge regression to noisy points and prints its test error."""

from __future__ import annotations

import argparse

import numpy as np


def points(count: int, frequency: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x = rng.uniform(0.0, 1.0, count)
    return x, np.sin(frequency * x) + rng.normal(0.0, 0.2, count)


def gram(a: np.ndarray, b: np.ndarray, *, kernel: str, width: float) -> np.ndarray:
    apart = np.abs(a[:, None] - b) / width
    return np.exp(-apart) if kernel == "laplace" else np.exp(-(apart**2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frequency", type=float, default=10.0)
    parser.add_argument("--kernel", choices=["gauss", "laplace"], default="gauss")
    parser.add_argument("--width", type=float, default=1.0)
    parser.add_argument("--penalty", type=float, default=1.0)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    (x, y), (x_new, y_new) = points(80, options.frequency, rng), points(200, options.frequency, rng)
    K = gram(x, x, kernel=options.kernel, width=options.width)
    weights = np.linalg.solve(K + options.penalty * np.eye(x.size), y)
    predicted = gram(x_new, x, kernel=options.kernel, width=options.width) @ weights
    print(f"trained on {x.size} points")
    print(f"error: {np.mean((predicted - y_new) ** 2):.6f}")


if __name__ == "__main__":
    main()
