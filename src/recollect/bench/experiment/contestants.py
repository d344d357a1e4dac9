"""Contestants: what a plan can run on a task. Methods of recollect, samplers of Optuna, and anything with ask and tell.

A plan names a contestant by one of these (`contestant_spec`):

    rgpe-taf                          a method of the catalog
    optuna:TPESampler                 a sampler of ``optuna.samplers``, which knows nothing of past runs
    mypkg:MyOptimizer                 an object of a module: a `Method`, or a factory
    command: PROGRAM ARGUMENT ...     a program in an environment of its own (`bench.experiment.subprocess_contestant`)

Samplers and factories may have settings: ``optuna:TPESampler(multivariate=True)``. A module is a file beside the plan,
or one that can be imported; files in a command are searched for beside the plan, too.

A factory is called as ``factory(space, past, horizon=..., seed=..., candidates=...)`` and returns an object with
``ask()`` and ``tell(config, value)`` (`AskTell`); lower values are better. ``space`` is a `Space`, ``past`` a tuple of
runs on other tasks, ``candidates`` the only configurations that can be evaluated, or None. Where there are candidates,
and ``ask`` returns something else or one that has been evaluated already, the nearest that has not been is evaluated,
and ``tell`` receives that one (`OnCandidates`). If the object has ``close()``, it is called at the end of the run.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from recollect.bench.benchmark import did_you_mean
from recollect.bench.problems.tabular import configuration_table, distances
from recollect.errors import InputError
from recollect.numerics.arrays import row_key
from recollect.optimizer import catalog
from recollect.optimizer.method import Method
from recollect.runs.run import Config, Run
from recollect.space.space import Space

OPTUNA, COMMAND = "optuna", "command"


class AskTell(Protocol):
    """What a factory returns."""

    def ask(self) -> Mapping[str, Any]:
        """Return the configuration to evaluate next."""
        ...

    def tell(self, config: Config, value: float) -> None:
        """Learn the value of a configuration; it is the one that was asked for last, unless there are candidates."""
        ...


@dataclass(frozen=True, slots=True)
class RunSetting:
    """What a contestant gets for one run."""

    space: Space
    past: tuple[Run, ...]
    horizon: int  # the number of evaluations
    seed: int
    candidates: tuple[Config, ...] | None


@dataclass(frozen=True, slots=True)
class ContestantSpec:
    """A contestant of a plan: the name under which results are stored, and what it is."""

    name: str
    kind: str = "method"  # "method" of the catalog, "optuna", "module" or "command"
    target: str = ""  # the sampler, the object in the module, or the command
    module: str = ""  # the module; if it is a file beside the plan, its path
    settings: tuple[tuple[str, Any], ...] = ()  # keyword arguments of the sampler or factory

    def check(self) -> None:
        """Raise InputError if it is a program that this computer cannot run, without running it."""
        if self.kind == COMMAND and shutil.which(program := shlex.split(self.target)[0]) is None:
            raise InputError(f"{self.name}: expected a program that can be run after 'command:', got {program!r}")

    def method(self) -> str | Method | None:
        """Return the method of recollect that it is, or None."""
        if self.kind == "method":
            return self.name
        resolved = self._resolve() if self.kind == "module" else None
        return resolved if isinstance(resolved, Method) else None

    def transfers(self) -> bool:
        """Return whether it gets past runs."""
        method = self.method()
        return self.kind != OPTUNA if method is None else catalog.method(method).transfers

    def definition(self) -> str:
        """Return what it is, in one line, without the place of files."""
        if self.kind == COMMAND:
            return " ".join([COMMAND, *(Path(part).name for part in shlex.split(self.target))])
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings)
        return f"{self.kind} {Path(self.module).name} {self.target}({settings})"

    def create(self, setting: RunSetting) -> AskTell:
        """Create what is asked and told in one run; for those that are not methods of recollect."""
        settings = dict(self.settings)
        created: AskTell
        if self.kind == OPTUNA:
            from recollect.bench.experiment.optuna_contestant import OptunaContestant

            created = OptunaContestant(self.target, settings, setting)
        elif self.kind == COMMAND:
            from recollect.bench.experiment.subprocess_contestant import SubprocessContestant

            created = SubprocessContestant(shlex.split(self.target), setting)
        else:
            limits = {"horizon": setting.horizon, "seed": setting.seed, "candidates": setting.candidates}
            created = self._resolve()(setting.space, setting.past, **limits, **settings)
            missing = [name for name in ("ask", "tell") if not callable(getattr(created, name, None))]
            if missing:
                raise InputError(f"{self.name}: expected an object with ask and tell, but it has no {missing[0]}")
        return created if setting.candidates is None else OnCandidates(created, setting)

    def _resolve(self) -> Any:
        """Return the object of the module; InputError if there is none that can be called."""
        found = import_object(self.module, self.target)
        if not isinstance(found, Method) and not callable(found):
            raise InputError(f"{self.name}: expected a Method or a factory, got {type(found).__name__}")
        return found


class OnCandidates:
    """Evaluates the nearest candidate that has not been evaluated, whatever the contestant asks for."""

    def __init__(self, contestant: AskTell, setting: RunSetting) -> None:
        """Compile the candidates."""
        self._contestant, self._space = contestant, setting.space
        self._table = configuration_table(setting.space, setting.candidates or ())
        self._free = np.ones(len(self._table.configs), dtype=bool)  # not evaluated yet

    def ask(self) -> Config:
        """Return the nearest candidate that is left."""
        x = self._space.encode([dict(self._contestant.ask())])[0]
        number = self._table.by_row.get(row_key(x), -1)
        if number < 0 or not self._free[number]:
            number = int(np.where(self._free, distances(self._space, self._table.X, x), np.inf).argmin())
        self._free[number] = False
        return dict(self._table.configs[number])

    def tell(self, config: Config, value: float) -> None:
        """Tell the contestant what was evaluated."""
        self._contestant.tell(config, value)

    def close(self) -> None:
        """Close the contestant."""
        close(self._contestant)


def close(contestant: AskTell) -> None:
    """Call ``close()`` of a contestant that has it, at the end of a run."""
    closing = getattr(contestant, "close", None)
    if callable(closing):
        closing()


def contestant_spec(text: str, folder: Path, name: str = "") -> ContestantSpec:
    """Return the contestant that a plan in this folder names; InputError if there is none."""
    name = name or text
    kind, colon, rest = text.partition(":")
    if not colon:
        catalog.method(text)  # refuses unknown ones
        if name != text:
            raise InputError(f"contestants: {text!r} is a method of recollect and keeps its name, got {name!r}")
        return ContestantSpec(name)
    if kind == COMMAND:
        # Links stay links: the python of an environment is one to the python that it was made with.
        parts = [str((folder / part).absolute()) if (folder / part).is_file() else part for part in shlex.split(rest)]
        if not parts:
            raise InputError(f"{name}: expected a program after 'command:', got none")
        return ContestantSpec(name, COMMAND, shlex.join(parts))
    target, settings = _parse_call(rest, name)
    if kind == OPTUNA:
        from recollect.bench.experiment.optuna_contestant import create_sampler, sampler_names

        if target not in sampler_names():
            raise InputError(f"{name}: Optuna has no sampler {target!r}{did_you_mean(target, sampler_names())}")
        create_sampler(target, dict(settings), seed=0)  # refuses wrong settings and missing libraries
        return ContestantSpec(name, OPTUNA, target, "", settings)
    file = folder / Path(*kind.split(".")).with_suffix(".py")
    spec = ContestantSpec(name, "module", target, str(file.resolve()) if file.exists() else kind, settings)
    spec.transfers()  # refuses what is not there
    return spec


def import_object(module: str, name: str) -> Any:
    """Return an object of a module, given by its name or by the path of its file; InputError if there is none."""
    try:
        found: Any = _import_file(Path(module)) if module.endswith(".py") else importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, SyntaxError) as error:
        place = "a file beside the plan, or a module that can be imported"
        raise InputError(f"expected {name} in {module}, {place}: {error}") from error
    return found


def _import_file(path: Path) -> Any:
    """Import a file under a name of its own, once per process."""
    name = f"_recollect_plan_{path.stem}_{abs(hash(str(path)))}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def _parse_call(text: str, name: str) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """Split ``Name(key=value, ...)``, whose values are literals, into the name and the settings."""
    target, bracket, _ = text.partition("(")
    try:
        if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", target):
            raise ValueError("no name")
        if not bracket:
            return target, ()
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call) or call.args or any(keyword.arg is None for keyword in call.keywords):
            raise ValueError("not keyword arguments")
        return target, tuple((str(keyword.arg), ast.literal_eval(keyword.value)) for keyword in call.keywords)
    except (SyntaxError, ValueError) as error:
        example = "optuna:TPESampler(multivariate=True)"
        raise InputError(f"{name}: expected a name, perhaps with settings, as {example}: {error}") from error
