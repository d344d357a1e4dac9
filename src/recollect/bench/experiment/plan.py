"""Plans of experiments: which methods on which benchmarks, how often, and where past runs come from.

A plan is a TOML file:

    format = 1
    methods = ["random", "gp", "rgpe-taf", "optuna:TPESampler", "mypkg:MyOptimizer", "smac3"]
    repetitions = 5
    horizon = 50                    # evaluations per run
    seed = 0
    weights = ["rgpe-nei"]          # methods whose weights are recorded

    [past]
    method = "gp"                   # the method of the past runs: gp, gp+paper or random
    evaluations = 50                # default: the plan's horizon
    repetitions = 5                 # runs to draw from; default: the plan's number

    [[benchmarks]]
    name = "svm-grid"               # a registered benchmark, or the name of a CSV benchmark; default: its file's name
    table = "svm_grid.csv.gz"       # a CSV benchmark: beside the plan, or in the folder named by RECOLLECT_DATA
    mode = "table"                  # or "forest"
    tasks = 15                      # only this many, evenly spaced
    repetitions = 3                 # fewer than the plan's

    [[contestants]]                 # short names for methods from outside (`bench.experiment.contestants`)
    name = "smac3"
    run = "command: /opt/smac/bin/python smac3.py"

    [[less]]                        # reductions, for expensive methods; if several apply, all of them hold
    methods = ["ablr", "mtgp"]
    benchmarks = ["svm-grid"]       # default: all
    repetitions = 1                 # 0: none
    tasks = 10                      # tuned, of those that entries above leave; all others still provide past runs
    past = 4                        # past runs, drawn at random

Other keys are refused.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

from recollect.bench.benchmark import Benchmark
from recollect.bench.experiment.contestants import ContestantSpec, contestant_spec
from recollect.bench.experiment.experiment_run import RunKey
from recollect.bench.problems.tabular import Mode, from_table
from recollect.bench.registry import data_path, find_entry, load
from recollect.errors import InputError
from recollect.optimizer import catalog

FORMAT = 1
MAX_EVALUATIONS = 100_000  # of a run
MAX_REPETITIONS = 1000
KEYS = {
    "the plan": (
        "format",
        "methods",
        "repetitions",
        "horizon",
        "seed",
        "weights",
        "past",
        "benchmarks",
        "contestants",
        "less",
    ),
    "past": ("method", "evaluations", "repetitions"),
    "benchmarks": ("name", "table", "mode", "tasks", "repetitions"),
    "contestants": ("name", "run"),
    "less": ("methods", "benchmarks", "repetitions", "tasks", "past"),
}


@dataclass(frozen=True, slots=True)
class BenchmarkSpec:
    """A benchmark of a plan: a registered one, or the CSV file ``table`` under this name."""

    name: str
    table: str | None = None
    mode: Mode = "table"
    tasks: int | None = None
    repetitions: int | None = None

    def check(self) -> None:
        """Raise InputError if its data are not on this computer, without loading them."""
        if self.table is None:
            data_path(self.name)

    def open(self) -> Benchmark:
        """Load it; forests that are not stored yet are built when they are first needed."""
        if self.table is None:
            return load(self.name, jobs=0)
        return from_table(self.table, mode=self.mode, name=self.name, jobs=0)


SourceMethod: TypeAlias = Literal["gp", "gp+paper", "random"]


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """How past runs are created: the method, and for every task the number of evaluations and of runs."""

    method: SourceMethod = "gp"
    evaluations: int = 50
    repetitions: int = 1


@dataclass(frozen=True, slots=True)
class Reduction:
    """Limits for some methods on some benchmarks (empty: on all); None: no limit."""

    methods: tuple[str, ...]
    benchmarks: tuple[str, ...] = ()
    repetitions: int | None = None
    tasks: int | None = None
    past: int | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What all reductions leave to one method on one benchmark; None: no limit."""

    repetitions: int | None = None
    tasks: tuple[int, ...] = ()
    past: int | None = None

    def tuned(self, tasks: Sequence[str]) -> Sequence[str]:
        """Return the tasks that are tuned: each count is drawn from those that the count before it leaves."""
        for count in self.tasks:
            tasks = evenly_spaced(tasks, count)
        return tasks


