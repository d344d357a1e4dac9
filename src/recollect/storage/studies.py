"""One study per problem and task: its name, its attributes, and how it is found or created.

A study that recollect created has these user attributes; a study without them belongs to another program:

    recollect:format       1
    recollect:problem      the model or program that is tuned, "svm"
    recollect:task         the dataset or instance of this run, "covertype"
    recollect:direction    "minimize" or "maximize", like the study itself
    recollect:identity     what tells it from a later study with the same id; absent before 0.4.0
    recollect:space        the search space as JSON of ConfigSpace; absent when a run without a space was added
    recollect:settings     how it was last tuned: method, trials, seed, versions; absent when a run was added
    recollect:tags         a list of words to select runs by; absent without tags
    recollect:note         a remark on the run; absent without one
    recollect:incomplete   true while a storage without transactions is writing the run; it is left out until then

A trial may have

    recollect:notes        a list of sentences: why it failed, what was remarkable
    recollect:influence    why it was suggested: "reason"; predicted "mean" and "std"; weights used: "target", "past" by
                           task; "dropped" tasks; "shares" of past runs in the acquisition value
    recollect:seconds      how long it took
    recollect:estimate     of a pruned trial that was imported: the value that it would probably have reached
    recollect:void         why it does not count: it was interrupted, or started twice
    recollect:place        of a program: "host", and the folders of its output ("logs") and work ("folder"), if any
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from recollect._text import is_unicode, name_list
from recollect.errors import ConfigError, InputError, InputTypeError, SpaceError, StorageError
from recollect.runs.run import Direction, Trial
from recollect.space.columns import Choices, Interval, SpaceColumn, Steps
from recollect.space.serialization import from_json, to_json
from recollect.space.space import Space
from recollect.storage.open import Store
from recollect.storage.optuna_conversion import config_of
from recollect.storage.optuna_log import quiet_optuna
from recollect.storage.sql_read import Damage, StoredStudy, StoredTrial, read_studies, report_damage
from recollect.storage.study_key import IDENTITY_KEY, StudyKey, new_identity

DEFAULT_PROBLEM = "default"
FORMAT = 1
FORMAT_KEY, PROBLEM_KEY, TASK_KEY = "recollect:format", "recollect:problem", "recollect:task"
DIRECTION_KEY, SPACE_KEY, SETTINGS_KEY = "recollect:direction", "recollect:space", "recollect:settings"
TAGS_KEY, NOTE_KEY, INCOMPLETE_KEY = "recollect:tags", "recollect:note", "recollect:incomplete"
NOTES_KEY, INFLUENCE_KEY, VOID_KEY = "recollect:notes", "recollect:influence", "recollect:void"
PLACE_KEY, SAMPLER_KEY = "recollect:place", "recollect:sampler"
ENQUEUED_KEY = "fixed_params"  # of system attributes: parameters that Optuna's enqueue_trial has fixed

MAX_NAME_LENGTH = 512
"""Databases keep this many characters of a study's name."""

CREATION_SECONDS = 5.0
"""Time that another process may take between creating a study and describing it."""


@dataclass(frozen=True, slots=True)
class TaskStudy:
    """The study of a task, as a memory sees it.

    Attributes:
        id: Optuna's id of the study.
        name: Optuna's name of the study.
        problem: The problem; None for a study of another program.
        task: The task; the name of the study if another program created it.
        direction: The direction; None for a study with several objectives.
        space: The search space as JSON, if it is known.
        settings: How it was last tuned, as far as it is known.
        tags: Words to select runs by.
        note: A remark on the run.
        identity: What tells it from a later study with the same id, if it has such an identity.
    """

    id: int
    name: str
    problem: str | None
    task: str
    direction: Direction | None
    space: str | None
    settings: Mapping[str, Any] = field(default_factory=dict, compare=False)
    tags: tuple[str, ...] = ()
    note: str = ""
    identity: str | None = None

    @property
    def key(self) -> StudyKey:
        """What finds the study, and no later one with the same id."""
        return StudyKey(self.id, self.identity)


