"""Past runs whose hyperparameters had other names."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from recollect._text import name_list
from recollect.errors import InputError, InputTypeError, RecollectWarning
from recollect.runs.run import Config, Run


def rename_hyperparameters(runs: Sequence[Run], rename: Mapping[str, str] | None) -> list[Run]:
    """Return past runs with some hyperparameters renamed, without their spaces where something changed.

    A warning names what no run has under its old name, unless all have it under its new one.

    Args:
        runs: The past runs.
        rename: New names by old ones; None changes nothing.

    Raises:
        InputTypeError: ``rename`` is not a mapping from names to names.
        InputError: A trial has an old name and its new one.
    """
    if rename is None:
        return list(runs)
    _check_types(rename)
    own = [set(run.hyperparameters) for run in runs if isinstance(run, Run) and len(run)]
    used = set().union(*own)
    for old, new in rename.items():
        if old not in used and any(new not in names for names in own):
            message = f"rename: no past run has {old!r}; their hyperparameters are {name_list(sorted(used))}"
            warnings.warn(message, RecollectWarning, stacklevel=3)
    return [_renamed(run, rename) if isinstance(run, Run) else run for run in runs]


def check_new_names(rename: Mapping[str, str] | None, names: Sequence[str]) -> None:
    """Raise InputError for a new name that is none of the hyperparameters of the space."""
    if rename is None:
        return
    _check_types(rename)
    for old, new in rename.items():
        if new not in names:
            raise InputError(f"rename: {old!r} cannot become {new!r}; the space has {name_list(names)}")


def renamed_config(config: Mapping[str, Any], names: Mapping[str, str], where: str) -> Config:
    """Return a configuration with new names; InputError if it has an old name and its new one."""
    for old, new in names.items():
        if old in config and new in config and old != new:
            raise InputError(f"rename: {where} has both {old!r} and {new!r}, so one cannot be renamed to the other")
    return {names.get(name, name): value for name, value in config.items()}


def _check_types(rename: Mapping[str, str]) -> None:
    """Raise InputTypeError unless this is a mapping from names to names."""
    pairs = rename.items() if isinstance(rename, Mapping) else [(rename, None)]
    if not all(isinstance(name, str) and name for pair in pairs for name in pair):
        expected = 'new names by old ones, such as {"learning_rate": "lr"}'
        raise InputTypeError(f"rename: expected {expected}, got {rename!r}")


def _renamed(run: Run, names: Mapping[str, str]) -> Run:
    if not any(names.keys() & trial.config.keys() for trial in run.trials):
        return run
    where = f"run {run.task!r}"
    trials = [replace(trial, config=renamed_config(trial.config, names, where)) for trial in run.trials]
    return Run(run.task, trials=trials, direction=run.direction)