@dataclass(frozen=True, slots=True)
class Plan:
    """An experiment; the head of the module describes the fields."""

    methods: tuple[str, ...]
    benchmarks: tuple[BenchmarkSpec, ...]
    past: SourceSettings
    repetitions: int = 1
    horizon: int = 50
    seed: int = 0
    weights: tuple[str, ...] = ()
    less: tuple[Reduction, ...] = ()
    contestants: tuple[ContestantSpec, ...] = ()  # those of the methods that are not in the catalog

    def contestant(self, name: str) -> ContestantSpec:
        """Return what a name among the methods means."""
        return next((spec for spec in self.contestants if spec.name == name), ContestantSpec(name))

    def run_keys(self, spec: BenchmarkSpec, tasks: Sequence[str]) -> Iterator[RunKey]:
        """Yield the runs on a benchmark with these tasks, all methods of one repetition after the other."""
        repetitions = self.repetitions if spec.repetitions is None else min(self.repetitions, spec.repetitions)
        for repetition in range(repetitions):
            for method in self.methods:
                limits = self.limits(method, spec.name)
                if limits.repetitions is None or repetition < limits.repetitions:
                    for task in limits.tuned(tasks):
                        yield RunKey(spec.name, method, task, repetition)

    def limits(self, method: str, benchmark: str) -> Limits:
        """Return the limits of a method on a benchmark; if several entries apply, all of them hold."""
        own = [entry for entry in self.less if method in entry.methods]
        entries = [entry for entry in own if not entry.benchmarks or benchmark in entry.benchmarks]
        return Limits(
            min((entry.repetitions for entry in entries if entry.repetitions is not None), default=None),
            tuple(entry.tasks for entry in entries if entry.tasks is not None),
            min((entry.past for entry in entries if entry.past is not None), default=None),
        )

    def settings(self) -> dict[str, Any]:
        """Return what every run depends on: results with other settings must not be mixed."""
        return {"horizon": self.horizon, "seed": self.seed, "past": list(astuple(self.past))}


def evenly_spaced(names: Sequence[str], count: int | None) -> tuple[str, ...]:
    """Return this many names, evenly spaced from the first to the last; all if there are not more."""
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
        return _parse_plan(content, path.parent)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _parse_plan(content: Mapping[str, Any], folder: Path) -> Plan:
    section = _PlanTable("the plan", content)
    if content.get("format") != FORMAT:
        raise InputError(f"expected format = {FORMAT}, got {content.get('format')!r}")
    methods = section.names("methods", low=1)
    if len(set(methods)) < len(methods):
        raise InputError(f"methods: expected different ones, got {list(methods)}")
    contestants = _parse_contestants(section, methods, folder)
    repetitions = section.count("repetitions", high=MAX_REPETITIONS) or 1
    horizon = section.count("horizon", high=MAX_EVALUATIONS) or 50
    past = _PlanTable("past", section.value("past", dict) or {})
    sources = SourceSettings(
        cast(SourceMethod, past.choice("method", get_args(SourceMethod))),
        past.count("evaluations", high=MAX_EVALUATIONS) or horizon,
        past.count("repetitions", high=MAX_REPETITIONS) or repetitions,
    )
    specs = tuple(_parse_benchmark(entry, folder, repetitions) for entry in section.sections("benchmarks"))
    names = [spec.name for spec in specs]
    if not names or len(set(names)) < len(names):
        raise InputError(f"expected [[benchmarks]] with different names, got {names}")
    seed = section.count("seed", low=0) or 0
    less = tuple(_parse_reduction(entry, methods, names) for entry in section.sections("less"))
    weights = section.names("weights")
    without = {spec.name for spec in contestants if spec.method() is None}
    if wrong := sorted(set(weights) - (set(methods) - without)):
        raise InputError(f"weights: expected methods of the plan that are recollect's own, got {wrong}")
    return Plan(methods, specs, sources, repetitions, horizon, seed, weights, less, contestants)


def _parse_contestants(section: _PlanTable, methods: Sequence[str], folder: Path) -> tuple[ContestantSpec, ...]:
    """Return those of the methods that are not in the catalog."""
    named: dict[str, str] = {}
    for entry in section.sections("contestants"):
        name, run = entry.value("name", str) or "", entry.value("run", str)
        if not re.fullmatch(r"\w[\w.-]{,99}", name) or not run or ":" not in run:
            raise InputError(
                "contestants: expected a name of letters, digits and . _ -, and run = 'optuna:...', 'module:name' or "
                f"'command: ...', got name = {name!r} and run = {run!r}"
            )
        if named.setdefault(name, run) != run or name in catalog.methods():
            raise InputError(f"contestants: expected names of their own, but {name!r} is taken")
    specs = (contestant_spec(named.get(name, name), folder, name) for name in methods)
    return tuple(spec for spec in specs if spec.kind != "method")


