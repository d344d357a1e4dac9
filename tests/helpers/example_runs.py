"""Runs with their past runs, for tests of analysis and reports: usual ones, hostile names, edge cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer

from recollect import FAILED, Run
from recollect.analysis.run_data import (
    Origin,
    RunData,
)
from recollect.report.table import Table
from recollect.runs.run import Direction, Trial
from recollect.space.space import Space, compile_space
from recollect.tuning.suggestion_notes import SuggestionNote

SCRIPT, QUOTES = "<script>alert(1)</script>", "\"><img src=x onerror='alert(2)'>"


HEBREW = "\N{HEBREW LETTER ALEF}\N{HEBREW LETTER BET}\N{HEBREW LETTER GIMEL}"


HOSTILE = (SCRIPT, QUOTES, "<a href='https://example.org'>x</a> & <b>y</b> %{x}", HEBREW, "\u202eedisni", "long-" * 400)


SETTINGS = {"method": "rgpe-taf", "trials": 20, "seed": 7, "versions": {"recollect": "0.1.0", "numpy": "2.0"}}


PLAIN = compile_space({"x": (0.0, 1.0), "y": (0.0, 1.0)})


MOST_BYTES = 6_500_000


def learner() -> Space:
    """A space with a scale of each kind, choices, and a hyperparameter that only one choice uses."""
    source = ConfigurationSpace()
    kernel = Categorical("kernel", ["linear", "radial"])
    gamma = Float("gamma", (1e-3, 10.0), log=True)
    source.add(Float("cost", (0.1, 1000.0), log=True), Integer("depth", (1, 9)), kernel, gamma)
    source.add(EqualsCondition(gamma, kernel, "radial"))
    return compile_space(source)


LEARNER = learner()


def value_of(config: dict[str, Any], *, best: float = 10.0) -> float:
    gap = abs(np.log10(config["cost"] / best))
    return float(gap + 0.05 * config["depth"] + (0.5 if config["kernel"] == "linear" else 0.0))


def learned(
    task: str, count: int, *, seed: int = 0, failed: Sequence[int] = (), direction: Direction = "minimize"
) -> Run:
    """A run over the learner's space, drawn at random."""
    rng = np.random.default_rng(seed)
    trials = []
    for number in range(count):
        config: dict[str, Any] = {"cost": float(10 ** rng.uniform(-1, 3)), "depth": int(rng.integers(1, 10))}
        config["kernel"] = ("linear", "radial")[int(rng.integers(2))]
        if config["kernel"] == "radial":
            config["gamma"] = float(10 ** rng.uniform(-3, 1))
        value = value_of(config) if direction == "minimize" else -value_of(config)
        trials.append(replace(Trial.of(config, FAILED if number in failed else value), seconds=1.0))
    return Run(task, trials=trials, space=LEARNER, direction=direction)


def noted(names: Sequence[str], count: int, *, seed: int = 0) -> tuple[SuggestionNote | None, ...]:
    """Notes of a run: the first trial comes from the portfolio, the others were weighed."""
    rng = np.random.default_rng(seed)
    notes: list[SuggestionNote | None] = [SuggestionNote("point 1 of the portfolio learned from past runs")]
    for _ in range(count - 1):
        weights = rng.dirichlet(np.full(len(names) + 1, 0.3)).tolist()
        past = {name: weight for name, weight in zip(names, weights, strict=False) if weight >= 0.005}
        notes.append(SuggestionNote("highest acquisition value", weights[-1], past, frozenset(set(names) - set(past))))
    return tuple(notes[:count])


def run_data(run: Run, past: Sequence[Run] = (), **given: Any) -> RunData:
    notes = noted([other.task for other in past], len(run)) if past else (None,) * len(run)
    defaults: dict[str, Any] = {"notes": notes, "settings": SETTINGS, "space": run.space}
    return RunData(**{"run": run, "problem": "svm", "past": tuple(past), **defaults, **given})


def usual(direction: Direction = "minimize") -> RunData:
    past = [learned(f"past {number}", 20, seed=number + 1, direction=direction) for number in range(9)]
    return run_data(learned("covertype", 20, failed=(2, 11), direction=direction), past)


