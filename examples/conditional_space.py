"""Tune in a space with conditional hyperparameters, written with ConfigSpace.

    python examples/conditional_space.py

The objective receives only active hyperparameters: no degree for a radial kernel. The past run
comes from a smaller space in which the kernel was not yet a choice; the last line of the
explanation says what was filled in for it.
"""

from __future__ import annotations

import math

from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer

import recollect


def conditional_space() -> ConfigurationSpace:
    space = ConfigurationSpace()
    kernel = Categorical("kernel", ["linear", "radial", "polynomial"], default="radial")
    gamma, degree = Float("gamma", (1e-4, 10.0), log=True), Integer("degree", (2, 5))
    space.add(kernel, Float("cost", (1e-3, 1e3), log=True), gamma, degree)
    space.add(
        EqualsCondition(gamma, kernel, "radial"), EqualsCondition(degree, kernel, "polynomial")
    )
    return space


def error(config: dict) -> float:
    """Stand in for training a support vector machine."""
    off = abs(math.log10(config["cost"]) - 1.0) / 20
    if config["kernel"] == "linear":
        return 0.3 + off
    if config["kernel"] == "radial":
        return 0.1 + off + abs(math.log10(config["gamma"]) + 1.0) / 20
    return 0.15 + off + abs(config["degree"] - 3) / 20


def main() -> None:
    old = {"cost": (1e-3, 1e3, "log"), "gamma": (1e-4, 10.0, "log")}
    before = recollect.minimize(
        lambda config: error({"kernel": "radial", **config}), old, trials=15, task="before"
    )
    result = recollect.minimize(
        error, conditional_space(), trials=15, past=[before.run], task="now"
    )
    for trial in result.run.trials[:5]:
        print(f"{trial.value:.3f}  {trial.config}")
    print(result)
    print(result.explain())


if __name__ == "__main__":
    main()
