"""What a peer's interpreter runs for plain.py: it suggests with Optuna, SMAC3 or scikit-optimize, over lines of JSON.

    PEERS/bin/python benchmarks/quality/plain_peers.py

One line names the contestant, the seed, the hyperparameters and the number of trials. Then, for each trial, a
configuration and the CPU seconds it took are written, and its value is read. It imports nothing of recollect.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np

Suggester = Generator[dict[str, Any], float, None]


def main() -> None:
    """Suggest for the process that started this one, until it closes the pipe."""
    warnings.simplefilter("ignore")
    out, sys.stdout = sys.stdout, sys.stderr  # libraries may print
    suggesters = {"smac": suggest_smac, "smac-forest": suggest_smac, "skopt": suggest_skopt}
    for line in sys.stdin:
        job = json.loads(line)
        suggester = suggesters.get(job["contestant"], suggest_optuna)(job)
        value: Any = None
        for _ in range(job["trials"]):
            begin = time.process_time()
            config = suggester.send(value)
            out.write(json.dumps((config, time.process_time() - begin)) + "\n")
            out.flush()
            value = json.loads(sys.stdin.readline())


def suggest_optuna(job: dict[str, Any]) -> Suggester:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    kind = optuna.samplers.GPSampler if job["contestant"] == "optuna-gp" else optuna.samplers.TPESampler
    study = optuna.create_study(sampler=kind(seed=job["seed"]))
    while True:
        trial = study.ask()
        config: dict[str, Any] = {}
        for own in job["parameters"]:
            if "parent" in own and config.get(own["parent"]) not in own["parent_values"]:
                continue
            if own["kind"] == "choice":
                config[own["name"]] = trial.suggest_categorical(own["name"], own["choices"])
            else:
                suggest = trial.suggest_int if own["kind"] == "int" else trial.suggest_float
                config[own["name"]] = suggest(own["name"], own["low"], own["high"], log=own["log"])
        study.tell(trial, (yield config))


def suggest_smac(job: dict[str, Any]) -> Suggester:
    """SMAC3 with its Gaussian process (black-box facade), or its random forest (hyperparameter optimization)."""
    import logging
    import tempfile

    from ConfigSpace import Categorical, ConfigurationSpace, Float, InCondition, Integer
    from smac import BlackBoxFacade, HyperparameterOptimizationFacade, Scenario
    from smac.runhistory.dataclasses import TrialValue

    space = ConfigurationSpace()
    for own in job["parameters"]:
        if own["kind"] == "choice":
            space.add(Categorical(own["name"], own["choices"]))
        else:
            kind = Integer if own["kind"] == "int" else Float
            space.add(kind(own["name"], (own["low"], own["high"]), log=own["log"]))
    for own in job["parameters"]:
        if "parent" in own:
            space.add(InCondition(space[own["name"]], space[own["parent"]], own["parent_values"]))
    logging.disable(logging.CRITICAL)
    facade = BlackBoxFacade if job["contestant"] == "smac" else HyperparameterOptimizationFacade
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            space, n_trials=job["trials"] + 1, deterministic=True, seed=job["seed"], output_directory=Path(folder)
        )
        smac = facade(scenario, lambda config, seed: 0.0, overwrite=True, logging_level=False)  # noqa: ARG005
        while True:
            info = smac.ask()
            config = {name: np.asarray(value).item() for name, value in info.config.items()}
            smac.tell(info, TrialValue(cost=(yield config)))


def suggest_skopt(job: dict[str, Any]) -> Suggester:
    """scikit-optimize has no conditions: all hyperparameters are always active."""
    from skopt import Optimizer
    from skopt.space import Categorical, Integer, Real

    dimensions: list[Any] = []
    for own in job["parameters"]:
        if own["kind"] == "choice":
            dimensions.append(Categorical(own["choices"]))
        else:
            kind = Integer if own["kind"] == "int" else Real
            dimensions.append(kind(own["low"], own["high"], prior="log-uniform" if own["log"] else "uniform"))
    optimizer = Optimizer(dimensions, random_state=job["seed"])
    while True:
        point = optimizer.ask()
        config: dict[str, Any] = {}
        for own, value in zip(job["parameters"], point, strict=True):
            if "parent" not in own or config.get(own["parent"]) in own["parent_values"]:
                config[own["name"]] = np.asarray(value).item()
        optimizer.tell(point, (yield config))


if __name__ == "__main__":
    main()
