"""Run an experiment: execute all runs of a plan that have no result yet.

A folder holds the results, however the work ends (Ctrl-C, kill -9, a full disk):

    study.json        what the runs depend on (`Manifest`)
    past-NAME.jsonl   the runs that past runs are drawn from, one per line
    runs.csv          one line per run (`recollect.bench.experiment.results`)

The past runs of a benchmark are executed first, then the runs of its methods. A run of a method gets one past run of
every other task, drawn anew for each repetition and task; all methods get the same ones. The seed of a run, and with it
the initial design, depends on repetition and task, not on the method. Past runs of `gp` are also the runs of the method
`gp`, if they have the same length.

The manifest holds the settings of the plan that the folder was started with, what contestants from outside are, and
for every benchmark the tasks of past runs, a checksum of its CSV file, and how many past runs each method gets. Runs
that depend on something else must not be mixed with those in the folder; benchmarks, methods and repetitions may be
added.

Runs that fail, or whose process is killed, are tried once more (`run_with_retries`). A run waits if one of its past
runs is missing; all others are executed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from recollect._files import make_folder, write_atomically
from recollect.bench.experiment.append_file import append_lines, open_lines
from recollect.bench.experiment.executors import Executor, OnCompleted, run_with_retries
from recollect.bench.experiment.experiment_run import (
    CompletedRun,
    FailedRun,
    RunKey,
    RunSpec,
    SourceRun,
    open_benchmark,
)
from recollect.bench.experiment.plan import BenchmarkSpec, Plan, evenly_spaced
from recollect.bench.experiment.results import RESULTS_FILE, append_result, open_results
from recollect.errors import InputError, StorageError

MANIFEST_FORMAT = 1
MANIFEST_FILE = "study.json"
BENCHMARKS, TABLE, SOURCE_LIMIT, CONTESTANTS = "benchmarks", "table", "past runs of", "contestants"  # keys
SEED_STRIDE = 1000  # the seed of repetition r and task number i is SEED_STRIDE * r + i
RANDOM_SEARCH_FACTOR = 10  # random search makes this many times more evaluations, for Random (2x), (4x), (10x)

LabeledProgress = Callable[[str, int, int], None]
SourceKey = tuple[str, int]  # task and repetition of a run that past runs are drawn from


@dataclass(frozen=True, slots=True)
class ExperimentSummary:
    """What `run_experiment` did."""

    runs: int  # number of runs with a result
    new: int  # number of those that were completed now
    failed: tuple[FailedRun, ...]
    waiting: int = 0  # number of runs that wait for a past run that failed
    without_weights: int = 0  # number of runs that lack the weights that the plan asks for: they were completed before


@dataclass(slots=True, eq=False)
class _Experiment:
    """An experiment under way; ``jobs`` processes build forests."""

    plan: Plan
    folder: Path
    executor: Executor
    jobs: int | None
    manifest: Manifest
    progress: LabeledProgress
    completed: set[RunKey]
    new: int = 0
    failed: list[FailedRun] = field(default_factory=list)
    waiting: int = 0

    def store(self, run: CompletedRun) -> None:
        append_result(self.folder / RESULTS_FILE, run)
        self.completed.add(run.key)
        self.new += 1

    def execute(self, label: str, specs: Sequence[RunSpec], on_completed: OnCompleted) -> tuple[FailedRun, ...]:
        return run_with_retries(specs, self.executor, on_completed=on_completed, progress=partial(self.progress, label))

    def seed(self, repetition: int, task_number: int) -> int:
        return SEED_STRIDE * self.draw_seed(repetition) + task_number

    def draw_seed(self, repetition: int) -> int:
        """Return the number of a repetition under the plan's seed, with which past runs are drawn."""
        return SEED_STRIDE * self.plan.seed + repetition


