"""Runs in a memory, for tests of analysis, reports and the command line."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import optuna

from recollect import Memory, Run, minimize
from recollect.space.space import compile_space
from recollect.storage.studies import INFLUENCE_KEY, SETTINGS_KEY, get_or_create_study
from recollect.storage.transitions import write_trials
from recollect.tuning.result import Result

SPACE: dict[str, Any] = {"a": (0.0, 1.0), "b": (0.0, 1.0)}


NOON = datetime(2026, 5, 4, 12, 0, 0)


def bowl(config: dict[str, Any]) -> float:
    return float((config["a"] - 0.3) ** 2 + (config["b"] - 0.7) ** 2)


def tuned(memory: Path | None, task: str, *, problem: str = "p", method: str = "random", **given: Any) -> Result:
    return minimize(
        bowl, SPACE, memory=memory, task=task, problem=problem, method=method, progress=False, **{"trials": 6, **given}
    )


def put(
    memory: Memory, task: str, *, minutes: list[float], settings: Any = None, notes: dict[int, Any] | None = None
) -> None:
    """Write a run whose trials end at these minutes after noon, each of which began half a minute before."""
    entry = get_or_create_study(memory.store, "p", task, space=compile_space(SPACE), direction="minimize")
    if settings is not None:
        memory.store.optuna.set_study_user_attr(entry.id, SETTINGS_KEY, settings)
    known = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in SPACE}
    trials = []
    for number, minute in enumerate(minutes):
        end = NOON + timedelta(minutes=minute)
        trial = optuna.trial.create_trial(
            params={"a": number / 10, "b": 0.5},
            distributions=known,
            value=float(number),
            user_attrs={INFLUENCE_KEY: notes[number]} if notes and number in notes else {},
        )
        trial.datetime_start, trial.datetime_complete = end - timedelta(minutes=0.5), end
        trials.append(trial)
    write_trials(memory.store, entry.key, trials)


def store_example(path: Path) -> tuple[Path, Result]:
    """A memory in which `last` has learned from three earlier runs, and was given a fourth."""
    for number, task in enumerate(("one", "two", "three")):
        tuned(path, task, seed=number)
    given = Run("given", [{"a": x / 7, "b": x / 7} for x in range(7)], [float(x) for x in range(7)])
    result = tuned(path, "last", method="rgpe-taf", trials=8, past=[given])
    tuned(path, "last", problem="without transfer", method="gp", trials=8)
    tuned(path, "later")
    return path, result
