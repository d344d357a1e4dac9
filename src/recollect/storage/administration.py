"""Administration of a memory: select, rename, tag and copy the studies of its tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from recollect._text import is_unicode
from recollect.errors import InputError, InputTypeError, StorageError
from recollect.storage.open import Store, storage_errors
from recollect.storage.run_writing import TRIALS_PER_BATCH, Report, delete_partial
from recollect.storage.sql_read import DAMAGE_ERRORS, read_studies
from recollect.storage.sql_write import COMPLETE, NewStudy, StoredTimes, rename_studies
from recollect.storage.studies import (
    INCOMPLETE_KEY,
    NOTE_KEY,
    PROBLEM_KEY,
    TAGS_KEY,
    TASK_KEY,
    TaskStudy,
    study_name,
)
from recollect.storage.transitions import create_studies, delete_studies
from recollect.validation import as_list, as_text

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

Moment: TypeAlias = "datetime | date | str"
"""A point in time: a datetime (local time unless it has a time zone), a date, or either as ISO text."""


def as_tags(tags: str | Iterable[str]) -> tuple[str, ...]:
    """Return one tag or several as a tuple without duplicates; InputError for anything but words."""
    words = [tags] if isinstance(tags, str) else as_list("tags", tags, of="words")
    for word in words:
        if not isinstance(word, str):
            raise InputTypeError(f"tags: expected strings, got {word!r} ({type(word).__name__})")
        if not word.strip() or "," in word or not is_unicode(word):
            raise InputError(f"tags: expected words without commas, got {word!r}")
    return tuple(dict.fromkeys(words))


def select(
    store: Store, studies: Sequence[TaskStudy], *, tags: str | Iterable[str] = (), since: Moment | None = None
) -> list[TaskStudy]:
    """Return the studies that have all these tags, and of which a trial has finished at this moment or later."""
    wanted = set(as_tags(tags))
    chosen = [study for study in studies if wanted <= set(study.tags)]
    if since is None:
        return chosen
    start, latest = _local_time(since), _last_finished(store)
    return [study for study in chosen if (end := latest.get(study.id)) is not None and end >= start]


def rename_tasks(store: Store, names: Mapping[TaskStudy, tuple[str, str]]) -> None:
    """Give the studies of tasks other (problem, task) names; InputError if a name is taken."""
    new = {study: study_name(*pair) for study, pair in names.items()}
    taken = {study.name for study in read_studies(store)} - {study.name for study in names}
    for study, name in new.items():
        if name in taken:
            problem, task = names[study]
            raise InputError(
                f"{store.name}: problem {problem!r} has a task {task!r} already; nothing was renamed: "
                "remove it first, or choose another name"
            )
    described = {study: {PROBLEM_KEY: names[study][0], TASK_KEY: names[study][1]} for study in names}
    if store.engine is not None:
        by_id = {study.id: name for study, name in new.items()}
        rename_studies(store.engine, by_id, {study.id: attributes for study, attributes in described.items()})
        return
    for study, name in new.items():  # Optuna has no other way
        if name != study.name:
            create_studies(store, [_whole_study(store, study.id, name, described[study])])
            delete_studies(store, [study.id])


def copy_studies(
    source: Store, target: Store, studies: Sequence[TaskStudy], *, skip_existing: bool, report: Report | None
) -> list[TaskStudy]:
    """Copy studies with everything that is stored with them; return those that were copied."""
    with storage_errors(target.name):
        existing = delete_partial(target, [study.name for study in studies])
        if existing and not skip_existing:
            taken = next(study for study in studies if study.name in existing)
            raise InputError(
                f"{target.name}: there is a study {taken.name!r} already; nothing was copied: "
                "remove it first, or pass skip_existing=True (--skip-existing)"
            )
    chosen = [study for study in studies if study.name not in existing]
    batch: list[NewStudy] = []
    for done, study in enumerate(chosen, start=1):
        with storage_errors(source.name):
            batch.append(_whole_study(source, study.id, study.name, {}))
        if done == len(chosen) or sum(len(entry.trials) for entry in batch) >= TRIALS_PER_BATCH:
            with storage_errors(target.name):
                create_studies(target, batch)
            batch = []
            if report is not None:
                report(done, len(chosen))
    return chosen


def describe(store: Store, study: TaskStudy, *, tags: Collection[str] | None = None, note: str | None = None) -> None:
    """Replace the tags or the note of a run; None leaves them as they are."""
    if tags is not None:
        store.optuna.set_study_user_attr(study.id, TAGS_KEY, list(tags))
    if note is not None:
        as_text("note", note)
        store.optuna.set_study_user_attr(study.id, NOTE_KEY, note)


def _whole_study(store: Store, study: int, name: str, changes: Mapping[str, Any]) -> NewStudy:
    """Return a study with all its finished trials and attributes, under a name, with some attributes changed."""
    # Optuna's cache of a database would keep every trial.
    backend = store.optuna if store.engine is None else getattr(store.optuna, "_backend", store.optuna)
    (stored,) = read_studies(store, only=study)
    try:
        trials: list[FrozenTrial] = backend.get_all_trials(study, deepcopy=False)
    except DAMAGE_ERRORS as error:
        remedy = "`recollect memory check` lists all damage, `recollect memory import` takes over what is sound"
        raise StorageError(f"{store.name}: study {stored.name!r} is damaged ({error}): {remedy}") from error
    finished = [trial for trial in trials if trial.state.is_finished()]
    attributes = {key: value for key, value in stored.user_attrs.items() if key != INCOMPLETE_KEY} | dict(changes)
    if len(stored.directions) != 1:
        raise InputError(f"{store.name}: study {stored.name!r} has several objectives and cannot be copied")
    return NewStudy(name, stored.directions[0].lower(), attributes, finished)


def _local_time(moment: Moment) -> datetime:
    """Return a moment as local time without a time zone, as Optuna's trials have it."""
    given = moment
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError as error:
            raise InputError(f"since: expected a date such as 2026-01-31 or 2026-01-31T12:00, got {given!r}") from error
    if not isinstance(moment, date):
        raise InputTypeError(f"since: expected a date, datetime or string, got {moment!r} ({type(moment).__name__})")
    if not isinstance(moment, datetime):
        return datetime(moment.year, moment.month, moment.day)
    try:
        return moment if moment.tzinfo is None else datetime.fromtimestamp(moment.timestamp())
    except (ValueError, OverflowError, OSError) as error:
        raise InputError(f"since: expected a date of the years 1 to 9999 in local time, got {given!r}") from error


def _last_finished(store: Store) -> dict[int, datetime]:
    """Return when the last trial of each study (id) finished, in local time."""
    if not store.sql:
        studies = {study.id: store.optuna.get_all_trials(study.id, deepcopy=False) for study in read_studies(store)}
        return {
            study: max(ends)
            for study, trials in studies.items()
            if (ends := [trial.datetime_complete for trial in trials if trial.datetime_complete is not None])
        }
    times = StoredTimes()
    with store.reading() as fetch:
        rows = list(
            fetch(f"select study_id, max({COMPLETE}) from trials where {COMPLETE} is not null group by study_id")
        )
    moments = ((study, datetime.fromisoformat(end) if isinstance(end, str) else end) for study, end in rows)
    return {study: times.local(COMPLETE, end) for study, end in moments}
