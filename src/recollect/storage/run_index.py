"""An index of the runs of large memories, so that a start does not read every trial of every past run again.

The index is a cache on this machine (`recollect.disk_cache`, the file ``runs.sqlite3``): the trials of each run, under
a mark of the study that they were read from. The mark is a hash of the address of the storage and of the study's name,
its trials (how many, first and last id, when the last one ended, lowest and highest value) and the number of attributes
that say more about them. Finished trials never change, so a study with the same mark has the same trials. The marks of
all studies take three queries that the database answers without sending a trial.

Only memories with at least `MIN_INDEXED` runs are indexed: smaller ones are read faster than their index.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from recollect.disk_cache import CacheKind, DiskCache
from recollect.runs.run import State, Trial
from recollect.storage.open import Store
from recollect.storage.sql_read import ESTIMATE_KEY, FINISHED, SECONDS_KEY, no_garbage_collection
from recollect.storage.studies import NOTES_KEY, VOID_KEY, TaskStudy

MIN_INDEXED = 200
ROW_FORMAT = 1
MAX_INDEXED_RUNS = 200_000
KIND = CacheKind("runs", "trials", ROW_FORMAT, MAX_INDEXED_RUNS, "past runs", "past runs are read from their memory")
MARK_SIZE = 16  # bytes


def study_marks(store: Store, studies: Sequence[TaskStudy]) -> dict[int, bytes]:
    """Return what identifies the trials of each study (ids) as they are now; nothing for storages without SQL."""
    if not store.sql:
        return {}
    keys = "', '".join((NOTES_KEY, VOID_KEY, SECONDS_KEY, ESTIMATE_KEY))
    trials = "count(*), min(t.trial_id), max(t.trial_id), max(t.datetime_complete)"
    joined = "join trials t on a.trial_id = t.trial_id"
    found: dict[int, list[Any]] = {study.id: [study.name] for study in studies}
    with store.reading() as fetch:
        for query in (
            f"select t.study_id, {trials} from trials t where {FINISHED} group by t.study_id",
            f"select t.study_id, count(*), min(a.value), max(a.value) from trial_values a {joined} group by t.study_id",
            f"select t.study_id, count(*) from trial_user_attributes a {joined} "
            f"where a.key in ('{keys}') group by t.study_id",
        ):
            for study, *facts in fetch(query):
                if study in found:
                    found[study].append(tuple(map(str, facts)))
            for marks in found.values():
                marks.append(";")
    return {study: _hash(f"{store.address} {study} {facts}".encode()) for study, facts in found.items()}


class RunIndex:
    """The trials of runs by the marks of their studies."""

    def __init__(self) -> None:
        """Name the file of this user; nothing is opened before it is used."""
        self._cache = DiskCache(KIND)

    def get(self, marks: Mapping[int, bytes]) -> dict[int, list[Trial]]:
        """Return the trials of those studies (ids) that are in the index with these marks."""
        found = self._cache.read(marks.values())
        with no_garbage_collection():
            return {study: _trials(found[mark]) for study, mark in marks.items() if mark in found}

    def put(self, runs: Mapping[bytes, Sequence[Trial]]) -> None:
        """Write the trials of runs under the marks of their studies."""
        self._cache.write({mark: _content(trials) for mark, trials in runs.items()})


def _hash(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=MARK_SIZE).digest()


def _content(trials: Sequence[Trial]) -> bytes:
    """Return trials as JSON: what all have as columns; the rest, which few have, by position."""
    names = list(dict.fromkeys(name for trial in trials for name in trial.config))
    rows = [[trial.config.get(name) for name in names] for trial in trials]
    # A configuration without some of the names, or with them in another order, is kept as it is.
    others = {place: trial.config for place, trial in enumerate(trials) if list(trial.config) != names}
    rest = {
        place: [trial.state.value, trial.notes, trial.estimate]
        for place, trial in enumerate(trials)
        if not trial.ok or trial.notes
    }
    columns = [[trial.value for trial in trials], [trial.seconds for trial in trials]]
    content = {"names": names, "rows": rows, "others": others, "rest": rest, "numbers": [t.number for t in trials]}
    return json.dumps(content | {"columns": columns}, separators=(",", ":")).encode()


def _trials(content: bytes) -> list[Trial]:
    """Return the trials that `_content` describes."""
    data = json.loads(content)
    names, (values, seconds), numbers = data["names"], data["columns"], data["numbers"]
    configs = [dict(zip(names, row, strict=True)) for row in data["rows"]]
    for place, config in data["others"].items():
        configs[int(place)] = config
    rest = data["rest"]
    if not rest:
        plain: Iterable[tuple[Any, ...]] = zip(configs, values, seconds, numbers, strict=True)
        return [Trial(config, value, seconds=time, number=number) for config, value, time, number in plain]
    trials = []
    for place, (config, value, time, number) in enumerate(zip(configs, values, seconds, numbers, strict=True)):
        state, notes, estimate = rest.get(str(place), ("ok", (), None))
        trials.append(Trial(config, value, State(state), time, tuple(notes), estimate, number))
    return trials
