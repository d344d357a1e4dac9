"""Conduct an experiment: make all runs of a plan that are not there yet.

A folder holds what was made, whatever ends the work (Ctrl-C, kill -9, a full disk):

    study.json        what the runs depend on; another plan may add to them, but not change it
    past-NAME.jsonl   the runs that past runs are drawn from, one line each
    runs.csv          one line a run (`recollect.bench.results`)

First the past runs of a benchmark are made, then its cells. For a cell one past run of every other task is drawn, anew
for each repetition and task; methods get the same ones. The seed of a run depends on repetition and task, not on the
method, and so does the initial design. Where past runs are made by `gp` they are the runs of the method `gp`.

What becomes of runs that crash and of killed processes: `recollect.bench.making`. Without one of its past runs a cell
waits; all others are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from recollect.bench.cell import Crashed, Job, Kept, Made, kept_from, opened
from recollect.bench.engines import Engine
from recollect.bench.folder import Ledger, alone
from recollect.bench.lines import append_lines, open_lines
from recollect.bench.making import make_all
from recollect.bench.plan import Plan, Spec, evenly
from recollect.bench.results import RUNS, Finished, Key, append_run, open_runs
from recollect.errors import InputError
from recollect.files import make_folder

ROUNDS = 1000  # seeds of repetition r and task number i: ROUNDS * r + i
MULTIPLE = 10  # random search makes so many times more evaluations, for Random (2x), (4x), (10x)

Progress = Callable[[str, int, int], None]
Base = tuple[str, int]
"""A run that past runs are drawn from: task and repetition."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How many runs there are now, how many of them are new, those that crashed, and how many wait for a past run.

    unweighed: how many are without the weights that the plan asks for, having been made before it did.
    """

    runs: int
    new: int
    crashed: tuple[Crashed, ...]
    waiting: int = 0
    unweighed: int = 0


@dataclass(slots=True, eq=False)
class _Desk:
    """Where an experiment is conducted."""

    plan: Plan
    folder: Path
    engine: Engine
    jobs: int | None
    ledger: Ledger
    progress: Progress
    done: set[Key]
    new: int = 0
    crashed: list[Crashed] = field(default_factory=list)
    waiting: int = 0

    def keep(self, run: Finished) -> None:
        append_run(self.folder / RUNS, run)
        self.done.add(run.key)
        self.new += 1

    def make(self, what: str, jobs: Sequence[Job], keep: Callable[[Made], None]) -> tuple[Crashed, ...]:
        """Make runs, keep each as it comes, and return those that crashed."""
        return make_all(jobs, self.engine, keep=keep, tell=lambda done, total: self.progress(what, done, total))


def conduct(
    plan: Plan, folder: Path, *, engine: Engine, jobs: int | None = 1, progress: Progress | None = None
) -> Tally:
    """Make what is missing of a plan's runs; ``progress(what, done, total)`` counts them, for each benchmark anew.

    jobs: processes of this computer that build forests before, None: one a core.
    """
    for spec in plan.benchmarks:
        spec.check()
    make_folder(folder)
    with alone(folder):
        ledger = Ledger.open(folder, plan.settings())
        told = progress or (lambda _what, _done, _total: None)
        before = open_runs(folder / RUNS)
        unweighed = sum(run.weights is None and run.key.method in plan.weights for run in before)
        desk = _Desk(plan, folder, engine, jobs, ledger, told, {run.key for run in before})
        for spec in plan.benchmarks:
            _conduct_benchmark(desk, spec)
        return Tally(len(desk.done), desk.new, tuple(desk.crashed), desk.waiting, unweighed)


def draw_past(bases: Iterable[Base], key: Key, *, round_: int, few: int | None) -> tuple[Base, ...]:
    """Draw one past run of every other task, anew for every round (repetition) and task; of ``few`` tasks if given."""
    bases = set(bases)
    others = sorted({task for task, _ in bases} - {key.task})
    if few is not None and few < len(others):
        drawn = np.random.default_rng([round_, few, *key.task.encode()]).choice(others, few, replace=False)
        others = sorted(drawn.tolist())
    rng = np.random.default_rng([round_, *key.task.encode()])
    repetitions = sorted({repetition for _, repetition in bases})
    return tuple((other, int(rng.choice(repetitions))) for other in others)


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
    desk.ledger.enter(spec, tasks, _few(plan, spec))
    numbers = {task: number for number, task in enumerate(sorted(benchmark.tasks))}
    cells = [key for key in plan.cells(spec, tasks) if key not in desk.done]
    learning = any(method(key.method).transfers for key in cells)
    same = plan.past.method == "gp" and plan.past.evaluations == plan.horizon
    wanted = [(task, repetition) for repetition in range(plan.past.repetitions) for task in tasks]
    asked = learning or (same and any(key.method == "gp" for key in cells))
    if cells:
        benchmark.prepare(tasks, jobs=desk.jobs, progress=partial(desk.progress, f"{spec.name}, forests"))
    bases = _past_runs(desk, spec, wanted, numbers) if asked else {}
    if same and asked:
        for key in [key for key in cells if key.method == "gp" and (key.task, key.repetition) in bases]:
            desk.keep(bases[key.task, key.repetition].finished(benchmark, "gp"))
        tried = {Key(spec.name, "gp", task, repetition) for task, repetition in wanted}
        cells = [key for key in cells if key not in tried]  # those that crashed have been reported

    drawn = {key: _drawn(plan, spec, key, wanted) for key in cells}
    ready = [key for key in cells if bases.keys() >= set(drawn[key])]
    desk.waiting += len(cells) - len(ready)
    jobs = [
        Job(
            key,
            spec,
            _seed(plan, key.repetition, numbers[key.task]),
            plan.horizon,
            plan.horizon * (MULTIPLE if key.method == "random" else 1),
            tuple(bases[base] for base in drawn[key]),
            key.method in plan.weights,
        )
        for key in ready
    ]
    desk.crashed += desk.make(spec.name, jobs, lambda made: desk.keep(made.finished))


def _drawn(plan: Plan, spec: Spec, key: Key, bases: Sequence[Base]) -> tuple[Base, ...]:
    """Draw the past runs of a cell; none for a method that does not learn from them."""
    from recollect.optimizer.catalog import method

    if not method(key.method).transfers:
        return ()
    few = plan.limits(key.method, spec.name).past
    return draw_past(bases, key, round_=_round(plan, key.repetition), few=few)


def _few(plan: Plan, spec: Spec) -> dict[str, int | None]:
    """How many past runs each method gets that learns from them, None: all."""
    from recollect.optimizer.catalog import method

    return {name: plan.limits(name, spec.name).past for name in plan.methods if method(name).transfers}


def _past_runs(desk: _Desk, spec: Spec, wanted: Sequence[Base], numbers: Mapping[str, int]) -> dict[Base, Kept]:
    """Return the runs that past runs are drawn from; those that are missing are made."""
    source, path = desk.plan.past, desk.folder / f"past-{spec.name}.jsonl"
    bases: dict[Base, Kept] = {}
    for number, line in enumerate(open_lines(path).splitlines(), start=1):
        try:
            kept = kept_from(line)
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}") from error
        bases[kept.task, kept.repetition] = kept
    jobs = []
    for task, repetition in wanted:
        if (task, repetition) not in bases:
            seed = _seed(desk.plan, repetition, numbers[task])
            key = Key(spec.name, source.method, task, repetition)
            jobs.append(Job(key, spec, seed, source.evaluations, source.evaluations))

    def keep(made: Made) -> None:
        append_lines(path, made.kept.line())
        bases[made.kept.task, made.kept.repetition] = made.kept

    for crash in desk.make(f"{spec.name}, past", jobs, keep):
        desk.crashed.append(replace(crash, reason=f"(a past run, which others learn from)\n{crash.reason}"))
    return {base: bases[base] for base in wanted if base in bases}
