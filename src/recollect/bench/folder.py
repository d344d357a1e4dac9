"""The folder of an experiment: what its runs depend on, and that only one process at a time works on it.

`study.json` holds the settings of the plan that the folder was begun with, and for every benchmark the tasks that past
runs are on, the contents of its table, and how many past runs each method gets. A run that depends on something else
must not be mixed with those that are there; new benchmarks, methods and repetitions may be added.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recollect.bench.plan import Spec
from recollect.errors import InputError, StorageError
from recollect.files import put

FORMAT = 1
STUDY = "study.json"
BENCHMARKS, TABLE, PAST = "benchmarks", "table", "past runs of"


@dataclass(slots=True, eq=False)
class Ledger:
    """What the runs of a folder depend on."""

    path: Path
    content: dict[str, Any]

    @classmethod
    def open(cls, folder: Path, settings: Mapping[str, Any]) -> Ledger:
        """Begin a study, or go on with one that has the same settings."""
        path, wanted = folder / STUDY, {"format": FORMAT, **settings}
        if not path.exists():
            ledger = cls(path, wanted)
            ledger._write()
            return ledger
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(found, dict) or not isinstance(found.setdefault(BENCHMARKS, {}), dict):
                raise TypeError("not an object")
        except (OSError, ValueError, TypeError) as error:
            raise InputError(f"{path}: expected the settings of a study: {error}") from error
        ledger = cls(path, found)
        for name, value in wanted.items():
            ledger._compare(name, found.get(name), value)
        return ledger

    def enter(self, spec: Spec, tasks: Sequence[str], few: Mapping[str, int | None]) -> None:
        """Note a benchmark and how many past runs its methods get, or refuse what differs from what is noted."""
        entry = self.content.setdefault(BENCHMARKS, {}).setdefault(spec.name, {})
        wanted: dict[str, Any] = {"tasks": list(tasks), "mode": spec.mode}
        if spec.table is not None:
            wanted[TABLE] = hashlib.sha256(Path(spec.table).read_bytes()).hexdigest()
        wanted |= {f"{PAST} {name}": "all" if count is None else count for name, count in few.items()}
        for name, value in wanted.items():
            self._compare(f"{name} on {spec.name}", entry.setdefault(name, value), value)
        self._write()

    def _compare(self, name: str, found: object, wanted: object) -> None:
        if found == wanted:
            return
        both = f"{name} = {_shown(found)}, and the plan says {_shown(wanted)}"
        if name.startswith(TABLE):
            both = f"another {name}, whose contents have changed"
        way_out = "name another folder"
        if name == "past":
            way_out += ", or say under [past] how those were made (method, evaluations, repetitions)"
        raise InputError(f"{self.path.parent} holds runs with {both}; they must not be mixed: {way_out}")

    def _write(self) -> None:
        content = (json.dumps(self.content, indent=1) + "\n").encode("utf-8")
        if not self.path.exists() or self.path.read_bytes() != content:
            put(self.path, content)


def _shown(value: object) -> str:
    """A value in short."""
    if isinstance(value, list) and len(value) > 3:
        return f"[{', '.join(map(repr, value[:3]))}, ...] ({len(value)})"
    return repr(value)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep a second process out of a folder; the lock ends with the process, however that ends."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        yield
        return
    try:
        file = (folder / ".lock").open("w")
    except OSError as error:
        raise StorageError(f"{folder}: nothing can be written here: {error.strerror or error}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(f"{folder}: another process is working on this study") from error
        yield
