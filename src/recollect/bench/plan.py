"""Plans of experiments: which methods on which benchmarks, how often, and where past runs come from.

A plan is a TOML file:

    format = 1
    methods = ["random", "gp", "rgpe-taf"]
    repetitions = 5
    horizon = 50                    # evaluations of a run
    seed = 0
    weights = ["rgpe-nei"]          # methods whose weights are kept

    [past]
    method = "gp"                   # what made the past runs: gp or random
    evaluations = 50                # the plan's horizon if not given
    repetitions = 5                 # runs to draw from, the plan's number if not given

    [[benchmarks]]
    name = "svm-grid"               # known by name, or
    table = "svm_grid.csv.gz"       # a tidy table: beside the plan, or in the folder named by RECOLLECT_DATA
    mode = "table"                  # or "forest"
    tasks = 15                      # only so many, evenly spaced
    repetitions = 3                 # fewer than the plan's

    [[less]]                        # what shall be done less of
    methods = ["ablr", "mtgp"]
    benchmarks = ["svm-grid"]       # all if not given
    repetitions = 1                 # 0: not at all
    tasks = 10                      # tuned; all others still have past runs
    past = 4                        # past runs, drawn at random

Every table of a plan knows these keys and no others.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from recollect.bench.problem import Benchmark
from recollect.bench.results import Key
from recollect.bench.table import Mode, from_table
from recollect.errors import InputError

FORMAT = 1
LONGEST = 100_000  # evaluations of a run
OFTEN = 1000  # repetitions
KEYS = {
    "the plan": ("format", "methods", "repetitions", "horizon", "seed", "weights", "past", "benchmarks", "less"),
    "past": ("method", "evaluations", "repetitions"),
    "benchmarks": ("name", "table", "mode", "tasks", "repetitions"),
    "less": ("methods", "benchmarks", "repetitions", "tasks", "past"),
}


@dataclass(frozen=True, slots=True)
class Spec:
    """A benchmark of a plan: by name, or a table with the path ``table`` under that name."""

    name: str
    table: str | None = None
    mode: Mode = "table"
    tasks: int | None = None
    repetitions: int | None = None

    def check(self) -> None:
        """Refuse it if its data are not there, without loading them."""
        from recollect.bench.registry import place_of

        if self.table is None:
            place_of(self.name)

    def open(self) -> Benchmark:
        """Load it; where it has forests, those that are not stored yet are built when they are needed."""
        from recollect.bench.registry import load

        if self.table is None:
            return load(self.name, jobs=0)
        return from_table(self.table, mode=self.mode, name=self.name, jobs=0)


@dataclass(frozen=True, slots=True)
class PastSource:
    """Where past runs come from."""

    method: Literal["gp", "random"] = "gp"
    evaluations: int = 50
    repetitions: int = 1


@dataclass(frozen=True, slots=True)
class Less:
    """What some methods do less of; None: no less than others. benchmarks empty: on all."""

    methods: tuple[str, ...]
    benchmarks: tuple[str, ...] = ()
    repetitions: int | None = None
    tasks: int | None = None
    past: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """An experiment."""

    methods: tuple[str, ...]
    benchmarks: tuple[Spec, ...]
    past: PastSource
    repetitions: int = 1
    horizon: int = 50
    seed: int = 0
    weights: tuple[str, ...] = ()
    less: tuple[Less, ...] = ()

    def cells(self, spec: Spec, tasks: Sequence[str]) -> Iterator[Key]:
        """Yield the runs on a benchmark with these tasks, one repetition of all methods after the other."""
        most = self.repetitions if spec.repetitions is None else min(self.repetitions, spec.repetitions)
        for repetition in range(most):
            for method in self.methods:
                less = self.limits(method, spec.name)
                if less.repetitions is None or repetition < less.repetitions:
                    for task in evenly(tasks, less.tasks):
                        yield Key(spec.name, method, task, repetition)

    def limits(self, method: str, benchmark: str) -> Less:
        """Return what a method does less of on a benchmark; where several entries say something, the first counts."""
        said = [
            entry
            for entry in self.less
            if method in entry.methods and (not entry.benchmarks or benchmark in entry.benchmarks)
        ]

        def first(name: str) -> int | None:
            return next((value for entry in said if (value := getattr(entry, name)) is not None), None)

        return Less((method,), (benchmark,), first("repetitions"), first("tasks"), first("past"))

    def settings(self) -> dict[str, Any]:
        """Return what every run depends on: results made with other settings must not be mixed."""
        return {
            "horizon": self.horizon,
            "seed": self.seed,
            "past": [self.past.method, self.past.evaluations, self.past.repetitions],
        }


def evenly(names: Sequence[str], count: int | None) -> tuple[str, ...]:
    """Return so many names, evenly spaced from the first to the last; all if that is more than there are."""
    if count is None or count >= len(names):
        return tuple(names)
    if count == 1:
        return (names[0],)
    return tuple(names[(number * (len(names) - 1) + (count - 1) // 2) // (count - 1)] for number in range(count))


def load_plan(path: Path) -> Plan:
    """Read a plan; InputError says what is wrong with it and where."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"{path}: expected a plan, but there is no such file") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: expected a plan in TOML: {error}") from error
    try:
        return _plan(content, path.parent)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _plan(content: Mapping[str, Any], folder: Path) -> Plan:
    table = _Table("the plan", content)
    if content.get("format") != FORMAT:
        raise InputError(f"expected format = {FORMAT}, got {content.get('format')!r}")
    methods = table.names("methods", least=1)
    _check_methods(methods)
    repetitions = table.count("repetitions", most=OFTEN) or 1
    horizon = table.count("horizon", most=LONGEST) or 50
    past = _Table("past", table.table("past"))
    made_by = past.value("method", str) or "gp"
    if made_by not in ("gp", "random"):
        raise InputError(f"past: method must be 'gp' or 'random', got {made_by!r}")
    source = PastSource(
        cast("Literal['gp', 'random']", made_by),
        past.count("evaluations", most=LONGEST) or horizon,
        past.count("repetitions", most=OFTEN) or repetitions,
    )
    specs = tuple(_spec(entry, folder, repetitions) for entry in table.tables("benchmarks"))
    names = [spec.name for spec in specs]
    if not names or len(set(names)) < len(names):
        raise InputError(f"expected [[benchmarks]] with different names, got {names}")
    seed = table.value("seed", int) or 0
    if seed < 0:
        raise InputError(f"seed must be at least 0, got {seed}")
    less = tuple(_less(entry, methods, names) for entry in table.tables("less"))
    weights = table.names("weights")
    if not set(weights) <= set(methods):
        raise InputError(f"weights: expected methods of the plan, got {sorted(set(weights) - set(methods))}")
    return Plan(methods, specs, source, repetitions, horizon, seed, weights, less)


