"""`Memory`: the runs of the past, kept in an Optuna storage.

One study for each problem and task (`recollect.history.studies`), its trials ordinary Optuna trials, so that Optuna and
its dashboard read a memory, and any study that is already in a storage can serve as a past run.
"""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from recollect.errors import InputError, InputTypeError, RecollectWarning
from recollect.history.changes import write
from recollect.history.optuna_runs import distributions, finished, native, params_of
from recollect.history.reading import Record, read_finished
from recollect.history.run import Direction, Run, State, Trial
from recollect.history.storage import Store, faults, open_store
from recollect.history.studies import NOTES_KEY, VOID_KEY, Entry, begin, entries, find
from recollect.space.serial import from_json
from recollect.space.space import Space, SpaceLike, compile_space

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial

DEFAULT_PROBLEM = "default"
LEAST = 2
"""A past run with fewer usable trials has no ranking to teach."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A run in a memory and the problem it belongs to; None for a study that recollect did not make."""

    problem: str | None
    run: Run


class Memory:
    """The runs of the past, in a SQLite file or any storage that Optuna knows."""

    def __init__(self, where: str | os.PathLike[str] | BaseStorage) -> None:
        """Open a memory, made if it is not there yet.

        ``where`` is a file name (SQLite), a storage URL (``postgresql://user@host/name``, ``mysql://...``,
        ``redis://...``), ``journal:`` and the name of a journal file, or an Optuna storage.
        """
        self._store = open_store(where)
        weakref.finalize(self, self._store.close)

    def __repr__(self) -> str:
        """Name the storage."""
        return f"Memory({self._store.name!r})"

    def __reduce__(self) -> tuple[type[Memory], tuple[str]]:
        """Be copied or sent to another process as an address; there it is opened anew."""
        if self._store.address is None:
            raise InputTypeError(f"{self._store.name}: a memory that is only in this process cannot be copied")
        return Memory, (self._store.address,)

    @property
    def store(self) -> Store:
        """The open storage."""
        return self._store

    def __enter__(self) -> Memory:
        """Use it in a with statement, which closes it in the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the connections to a database; it may still be used, and connects again."""
        self._store.close()

    def kept(self, problem: str | None = None, *, needed: bool = False) -> list[Kept]:
        """Return all runs with their problems, or those of one problem; InputError if it is needed and not there."""
        with faults(self._store.name):
            there = entries(self._store)
            if needed and problem is not None:
                self._check(problem, there)
            chosen = [entry for entry in there if problem is None or entry.problem == problem]
            usable = [entry for entry in chosen if entry.direction is not None]
            return [
                Kept(entry.problem, run) for entry, run in zip(usable, read_entries(self._store, usable), strict=True)
            ]

    def runs(self, problem: str | None = None) -> list[Run]:
        """Return the runs of a problem, or all; their finished trials, failed ones included."""
        return [kept.run for kept in self.kept(problem)]

    def run(self, task: str, problem: str = DEFAULT_PROBLEM) -> Run:
        """Return one run; InputError if there is none of this name."""
        with faults(self._store.name):
            return read_entries(self._store, [self._found(task, problem)])[0]

    def past(
        self,
        space: SpaceLike,
        problem: str | None = None,
        *,
        exclude: str | Collection[str] = (),
        direction: Direction = "minimize",
    ) -> list[Run]:
        """Return the runs that a new run in ``space`` can learn from.

        ``exclude`` names tasks to leave out: the one that is tuned now. Runs of the other direction, and runs that have
        no hyperparameter in common with the new space, are left out with a warning that says so.
        """
        names = set(compile_space(space).names)
        out = {exclude} if isinstance(exclude, str) else set(exclude)
        with faults(self._store.name):
            chosen = [
                entry
                for entry in entries(self._store)
                if (problem is None or entry.problem == problem) and entry.task not in out
            ]
            runs = read_entries(self._store, [entry for entry in chosen if entry.direction == direction], spaces=False)
        other = [f"{entry.task!r} ({entry.direction or 'several objectives'})" for entry in chosen
                 if entry.direction != direction]  # fmt: skip
        foreign = [run for run in runs if run.foreign_to(names)]
        for left, reason in (
            (other, f"not to {direction}"),
            ([repr(run.task) for run in foreign], "no hyperparameter in common"),
        ):
            if left:
                shown = ", ".join(left[:5]) + (", ..." if len(left) > 5 else "")
                message = f"{self._store.name}: left out as past runs, {reason}: {shown}"
                warnings.warn(message, RecollectWarning, stacklevel=2)
        return [run for run in runs if len(run.succeeded) >= LEAST and not any(run is other for other in foreign)]

    def add(self, run: Run, problem: str = DEFAULT_PROBLEM) -> None:
        """Keep a finished run; InputError if there is a run of this task already."""
        if not isinstance(run, Run):
            raise InputTypeError(f"expected a recollect.Run, got {type(run).__name__}")
        with faults(self._store.name):
            before = find(self._store, problem, run.task)
            if before is not None and read_entries(self._store, [before])[0].trials:
                raise InputError(f"{self._store.name}: task {run.task!r} of problem {problem!r} has trials already")
            known = _distributions(run)
            trials = [_frozen(trial, known) for trial in run.trials]
            entry = begin(self._store, problem, run.task, space=run.space, direction=run.direction)
            write(self._store, entry.id, trials)

    def remove(self, task: str, problem: str = DEFAULT_PROBLEM) -> None:
        """Forget a run for good."""
        with faults(self._store.name):
            self._store.optuna.delete_study(self._found(task, problem).id)

    def import_(self, source: Any, problem: str | None = None, **reading: Any) -> list[Run]:
        """Read runs from elsewhere and keep them: see `recollect.read_runs` for what is understood.

        They become part of ``problem``, or of "default". The runs of another memory keep their problems if none is
        given; if it has ``problem``, only the runs of that are read. All are read before any is kept; tasks that are
        there already, or come twice, are an error, and nothing is kept.
        """
        from recollect.history.importers.recognise import read_kept

        found = read_kept(source, problem, into=self._store, **reading)
        with faults(self._store.name):
            there = {(entry.problem, entry.task) for entry in entries(self._store)}
        for kept in found:
            if (kept.problem, kept.run.task) in there:
                raise InputError(
                    f"{self._store.name}: problem {kept.problem!r} has the task {kept.run.task!r} already; "
                    "nothing was imported: remove it first, or import under another name"
                )
        for kept in found:
            self.add(kept.run, kept.problem or DEFAULT_PROBLEM)
        return [kept.run for kept in found]

    def export(self, path: str | os.PathLike[str], problem: str = DEFAULT_PROBLEM) -> int:
        """Write the runs of a problem to a .jsonl or .csv file that `import_` reads; returns how many.

        InputError if there is no such problem.
        """
        from recollect.history.export import write_runs

        runs = [kept.run for kept in self.kept(problem, needed=True)]
        write_runs(runs, path)
        return len(runs)

    def _found(self, task: str, problem: str) -> Entry:
        entry = find(self._store, problem, task)
        if entry is None:
            there = entries(self._store)
            self._check(problem, there)
            tasks = sorted(repr(entry.task) for entry in there if entry.problem == problem)
            known = f"its tasks are {', '.join(tasks[:8])}"
            raise InputError(f"{self._store.name}: problem {problem!r} has no task {task!r}: {known}")
        return entry

    def _check(self, problem: str, there: Sequence[Entry]) -> None:
        problems = dict.fromkeys(entry.problem for entry in there if entry.problem is not None)
        if problem not in problems:
            known = f"only {', '.join(map(repr, problems))}" if problems else "nor any other"
            raise InputError(f"{self._store.name}: there is no problem {problem!r}, {known}")


