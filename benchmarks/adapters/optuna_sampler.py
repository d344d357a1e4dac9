"""A sampler of Optuna that needs an environment of its own, as GPSampler needs torch: ``optuna_sampler.py GPSampler``.

It knows nothing of past runs. If another configuration is evaluated than the one asked for, the study holds that one.
"""

from __future__ import annotations

import sys
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial
from protocol import serve


def distribution(entry: dict[str, Any]) -> Any:
    """The distribution of a hyperparameter in ConfigSpace's JSON format."""
    match entry["type"]:
        case "uniform_float":
            return FloatDistribution(entry["lower"], entry["upper"], log=entry["log"])
        case "uniform_int":
            return IntDistribution(entry["lower"], entry["upper"], log=entry["log"])
        case "categorical":
            return CategoricalDistribution(entry["choices"])
        case "ordinal":
            return CategoricalDistribution(entry["sequence"])
        case "constant":
            return CategoricalDistribution([entry["value"]])
    raise SystemExit(f"a hyperparameter of type {entry['type']} is not supported")


class Sampler:
    def __init__(self, setting: dict[str, Any]) -> None:
        if setting["space"]["conditions"]:
            raise SystemExit("conditional spaces are not supported here; use optuna:NAME in the plan instead")
        self.distributions = {entry["name"]: distribution(entry) for entry in setting["space"]["hyperparameters"]}
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.study = optuna.create_study(sampler=getattr(optuna.samplers, sys.argv[1])(seed=setting["seed"]))

    def ask(self) -> dict[str, Any]:
        self.trial = self.study.ask(self.distributions)
        return dict(self.trial.params)

    def tell(self, config: dict[str, Any], value: float) -> None:
        if config == self.trial.params:
            self.study.tell(self.trial, value)
            return
        attributes = self.study.tell(self.trial, state=TrialState.FAIL).system_attrs
        known = {"params": config, "distributions": self.distributions, "system_attrs": attributes}
        self.study.add_trial(create_trial(value=value, **known))


if __name__ == "__main__":
    serve(Sampler)
