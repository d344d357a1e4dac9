"""Trials and runs: the configurations that were evaluated, with their results.

A `Trial` is one evaluated configuration; a `Run` has all trials of one task. Both are immutable: adding a trial returns
a new run. Values are kept in the user's own units and direction; ``Run.y`` is the only place where
``direction="maximize"`` turns into the internal convention that lower is better.

Notation: ``n`` trials of which ``m`` are usable (succeeded, or pruned with an estimated value); ``X (m, d)`` their
encodings, ``y (m,)`` their values, lower is better.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Literal

import numpy as np

from recollect.errors import ConfigError, InputError, InputTypeError, MissingExtraError
from recollect.numerics.arrays import FloatArray
from recollect.runs.trial_columns import TrialColumns
from recollect.space.space import Space, SpaceLike, compile_space
from recollect.validation import as_list, as_number

Direction = Literal["minimize", "maximize"]
Config = dict[str, Any]
MAX_SECONDS: Final = 1e10  # 300 years; storages keep durations as pairs of dates, which end with the year 9999


class State(Enum):
    """How a trial ended.

    Attributes:
        OK: The trial has a value.
        FAILED: The trial has none. `recollect.FAILED` is short for this state.
        PRUNED: The trial was stopped early and has no value; it may have an estimate of one.
    """

    OK = "ok"
    FAILED = "failed"
    PRUNED = "pruned"

    def __repr__(self) -> str:
        """Return the name, as users write it."""
        return self.name


FAILED: Final = State.FAILED


def sign_of(direction: str) -> float:
    """Return +1 for "minimize" and -1 for "maximize"; InputError for anything else."""
    if isinstance(direction, str) and direction in ("minimize", "maximize"):  # an array compares elementwise
        return 1.0 if direction == "minimize" else -1.0
    raise InputError(f"direction must be 'minimize' or 'maximize', got {direction!r}")


@dataclass(frozen=True, slots=True)
class Trial:
    """One evaluated configuration.

    Attributes:
        config: The configuration, by hyperparameter.
        value: The result in the user's units; None if and only if the trial failed or was pruned.
        state: How the trial ended.
        seconds: How long the evaluation took, if known.
        notes: Remarks, such as why the trial failed.
        estimate: The value that a pruned trial would probably have reached, if that can be estimated. Models learn from
            it; it is never reported as a result.
        number: Its number in a memory, from 0 as in Optuna; None for a trial that comes from elsewhere.

    Raises:
        InputError: State and value contradict each other, a number is not finite, or ``seconds`` is negative.
        InputTypeError: An argument has the wrong type.

    Examples:
        >>> trial = recollect.Trial({"C": 0.1}, 0.25)
        >>> failed = recollect.Trial({"C": 1e9}, None, recollect.FAILED)
    """

    config: Config
    value: float | None
    state: State = State.OK
    seconds: float | None = None
    notes: tuple[str, ...] = ()
    estimate: float | None = None
    number: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Check types, that numbers are finite, and that state and value agree."""
        if type(self.config) is not dict and not isinstance(self.config, Mapping):
            raise InputTypeError(f"Trial: config must be a dict, got {type(self.config).__name__}")
        if not isinstance(self.state, State):
            raise InputTypeError(f"Trial: state must be State.OK, FAILED or PRUNED, got {self.state!r}")
        if self.state is not State.OK and self.value is not None:
            raise InputError(f"a {self.state.value} trial has no value, got {self.value!r}")
        if self.state is State.OK:
            number = math.nan if self.value is None else as_number(self.value, "Trial: value")
            if not math.isfinite(number):
                raise InputError(f"a trial that did not fail needs a finite value, got {self.value!r}")
            object.__setattr__(self, "value", number)
        if self.estimate is not None:
            if self.state is not State.PRUNED or not math.isfinite(as_number(self.estimate, "Trial: estimate")):
                raise InputError(f"only a pruned trial has an estimate, a finite number; got {self.estimate!r}")
            object.__setattr__(self, "estimate", float(self.estimate))
        if self.seconds is not None:
            seconds = as_number(self.seconds, "Trial: seconds", "a number or None")
            if not 0.0 <= seconds <= MAX_SECONDS:
                raise InputError(f"Trial: seconds must be from 0 to {MAX_SECONDS:g}, got {seconds}")
            object.__setattr__(self, "seconds", seconds)

    @classmethod
    def of(cls, config: Mapping[str, Any], value: object, *, where: str = "value") -> Trial:
        """Return a trial with a value that need not be finite.

        Args:
            config: The configuration.
            value: A number, `recollect.FAILED` or None. A number that is not finite is a failure.
            where: What error messages call the value.

        Returns:
            The trial; it has failed if there is no finite value.

        Raises:
            InputTypeError: ``value`` is none of these, or the configuration is not a dict.
        """
        if not isinstance(config, Mapping):
            raise InputTypeError(f"{where}: the configuration must be a dict, got {type(config).__name__}")
        if value is FAILED or value is None:
            return cls(dict(config), None, State.FAILED)
        number = as_number(value, where)
        if not math.isfinite(number):
            return cls(dict(config), None, State.FAILED, notes=(f"the objective returned {number}",))
        return cls(dict(config), number)

    @property
    def ok(self) -> bool:
        """Whether the trial has a value."""
        return self.state is State.OK

    @property
    def learned_value(self) -> float | None:
        """What models learn from the trial: its value, or the estimate of a pruned one; None if there is neither."""
        return self.estimate if self.value is None else self.value


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Run:
    """All trials of one task, in the order in which they finished.

    Attributes:
        task: Name of the dataset or instance.
        trials: The trials, including failed and pruned ones.
        space: The search space, if known.
        direction: "minimize" or "maximize".

    Examples:
        >>> run = recollect.Run("wine", [{"C": 0.1}, {"C": 10.0}, {"C": 1e9}], [0.3, 0.2, recollect.FAILED])
        >>> run.best.config["C"]
        10.0
    """

    task: str
    space: Space | None
    direction: Direction
    _trials: tuple[Trial, ...] | TrialColumns  # columns until a trial is looked at

    def __init__(
        self,
        task: str = "",
        configs: Sequence[Mapping[str, Any]] | None = None,
        values: Iterable[object] | None = None,
        *,
        trials: Iterable[Trial] = (),
        space: SpaceLike | None = None,
        direction: Direction = "minimize",
    ) -> None:
        """Create a run from ``configs`` and ``values``, or from ``trials``.

        Args:
            task: Name of the dataset or instance.
            configs: The configurations.
            values: One number, `recollect.FAILED` or None per configuration.
            trials: Trials, instead of configurations and values.
            space: The search space, in any form that `recollect.compile_space` understands.
            direction: "minimize" or "maximize".

        Raises:
            InputError: The arguments do not fit together.
            InputTypeError: An argument has the wrong type.
            ConfigError: A configuration does not belong to the space.
        """
        if not isinstance(task, str):
            raise InputTypeError(f"Run: task must be a string, got {task!r} ({type(task).__name__})")
        sign_of(direction)
        all_trials = tuple(as_list("Run: trials", trials, of="trials"))
        for index, trial in enumerate(all_trials):
            if not isinstance(trial, Trial):
                raise InputTypeError(f"Run: trials[{index}] must be a recollect.Trial, got {type(trial).__name__}")
        if configs is not None or values is not None:
            if all_trials:
                raise InputError("Run: expected either configs and values, or trials; got both")
            all_trials = _pair(task, configs, values)
        compiled = None if space is None else compile_space(space)
        if compiled is not None:
            check_configs(compiled, all_trials)
        self._set(task, all_trials, compiled, direction)

    @classmethod
    def from_columns(cls, task: str, columns: TrialColumns, *, direction: Direction) -> Run:
        """Return a run whose trials are created when they are first looked at; they are known to be sound."""
        run = object.__new__(cls)
        run._set(task, columns, None, direction)
        return run

    def _set(self, *values: Any) -> None:
        for name, value in zip(("task", "_trials", "space", "direction"), values, strict=True):
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        """Compare task, trials, space and direction."""
        if not isinstance(other, Run):
            return NotImplemented
        same = (self.task, self.space, self.direction) == (other.task, other.space, other.direction)
        return same and self.trials == other.trials

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Return all fields."""
        return f"Run({self.task!r}, trials={self.trials!r}, space={self.space!r}, direction={self.direction!r})"

    def __len__(self) -> int:
        """Return the number of trials, including failed and pruned ones."""
        return len(self._trials)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials, including failed and pruned ones."""
        stored = self._trials
        if isinstance(stored, tuple):
            return stored
        trials = tuple(Trial(config, value, State(state), *rest) for config, value, state, *rest in stored.rows())
        object.__setattr__(self, "_trials", trials)
        return trials

    @property
    def hyperparameters(self) -> list[str]:
        """The hyperparameters that the trials have, each named once."""
        stored = self._trials
        configs = [trial.config for trial in stored] if isinstance(stored, tuple) else [stored.configs.cells]
        return list(dict.fromkeys(name for config in configs for name in config))

    @property
    def columns(self) -> TrialColumns:
        """The trials by column."""
        stored = self._trials
        return TrialColumns.of(stored) if isinstance(stored, tuple) else stored

    @property
    def configs(self) -> list[Config]:
        """The configurations of all trials."""
        return [trial.config for trial in self.trials]

    @property
    def values(self) -> list[float | None]:
        """The values of all trials in the user's units; None where a trial failed or was pruned."""
        return [trial.value for trial in self.trials]

    @property
    def learned_values(self) -> list[float | None]:
        """What models learn from each trial: its value or an estimate of it; None if there is neither."""
        stored = self._trials
        return [trial.learned_value for trial in stored] if isinstance(stored, tuple) else stored.learned_values()

    @property
    def succeeded(self) -> tuple[Trial, ...]:
        """The trials that have a value."""
        return tuple([trial for trial in self.trials if trial.value is not None])

    @property
    def failed(self) -> tuple[Trial, ...]:
        """The trials that failed."""
        return tuple([trial for trial in self.trials if trial.state is State.FAILED])

    @property
    def pruned(self) -> tuple[Trial, ...]:
        """The trials that were stopped early."""
        return tuple([trial for trial in self.trials if trial.state is State.PRUNED])

    @property
    def usable(self) -> tuple[Trial, ...]:
        """The trials that models learn from: those with a value, and pruned ones with an estimate."""
        return tuple([trial for trial in self.trials if trial.learned_value is not None])

    @property
    def X(self) -> FloatArray:
        """The encodings (m, d) of the usable trials; InputError for a run without a space."""
        if self.space is None:
            raise InputError(f"run {self.task!r} has no space of its own: give Run(..., space=...)")
        return self.space.encode([trial.config for trial in self.usable])

    @property
    def y(self) -> FloatArray:
        """The values (m,) of the usable trials; lower is better in either direction."""
        learned = [value for value in self.learned_values if value is not None]
        return sign_of(self.direction) * np.array(learned, dtype=float)

    @property
    def best(self) -> Trial | None:
        """The best trial, the first of those tied; None if no trial has succeeded."""
        sign = sign_of(self.direction)
        return min(self.succeeded, key=lambda trial: sign * (trial.value or 0.0), default=None)

    def to_frame(self) -> Any:
        """Return the trials as a pandas DataFrame, which `recollect.read_runs` reads again.

        Returns:
            One row per trial, numbered from 0, with the columns ``task`` (if it has a name), one per hyperparameter
            (missing where it is inactive), ``value``, ``state`` ("ok", "failed" or "pruned") and ``seconds``.

        Raises:
            MissingExtraError: pandas is not installed.
            InputError: A hyperparameter has the name of one of the other columns.
        """
        try:
            import pandas  # type: ignore[import-untyped]
        except ImportError as error:
            raise MissingExtraError("Run.to_frame needs pandas: pip install pandas") from error
        if taken := [name for name in self.hyperparameters if name in ("task", "value", "state", "seconds")]:
            raise InputError(f"run {self.task!r}: the hyperparameter {taken[0]!r} has the name of another column")
        columns: dict[str, list[Any]] = {"task": [self.task] * len(self)} if self.task else {}
        columns |= {name: [config.get(name) for config in self.configs] for name in self.hyperparameters}
        columns |= {"value": self.values, "state": [trial.state.value for trial in self.trials]}
        columns["seconds"] = [trial.seconds for trial in self.trials]
        frame = pandas.DataFrame(columns, index=pandas.RangeIndex(len(self), name="trial"))
        return frame.astype({"value": float, "seconds": float})

    def with_trial(self, trial: Trial) -> Run:
        """Return a new run with one more trial.

        Args:
            trial: The trial to add at the end; its configuration belongs to the space of the run.

        Returns:
            The longer run; this one stays as it is.
        """
        return self.with_trials((*self.trials, trial))

    def with_trials(self, trials: Iterable[Trial]) -> Run:
        """Return a new run with other trials.

        Args:
            trials: The trials; their configurations belong to the space of the run.

        Returns:
            The run of the same task with these trials instead of its own.
        """
        run = object.__new__(Run)  # without encoding all trials again
        run._set(self.task, tuple(trials), self.space, self.direction)
        return run


