"""Conduct an experiment: make all runs of a plan that are not there yet.

A folder holds what was made, whatever ends the work (Ctrl-C, kill -9, a full disk):

    study.json        what all runs depend on; another plan may add to them, but not change it
    past-NAME.jsonl   the runs that past runs are drawn from, one line each
    runs.csv          one line a run (`recollect.bench.results`)

First the past runs of a benchmark are made, then its cells. For a cell one past run of every other task is drawn, anew
for each repetition and task; methods get the same ones. The seed of a run depends on repetition and task, not on the
method, and so does the initial design. Where past runs are made by `gp` they are the runs of the method `gp`.

A run that crashes is tried once more at the end. Runs whose process was killed are tried as long as that helps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from recollect.bench.cell import Crashed, Job, Kept, Made, kept_from, opened, run_job
from recollect.bench.engines import Engine
from recollect.bench.lines import append_lines, open_lines
from recollect.bench.plan import Plan, Spec, evenly
from recollect.bench.results import RUNS, Finished, Key, append_run, open_runs
from recollect.errors import InputError
from recollect.files import put

FORMAT = 1
STUDY = "study.json"
TRIES = 2
ROUNDS = 1000  # seeds of repetition r and task number i: ROUNDS * r + i
MULTIPLE = 10  # random search makes so many times more evaluations, for Random (2x), (4x), (10x); spec 3.3

Progress = Callable[[str, int, int], None]
Bases = Mapping[tuple[str, int], Kept]


@dataclass(frozen=True, slots=True)
class Tally:
    """How many runs there are now, how many of them are new, and those that could not be made."""

    runs: int
    new: int
    crashed: tuple[Crashed, ...]


@dataclass(slots=True, eq=False)
class _Desk:
    """Where an experiment is conducted."""

    plan: Plan
    folder: Path
    engine: Engine
    progress: Progress
    done: set[Key]
    new: int = 0
    crashed: list[Crashed] = field(default_factory=list)

    def keep(self, run: Finished) -> None:
        append_run(self.folder / RUNS, run)
        self.done.add(run.key)
        self.new += 1


def conduct(plan: Plan, folder: Path, *, engine: Engine, progress: Progress | None = None) -> Tally:
    """Make what is missing of a plan's runs; ``progress(what, done, total)`` counts them, for each benchmark anew."""
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        _check_study(folder / STUDY, plan)
        told = progress or (lambda _what, _done, _total: None)
        desk = _Desk(plan, folder, engine, told, {run.key for run in open_runs(folder / RUNS)})
        for spec in plan.benchmarks:
            _conduct_benchmark(desk, spec)
        return Tally(len(desk.done), desk.new, tuple(desk.crashed))


def draw_past(bases: Bases, key: Key, *, round_: int, few: int | None) -> tuple[Kept, ...]:
    """Draw one past run of every other task, anew for every round (repetition) and task; of ``few`` tasks if given."""
    others = sorted({task for task, _ in bases} - {key.task})
    if few is not None and few < len(others):
        drawn = np.random.default_rng([round_, few, *key.task.encode()]).choice(others, few, replace=False)
        others = sorted(drawn.tolist())
    rng = np.random.default_rng([round_, *key.task.encode()])
    repetitions = sorted({repetition for _, repetition in bases})
    return tuple(bases[other, int(rng.choice(repetitions))] for other in others)


def _round(plan: Plan, repetition: int) -> int:
    """Return the number of a round: a repetition under the plan's seed."""
    return ROUNDS * plan.seed + repetition


def _seed(plan: Plan, repetition: int, number: int) -> int:
    """Return the seed of a run: a repetition on the task with that number."""
    return ROUNDS * _round(plan, repetition) + number


