"""SMAC3's Bayesian optimization with a random forest, asked and told; it knows nothing of past runs.

Where only candidates can be evaluated, the nearest one takes the place of what SMAC3 asks for, and it is told the
result of that one, as a configuration of its own.
"""

from __future__ import annotations

import tempfile
from typing import Any

from ConfigSpace import Configuration, ConfigurationSpace
from protocol import serve
from smac import HyperparameterOptimizationFacade, Scenario
from smac.runhistory.dataclasses import TrialInfo, TrialValue


def never_called(config: Configuration, seed: int) -> float:  # the evaluations are made elsewhere
    raise NotImplementedError


class Smac:
    def __init__(self, setting: dict[str, Any]) -> None:
        self.space = ConfigurationSpace.from_serialized_dict(setting["space"])
        folder = tempfile.mkdtemp(prefix="smac3-")
        options = {"deterministic": True, "n_trials": setting["horizon"], "seed": setting["seed"]}
        scenario = Scenario(self.space, output_directory=folder, **options)
        self.facade = HyperparameterOptimizationFacade(scenario, never_called, overwrite=True, logging_level=40)

    def ask(self) -> dict[str, Any]:
        self.asked = self.facade.ask()
        return dict(self.asked.config)

    def tell(self, config: dict[str, Any], value: float) -> None:
        told = Configuration(self.space, values=config)
        self.facade.tell(TrialInfo(told, seed=self.asked.seed), TrialValue(cost=value))


if __name__ == "__main__":
    serve(Smac)
