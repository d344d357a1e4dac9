"""The tasks of a memory, without their trials: listed, renamed, tagged, copied and removed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from recollect.errors import InputError
from recollect.storage.administration import as_tags, copy_studies, describe, rename_tasks
from recollect.storage.open import Store, open_store, reading_from
from recollect.storage.run_writing import Report
from recollect.storage.sql_read import count_trials
from recollect.storage.studies import (
    DEFAULT_PROBLEM,
    TaskStudy,
    check_problem,
    choose_study,
    find_study,
    task_studies,
)
from recollect.storage.transitions import delete_studies


@dataclass(frozen=True, slots=True)
class ProblemSize:
    """How much a memory has of a problem.

    Attributes:
        problem: Name of the problem; None for studies that recollect did not create.
        runs: Number of runs.
        trials: Number of trials, including failed and unfinished ones.
    """

    problem: str | None
    runs: int
    trials: int


class MemoryTasks:
    """The part of a `recollect.Memory` that concerns tasks as a whole."""

    def __init__(self, store: Store) -> None:
        """Administer the tasks of an open storage."""
        self._store = store

    @property
    def store(self) -> Store:
        """The open storage."""
        return self._store

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self._tasks())

    def __bool__(self) -> bool:
        """Return True: a memory without runs is a memory, too."""
        return True

    def problems(self) -> list[str]:
        """Return the names of all problems, oldest first; runs of other programs belong to none.

        Raises:
            StorageError: The memory does not exist or cannot be read.
        """
        return list(dict.fromkeys(study.problem for study in self._tasks() if study.problem is not None))

    def problem_sizes(self) -> list[ProblemSize]:
        """Return every problem with the numbers of its runs and trials, oldest first.

        Raises:
            StorageError: The memory does not exist or cannot be read.
        """
        studies = self._tasks()
        with reading_from(self._store):
            trials = count_trials(self._store, [study.id for study in studies])
        by_problem: dict[str | None, list[int]] = {}
        for study in studies:
            by_problem.setdefault(study.problem, []).append(trials.get(study.id, 0))
        return [ProblemSize(problem, len(counts), sum(counts)) for problem, counts in by_problem.items()]

    def tasks(self, problem: str | None = None) -> list[str]:
        """Return the tasks of a problem, or of all.

        Args:
            problem: Name of the problem; None for all.

        Returns:
            The names of the tasks, oldest first.

        Raises:
            InputError: There is no such problem.
            StorageError: The memory does not exist or cannot be read.
        """
        return [study.task for study in self._tasks(problem)]

    def remove(self, task: str | None = None, problem: str | None = None) -> None:
        """Delete the run of a task, or all runs of a problem, permanently.

        Args:
            task: Name of the task; None for all tasks of the problem.
            problem: Name of the problem; None for "default", which must be named to be removed as a whole.

        Raises:
            InputError: There is no such problem or task, or neither is named.
            StorageError: The storage cannot be written.
        """
        if task is None and problem is None:
            raise InputError("remove: expected a task or a problem")
        with reading_from(self._store):
            studies = self._tasks(problem) if task is None else [self._study(task, problem or DEFAULT_PROBLEM)]
            delete_studies(self._store, [study.id for study in studies])

    def rename(self, to: str, *, task: str | None = None, problem: str | None = None) -> None:
        """Rename a task, or a problem with all its tasks.

        Args:
            to: The new name.
            task: The task to rename; None renames the problem.
            problem: The problem to rename, or that the task belongs to ("default" if None). A problem can get the name
                of another one unless both have a task of the same name.

        Raises:
            InputError: There is no such problem or task, or the new name is taken; nothing is renamed then.
            StorageError: The storage cannot be written.
        """
        if task is None and problem is None:
            raise InputError("rename: expected a task or a problem")
        with reading_from(self._store):
            if task is None:
                studies = self._tasks(problem)
                names = {study: (to, study.task) for study in studies}
            else:
                names = {self._study(task, problem or DEFAULT_PROBLEM): (problem or DEFAULT_PROBLEM, to)}
            rename_tasks(self._store, names)

    def tag(
        self, task: str, problem: str = DEFAULT_PROBLEM, *, add: str | Iterable[str] = (),
        remove: str | Iterable[str] = (), note: str | None = None,
    ) -> None:  # fmt: skip
        """Add tags to a run, remove some, and set its note.

        Args:
            task: Name of the task.
            problem: Name of the problem.
            add: Tags to add: words without commas.
            remove: Tags to remove.
            note: A remark on the run; "" removes it, None leaves it as it is.

        Raises:
            InputError: There is no such problem or task, or a tag is not a word.
            StorageError: The storage cannot be written.
        """
        with reading_from(self._store):
            study = self._study(task, problem)
            removed = as_tags(remove)
            tags = [word for word in as_tags((*study.tags, *as_tags(add))) if word not in removed]
            describe(self._store, study, tags=tags if tags != list(study.tags) else None, note=note)

    def copy_to(
        self, other: MemoryTasks | str | os.PathLike[str], problem: str | None = None, *, skip_existing: bool = False,
        report: Report | None = None,
    ) -> int:  # fmt: skip
        """Copy runs to another memory, with everything that is stored with them.

        Args:
            other: The other memory, or where it is; it is created if it does not exist.
            problem: Copy only the runs of this problem.
            skip_existing: Leave out what the other memory has, instead of raising an error.
            report: Called with the number of runs copied so far, and of all.

        Returns:
            The number of runs copied.

        Raises:
            InputError: There is no such problem, or the other memory has one of the tasks; nothing is copied then.
            StorageError: A storage cannot be read or written.
        """
        target = other.store if isinstance(other, MemoryTasks) else open_store(other)
        studies = self._tasks(problem)
        try:
            return len(copy_studies(self._store, target, studies, skip_existing=skip_existing, report=report))
        finally:
            if not isinstance(other, MemoryTasks):
                target.close()

    def _tasks(self, problem: str | None = None) -> list[TaskStudy]:
        """Return the studies with one objective, of one problem or all; InputError if there is no such problem."""
        with reading_from(self._store):
            studies = task_studies(self._store)
        if problem is not None:
            check_problem(studies, problem, where=self._store.name)
        return [study for study in studies if study.direction and problem in (None, study.problem)]

    def _study(self, task: str, problem: str) -> TaskStudy:
        study = find_study(self._store, problem, task)
        return study or choose_study(task_studies(self._store), task, problem, where=self._store.name)