def _parse_benchmark(section: _PlanTable, folder: Path, repetitions: int) -> BenchmarkSpec:
    table, mode = section.value("table", str), section.choice("mode", ("table", "forest"))
    name = section.value("name", str) or Path(table or "").name.removesuffix(".gz").removesuffix(".csv")
    if not name:
        raise InputError("benchmarks: expected a name or a table")
    if not re.fullmatch(r"\w[\w.+-]{,99}", name):  # it becomes part of file names
        raise InputError(f"benchmarks: expected a name of at most 100 letters, digits and . _ + -, got {name!r}")
    if mode == "forest" and table is None:
        raise InputError(f"benchmarks: mode = 'forest' needs a table, and {name!r} has none")
    if table is None:
        find_entry(name)  # refuses unknown ones
    path = None if table is None else str(_table_path(table, folder))
    limits = section.count("tasks"), section.count("repetitions", high=repetitions)
    return BenchmarkSpec(name, path, cast("Mode", mode), *limits)


def _table_path(table: str, folder: Path) -> Path:
    """Return the CSV file beside the plan, or in the folder of data."""
    data = os.environ.get("RECOLLECT_DATA")
    paths = [folder / table, *([Path(data).expanduser() / table] if data else [])]
    if existing := [path for path in paths if path.exists()]:
        return existing[0].resolve()
    raise InputError(f"benchmarks: there is no table {table!r} in {' or '.join(str(p.parent) for p in paths)}")


def _parse_reduction(section: _PlanTable, methods: Sequence[str], benchmarks: Sequence[str]) -> Reduction:
    reduced, where = section.names("methods", low=1), section.names("benchmarks")
    unknown = [name for name in reduced if name not in methods] + [name for name in where if name not in benchmarks]
    if unknown:
        raise InputError(f"less: expected methods and benchmarks of the plan, got {unknown[0]!r}")
    limits = section.count("repetitions", low=0), section.count("tasks"), section.count("past")
    return Reduction(reduced, where, *limits)


@dataclass(frozen=True, slots=True)
class _PlanTable:
    """A table of the TOML file, read with checks; what is not given is None or empty."""

    name: str
    content: Mapping[str, Any]

    def __post_init__(self) -> None:
        for key in self.content:
            if key not in KEYS[self.name]:
                raise InputError(f"{self.name}: unknown key {key!r}; known are {', '.join(KEYS[self.name])}")

    def value(self, key: str, kind: type[Any]) -> Any:
        value = self.content.get(key)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise InputError(f"{self.name}: {key} must be of type {kind.__name__}, got {value!r}")
        return value

    def choice(self, key: str, choices: Sequence[str]) -> str:
        """Return one of the choices, the first by default."""
        value = self.value(key, str) or choices[0]
        if value not in choices:
            raise InputError(f"{self.name}: {key} must be {' or '.join(map(repr, choices))}, got {value!r}")
        return str(value)

    def count(self, key: str, *, low: int = 1, high: int | None = None) -> int | None:
        value: int | None = self.value(key, int)
        if value is not None and not low <= value <= (value if high is None else high):
            limit = f"at least {low}" if value < low else f"at most {high}"
            raise InputError(f"{self.name}: {key} must be {limit}, got {value}")
        return value

    def names(self, key: str, *, low: int = 0) -> tuple[str, ...]:
        names = self.value(key, list) or []
        if len(names) < low or not all(isinstance(name, str) for name in names):
            raise InputError(f"{self.name}: {key} must be a list of {low} or more names, got {names!r}")
        return tuple(names)

    def sections(self, key: str) -> list[_PlanTable]:
        """Return the tables of a list of tables."""
        entries = self.value(key, list) or []
        if not all(isinstance(entry, dict) for entry in entries):
            raise InputError(f"{self.name}: {key} must be a list of tables ([[{key}]]), got {entries!r}")
        return [_PlanTable(key, entry) for entry in entries]
