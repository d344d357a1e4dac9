"""`Memory`: past runs in an Optuna storage.

Each task of a problem is one study (`recollect.storage.studies`) with ordinary Optuna trials. Optuna and its dashboard
can therefore read a memory, and any study that a storage already holds can serve as a past run.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from recollect._system import no_garbage_collection
from recollect._text import name_list
from recollect._warnings import warn_caller
from recollect.errors import InputTypeError, StorageError
from recollect.runs.renaming import check_new_names, rename_hyperparameters
from recollect.runs.run import Direction, Run, sign_of
from recollect.runs.usability import Unusable, left_out_message, why_unusable
from recollect.space.space import SpaceLike, compile_space
from recollect.storage.administration import Moment, as_tags, select
from recollect.storage.journals import INCOMPLETE_SUFFIX, incomplete_end
from recollect.storage.open import missing_reason, open_store, reading_from, storage_errors, without_password
from recollect.storage.run_reading import StoredRun, read_past_runs, read_task_runs
from recollect.storage.run_writing import Report, check_runs, fill_task, store_runs
from recollect.storage.sql_read import STUDIES_PER_QUERY, Damage, check_tables, read_after
from recollect.storage.studies import DEFAULT_PROBLEM, choose_study, find_study, read_spaces, task_studies
from recollect.storage.tasks import MemoryTasks

if TYPE_CHECKING:
    from optuna.storages import BaseStorage


class Memory(MemoryTasks):
    """Past runs, in a SQLite file or any storage that Optuna supports.

    A run belongs to a *problem*, the model or program that is tuned, and has a *task*, the dataset or instance that it
    was tuned on. New runs learn from past runs of the same problem.

    Examples:
        >>> memory = recollect.Memory("tuning.db")
        >>> memory.add(recollect.Run("wine", [{"C": 0.1}, {"C": 10.0}], [0.3, 0.2]), problem="svm")
        >>> recollect.minimize(error, {"C": (0.01, 100.0, "log")}, memory=memory, problem="svm", task="iris")
    """

    def __init__(self, where: str | os.PathLike[str] | BaseStorage) -> None:
        """Open a memory. A file that does not exist is created by the first write; reading from it is an error.

        Args:
            where: A file name (SQLite), a storage URL (``postgresql://user@host/name``, ``mysql://...``,
                ``redis://...``), ``journal:`` followed by the name of a journal file, or an Optuna storage.

        Raises:
            InputTypeError: ``where`` is none of these.
            StorageError: The storage cannot be opened.
            MissingExtraError: The driver of the database is not installed.
        """
        super().__init__(open_store(where))
        weakref.finalize(self, self._store.close)

    def __repr__(self) -> str:
        """Name the storage."""
        return f"Memory({self._store.name!r})"

    def __reduce__(self) -> tuple[type[Memory], tuple[str]]:
        """Copy a memory, or send it to another process, as an address that is opened again there."""
        if self._store.address is None:
            raise InputTypeError(f"{self._store.name}: a memory that is only in this process cannot be copied")
        return Memory, (self._store.address,)

    def __enter__(self) -> Memory:
        """Return the memory; the ``with`` statement closes it at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the memory."""
        self.close()

    def close(self) -> None:
        """Close the connections to a database. The memory can still be used and connects again."""
        self._store.close()

    def __iter__(self) -> Iterator[Run]:
        """Iterate over all runs, oldest first; few of them are in working memory at the same time."""
        studies = self._tasks()
        for start in range(0, len(studies), STUDIES_PER_QUERY):
            with reading_from(self._store):
                runs = read_task_runs(self._store, studies[start : start + STUDIES_PER_QUERY])
            yield from runs

    def stored_runs(
        self,
        problem: str | None = None,
        *,
        tags: str | Iterable[str] = (),
        since: Moment | None = None,
    ) -> list[StoredRun]:
        """Return all runs, each with its problem, tags and note.

        Args:
            problem: Return only the runs of this problem.
            tags: Return only the runs that have all these tags.
            since: Return only the runs of which a trial has finished at this moment or later.

        Returns:
            The runs, oldest first.

        Raises:
            InputError: There is no such problem.
        """
        chosen = self._tasks(problem)
        with reading_from(self._store):
            chosen = select(self._store, chosen, tags=tags, since=since)
            runs = read_task_runs(self._store, chosen)
        pairs = zip(chosen, runs, strict=True)
        return [StoredRun(study.problem, run, study.tags, study.note) for study, run in pairs]

    def stored_run(self, task: str, problem: str | None = None) -> StoredRun:
        """Return the run of a task, with its problem, tags and note.

        Args:
            task: Name of the task.
            problem: Name of the problem; None for any.

        Returns:
            The run.

        Raises:
            InputError: There is no such task, or several problems have one.
        """
        study = choose_study(self._tasks(), task, problem, where=self._store.name)
        with reading_from(self._store):
            return StoredRun(study.problem, read_task_runs(self._store, [study])[0], study.tags, study.note)

    def runs(
        self, problem: str | None = None, *, tags: str | Iterable[str] = (), since: Moment | None = None
    ) -> list[Run]:
        """Return all runs, or those of one problem.

        Args:
            problem: Name of the problem; None for all.
            tags: Return only the runs that have all these tags.
            since: Return only the runs of which a trial has finished, or that were added, at this moment or later: a
                datetime or date, or either as ISO text ("2026-01-31").

        Returns:
            The runs with their finished trials, including failed ones, oldest run first.

        Raises:
            InputError: There is no such problem.
            StorageError: The memory does not exist or cannot be read.
        """
        return [stored.run for stored in self.stored_runs(problem, tags=tags, since=since)]

    @property
    def exists(self) -> bool:
        """Whether there is something to read; the first write creates a memory."""
        return not self._store.missing

    def run(self, task: str, problem: str = DEFAULT_PROBLEM) -> Run:
        """Return the run of a task.

        Args:
            task: Name of the task.
            problem: Name of the problem.

        Returns:
            The run with its finished trials, including failed ones, and its search space if it is known.

        Raises:
            InputError: There is no such problem or task.
            StorageError: The memory does not exist or cannot be read.
        """
        with reading_from(self._store):
            return read_task_runs(self._store, [self._study(task, problem)])[0]

    def past(
        self,
        space: SpaceLike,
        problem: str | None = None,
        *,
        exclude: str | Collection[str] = (),
        direction: Direction = "minimize",
        tags: str | Iterable[str] = (),
        since: Moment | None = None,
        rename: Mapping[str, str] | None = None,
    ) -> list[Run]:
        """Return the past runs that a new run can learn from.

        Runs of the other direction, and runs that share no hyperparameter with the new space, are left out with a
        warning.

        Args:
            space: The search space of the new run.
            problem: Name of the problem; None for all.
            exclude: Tasks to leave out, such as the one that is tuned now.
            direction: Direction of the new run.
            tags: Only runs that have all these tags.
            since: Only runs of which a trial has finished, or that were added, at this moment or later: a datetime or
                date, or either as ISO text ("2026-01-31").
            rename: New names of hyperparameters of past runs by their old ones, such as ``{"learning_rate": "lr"}``.

        Returns:
            The runs, without their search spaces, oldest first.

        Raises:
            InputError: A trial has a name that is renamed and the new one as well; the space does not have the new one;
                the direction is not valid.
            StorageError: The memory does not exist or cannot be read.
        """
        names = compile_space(space).names
        check_new_names(rename, names)
        sign_of(direction)
        excluded = {exclude} if isinstance(exclude, str) else set(exclude)
        with reading_from(self._store), no_garbage_collection():
            everything = task_studies(self._store)
            studies = [
                study
                for study in select(self._store, everything, tags=tags, since=since)
                if problem in (None, study.problem) and study.task not in excluded
            ]
            same_direction = [study for study in studies if study.direction == direction]
            runs = read_past_runs(self._store, same_direction)
        runs = rename_hyperparameters(runs, rename)
        others = [
            f"{study.task!r} ({study.direction or 'several objectives'})"
            for study in studies
            if study.direction != direction
        ]
        if problem is not None and everything and problem not in (known := {study.problem for study in everything}):
            problems = name_list(repr(name) for name in known if name is not None)
            message = f"{self._store.name}: there are no past runs of problem {problem!r}; the problems are: {problems}"
            warn_caller(message)
        checked = [(run, why_unusable(run, set(names))) for run in runs]
        foreign = [repr(run.task) for run, why in checked if why is Unusable.NO_SHARED_PARAMETER]
        for tasks, reason in ((others, Unusable.OTHER_DIRECTION.value), (foreign, Unusable.NO_SHARED_PARAMETER.value)):
            if tasks:
                warn_caller(f"{self._store.name}: {left_out_message(tasks, reason)}")
        return [run for run, why in checked if why is None]

    def add(self, run: Run, problem: str = DEFAULT_PROBLEM, *, tags: str | Iterable[str] = (), note: str = "") -> None:
        """Store a finished run.

        Args:
            run: The run; its task must not have any trials in this problem yet.
            problem: Name of the problem.
            tags: Words to select runs by.
            note: A remark on the run.

        Raises:
            InputError: The task has trials already, or a study with another search space or direction.
            StorageError: The storage cannot be written.
        """
        if not isinstance(run, Run):
            raise InputTypeError(f"expected a recollect.Run, got {type(run).__name__}")
        stored = StoredRun(problem, run, as_tags(tags), note)
        with storage_errors(self._store.name):
            if self._store.missing or find_study(self._store, problem, run.task) is None:
                store_runs(self._store, [stored])
            else:
                fill_task(self._store, *check_runs(self._store, [stored]))

    def check(self) -> list[Damage]:
        """Read everything and list what is damaged.

        Damaged trials and studies are left out, with a warning, whenever a memory is read; all others can be used.

        Returns:
            All damage, each with its place, the reason and what to do; empty if there is none.

        Raises:
            StorageError: The storage cannot be read at all.
        """
        damage: list[Damage] = []
        with reading_from(self._store):
            studies = task_studies(self._store, damage=damage)
            read_spaces(self._store, studies, damage=damage)
            for study in studies:
                if study.direction is not None:
                    read_after(self._store, study.key, -1, damage=damage)
            check_tables(self._store, damage)
            if (journal := self._store.journal) is not None and (end := incomplete_end(journal)):
                reason = f"not written to its end: {end[:40]!r}"
                remedy = f"nothing: the next write to this memory moves it to {journal.name}{INCOMPLETE_SUFFIX}"
                damage.append(Damage("the last line of the journal", reason, remedy))
        return damage

    def import_(
        self, source: Any, problem: str | None = None, *, skip_existing: bool = False, report: Report | None = None,
        **options: Any,
    ) -> list[Run]:  # fmt: skip
        """Read runs from another source and store them.

        All runs are read and checked before any is stored. They are stored in batches, each run whole or not at all,
        so an interrupted import can be continued with ``skip_existing``.

        Args:
            source: Anything that `recollect.read_runs` reads: files, studies, storages, another memory.
            problem: Problem to store the runs in. By default, runs of another memory keep their problems and all others
                go to "default". If another memory has this problem, only its runs of this problem are read.
            skip_existing: Leave out runs whose tasks exist, with a warning, instead of raising an error.
            report: Called with the number of runs stored so far, and of all.
            **options: Further arguments of `recollect.read_runs`.

        Returns:
            The imported runs.

        Raises:
            InputError: The source cannot be read, a task exists already or occurs twice, or a run cannot be stored;
                nothing is stored then.
            StorageError: The storage cannot be read or written.
        """
        from recollect.storage.importers.detection import read_stored_runs

        imported = read_stored_runs(source, problem, into=self._store, **options)
        with storage_errors(self._store.name):
            stored = store_runs(self._store, imported, skip_existing=skip_existing, report=report)
        return [entry.run for entry in stored]

    def export(self, path: str | os.PathLike[str], problem: str | None = DEFAULT_PROBLEM) -> int:
        """Write the runs of a problem, or all, to a file that `import_` reads.

        Args:
            path: A .jsonl file, which keeps everything, or a .csv file; either may end in .gz.
            problem: Name of the problem; None for all runs, which a .jsonl file keeps with their problems.

        Returns:
            The number of runs written.

        Raises:
            InputError: There is no such problem.
            StorageError: The storage cannot be read, or the file cannot be written.
        """
        from recollect.storage.formats.export import write_stored_runs

        stored = self.stored_runs(problem)
        write_stored_runs([entry if problem is None else replace(entry, problem=None) for entry in stored], path)
        return len(stored)


def open_existing(where: str) -> Memory:
    """Open a memory that exists; StorageError for one that does not, which is not created."""
    if reason := missing_reason(where):
        raise StorageError(f"{without_password(where)}: {reason}")
    return Memory(where)
