"""How long does one suggestion take around 50 observations, on one core, compared with Optuna's samplers?

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/speed/suggestion.py --seeds 5

The loop is the user's: ask, evaluate, tell. The asks at 45 to 54 observations are timed, in CPU time, so that other
processes do not count. Spaces: ten continuous columns, and the paper's ten-dimensional mixed conditional XGBoost space.
Optuna's TPE always takes part, its GPSampler if torch is installed.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

FIRST, LAST = 45, 55
Config = dict[str, Any]


def continuous_space() -> Any:
    return {f"x{j}": (0.0, 1.0) for j in range(10)}


def continuous_value(config: Config) -> float:
    x = np.array([config[f"x{j}"] for j in range(10)])
    return float(np.sum((x - 0.3) ** 2 * np.arange(1, 11)) + 0.3 * np.sum(np.sin(9 * x)))


def xgboost_space() -> Any:
    from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer

    space = ConfigurationSpace()
    booster = Categorical("booster", ["gblinear", "gbtree"])
    trees = [
        Integer("max_depth", (1, 15)),
        Float("min_child_weight", (1.0, 128.0), log=True),
        Float("colsample_bytree", (0.0, 1.0)),
        Float("colsample_bylevel", (0.0, 1.0)),
    ]
    space.add(
        booster,
        Integer("nrounds", (1, 5000)),
        Float("eta", (2.0**-10, 1.0), log=True),
        Float("subsample", (0.0, 1.0)),
        Float("lambda", (2.0**-10, 2.0**10), log=True),
        Float("alpha", (2.0**-10, 2.0**10), log=True),
        *trees,
    )
    space.add(*(EqualsCondition(child, booster, "gbtree") for child in trees))
    return space


def xgboost_value(config: Config) -> float:
    """A smooth stand-in with the shape of a boosting error surface: cheap, and different in the two branches."""
    value = 0.1 * (math.log2(config["eta"]) + 4) ** 2 / 16 + 0.05 * abs(math.log2(config["lambda"])) / 10
    value += 0.1 * (config["subsample"] - 0.8) ** 2 + 0.02 * abs(math.log2(config["alpha"]) + 3) / 10
    value += 0.1 * (config["nrounds"] / 5000 - 0.4) ** 2
    if config["booster"] == "gblinear":
        return value + 0.2
    value += 0.05 * (config["max_depth"] / 15 - 0.5) ** 2 + 0.05 * (config["colsample_bytree"] - 0.6) ** 2
    return value + 0.02 * math.log2(config["min_child_weight"]) / 7 + 0.03 * config["colsample_bylevel"]


def time_recollect(space: Any, value: Callable[[Config], float], method: str, seed: int) -> list[float]:
    import recollect

    optimizer = recollect.Optimizer(space, method=method, horizon=LAST, seed=seed)
    times = []
    for index in range(LAST):
        begin = time.process_time()
        config = optimizer.ask()
        if index >= FIRST:
            times.append(time.process_time() - begin)
        optimizer.tell(config, value(config))
    return times


def suggest_continuous(trial: Any) -> Config:
    return {f"x{j}": trial.suggest_float(f"x{j}", 0, 1) for j in range(10)}


def suggest_xgboost(trial: Any) -> Config:
    config = {
        "booster": trial.suggest_categorical("booster", ["gblinear", "gbtree"]),
        "nrounds": trial.suggest_int("nrounds", 1, 5000),
        "eta": trial.suggest_float("eta", 2.0**-10, 1, log=True),
        "subsample": trial.suggest_float("subsample", 0, 1),
        "lambda": trial.suggest_float("lambda", 2.0**-10, 2.0**10, log=True),
        "alpha": trial.suggest_float("alpha", 2.0**-10, 2.0**10, log=True),
    }
    if config["booster"] == "gbtree":
        config["max_depth"] = trial.suggest_int("max_depth", 1, 15)
        config["min_child_weight"] = trial.suggest_float("min_child_weight", 1, 128, log=True)
        config["colsample_bytree"] = trial.suggest_float("colsample_bytree", 0, 1)
        config["colsample_bylevel"] = trial.suggest_float("colsample_bylevel", 0, 1)
    return config


def time_optuna(
    suggest: Callable[[Any], Config], value: Callable[[Config], float], sampler: str, seed: int
) -> list[float]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    study = optuna.create_study(sampler=getattr(optuna.samplers, sampler)(seed=seed))
    times = []
    for index in range(LAST):
        begin = time.process_time()
        trial = study.ask()
        config = suggest(trial)
        if index >= FIRST:
            times.append(time.process_time() - begin)
        study.tell(trial, value(config))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    rivals = ["TPESampler", *(["GPSampler"] if find_spec("torch") else [])]
    print(f"ask() at {FIRST} to {LAST - 1} observations, {options.seeds} seeds: median, 90th percentile of CPU times")
    for title, space, suggest, value in (
        ("10 continuous", continuous_space(), suggest_continuous, continuous_value),
        ("XGBoost, conditional", xgboost_space(), suggest_xgboost, xgboost_value),
    ):
        rows = {"recollect gp": [t for s in range(options.seeds) for t in time_recollect(space, value, "gp", s)]}
        for rival in rivals:
            rows[f"optuna {rival}"] = [t for s in range(options.seeds) for t in time_optuna(suggest, value, rival, s)]
        for name, times in rows.items():
            print(f"{title:<22} {name:<20} {1000 * np.median(times):7.1f} ms {1000 * np.percentile(times, 90):7.1f} ms")


if __name__ == "__main__":
    main()