def run_experiment(
    plan: Plan, folder: Path, *, executor: Executor, jobs: int | None = 1, progress: LabeledProgress = lambda *_: None
) -> ExperimentSummary:
    """Execute the runs of a plan that have no result yet, and store them in the folder.

    ``jobs`` processes of this computer build forests first (None: one per core). ``progress(label, done, total)`` has a
    label for every benchmark. InputError: data or programs are missing, or the folder holds runs with other settings.
    """
    for benchmark in plan.benchmarks:
        benchmark.check()
    for contestant in plan.contestants:
        contestant.check()
    make_folder(folder)
    with exclusive_access(folder):
        manifest = Manifest.open(folder, plan.settings())
        manifest.add_contestants({spec.name: spec.definition() for spec in plan.contestants})
        runs = open_results(folder / RESULTS_FILE)
        without_weights = sum(run.weights is None and run.key.method in plan.weights for run in runs)
        experiment = _Experiment(plan, folder, executor, jobs, manifest, progress, {run.key for run in runs})
        for spec in plan.benchmarks:
            _run_benchmark(experiment, spec)
        failed = tuple(experiment.failed)
        return ExperimentSummary(len(experiment.completed), experiment.new, failed, experiment.waiting, without_weights)


def draw_sources(
    available: Iterable[SourceKey], key: RunKey, *, draw_seed: int, limit: int | None
) -> tuple[SourceKey, ...]:
    """Draw one past run of every other task, or of ``limit`` other tasks; depends on the seed and the task only."""
    available = set(available)
    others = sorted({task for task, _ in available} - {key.task})
    if limit is not None and limit < len(others):
        drawn = np.random.default_rng([draw_seed, limit, *key.task.encode()]).choice(others, limit, replace=False)
        others = sorted(drawn.tolist())
    rng = np.random.default_rng([draw_seed, *key.task.encode()])
    repetitions = sorted({repetition for _, repetition in available})
    return tuple((other, int(rng.choice(repetitions))) for other in others)


def _run_benchmark(experiment: _Experiment, spec: BenchmarkSpec) -> None:
    plan, benchmark = experiment.plan, open_benchmark(spec)
    tasks = evenly_spaced(benchmark.tasks, spec.tasks)
    limits = {name: plan.limits(name, spec.name).past for name in plan.methods if plan.contestant(name).transfers()}
    experiment.manifest.add_benchmark(spec, tasks, limits)
    keys = [key for key in plan.run_keys(spec, tasks) if key not in experiment.completed]
    if not keys:
        return
    benchmark.prepare(tasks, jobs=experiment.jobs, progress=partial(experiment.progress, f"{spec.name}, forests"))
    numbers = {task: number for number, task in enumerate(sorted(benchmark.tasks))}
    source_keys = [(task, repetition) for repetition in range(plan.past.repetitions) for task in tasks]
    sources_are_gp_runs = plan.past.method == "gp" and plan.past.evaluations == plan.horizon
    sources: dict[SourceKey, SourceRun] = {}
    if any(key.method in limits or (sources_are_gp_runs and key.method == "gp") for key in keys):
        sources = _source_runs(experiment, spec, source_keys, numbers)
        if sources_are_gp_runs:
            for key in keys:
                if key.method == "gp" and (key.task, key.repetition) in sources:
                    experiment.store(sources[key.task, key.repetition].completed(benchmark, "gp"))
            attempted = {RunKey(spec.name, "gp", task, repetition) for task, repetition in source_keys}
            keys = [key for key in keys if key not in attempted]  # those that failed have been reported
    specs = []
    for key in keys:
        drawn: tuple[SourceKey, ...] = ()
        if key.method in limits:
            seed = experiment.draw_seed(key.repetition)
            drawn = draw_sources(source_keys, key, draw_seed=seed, limit=limits[key.method])
        if sources.keys() >= set(drawn):  # otherwise it waits for them
            seed, past = experiment.seed(key.repetition, numbers[key.task]), tuple(sources[source] for source in drawn)
            trials = plan.horizon * (RANDOM_SEARCH_FACTOR if key.method == "random" else 1)
            weights, contestant = key.method in plan.weights, plan.contestant(key.method)
            specs.append(RunSpec(key, spec, seed, plan.horizon, trials, past, weights, contestant))
    experiment.waiting += len(keys) - len(specs)
    experiment.failed += experiment.execute(spec.name, specs, experiment.store)