def stored_influence(record: StoredTrial) -> object:
    """Return what is noted on a trial about its suggestion; `TransferSampler` notes it in the system attributes."""
    enqueued = {"reason": "enqueued by the user"} if ENQUEUED_KEY in record.system_attrs else None
    return record.user_attrs.get(INFLUENCE_KEY, record.system_attrs.get(INFLUENCE_KEY, enqueued))


def study_name(problem: str, task: str) -> str:
    """Return the name of the study of a problem and task; slashes in them are escaped to keep names unique."""
    for kind, text in (("problem", problem), ("task", task)):
        if not isinstance(text, str):
            raise InputTypeError(f"{kind}: expected a name, got {text!r} ({type(text).__name__})")
        if "\0" in text or not is_unicode(text):
            raise InputError(f"{kind}: expected a name in valid Unicode without NUL, got {text!r}")
        if not text.strip():
            raise InputError(f"{kind}: expected a name with at least one printable character, got {text!r}")
    name = "/".join(part.replace("%", "%25").replace("/", "%2F") for part in (problem, task))
    if len(name) > MAX_NAME_LENGTH:
        raise InputError(
            f"problem and task: expected names of at most {MAX_NAME_LENGTH} characters together, got {len(name)}"
        )
    return name


def check_parameter_names(store: Store, names: Iterable[str]) -> None:
    """Refuse names of hyperparameters that a database server cannot store; a file stores any."""
    if store.missing or store.engine is None or store.sqlite:
        return
    for name in names:
        if len(name) > MAX_NAME_LENGTH or "\0" in name:
            raise InputError(
                f"{store.name}: hyperparameter {name[:40]!r}: this database stores names of at most {MAX_NAME_LENGTH} "
                f"characters without NUL, got {len(name)} characters: rename it, or use a SQLite file"
            )


def as_task_study(study: StoredStudy, where: str) -> TaskStudy:
    """Read the attributes of a study; StorageError for one that is damaged or has an unknown format."""
    attributes = study.user_attrs
    direction: Any = study.directions[0].lower() if len(study.directions) == 1 else None
    if FORMAT_KEY not in attributes and not attributes.get(INCOMPLETE_KEY):
        return TaskStudy(study.id, study.name, None, study.name, direction, None)
    if reason := _defect(attributes, direction):
        raise StorageError(f"{where}: study {study.name!r} {reason}")
    problem, task, space = attributes[PROBLEM_KEY], attributes[TASK_KEY], attributes.get(SPACE_KEY)
    settings = attributes.get(SETTINGS_KEY)
    known = settings if isinstance(settings, Mapping) else {}
    tags, note = attributes.get(TAGS_KEY), attributes.get(NOTE_KEY)
    words = tuple(map(str, tags)) if isinstance(tags, list) else ()
    remark = note if isinstance(note, str) else ""
    identity = attributes.get(IDENTITY_KEY)
    return TaskStudy(study.id, study.name, problem, task, direction, space, known, words, remark, identity)


def _defect(attributes: Mapping[str, Any], direction: str | None) -> str:
    """Return why a study of recollect cannot be used, "" if it can."""
    if attributes.get(INCOMPLETE_KEY):
        return "was not written to its end: import it again"
    version = attributes[FORMAT_KEY]
    if version != FORMAT:
        newer = isinstance(version, int) and version > FORMAT
        remedy = "install a newer version of recollect" if newer else "export it with the version that wrote it"
        return f"has format {version!r:.80}, this version reads format {FORMAT}: {remedy}"
    for key in (PROBLEM_KEY, TASK_KEY):
        if not isinstance(attributes.get(key), str):
            return f"lacks the attribute {key!r}"
    if direction is None:
        return "has several directions"
    for key in (SPACE_KEY, IDENTITY_KEY):
        if not isinstance(attributes.get(key), str | None):
            return f"has an attribute {key!r} that is not a string"
    return ""


def task_studies(store: Store, *, damage: list[Damage] | None = None) -> list[TaskStudy]:
    """Return all studies of a storage; damaged ones, and those of unknown formats, are reported."""
    studies, broken = [], []
    for study in read_studies(store, damage=damage):
        if study.user_attrs.get(INCOMPLETE_KEY):
            continue
        try:
            studies.append(as_task_study(study, store.name))
        except StorageError as error:
            broken.append(Damage(f"study {study.name!r}", str(error).rpartition(f"study {study.name!r} ")[2]))
    report_damage(store, broken, damage)
    return studies


