"""`Memory`: past runs in an Optuna storage.

Each task of a problem is one study (`recollect.storage.studies`) with ordinary Optuna trials. Optuna and its dashboard
can therefore read a memory, and any study that a storage already holds can serve as a past run.
"""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from recollect.errors import InputError, InputTypeError, RecollectWarning, StorageError
from recollect.runs.run import Direction, Run, Unusable, left_out_message, why_unusable
from recollect.space.space import SpaceLike, compile_space
from recollect.storage.open import Store, missing_reason, open_store, storage_errors, without_password
from recollect.storage.run_reading import StoredRun, read_task_runs
from recollect.storage.run_writing import distributions_of, stored_trial
from recollect.storage.sql_read import Damage, check_tables, read_after
from recollect.storage.studies import (
    TaskStudy,
    check_parameter_names,
    check_problem,
    choose_study,
    find_study,
    get_or_create_study,
    read_spaces,
    task_studies,
)
from recollect.storage.transitions import write_trials

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

DEFAULT_PROBLEM = "default"


class Memory:
    """Past runs, in a SQLite file or any storage that Optuna supports.

    A run belongs to a *problem*, the model or program that is tuned, and has a *task*, the dataset or instance that it
    was tuned on. New runs learn from past runs of the same problem.

    Example:
        ```python
        memory = recollect.Memory("tuning.db")
        memory.add(recollect.Run("wine", [{"C": 0.1}, {"C": 10.0}], [0.3, 0.2]), problem="svm")
        recollect.minimize(train, {"C": (0.01, 100.0, "log")}, memory=memory, problem="svm", task="iris")
        ```
    """

    def __init__(self, where: str | os.PathLike[str] | BaseStorage) -> None:
        """Open a memory and create it if it does not exist.

        Args:
            where: A file name (SQLite), a storage URL (``postgresql://user@host/name``, ``mysql://...``,
                ``redis://...``), ``journal:`` followed by the name of a journal file, or an Optuna storage.

        Raises:
            InputTypeError: ``where`` is none of these.
            StorageError: The storage cannot be opened.
            MissingExtraError: The driver of the database is not installed.
        """
        self._store = open_store(where)
        weakref.finalize(self, self._store.close)

    def __repr__(self) -> str:
        """Name the storage."""
        return f"Memory({self._store.name!r})"

    def __reduce__(self) -> tuple[type[Memory], tuple[str]]:
        """Copy a memory, or send it to another process, as an address that is opened again there."""
        if self._store.address is None:
            raise InputTypeError(f"{self._store.name}: a memory that is only in this process cannot be copied")
        return Memory, (self._store.address,)

    @property
    def store(self) -> Store:
        """The open storage."""
        return self._store

    def __enter__(self) -> Memory:
        """Return the memory; the ``with`` statement closes it at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the memory."""
        self.close()

    def close(self) -> None:
        """Close the connections to a database. The memory can still be used and connects again."""
        self._store.close()

    def stored_runs(self, problem: str | None = None, *, required: bool = False) -> list[StoredRun]:
        """Return all runs, each with its problem.

        Args:
            problem: Return only the runs of this problem.
            required: Raise an error if there is no such problem.

        Raises:
            InputError: ``problem`` is required and does not exist.
        """
        with storage_errors(self._store.name):
            studies = task_studies(self._store)
            if required and problem is not None:
                check_problem(studies, problem, where=self._store.name)
            chosen = [study for study in studies if study.direction and problem in (None, study.problem)]
            runs = read_task_runs(self._store, chosen)
            return [StoredRun(study.problem, run) for study, run in zip(chosen, runs, strict=True)]

    def stored_run(self, task: str, problem: str | None = None) -> StoredRun:
        """Return the run of a task, of any problem if ``problem`` is None.

        Raises:
            InputError: There is no such task, or several problems have one.
        """
        with storage_errors(self._store.name):
            studies = [study for study in task_studies(self._store) if study.direction]
            study = choose_study(studies, task, problem, where=self._store.name)
            return StoredRun(study.problem, read_task_runs(self._store, [study])[0])

    def runs(self, problem: str | None = None) -> list[Run]:
        """Return all runs, or those of one problem.

        Args:
            problem: Name of the problem; None for all.

        Returns:
            The runs with their finished trials, including failed ones, oldest run first.

        Raises:
            StorageError: The storage cannot be read.
        """
        return [stored.run for stored in self.stored_runs(problem)]

    def run(self, task: str, problem: str = DEFAULT_PROBLEM) -> Run:
        """Return the run of a task.

        Raises:
            InputError: There is no such problem or task.
            StorageError: The storage cannot be read.
        """
        with storage_errors(self._store.name):
            return read_task_runs(self._store, [self._study(task, problem)])[0]

    def past(
        self,
        space: SpaceLike,
        problem: str | None = None,
        *,
        exclude: str | Collection[str] = (),
        direction: Direction = "minimize",
    ) -> list[Run]:
        """Return the past runs that a new run can learn from.

        Runs of the other direction, and runs that share no hyperparameter with the new space, are left out with a
        warning.

        Args:
            space: The search space of the new run.
            problem: Name of the problem; None for all.
            exclude: Tasks to leave out, such as the one that is tuned now.
            direction: Direction of the new run.

        Returns:
            The runs, without their search spaces, oldest first.
        """
        names = set(compile_space(space).names)
        excluded = {exclude} if isinstance(exclude, str) else set(exclude)
        with storage_errors(self._store.name):
            studies = [
                study
                for study in task_studies(self._store)
                if problem in (None, study.problem) and study.task not in excluded
            ]
            same_direction = [study for study in studies if study.direction == direction]
            runs = read_task_runs(self._store, same_direction, spaces=False)
        others = [
            f"{study.task!r} ({study.direction or 'several objectives'})"
            for study in studies
            if study.direction != direction
        ]
        checked = [(run, why_unusable(run, names)) for run in runs]
        foreign = [repr(run.task) for run, why in checked if why is Unusable.NO_SHARED_PARAMETER]
        for tasks, reason in ((others, f"not to {direction}"), (foreign, Unusable.NO_SHARED_PARAMETER.value)):
            if tasks:
                message = f"{self._store.name}: {left_out_message(tasks, reason)}"
                warnings.warn(message, RecollectWarning, stacklevel=2)
        return [run for run, why in checked if why is None]

    def add(self, run: Run, problem: str = DEFAULT_PROBLEM) -> None:
        """Store a finished run.

        Args:
            run: The run; its task must not have any trials in this problem yet.
            problem: Name of the problem.

        Raises:
            InputError: The task has trials already, or a study with another search space or direction.
            StorageError: The storage cannot be written.
        """
        if not isinstance(run, Run):
            raise InputTypeError(f"expected a recollect.Run, got {type(run).__name__}")
        with storage_errors(self._store.name):
            before = find_study(self._store, problem, run.task)
            if before is not None and read_task_runs(self._store, [before])[0].trials:
                raise InputError(
                    f"{self._store.name}: task {run.task!r} of problem {problem!r} has trials already: "
                    "give the run another task, or remove the old one first"
                )
            known = distributions_of(run)
            check_parameter_names(self._store, known)
            trials = [stored_trial(trial, known) for trial in run.trials]
            study = get_or_create_study(self._store, problem, run.task, space=run.space, direction=run.direction)
            write_trials(self._store, study.id, trials)

    def remove(self, task: str, problem: str = DEFAULT_PROBLEM) -> None:
        """Delete the run of a task permanently.

        Raises:
            InputError: There is no such problem or task.
            StorageError: The storage cannot be written.
        """
        with storage_errors(self._store.name):
            self._store.optuna.delete_study(self._study(task, problem).id)

    def check(self) -> list[Damage]:
        """Read everything and list what is damaged.

        Damaged trials and studies are left out, with a warning, whenever a memory is read; all others can be used.

        Returns:
            All damage, each with its place, the reason and what to do; empty if there is none.

        Raises:
            StorageError: The storage cannot be read at all.
        """
        damage: list[Damage] = []
        with storage_errors(self._store.name):
            studies = task_studies(self._store, damage=damage)
            read_spaces(self._store, studies, damage=damage)
            for study in studies:
                if study.direction is not None:
                    read_after(self._store, study.id, -1, damage=damage)
            check_tables(self._store, damage)
        return damage

    def import_(self, source: Any, problem: str | None = None, **options: Any) -> list[Run]:
        """Read runs from another source and store them.

        All runs are read before any is stored.

        Args:
            source: Anything that `recollect.read_runs` reads: files, studies, storages, another memory.
            problem: Problem to store the runs in. By default, runs of another memory keep their problems and all others
                go to "default". If another memory has this problem, only its runs of this problem are read.
            **options: Further arguments of `recollect.read_runs`.

        Returns:
            The imported runs.

        Raises:
            InputError: The source cannot be read, or a task exists already or occurs twice; nothing is stored then.
            StorageError: The storage cannot be read or written.
        """
        from recollect.storage.importers.detection import read_stored_runs

        imported = read_stored_runs(source, problem, into=self._store, **options)
        with storage_errors(self._store.name):
            existing = {(study.problem, study.task) for study in task_studies(self._store)}
        for stored in imported:
            if (stored.problem, stored.run.task) in existing:
                raise InputError(
                    f"{self._store.name}: problem {stored.problem!r} has the task {stored.run.task!r} already; "
                    "nothing was imported: remove it first, or import under another name"
                )
        for stored in imported:
            self.add(stored.run, stored.problem or DEFAULT_PROBLEM)
        return [stored.run for stored in imported]

    def export(self, path: str | os.PathLike[str], problem: str = DEFAULT_PROBLEM) -> int:
        """Write the runs of a problem to a file that `import_` reads.

        Args:
            path: A .jsonl file, which keeps everything, or a .csv file; either may end in .gz.
            problem: Name of the problem.

        Returns:
            The number of runs written.

        Raises:
            InputError: There is no such problem.
            StorageError: The storage cannot be read, or the file cannot be written.
        """
        from recollect.storage.formats.export import write_runs

        runs = [stored.run for stored in self.stored_runs(problem, required=True)]
        write_runs(runs, path)
        return len(runs)

    def _study(self, task: str, problem: str) -> TaskStudy:
        study = find_study(self._store, problem, task)
        return study or choose_study(task_studies(self._store), task, problem, where=self._store.name)


def open_existing(where: str) -> Memory:
    """Open a memory that exists; StorageError for one that does not, which is not created."""
    if reason := missing_reason(where):
        raise StorageError(f"{without_password(where)}: {reason}")
    return Memory(where)
