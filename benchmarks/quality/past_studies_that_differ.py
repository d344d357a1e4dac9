"""What is the first trial of TransferSampler worth when past Optuna studies differ a little?

    python benchmarks/quality/past_studies_that_differ.py [--seeds 10] [--methods rgpe-taf gp ...]

Eight past studies of 25 TPE trials each. *one wider range*: the last one has a learning rate up to 2 instead of 1.
*realistic*: one study calls it ``learning_rate``, one has the wider range, one has one more choice of optimizer. The
new study is like most of them. Prints the mean of the best value after 1, 3 and 5 trials; the lowest value is 0 in the
first example and 0.1 in the second. Nothing is stated about the space, except in the rows that say so.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import optuna

from recollect import RecollectWarning
from recollect.optimizer.default_method import DEFAULT_METHOD
from recollect.optuna import TransferSampler

LOSS = {"adam": 0.1, "sgd": 0.4, "rmsprop": 0.2}
STATED = {"lr": (1e-5, 1.0, "log"), "layers": (1, 6), "opt": ["adam", "sgd"]}
COUNTS = (1, 3, 5)


def plain(trial: optuna.Trial, high: float = 1.0) -> float:
    lr, layers = trial.suggest_float("lr", 1e-5, high, log=True), trial.suggest_int("layers", 1, 6)
    return (math.log10(lr) + 3) ** 2 + (layers - 3) ** 2 / 9


def realistic(
    trial: optuna.Trial, shift: float = 0.1, name: str = "lr", high: float = 1.0, choices: Any = ("adam", "sgd")
) -> float:
    lr, layers = trial.suggest_float(name, 1e-5, high, log=True), trial.suggest_int("layers", 1, 6)
    return (math.log10(lr) + 3 - shift) ** 2 + (layers - 3) ** 2 / 9 + LOSS[trial.suggest_categorical("opt", choices)]


def past_studies(objective: Callable[..., float], differences: dict[int, dict[str, Any]]) -> list[optuna.Study]:
    shifts = np.random.default_rng(0).uniform(-0.4, 0.4, 8)
    studies = []
    for number in range(8):
        options = differences.get(number, {}) | ({"shift": shifts[number]} if objective is realistic else {})
        study = optuna.create_study(study_name=f"exp{number}", sampler=optuna.samplers.TPESampler(seed=number))
        study.optimize(lambda trial, options=options: objective(trial, **options), n_trials=25)
        studies.append(study)
    return studies


def mean_best(objective: Callable[..., float], sampler: Callable[[int], Any], seeds: int) -> list[float]:
    curves = []
    for seed in range(seeds):
        study = optuna.create_study(sampler=sampler(seed))
        study.optimize(objective, n_trials=max(COUNTS))
        curves.append(np.minimum.accumulate([trial.value for trial in study.trials]))
    return [float(np.mean(curves, axis=0)[count - 1]) for count in COUNTS]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--methods", nargs="*", default=[DEFAULT_METHOD])
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", RecollectWarning)
    examples = {
        "one wider range": (plain, past_studies(plain, {7: {"high": 2.0}})),
        "realistic": (
            realistic,
            past_studies(realistic, {2: {"name": "learning_rate"}, 5: {"high": 2.0}, 7: {"choices": tuple(LOSS)}}),
        ),
    }
    for name, (objective, past) in examples.items():
        space = {key: STATED[key] for key in (("lr", "layers") if objective is plain else STATED)}
        rows: dict[str, Callable[[int], Any]] = {"TPE": lambda seed: optuna.samplers.TPESampler(seed=seed)}
        for method in options.methods:
            rows[method] = lambda seed, past=past, method=method: TransferSampler(past, method=method, seed=seed)
            rows[f"{method}, space stated"] = lambda seed, past=past, method=method, space=space: TransferSampler(
                past, method=method, seed=seed, space=space
            )
        for row, sampler in rows.items():
            values = " / ".join(f"{value:.3f}" for value in mean_best(objective, sampler, options.seeds))
            print(f"{name}: {row}: {values}", flush=True)


if __name__ == "__main__":
    main()
