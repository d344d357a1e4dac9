"""OpenBox's Bayesian optimization with its own RGPE over past runs, asked and told.

Everything is left to OpenBox as it chooses by itself: ranking weights over Gaussian processes (random forests where
there are many categories), a warm start from the best configurations of past runs, expected improvement. All past runs
take part, or as many, drawn at random, as the argument says (``openbox_rgpe.py 10``): a suggestion takes time in
proportion.
"""

from __future__ import annotations

import random
import sys
import tempfile
from typing import Any

from ConfigSpace import (
    CategoricalHyperparameter,
    Configuration,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    OrdinalHyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from openbox import Advisor, History, Observation
from protocol import serve


def hyperparameter(entry: dict[str, Any]) -> Any:
    """A hyperparameter of the older ConfigSpace that OpenBox needs, from the newer one's JSON format."""
    name = entry["name"]
    match entry["type"]:
        case "uniform_float":
            return UniformFloatHyperparameter(name, entry["lower"], entry["upper"], log=entry["log"])
        case "uniform_int":
            return UniformIntegerHyperparameter(name, entry["lower"], entry["upper"], log=entry["log"])
        case "categorical":
            return CategoricalHyperparameter(name, entry["choices"])
        case "ordinal":
            return OrdinalHyperparameter(name, entry["sequence"])
        case "constant":
            return Constant(name, entry["value"])
    raise SystemExit(f"a hyperparameter of type {entry['type']} is not supported")


def search_space(content: dict[str, Any]) -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add_hyperparameters([hyperparameter(entry) for entry in content["hyperparameters"]])
    for condition in content["conditions"]:
        if condition["type"] != "EQ":
            raise SystemExit(f"a condition of type {condition['type']} is not supported")
        child, parent = space[condition["child"]], space[condition["parent"]]
        space.add_condition(EqualsCondition(child, parent, condition["value"]))
    return space


class OpenBox:
    def __init__(self, setting: dict[str, Any]) -> None:
        self.space = search_space(setting["space"])
        past = setting["past"]
        if len(sys.argv) > 1:
            past = random.Random(setting["seed"]).sample(past, min(int(sys.argv[1]), len(past)))
        histories = [self.history(run) for run in past] or None
        folder = tempfile.mkdtemp(prefix="openbox-")
        options = {"output_dir": folder, "random_state": setting["seed"], "logger_kwargs": {"level": "ERROR"}}
        self.advisor = Advisor(self.space, transfer_learning_history=histories, task_id="new", **options)

    def history(self, run: dict[str, Any]) -> History:
        history = History(task_id=run["task"], config_space=self.space)
        for config, value in zip(run["configs"], run["values"], strict=True):
            history.update_observation(Observation(Configuration(self.space, values=config), objectives=[value]))
        return history

    def ask(self) -> dict[str, Any]:
        return self.advisor.get_suggestion().get_dictionary()

    def tell(self, config: dict[str, Any], value: float) -> None:
        told = Configuration(self.space, values=config)
        self.advisor.update_observation(Observation(told, objectives=[value]))


if __name__ == "__main__":
    serve(OpenBox)
