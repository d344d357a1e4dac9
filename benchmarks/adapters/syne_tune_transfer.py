"""Syne Tune's schedulers that learn from past runs, asked and told: ``syne_tune_transfer.py copula`` or ``... box``.

copula: Thompson sampling from a model of the ranks of all past runs (`QuantileBasedSurrogateSearcher`); it learns
nothing from the new task. box: BORE within the smallest box that holds the best configuration of each past run
(`BoundingBox`). It cannot be told of anything outside of the box: where the nearest candidate lies outside, it is told
the value that it asked for.
"""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
from protocol import serve
from syne_tune.backend.trial_status import Trial
from syne_tune.config_space import choice, lograndint, loguniform, ordinal, randint, uniform
from syne_tune.optimizer.baselines import BORE
from syne_tune.optimizer.schedulers.single_objective_scheduler import SingleObjectiveScheduler
from syne_tune.optimizer.schedulers.transfer_learning.bounding_box import BoundingBox
from syne_tune.optimizer.schedulers.transfer_learning.quantile_based.quantile_based_searcher import (
    QuantileBasedSurrogateSearcher,
)
from syne_tune.optimizer.schedulers.transfer_learning.transfer_learning_task_evaluation import (
    TransferLearningTaskEvaluations,
)

METRIC = "error"


def domain(entry: dict[str, Any]) -> Any:
    """The domain of a hyperparameter in ConfigSpace's JSON format."""
    match entry["type"]:
        case "uniform_float":
            return (loguniform if entry["log"] else uniform)(entry["lower"], entry["upper"])
        case "uniform_int":
            return (lograndint if entry["log"] else randint)(entry["lower"], entry["upper"])
        case "categorical":
            return choice(entry["choices"])
        case "ordinal":
            return ordinal(entry["sequence"])
        case "constant":
            return choice([entry["value"]])
    raise SystemExit(f"a hyperparameter of type {entry['type']} is not supported")


class SyneTune:
    def __init__(self, setting: dict[str, Any]) -> None:
        if setting["space"]["conditions"]:
            raise SystemExit("conditional spaces are not supported by Syne Tune")
        self.space = {entry["name"]: domain(entry) for entry in setting["space"]["hyperparameters"]}
        past = {run["task"]: self.evaluations(run) for run in setting["past"]}
        options: dict[str, Any] = {"metric": METRIC, "random_seed": setting["seed"]}
        if sys.argv[1] == "copula":
            searcher = QuantileBasedSurrogateSearcher(self.space, past, random_seed=setting["seed"])
            self.scheduler = SingleObjectiveScheduler(self.space, searcher=searcher, **options)
            self.known = self.space
        elif sys.argv[1] == "box":
            self.scheduler = BoundingBox(BORE, self.space, transfer_learning_evaluations=past, **options)
            self.known = self.scheduler.scheduler.config_space
        else:
            raise SystemExit(f"expected copula or box, got {sys.argv[1]}")
        self.told = 0

    def evaluations(self, run: dict[str, Any]) -> TransferLearningTaskEvaluations:
        values = np.array(run["values"]).reshape(-1, 1, 1, 1)  # one seed, one fidelity, one objective
        return TransferLearningTaskEvaluations(self.space, pd.DataFrame(run["configs"]), [METRIC], values)

    def ask(self) -> dict[str, Any]:
        self.asked = self.scheduler.suggest().config
        return self.asked

    def tell(self, config: dict[str, Any], value: float) -> None:
        told = {name: own if self.known[name].is_valid(own) else self.asked[name] for name, own in config.items()}
        self.scheduler.on_trial_complete(Trial(self.told, told, datetime.now()), {METRIC: value})
        self.told += 1


if __name__ == "__main__":
    serve(SyneTune)