def _conduct_benchmark(desk: _Desk, spec: Spec) -> None:
    from recollect.optimizer.catalog import method

    plan, benchmark = desk.plan, opened(spec)
    tasks = evenly(benchmark.tasks, spec.tasks)
    numbers = {task: number for number, task in enumerate(sorted(benchmark.tasks))}
    cells = [key for key in plan.cells(spec, tasks) if key not in desk.done]
    learning = any(method(key.method).transfers for key in cells)
    same = plan.past.method == "gp" and plan.past.evaluations == plan.horizon
    bases: dict[tuple[str, int], Kept] = {}
    if learning or (same and any(key.method == "gp" for key in cells)):
        bases = _past_runs(desk, spec, tasks, numbers)
    if same:
        for key in [key for key in cells if key.method == "gp" and (key.task, key.repetition) in bases]:
            desk.keep(bases[key.task, key.repetition].finished(benchmark, "gp"))
    if learning and len(bases) < len(tasks) * plan.past.repetitions:
        return  # what is missing has been reported as crashed

    def job(key: Key) -> Job:
        round_ = _round(plan, key.repetition)
        few = plan.limits(key.method, spec.name).past
        return Job(
            key,
            spec,
            _seed(plan, key.repetition, numbers[key.task]),
            plan.horizon,
            plan.horizon * (MULTIPLE if key.method == "random" else 1),
            draw_past(bases, key, round_=round_, few=few) if method(key.method).transfers else (),
            key.method in plan.weights,
        )

    missing = [job(key) for key in cells if key not in desk.done]
    _make(desk, spec.name, missing, keep=lambda made: desk.keep(made.finished))


def _past_runs(
    desk: _Desk, spec: Spec, tasks: Sequence[str], numbers: Mapping[str, int]
) -> dict[tuple[str, int], Kept]:
    """Return the runs that past runs are drawn from, by task and repetition; those that are missing are made."""
    source, path = desk.plan.past, desk.folder / f"past-{spec.name}.jsonl"
    bases: dict[tuple[str, int], Kept] = {}
    for number, line in enumerate(open_lines(path).splitlines(), start=1):
        try:
            kept = kept_from(line)
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}") from error
        bases[kept.task, kept.repetition] = kept
    jobs = []
    for repetition in range(source.repetitions):
        for task in tasks:
            if (task, repetition) not in bases:
                seed = _seed(desk.plan, repetition, numbers[task])
                key = Key(spec.name, source.method, task, repetition)
                jobs.append(Job(key, spec, seed, source.evaluations, source.evaluations))

    def keep(made: Made) -> None:
        append_lines(path, made.kept.line())
        bases[made.kept.task, made.kept.repetition] = made.kept

    _make(desk, f"{spec.name}, past", jobs, keep=keep)
    wanted = {(task, repetition) for task in tasks for repetition in range(source.repetitions)}
    return {key: kept for key, kept in bases.items() if key in wanted}


def _make(desk: _Desk, what: str, jobs: Sequence[Job], *, keep: Callable[[Made], None]) -> None:
    """Make runs and keep each as it comes; what crashes is tried again at the end, what is lost as long as it helps."""
    left = {job.key: job for job in jobs}
    tries = dict.fromkeys(left, 0)
    reasons: dict[Key, Crashed] = {}
    while left:
        before, todo = len(left), [job for key, job in left.items() if tries[key] < TRIES]
        for answer in desk.engine.answers(run_job, todo):
            if isinstance(answer, Crashed):
                tries[answer.key] += 1
                reasons[answer.key] = answer
            else:
                keep(answer)
                del left[answer.finished.key]
            desk.progress(what, len(jobs) - len(left), len(jobs))
        again = [key for key in left if tries[key] < TRIES]
        if not again or (len(left) == before and not any(key in reasons for key in again)):
            break
    lost = "the process that made it ended without an answer"
    desk.crashed += [reasons.get(key, Crashed(key, lost)) for key in left]


def _check_study(path: Path, plan: Plan) -> None:
    """Begin a study, or refuse to mix runs that were made with other settings."""
    wanted = {"format": FORMAT, **plan.settings()}
    if not path.exists():
        put(path, (json.dumps(wanted, indent=1) + "\n").encode("utf-8"))
        return
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: expected the settings of a study: {error}") from error
    for key, value in wanted.items():
        if found.get(key) != value:
            raise InputError(
                f"{path.parent} holds runs with {key} = {found.get(key)!r}, and the plan says {value!r}; "
                "they must not be mixed: name another folder"
            )


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep a second process out of a folder; the lock ends with the process, however that ends."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        yield
        return
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(f"{folder}: another process is working on this study") from error
        yield