def _source_runs(
    experiment: _Experiment, spec: BenchmarkSpec, source_keys: Sequence[SourceKey], numbers: Mapping[str, int]
) -> dict[SourceKey, SourceRun]:
    """Return the runs that past runs are drawn from; those that are missing are executed."""
    settings, path = experiment.plan.past, experiment.folder / f"past-{spec.name}.jsonl"
    sources: dict[SourceKey, SourceRun] = {}
    for number, line in enumerate(open_lines(path).splitlines(), start=1):
        try:
            source = SourceRun.from_json(line)
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}") from error
        sources[source.task, source.repetition] = source
    specs = []
    for task, repetition in source_keys:
        if (task, repetition) not in sources:
            seed = experiment.seed(repetition, numbers[task])
            key = RunKey(spec.name, settings.method, task, repetition)
            specs.append(RunSpec(key, spec, seed, settings.evaluations, settings.evaluations))

    def store(run: CompletedRun) -> None:
        assert run.source is not None  # it was executed just now
        append_lines(path, run.source.to_json())
        sources[run.key.task, run.key.repetition] = run.source

    for failure in experiment.execute(f"{spec.name}, past", specs, store):
        experiment.failed.append(replace(failure, reason=f"(a past run, which others learn from)\n{failure.reason}"))
    return {key: sources[key] for key in source_keys if key in sources}


@dataclass(slots=True, eq=False)
class Manifest:
    """What the runs of a folder depend on."""

    path: Path
    content: dict[str, Any]

    @classmethod
    def open(cls, folder: Path, settings: Mapping[str, Any]) -> Manifest:
        """Create the manifest of a folder, or open one with the same settings; InputError for other settings."""
        path, expected = folder / MANIFEST_FILE, {"format": MANIFEST_FORMAT, **settings}
        if not path.exists():
            manifest = cls(path, expected)
            manifest._write()
            return manifest
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(content, dict) or not isinstance(content.setdefault(BENCHMARKS, {}), dict):
                raise TypeError("not an object")
        except (OSError, ValueError, TypeError) as error:
            raise InputError(f"{path}: expected the settings of an experiment: {error}") from error
        manifest = cls(path, content)
        for name, value in expected.items():
            manifest._compare(name, content.get(name), value)
        return manifest

    def add_benchmark(self, spec: BenchmarkSpec, tasks: Sequence[str], source_limits: Mapping[str, int | None]) -> None:
        """Add a benchmark and how many past runs its methods get; InputError if it is there with other settings."""
        entry = self.content.setdefault(BENCHMARKS, {}).setdefault(spec.name, {})
        expected: dict[str, Any] = {"tasks": list(tasks), "mode": spec.mode}
        if spec.table is not None:
            expected[TABLE] = hashlib.sha256(Path(spec.table).read_bytes()).hexdigest()
        for name, count in source_limits.items():
            expected[f"{SOURCE_LIMIT} {name}"] = "all" if count is None else count
        for name, value in expected.items():
            self._compare(f"{name} on {spec.name}", entry.setdefault(name, value), value)
        self._write()

    def add_contestants(self, definitions: Mapping[str, str]) -> None:
        """Add what the names of contestants from outside mean; InputError if one meant something else before."""
        entry = self.content.setdefault(CONTESTANTS, {}) if definitions else {}
        for name, definition in definitions.items():
            self._compare(name, entry.setdefault(name, definition), definition)
        self._write()

    def _compare(self, name: str, stored: object, expected: object) -> None:
        if stored == expected:
            return
        difference = f"{name} = {_shortened(stored)}, and the plan has {_shortened(expected)}"
        if name.startswith(TABLE):
            difference = f"another {name}, whose contents have changed"
        remedy = "choose another folder"
        if name == "past":
            remedy += ", or set method, evaluations and repetitions under [past] to those of the folder"
        raise InputError(f"{self.path.parent} holds runs with {difference}; they must not be mixed: {remedy}")

    def _write(self) -> None:
        content = (json.dumps(self.content, indent=1) + "\n").encode("utf-8")
        if not self.path.exists() or self.path.read_bytes() != content:
            write_atomically(self.path, content)


def _shortened(value: object) -> str:
    if isinstance(value, list) and len(value) > 3:
        return f"[{', '.join(map(repr, value[:3]))}, ...] ({len(value)})"
    return repr(value)


def exclusive_access(folder: Path) -> AbstractContextManager[object]:
    """Keep other processes out of a folder; the lock ends with the process, however that ends."""
    from filelock import FileLock, Timeout

    try:
        return FileLock(folder / ".lock").acquire(timeout=0)
    except Timeout as error:
        raise InputError(f"{folder}: another process is working on this experiment; wait until it ends") from error
    except OSError as error:
        raise StorageError(f"{folder}: nothing can be written here: {error.strerror or error}") from error