def values_only(values: Sequence[object], direction: Direction = "minimize") -> Run:
    """A run with these values."""
    configs = [{"x": (number + 0.5) / len(values), "y": 0.5} for number in range(len(values))]
    return Run("own", configs, values, space=PLAIN, direction=direction)


def hostile() -> RunData:
    """Names from outside that would do harm, everywhere where there is a name."""
    space = compile_space({name[:500]: (0.0, 1.0) for name in HOSTILE} | {"choice": list(HOSTILE)})
    rng = np.random.default_rng(0)

    def made(task: str) -> Run:
        trials = []
        for number in range(16):
            config: dict[str, Any] = {name[:500]: float(rng.random()) for name in HOSTILE}
            config["choice"] = HOSTILE[number % len(HOSTILE)]
            trials.append(replace(Trial.of(config, FAILED if number == 3 else rng.random()), notes=HOSTILE))
        return Run(task, trials=trials, space=space)

    past = [made(name) for name in HOSTILE]
    settings = {"method": "rgpe-taf", "trials": 16, "seed": SCRIPT, "versions": {SCRIPT: QUOTES}}
    origins: dict[str, Origin] = dict.fromkeys(HOSTILE, "without transfer")
    data = run_data(made(SCRIPT + QUOTES), past, problem=QUOTES, settings=settings, origins=origins, storage=SCRIPT)
    return replace(data, notes=(SuggestionNote(SCRIPT), *data.notes[1:]), paired=None)


def many(trials: int = 1000, past: int = 100) -> RunData:
    rng = np.random.default_rng(0)
    space = compile_space({f"hyperparameter {number}": (0.0, 1.0) for number in range(14)})

    def made(task: str, count: int) -> Run:
        X = rng.random((count, 14))
        configs = space.decode(X)
        values = [FAILED if rng.random() < 0.05 else float(value) for value in ((X - 0.4) ** 2).sum(axis=1)]
        return Run(task, configs, values, space=space)

    some = [made("", 12) for _ in range(4)]  # copies of a run are fitted once
    names = [f"task number {number} of a long list with long names" for number in range(past)]
    runs = [Run(name, trials=some[number % 4].trials) for number, name in enumerate(names)]
    return run_data(made("covertype", trials), runs, settings={**SETTINGS, "trials": trials})


EDGES = {
    "usual": usual,
    "to maximize": lambda: usual("maximize"),
    "no past runs": lambda: run_data(learned("covertype", 12)),
    "no trials": lambda: run_data(learned("covertype", 0)),
    "one trial": lambda: run_data(learned("covertype", 1), [learned("past", 8, seed=1)]),
    "one trial that failed": lambda: run_data(learned("covertype", 1, failed=(0,)), [learned("past", 8, seed=1)]),
    "two trials": lambda: run_data(learned("covertype", 2), [learned("past", 2, seed=1)]),
    "all failed": lambda: run_data(learned("covertype", 6, failed=range(6)), [learned("past", 8, seed=1)]),
    "first ones failed": lambda: run_data(learned("covertype", 9, failed=range(5)), [learned("past", 8, seed=1)]),
    "equal values": lambda: run_data(values_only([0.5] * 12), [values_only([0.5] * 12)]),
    "enormous values": lambda: run_data(values_only([1e308, -1e308, 1.0, 5e-324] * 4)),
    "tiny and huge values": lambda: run_data(values_only([1e-300, 1e300, 1.0, 2.0] * 3)),
    "no settings": lambda: replace(usual(), settings={}),
    "settings of another kind": lambda: replace(usual(), settings={"method": 3, "trials": "many", "versions": [1]}),
    "no notes": lambda: replace(usual(), notes=(None,) * 20),
    "no space, no trials": lambda: run_data(Run("bare"), space=None),
    "a method without transfer": lambda: replace(usual(), settings={**SETTINGS, "method": "gp"}),
    "a method without a bound": lambda: replace(usual(), settings={**SETTINGS, "method": "tstr-ei"}),
    "nothing varies": lambda: run_data(Run("own", [{"x": 3}] * 3, [1.0, 2.0, 3.0], space={"x": 3})),
    "hostile names": hostile,
}


def cell_texts(table: Table, column: int) -> list[str]:
    return [str(row[column].content) for block in table.blocks for row in block]
