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
import struct
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from recollect.disk_cache import CacheKind, DiskCache
from recollect.runs.trial_columns import TrialColumns
from recollect.space.config_columns import ConfigColumns
from recollect.space.space import MISSING
from recollect.storage.open import Store
from recollect.storage.sql_read import ESTIMATE_KEY, FINISHED, SECONDS_KEY
from recollect.storage.studies import NOTES_KEY, VOID_KEY, TaskStudy

MIN_INDEXED = 200
ROW_FORMAT = 2
MAX_INDEXED_RUNS = 200_000
KIND = CacheKind("runs", "trials", ROW_FORMAT, MAX_INDEXED_RUNS, "past runs", "past runs are read from their memory")
MARK_SIZE = 16  # bytes
HEAD_LENGTH = struct.Struct("<I")


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

    def get(self, marks: Mapping[int, bytes]) -> dict[int, TrialColumns]:
        """Return the trials of those studies (ids) that are in the index with these marks."""
        found = self._cache.read(marks.values())
        return {study: _columns(found[mark]) for study, mark in marks.items() if mark in found}

    def put(self, runs: Mapping[bytes, TrialColumns]) -> None:
        """Write the trials of runs under the marks of their studies."""
        self._cache.write({mark: _content(trials) for mark, trials in runs.items()})


def _hash(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=MARK_SIZE).digest()


def _content(trials: TrialColumns) -> bytes:
    """Return trials as bytes: the length of a head in JSON, the head, and all columns of floats."""
    cells = trials.configs.cells
    columns = [*cells.values(), trials.values, trials.seconds, trials.numbers]
    packed = [set(map(type, column)) == {float} for column in columns]
    head = {
        "names": list(cells),
        "count": len(trials),
        "columns": [None if floats else _plain(column) for floats, column in zip(packed, columns, strict=True)],
        "missing": {name: places for name, column in cells.items() if (places := _missing(column))},
        "remarks": trials.remarks,
    }
    text = json.dumps(head, separators=(",", ":")).encode()
    floats = [value for floats, column in zip(packed, columns, strict=True) if floats for value in column]
    return HEAD_LENGTH.pack(len(text)) + text + np.array(floats, dtype="<f8").tobytes()


def _plain(column: Sequence[Any]) -> list[Any]:
    return [None if value is MISSING else value for value in column]


def _missing(column: Sequence[Any]) -> list[int]:
    return [place for place, value in enumerate(column) if value is MISSING]


def _columns(content: bytes) -> TrialColumns:
    """Return the trials that `_content` describes."""
    begin = HEAD_LENGTH.size
    end = begin + HEAD_LENGTH.unpack(content[:begin])[0]
    head = json.loads(content[begin:end])
    count, floats = head["count"], iter(np.frombuffer(content, dtype="<f8", offset=end).tolist())
    *cells, values, seconds, numbers = (
        list(islice(floats, count)) if column is None else column for column in head["columns"]
    )
    configs = dict(zip(head["names"], cells, strict=True))
    for name, places in head["missing"].items():
        for place in places:
            configs[name][place] = MISSING
    remarks = {
        int(place): (state, tuple(notes), estimate) for place, (state, notes, estimate) in head["remarks"].items()
    }
    return TrialColumns(ConfigColumns(count, configs), values, seconds, numbers, remarks)