def check_configs(space: Space, trials: Sequence[Trial]) -> None:
    """Raise ConfigError for a configuration outside the space; a trial without a result may be incomplete.

    A program may fail or be stopped before it has asked for all its hyperparameters.
    """
    numbers = [number for number, trial in enumerate(trials) if trial.learned_value is not None]
    try:
        space.encode([trials[number].config for number in numbers])
    except ConfigError as error:
        raise ConfigError(error.reason, None if error.number is None else numbers[error.number]) from None
    columns = {column.name: column for column in space.columns}
    for number, trial in enumerate(trials):
        for name, value in trial.config.items() if trial.learned_value is None else ():
            if name not in columns:
                raise ConfigError(f"unknown hyperparameter {name!r}; the space has {', '.join(columns)}", number)
            if value is not None and np.isnan(columns[name].codes([value])[0]):
                raise ConfigError(f"{name!r}: expected {columns[name].expected()}, got {value!r}", number)


def _pair(task: str, configs: Sequence[Mapping[str, Any]] | None, values: Iterable[object] | None) -> tuple[Trial, ...]:
    if configs is None or values is None:
        raise InputError(f"run {task!r}: expected both configs and values, got only one of them")
    configs = as_list(f"run {task!r}: configs", configs, of="configurations")
    results = as_list(f"run {task!r}: values", values, of="numbers")
    if len(configs) != len(results):
        raise InputError(f"run {task!r}: {len(configs)} configs but {len(results)} values")
    for index, config in enumerate(configs):
        if not isinstance(config, Mapping):
            raise InputTypeError(f"run {task!r}: configs[{index}] must be a dict, got {type(config).__name__}")
    return tuple(
        Trial.of(config, value, where=f"run {task!r}, values[{index}]")
        for index, (config, value) in enumerate(zip(configs, results, strict=True))
    )
