"""Start a new study from three finished ones.

Run it in the root folder of the registry, which contains the folder `package`.
"""

from __future__ import annotations

import optuna
import optunahub


TransferSampler = optunahub.load_local_module(
    package="samplers/transfer", registry_root="./package/"
).TransferSampler


def objective(trial: optuna.Trial, shift: float) -> float:
    """Return a bowl whose minimum depends on the task."""
    x = trial.suggest_float("x", -5, 5)
    y = trial.suggest_float("y", -5, 5)
    return (x - shift) ** 2 + (y - 1) ** 2


if __name__ == "__main__":
    past = []
    for shift in (0.0, 0.5, 1.0):
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        study.optimize(lambda trial, shift=shift: objective(trial, shift), n_trials=25)
        past.append(study)

    sampler = TransferSampler(past=past, horizon=15, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: objective(trial, 0.7), n_trials=10)
    print(study.best_params, study.best_value)
    print(sampler.explain(study))