def counted(records: Sequence[Record], direction: Direction) -> list[Trial]:
    """Return the trials that count, of those that have ended."""
    live = [record for record in records if VOID_KEY not in record.user_attrs]
    plain = [record.plain() for record in live]
    pairs: Iterable[tuple[Any, Any]] = zip(live, plain, strict=True)
    if None in plain:  # pruned, or without a finite value
        pairs = finished([record.known() for record in live], direction)
    found = []
    for record, trial in pairs:
        notes = record.user_attrs.get(NOTES_KEY)
        found.append(trial if notes is None else replace(trial, notes=tuple(map(str, notes))))
    return found


def read_entries(store: Store, studies: Sequence[Entry], *, spaces: bool = True) -> list[Run]:
    """Return the runs of these studies, with their search spaces unless these are not needed."""
    ids = [entry.id for entry in studies]
    records = read_finished(store, ids, keys=(NOTES_KEY, VOID_KEY))
    compiled: dict[str, Space] = {}
    runs = []
    for entry in studies:
        assert entry.direction is not None
        trials = counted(records[entry.id], entry.direction)
        space = None
        if spaces and entry.space is not None:
            space = compiled.setdefault(entry.space, compiled.get(entry.space) or from_json(entry.space))
        runs.append(Run(entry.task, trials=trials, space=space, direction=entry.direction))
    return runs


def _distributions(run: Run) -> dict[str, BaseDistribution]:
    """Return Optuna's distributions for a run: those of its space, or ranges that hold all that was tried."""
    if run.space is not None:
        return distributions(run.space)
    values: dict[str, list[Any]] = {}
    for config in run.configs:
        for name, value in config.items():
            values.setdefault(name, []).append(native(value))
    return {name: _distribution_of(name, given, run.task) for name, given in values.items()}


def _distribution_of(name: str, values: Sequence[Any], task: str) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    kinds = {type(value) for value in values}
    if kinds == {int}:
        return IntDistribution(min(values), max(values))
    if kinds <= {int, float}:
        return FloatDistribution(min(values), max(values))
    if any(value is not None and type(value) not in (bool, int, float, str) for value in values):
        raise InputError(f"run {task!r}: {name!r} has values that cannot be stored: {values[0]!r}")
    return CategoricalDistribution(list(dict.fromkeys(values)))


def _frozen(trial: Trial, known: dict[str, BaseDistribution]) -> FrozenTrial:
    """Return a finished trial as Optuna's; its times only say how long it took."""
    from optuna.trial import FrozenTrial, TrialState

    end = datetime.now()
    params = params_of(trial.config, known)
    return FrozenTrial(
        number=-1,
        trial_id=-1,
        state=TrialState.FAIL if trial.state is State.FAILED else TrialState.COMPLETE,
        value=trial.value,
        datetime_start=end - timedelta(seconds=trial.seconds or 0.0),
        datetime_complete=end,
        params=params,
        distributions={name: known[name] for name in params},
        user_attrs={NOTES_KEY: list(trial.notes)} if trial.notes else {},
        system_attrs={},
        intermediate_values={},
    )
