"""BoTorch's multi-task Gaussian process over past runs and the new task, asked and told.

One exact process over all observations grows with their cube, so a few past runs take part, drawn at random: four, or
as many as the argument says (``botorch_multitask.py 8``). The values of each task are standardised. The first
configuration is the best of the first past run; the others maximise LogExpectedImprovement over the candidates, or over
2,000 random configurations of the space where all can be evaluated.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import MultiTaskGP
from ConfigSpace import CategoricalHyperparameter, Configuration, ConfigurationSpace
from gpytorch.mlls import ExactMarginalLogLikelihood
from protocol import serve

PAST_RUNS = 4
RANDOM_CONFIGS = 2000
FIT_ITERATIONS = 50


class MultiTask:
    def __init__(self, setting: dict[str, Any]) -> None:
        torch.manual_seed(setting["seed"])
        self.space = ConfigurationSpace.from_serialized_dict(setting["space"])
        self.space.seed(setting["seed"])
        self.candidates = setting["candidates"]
        past, count = setting["past"], int(sys.argv[1]) if len(sys.argv) > 1 else PAST_RUNS
        self.past = random.Random(setting["seed"]).sample(past, min(count, len(past)))
        self.configs: list[dict[str, Any]] = []
        self.values: list[float] = []
        self.state: dict[str, Any] = {}

    def ask(self) -> dict[str, Any]:
        pool = self.candidates or [dict(config) for config in self.space.sample_configuration(RANDOM_CONFIGS)]
        pool = [config for config in pool if config not in self.configs]
        if not self.configs:
            first = self.past[0] if self.past else {"configs": pool[:1], "values": [0.0]}
            return first["configs"][first["values"].index(min(first["values"]))]
        acquisition = LogExpectedImprovement(self.model(), best_f=standardised(self.values).max())
        with torch.no_grad():
            scores = torch.cat([acquisition(part.unsqueeze(1)) for part in self.encode(pool).split(500)])
        return pool[int(scores.argmax())]

    def tell(self, config: dict[str, Any], value: float) -> None:
        self.configs.append(config)
        self.values.append(value)

    def model(self) -> MultiTaskGP:
        """The process for all tasks, with the new one as its only output."""
        runs = [(self.configs, self.values), *((run["configs"], run["values"]) for run in self.past)]
        rows = [torch.nn.functional.pad(self.encode(configs), (0, 1), value=n) for n, (configs, _) in enumerate(runs)]
        X, y = torch.cat(rows), torch.cat([standardised(values) for _, values in runs]).unsqueeze(1)
        model = MultiTaskGP(X, y, task_feature=-1, output_tasks=[0], outcome_transform=None)
        if self.state:  # the hyperparameters of the last fit are a good start
            model.load_state_dict(self.state)
        options = {"options": {"maxiter": FIT_ITERATIONS}}
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model), optimizer_kwargs=options)
        self.state = model.state_dict()
        return model

    def encode(self, configs: list[dict[str, Any]]) -> torch.Tensor:
        """The configurations in the unit cube: a column per choice of a category, 0 where inactive."""
        arrays = [Configuration(self.space, values=config).get_array() for config in configs]
        columns = torch.nan_to_num(torch.tensor(arrays, dtype=torch.float64))
        parts = []
        for column, parameter in zip(columns.T, self.space.values(), strict=True):
            if isinstance(parameter, CategoricalHyperparameter):
                parts.append(torch.nn.functional.one_hot(column.long(), len(parameter.choices)).double())
            else:
                parts.append(column.unsqueeze(1))
        return torch.cat(parts, dim=1)


def standardised(values: list[float]) -> torch.Tensor:
    """The values with mean 0 and standard deviation 1, higher is better."""
    y = -torch.tensor(values, dtype=torch.float64)
    return (y - y.mean()) / (y.std(correction=0) or 1.0)


if __name__ == "__main__":
    serve(MultiTask)