def _spec(content: Mapping[str, Any], folder: Path, most: int) -> Spec:
    from recollect.bench.registry import entry_of

    entry = _Table("benchmarks", content)
    name = entry.value("name", str)
    if not name:
        raise InputError("benchmarks: expected a name")
    if not re.fullmatch(r"\w[\w.+-]{,99}", name):  # it becomes part of names of files
        raise InputError(f"benchmarks: expected a name of at most 100 letters, digits and . _ + -, got {name!r}")
    table, mode = entry.value("table", str), entry.value("mode", str) or "table"
    if mode not in ("table", "forest"):
        raise InputError(f"benchmarks: mode must be 'table' or 'forest', got {mode!r}")
    if mode == "forest" and table is None:
        raise InputError(f"benchmarks: mode = 'forest' needs a table, and {name!r} has none")
    if table is None:
        entry_of(name)  # refuses unknown ones
    place = None if table is None else str(_found(table, folder))
    return Spec(name, place, cast("Mode", mode), entry.count("tasks"), entry.count("repetitions", most=most))


def _found(table: str, folder: Path) -> Path:
    """The table beside the plan, or in the folder of data."""
    data = os.environ.get("RECOLLECT_DATA")
    places = [folder / table] + ([] if not data else [Path(data).expanduser() / table])
    for place in places:
        if place.exists():
            return place.resolve()
    raise InputError(f"benchmarks: there is no table {table!r} in {' or '.join(str(p.parent) for p in places)}")


def _less(content: Mapping[str, Any], methods: Sequence[str], benchmarks: Sequence[str]) -> Less:
    entry = _Table("less", content)
    some, where = entry.names("methods", least=1), entry.names("benchmarks")
    unknown = [name for name in some if name not in methods] + [name for name in where if name not in benchmarks]
    if unknown:
        raise InputError(f"less: expected methods and benchmarks of the plan, got {unknown[0]!r}")
    return Less(some, where, entry.count("repetitions", least=0), entry.count("tasks"), entry.count("past"))


def _check_methods(methods: Sequence[str]) -> None:
    from recollect.optimizer.catalog import method

    for name in methods:
        method(name)  # refuses unknown ones
    if len(set(methods)) < len(methods):
        raise InputError(f"methods: expected different ones, got {list(methods)}")


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of the file, read with checks."""

    where: str
    content: Mapping[str, Any]

    def __post_init__(self) -> None:
        for key in self.content:
            if key not in KEYS[self.where]:
                raise InputError(f"{self.where}: unknown key {key!r}; known are {', '.join(KEYS[self.where])}")

    def value(self, key: str, kind: type[Any]) -> Any:
        """A value of this type, None if it is not given."""
        found = self.content.get(key)
        if found is not None and (not isinstance(found, kind) or isinstance(found, bool)):
            raise InputError(f"{self.where}: {key} must be of type {kind.__name__}, got {found!r}")
        return found

    def count(self, key: str, *, least: int = 1, most: int | None = None) -> int | None:
        """A whole number, None if it is not given."""
        found: int | None = self.value(key, int)
        if found is not None and found < least:
            raise InputError(f"{self.where}: {key} must be at least {least}, got {found}")
        if found is not None and most is not None and found > most:
            raise InputError(f"{self.where}: {key} must be at most {most}, got {found}")
        return found

    def names(self, key: str, *, least: int = 0) -> tuple[str, ...]:
        """A list of texts."""
        found = self.value(key, list) or []
        if len(found) < least or not all(isinstance(name, str) for name in found):
            raise InputError(f"{self.where}: {key} must be a list of {least} or more names, got {found!r}")
        return tuple(found)

    def table(self, key: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.value(key, dict) or {}
        return found

    def tables(self, key: str) -> list[Mapping[str, Any]]:
        found = self.value(key, list) or []
        if not all(isinstance(entry, dict) for entry in found):
            raise InputError(f"{self.where}: {key} must be a list of tables ([[{key}]]), got {found!r}")
        return list(found)
