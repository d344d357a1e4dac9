"""The finished trials of a run and their encodings, in arrays that grow: adding a trial takes constant time.

Notation: ``n`` trials, ``X (n, d)`` their encodings in the space searched, ``y (n,)`` what models learn from them,
lower is better, nan where a trial gives nothing to learn.
"""

from __future__ import annotations

import numpy as np

from recollect.errors import ConfigError, InputError, InputTypeError
from recollect.numerics.arrays import BoolArray, FloatArray
from recollect.runs.run import Direction, Run, State, Trial, check_configs, sign_of
from recollect.space.space import Space

INITIAL_ROWS = 64


class GrowingRows:
    """Rows (n, d) to which others can be added; room for them is doubled when it is used up."""

    def __init__(self, d: int) -> None:
        """Start without rows."""
        self._room, self._count = np.empty((INITIAL_ROWS, d)), 0

    def append(self, row: FloatArray | float) -> None:
        """Add a row."""
        if self._count == len(self._room):
            self._room = np.concatenate((self._room, np.empty_like(self._room)))
        self._room[self._count] = row
        self._count += 1

    def copy(self) -> GrowingRows:
        """Return an independent copy."""
        other: GrowingRows = object.__new__(type(self))
        other._room, other._count = self._room.copy(), self._count
        return other

    @property
    def rows(self) -> FloatArray:
        """All rows, as a view that must not be changed."""
        return self._room[: self._count]


class History:
    """The finished trials of one run."""

    def __init__(self, empty: Run, d: int) -> None:
        """Start with a run without trials, in a space with ``d`` columns."""
        self._empty, self._sign = empty, sign_of(empty.direction)
        self._trials: list[Trial] = []
        self._X, self._y, self._failed = GrowingRows(d), GrowingRows(1), GrowingRows(d)
        self._keys: set[bytes] = set()
        self._run: Run | None = empty
        self._best: Trial | None = None
        self.usable = 0
        """How many trials models can learn from, wherever they are."""

    def copy(self) -> History:
        """Return an independent copy."""
        other: History = object.__new__(type(self))
        for name, value in vars(self).items():
            setattr(other, name, value.copy() if isinstance(value, list | set | GrowingRows) else value)
        return other

    def append(self, x: FloatArray, trial: Trial, key: bytes) -> None:
        """Add a trial with its encoding (d,), which is nan if the trial has no place in the space searched."""
        learned = trial.learned_value
        placed = not np.isnan(x).all()
        self._trials.append(trial)
        self._X.append(x)
        self._y.append(np.nan if learned is None or not placed else self._sign * learned)
        self._keys.add(key)
        self._run = None
        self.usable += learned is not None
        if trial.state is State.FAILED and placed:
            self._failed.append(x)
        if trial.value is not None and (self._best is None or self._sign * trial.value < self._sign * self.best_value):
            self._best = trial

    def __len__(self) -> int:
        """Return the number of trials."""
        return len(self._trials)

    def __contains__(self, key: object) -> bool:
        """Return whether a trial has this key."""
        return key in self._keys

    @property
    def direction(self) -> Direction:
        """Whether values are minimized or maximized."""
        return self._empty.direction

    @property
    def run(self) -> Run:
        """All trials as an immutable value."""
        if self._run is None:
            self._run = self._empty.with_trials(self._trials)
        return self._run

    @property
    def best(self) -> Trial | None:
        """The best trial, the first of those tied; None while none has succeeded."""
        return self._best

    @property
    def best_value(self) -> float:
        """The value of the best trial; nan while none has succeeded."""
        return np.nan if self._best is None or self._best.value is None else self._best.value

    @property
    def failed(self) -> FloatArray:
        """The encodings (f, d) of the trials that failed."""
        return self._failed.rows

    def can_be_modelled(self) -> bool:
        """Return whether there is any trial for a model."""
        return bool(self._modelled().any())

    def modelled(self) -> tuple[FloatArray, FloatArray]:
        """Return the encodings (m, d) and values (m,) of the trials that a model can use.

        These are the trials that are usable and lie in the space searched, or close to it.
        """
        chosen = self._modelled()
        return self._X.rows[chosen], self._y.rows[chosen, 0]

    def _modelled(self) -> BoolArray:
        return ~np.isnan(self._y.rows[:, 0])


def check_resumed(run: object, space: Space, direction: Direction) -> None:
    """Raise an error unless a run can be resumed; trials without a result may be incomplete."""
    if not isinstance(run, Run):
        raise InputTypeError(f"run must be a recollect.Run, got {type(run).__name__}")
    if run.direction != direction:
        directions = f"direction {run.direction!r}, but this optimizer has {direction!r}"
        raise InputError(f"the run to resume has {directions}")
    try:
        check_configs(space, run.trials)
    except ConfigError as error:
        raise ConfigError(f"the run to resume: {error.reason}", error.number) from None