def read_spaces(
    store: Store, studies: Iterable[TaskStudy], *, damage: list[Damage] | None = None
) -> dict[str | None, Space]:
    """Return the search spaces of studies, by their JSON; damaged ones are reported."""
    spaces: dict[str | None, Space] = {}
    broken = []
    for text, study in {study.space: study for study in studies if study.space is not None}.items():
        try:
            spaces[text] = from_json(text)
        except SpaceError as error:
            broken.append(Damage(f"the search space of study {study.name!r}", str(error)[:200]))
    report_damage(store, broken, damage)
    return spaces


def with_notes(trial: Trial, record: StoredTrial) -> Trial:
    """Return a trial with its number and the notes that are stored with it, if any."""
    notes = record.user_attrs.get(NOTES_KEY)
    if isinstance(notes, list):
        return replace(trial, notes=tuple(map(str, notes)), number=record.number)
    return trial if trial.number is not None else replace(trial, number=record.number)


def check_problem(studies: Sequence[TaskStudy], problem: str, *, where: str) -> None:
    """Raise InputError, with the existing problems, unless one of the studies belongs to the problem."""
    problems = dict.fromkeys(study.problem for study in studies if study.problem is not None)
    if problem not in problems:
        existing = f"the problems are: {name_list(map(repr, problems))}" if problems else "there are no problems yet"
        raise InputError(f"{where}: there is no problem {problem!r}; {existing}")


def choose_study(studies: Sequence[TaskStudy], task: str, problem: str | None, *, where: str) -> TaskStudy:
    """Return the study of a task; InputError if there is none, or several and ``problem`` is None."""
    if problem is not None:
        check_problem(studies, problem, where=where)
    candidates = [study for study in studies if problem in (None, study.problem)]
    matches = [study for study in candidates if study.task == task]
    place = where if problem is None else f"{where}, problem {problem!r}"
    if not matches:
        tasks = name_list(dict.fromkeys(repr(study.task) for study in candidates))
        raise InputError(f"{place}: there is no task {task!r}; the tasks are: {tasks}")
    if len(matches) > 1:
        problems = name_list(repr(study.problem) for study in matches if study.problem is not None)
        raise InputError(f"{place}: several problems have a task {task!r}; name the problem as well: {problems}")
    return matches[0]


def find_study(store: Store, problem: str, task: str) -> TaskStudy | None:
    """Return the study of a problem and task, None if there is none; StorageError if it is damaged."""
    name = study_name(problem, task)
    try:
        study = store.optuna.get_study_id_from_name(name)
    except KeyError:
        return None
    deadline = time.monotonic() + CREATION_SECONDS
    while True:
        damage: list[Damage] = []
        found = read_studies(store, only=study, damage=damage)
        if damage or not found:
            reason = damage[0].reason if damage else "it was removed at this moment"
            raise StorageError(
                f"{store.name}: study {name!r} is damaged ({reason}): give the task another name, or restore a backup; "
                "`recollect memory check` lists all damage"
            )
        if FORMAT_KEY in found[0].user_attrs or time.monotonic() > deadline:
            return as_task_study(found[0], store.name)
        time.sleep(0.05)


def get_or_create_study(
    store: Store, problem: str, task: str, *, space: Space | None, direction: Direction
) -> TaskStudy:
    """Return the study of a problem and task, created if there is none; InputError if space or direction differ."""
    from optuna.exceptions import DuplicatedStudyError
    from optuna.study import StudyDirection

    name = study_name(problem, task)
    check_parameter_names(store, () if space is None else space.names)
    text = None if space is None else to_json(space)
    existing = find_study(store, problem, task)
    if existing is None:
        try:
            with quiet_optuna():
                study = store.optuna.create_new_study([StudyDirection[direction.upper()]], name)
        except DuplicatedStudyError:  # another process was faster
            existing = find_study(store, problem, task)
            if existing is None:
                remedy = "give the task another name; 'recollect memory check' lists all damage"
                raise StorageError(f"{store.name}: the study of task {task!r} is damaged: {remedy}") from None
    elif existing.problem is None and existing.direction == direction and not store.optuna.get_all_trials(existing.id):
        study, existing = existing.id, None  # its process was killed before it described the study
    if existing is not None:
        check_same(existing, space, direction, where=store.name)
        if space is not None and existing.space != text and _may_have(store, existing, space):
            store.optuna.set_study_user_attr(existing.id, SPACE_KEY, text)
            existing = replace(existing, space=text)
        return existing
    attributes = study_attributes(problem, task, direction, space=text)
    for key, value in attributes.items():
        store.optuna.set_study_user_attr(study, key, value)
    return TaskStudy(study, name, problem, task, direction, text, identity=attributes[IDENTITY_KEY])


