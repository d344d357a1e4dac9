"""One study for each problem and task: how it is named, what its attributes say, how it is found or begun.

A study that recollect began has these user attributes; one that lacks them is a study of somebody else:

    recollect:format       1
    recollect:problem      what is tuned again and again, "svm"
    recollect:task         what it is tuned on this time, "covertype"
    recollect:direction    "minimize" or "maximize", as the study itself
    recollect:space        the search space, as JSON of ConfigSpace; absent when a run without a space was added
    recollect:settings     how it was tuned the last time: method, trials, seed, versions; absent when a run was added

and a trial may have

    recollect:notes        a list of sentences: why it failed, what was remarkable
    recollect:influence    why it was suggested: "reason"; weights used: "target", "past" by task; "dropped" tasks
    recollect:void         why it counts for nothing: it was interrupted, or begun twice
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from recollect.errors import InputError, InputTypeError, StorageError
from recollect.history.reading import StudyRow, read_studies
from recollect.history.run import Direction
from recollect.history.storage import Store, quiet
from recollect.space.columns import Column, Interval, Steps
from recollect.space.serial import from_json, to_json
from recollect.space.space import Space

FORMAT = 1
FORMAT_KEY, PROBLEM_KEY, TASK_KEY = "recollect:format", "recollect:problem", "recollect:task"
DIRECTION_KEY, SPACE_KEY, SETTINGS_KEY = "recollect:direction", "recollect:space", "recollect:settings"
NOTES_KEY, INFLUENCE_KEY, VOID_KEY = "recollect:notes", "recollect:influence", "recollect:void"

LONGEST = 512
"""Databases keep so many characters of a study's name."""

SETTLING = 5.0
"""Seconds that another process may take between making a study and describing it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A study as a memory sees it. problem None: somebody else's, whose name is the task."""

    id: int
    name: str
    problem: str | None
    task: str
    direction: Direction | None
    space: str | None


def study_name(problem: str, task: str) -> str:
    """Return the name of the study of a problem and task; slashes in them are escaped, so that names stay apart."""
    for kind, given in (("problem", problem), ("task", task)):
        if not isinstance(given, str):
            raise InputTypeError(f"{kind}: expected a name, got {given!r} ({type(given).__name__})")
        if not given.strip() or "\0" in given or given != given.encode("utf-8", "replace").decode("utf-8"):
            raise InputError(f"{kind}: expected a name of at least one character that can be printed, got {given!r}")
    name = "/".join(part.replace("%", "%25").replace("/", "%2F") for part in (problem, task))
    if len(name) > LONGEST:
        raise InputError(f"the names of problem and task have {len(name)} characters together, at most {LONGEST} fit")
    return name


def entry_of(study: StudyRow, where: str) -> Entry:
    """Read what a study says of itself; one of a format that is not known is refused."""
    attributes = study.user_attrs
    direction: Any = study.directions[0].lower() if len(study.directions) == 1 else None
    if FORMAT_KEY not in attributes:
        return Entry(study.id, study.name, None, study.name, direction, None)
    found = attributes[FORMAT_KEY]
    if found != FORMAT:
        newer = isinstance(found, int) and found > FORMAT
        cure = "install a newer version of recollect" if newer else "export it with the version that wrote it"
        raise StorageError(
            f"{where}: study {study.name!r} has format {found!r}, this version reads format {FORMAT}: {cure}"
        )
    missing = [key for key in (PROBLEM_KEY, TASK_KEY) if not isinstance(attributes.get(key), str)]
    if missing:
        raise StorageError(f"{where}: study {study.name!r} lacks the attribute {missing[0]!r}")
    return Entry(
        study.id,
        study.name,
        attributes[PROBLEM_KEY],
        attributes[TASK_KEY],
        direction,
        attributes.get(SPACE_KEY),
    )


def entries(store: Store) -> list[Entry]:
    """Return all studies of a storage."""
    return [entry_of(study, store.name) for study in read_studies(store)]


def find(store: Store, problem: str, task: str) -> Entry | None:
    """Return the study of a problem and task, None if it has not been begun."""
    try:
        study = store.optuna.get_study_id_from_name(study_name(problem, task))
    except KeyError:
        return None
    until = time.monotonic() + SETTLING
    while FORMAT_KEY not in (attributes := store.optuna.get_study_user_attrs(study)):
        if time.monotonic() > until:
            break
        time.sleep(0.05)
    name, directions = store.optuna.get_study_name_from_id(study), store.optuna.get_study_directions(study)
    return entry_of(StudyRow(study, name, tuple(d.name for d in directions), attributes), store.name)


def begin(store: Store, problem: str, task: str, *, space: Space | None, direction: Direction) -> Entry:
    """Return the study of a problem and task, made if it is not there; one with another space is refused."""
    from optuna.exceptions import DuplicatedStudyError
    from optuna.study import StudyDirection

    name = study_name(problem, task)
    text = None if space is None else to_json(space)
    found = find(store, problem, task)
    if found is None:
        try:
            with quiet():
                study = store.optuna.create_new_study([StudyDirection[direction.upper()]], name)
        except DuplicatedStudyError:  # somebody else was faster
            found = find(store, problem, task)
        else:
            attributes = {PROBLEM_KEY: problem, TASK_KEY: task, DIRECTION_KEY: direction, FORMAT_KEY: FORMAT}
            if text is not None:
                attributes = {SPACE_KEY: text, **attributes}
            for key, value in attributes.items():  # the format comes last: whoever sees it sees all
                store.optuna.set_study_user_attr(study, key, value)
            return Entry(study, name, problem, task, direction, text)
    assert found is not None
    _check_same(found, space, direction, where=store.name)
    return found


def _check_same(found: Entry, space: Space | None, direction: Direction, *, where: str) -> None:
    here = f"{where}: task {found.task!r} of problem {found.problem!r}"
    cure = "give the task another name, or remove the old one first"
    if found.problem is None:
        raise InputError(f"{where}: there is a study named {found.name!r} that recollect did not make: {cure}")
    if found.direction != direction:
        raise InputError(f"{here} is to {found.direction}, now to {direction}: {cure}")
    if space is None or found.space is None:
        return
    if (difference := differs(from_json(found.space), space)) is not None:
        raise InputError(f"{here} has another search space ({difference}): {cure}")


def differs(old: Space, new: Space) -> str | None:
    """Say in a few words where two spaces differ; None if they are the same."""
    before, after = ({column.name: column for column in space.columns} for space in (old, new))
    for names, what in ((before.keys() - after.keys(), "is gone"), (after.keys() - before.keys(), "is new")):
        if names:
            return f"{min(names)!r} {what}"
    for name in sorted(before):
        if str(old.source[name]) != str(new.source[name]):
            was, now = _described(before[name]), _described(after[name])
            return f"{name!r} was {was}, is {now}" if was != now else f"{name!r} has other choices or another default"
    if to_json(old) != to_json(new):
        return "conditions, forbidden combinations or defaults differ"
    return None


def _described(column: Column) -> str:
    log = isinstance(column, Interval | Steps) and column.log
    return column.expected() + (" on a log scale" if log else "")
