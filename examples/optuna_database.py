"""Use an existing Optuna database as past runs, in `recollect.minimize` and in Optuna itself.

    python examples/optuna_database.py [studies.db]

It first creates what you may already have: a database with three finished Optuna studies. The
environment variable TRIALS changes their number of trials.
"""

from __future__ import annotations

import math
import os
import sys

import optuna

import recollect
from recollect.optuna import TransferSampler

SPACE = {"lr": (1e-5, 1.0, "log"), "layers": (1, 6), "activation": ["relu", "tanh"]}
PAST_TRIALS, TRIALS = int(os.environ.get("TRIALS", "30")), 10


def loss(lr: float, layers: int, activation: str, *, shift: float) -> float:
    """Stand in for training a network: the best settings differ slightly between tasks."""
    off = (math.log10(lr) + 3.0 - shift) ** 2 / 4 + (layers - 3 - shift) ** 2 / 9
    return 0.1 + off + (0.05 if activation == "tanh" else 0.0)


def suggested(trial: optuna.Trial, shift: float) -> float:
    lr = trial.suggest_float("lr", 1e-5, 1.0, log=True)
    layers = trial.suggest_int("layers", 1, 6)
    return loss(lr, layers, trial.suggest_categorical("activation", ["relu", "tanh"]), shift=shift)


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    database = sys.argv[1] if len(sys.argv) > 1 else "studies.db"
    url = f"sqlite:///{database}"
    for name, shift in {"monday": 0.0, "tuesday": 0.3, "wednesday": -0.3}.items():
        study = optuna.create_study(
            storage=url, study_name=name, sampler=optuna.samplers.TPESampler(seed=1)
        )
        study.optimize(lambda trial, shift=shift: suggested(trial, shift), n_trials=PAST_TRIALS)

    past = recollect.Memory(database).past(SPACE)
    print("past runs:", ", ".join(f"{run.task} ({len(run)} trials)" for run in past))

    result = recollect.minimize(
        lambda config: loss(**config, shift=0.2), SPACE, trials=TRIALS, past=past
    )
    first, best = result.run.values[0], result.best_value
    print(f"{'recollect.minimize':<20} first {first:.3f}, best of {TRIALS}: {best:.3f}")

    for name, past_studies in {"TransferSampler": url, "without past runs": ()}.items():
        study = optuna.create_study(
            sampler=TransferSampler(past=past_studies, horizon=TRIALS, seed=0)
        )
        study.optimize(lambda trial: suggested(trial, 0.2), n_trials=TRIALS)
        first, best = study.trials[0].value, study.best_value
        print(f"{name:<20} first {first:.3f}, best of {TRIALS}: {best:.3f}")


if __name__ == "__main__":
    main()