def _may_have(store: Store, study: TaskStudy, space: Space) -> bool:
    """Whether a study gets this space: it has the same without some orders, or none and trials that belong to it."""
    if study.space is not None:
        return True
    try:
        space.encode([config_of(trial) for trial in store.optuna.get_all_trials(study.id)])
    except ConfigError:
        return False
    return True


def study_attributes(
    problem: str, task: str, direction: Direction, *, space: str | None, tags: Sequence[str] = (), note: str = ""
) -> dict[str, Any]:
    """Return the user attributes of a study; the format is last, so that who sees it can see all others."""
    optional = {SPACE_KEY: space, TAGS_KEY: list(tags), NOTE_KEY: note}
    described = {PROBLEM_KEY: problem, TASK_KEY: task, DIRECTION_KEY: direction, IDENTITY_KEY: new_identity()}
    return {key: content for key, content in optional.items() if content} | described | {FORMAT_KEY: FORMAT}


def check_same(study: TaskStudy, space: Space | None, direction: Direction, *, where: str) -> None:
    """Raise InputError if a study has another search space or direction than a new run of its task."""
    place = f"{where}: task {study.task!r} of problem {study.problem!r}"
    remedy = "give the task another name, or remove the old one first"
    if study.problem is None:
        raise InputError(f"{where}: there is a study named {study.name!r} that recollect did not create: {remedy}")
    if study.direction != direction:
        raise InputError(f"{place} was started to {study.direction}, not to {direction}: {remedy}")
    if space is None or study.space is None:
        return
    try:
        old = from_json(study.space)
        difference = space_difference(old, space, ignore=newly_ordered(old, space))
    except SpaceError as error:
        raise StorageError(f"{place}: its search space is damaged ({error}): {remedy}") from error
    if difference is not None:
        raise InputError(f"{place} has another search space ({difference}): {remedy}")


def newly_ordered(old: Space, new: Space) -> set[str]:
    """Return the hyperparameters whose choices are the same in both spaces, but have an order only in the new one."""
    before = {column.name: column.choices for column in old.columns if isinstance(column, Choices)}
    after = {column.name: column.choices for column in new.columns if isinstance(column, Steps)}
    return {name for name in before.keys() & after.keys() if before[name] == after[name]}


def space_difference(old: Space, new: Space, *, ignore: Collection[str] = ()) -> str | None:
    """Describe briefly the first difference of two spaces; None if they are the same, but for those to ``ignore``."""
    before, after = ({column.name: column for column in space.columns} for space in (old, new))
    for names, what in ((before.keys() - after.keys(), "was removed"), (after.keys() - before.keys(), "is new")):
        if names:
            return f"{min(names)!r} {what}"
    for name in sorted(before.keys() - set(ignore)):
        if str(old.source[name]) != str(new.source[name]):
            was, now = _described(before[name]), _described(after[name])
            return f"{name!r} was {was}, is {now}" if was != now else f"{name!r} has other choices or another default"
    if _json_without(old, ignore) != _json_without(new, ignore):
        return "conditions, forbidden combinations or defaults differ"
    return None


def _json_without(space: Space, names: Collection[str]) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(to_json(space))
    return {**content, "hyperparameters": [own for own in content["hyperparameters"] if own["name"] not in names]}


def _described(column: SpaceColumn) -> str:
    log = isinstance(column, Interval | Steps) and column.log
    return column.expected() + (" on a log scale" if log else "")
