"""The scaling study: fitting time by number of past runs, weighting time by resamples (paper, appendix on scaling).

Measured, one `Measurement` each, on tasks of a benchmark with n random observations, in seconds that the
processor worked, which other programs do not lengthen:

    once       x past runs are fitted before the new task begins: one by one (``rgpe-mean``; ``tstr-ei`` uses the same),
               or all together (``mtgp``)
    online     with x past runs fitted, the new task's n observations are: its model, the past runs' predictions, the
               weights; for ``mtgp`` one fit of all (x + 1) n observations that begins where the past runs' fit ended
    many       as online, for x in the thousands; only the weighted methods can do that
    resamples  weights of RGPE alone, from x resamples

Nothing of the new task is known before: its model is fitted from scratch, as in the paper. A tuning run that goes on
takes less, for every fit starts from the one before. The horizon is 2 n, at half of which past runs still take part.
No process but this one works. The size guard of ``mtgp`` (`recollect.transfer.multitask`) is off; its measurements
come last and get the time that is left. What was measured before is not measured again.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from recollect.bench.measurements import Kind, Measurement, MeasurementKey
from recollect.bench.problem import Benchmark
from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray
from recollect.numerics.threads import single_threaded
from recollect.optimizer.belief import Belief, believe
from recollect.optimizer.catalog import method
from recollect.optimizer.frame import Frame
from recollect.space.sampling import uniform
from recollect.surrogate.gp import GP
from recollect.surrogate.kernels import KernelShape
from recollect.surrogate.scaling import transform
from recollect.transfer.fitting import fit_sources
from recollect.transfer.multitask import MultiTask
from recollect.transfer.rgpe import rgpe_weights
from recollect.transfer.sources import FEWEST, SourceData, Sources

WEIGHTED = ("tstr-ei", "rgpe-mean")
ONE_BY_ONE, TOGETHER = "rgpe-mean", "mtgp"


@dataclass(frozen=True, slots=True)
class ScalingPlan:
    """What to measure: numbers of past runs (``few`` with ``mtgp``, ``many`` without), resamples, repetitions.

    No measurement is begun that would end after ``seconds_limit`` if one took as long as the longest before it.
    """

    few: tuple[int, ...] = tuple(range(5, 51, 5))
    many: tuple[int, ...] = (10, 100, 1000, 10_000)
    resamples: tuple[int, ...] = (100, 1000, 10_000, 100_000)
    repetitions: int = 5
    observations: int = 50
    seconds_limit: float = 600.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("few", "many", "resamples"):
            sizes = getattr(self, name)
            if any(size < 1 for size in sizes) or list(sizes) != sorted(set(sizes)):
                raise InputError(f"ScalingPlan: expected {name} to be growing numbers from 1 on, got {sizes}")
        if not self.few:
            raise InputError("ScalingPlan: expected at least one number of past runs in few, got none")
        if self.repetitions < 1 or self.observations < FEWEST:
            came = f"{self.repetitions} and {self.observations}"
            raise InputError(f"ScalingPlan: expected repetitions >= 1 and observations >= {FEWEST}, got {came}")
        if not self.seconds_limit > 0:
            raise InputError(f"ScalingPlan: expected seconds_limit > 0, got {self.seconds_limit}")

    def keys(self) -> list[MeasurementKey]:
        """Return what is measured if time allows, in order."""
        together = [key for x in self.few for repetition in range(self.repetitions) for key in _together(x, repetition)]
        return [key for repetition in range(self.repetitions) for key in self.weighted(repetition)] + together

    def weighted(self, repetition: int) -> list[MeasurementKey]:
        """Return what concerns TST-R and RGPE in a repetition."""
        found: list[tuple[Kind, str, int]] = []
        for x in self.few:
            found += [("once", ONE_BY_ONE, x), *(("online", name, x) for name in WEIGHTED)]
        found += [("resamples", ONE_BY_ONE, x) for x in self.resamples]
        found += [("many", name, x) for x in self.many for name in WEIGHTED]
        return [MeasurementKey(*one, repetition) for one in found]


def measure_scaling(
    benchmark: Benchmark, plan: ScalingPlan, done: Collection[MeasurementKey] = ()
) -> Iterator[Measurement]:
    """Measure what is not done yet, and give each measurement as soon as it is known."""
    before = time.monotonic()
    deadline, longest = before + plan.seconds_limit, 0.0
    for row in _all_rows(benchmark, plan, set(done)):
        yield row
        now = time.monotonic()
        before, longest = now, max(longest, now - before)
        if now + longest > deadline:
            return


def _all_rows(benchmark: Benchmark, plan: ScalingPlan, done: set[MeasurementKey]) -> Iterator[Measurement]:
    if done.issuperset(plan.keys()):
        return
    streams = np.random.default_rng(plan.seed).spawn(plan.repetitions)
    trials = [_Trial(benchmark, plan, repetition, rng) for repetition, rng in enumerate(streams)]
    trials[0].warm_up()
    for trial in trials:
        if not done.issuperset(plan.weighted(trial.repetition)):
            yield from (row for row in trial.weighted() if row.key not in done)
    for count in plan.few:
        for trial in trials:
            if not done.issuperset(_together(count, trial.repetition)):
                yield from (row for row in trial.together(count) if row.key not in done)


def _together(x: int, repetition: int) -> tuple[MeasurementKey, MeasurementKey]:
    """What concerns the multi-task process with so many past runs in a repetition."""
    return MeasurementKey("once", TOGETHER, x, repetition), MeasurementKey("online", TOGETHER, x, repetition)


class _Trial:
    """One repetition: a new task, past runs on others, and what has been measured on them."""

    def __init__(self, benchmark: Benchmark, plan: ScalingPlan, repetition: int, rng: np.random.Generator) -> None:
        self.plan, self.repetition, self.rng = plan, repetition, rng
        self.space = benchmark.space
        self.shape = KernelShape(np.asarray(self.space.categorical), self.space.conditional)
        self.observed = _Observer(benchmark, plan.observations)
        order = [benchmark.tasks[i] for i in rng.permutation(len(benchmark.tasks))]
        self.target, self.others = order[0], order[1:] or order
        self.X, self.y = self.observed.draw(self.target, rng)
        self.past = [self.past_run(number) for number in range(plan.few[-1])]

    def past_run(self, number: int) -> SourceData:
        """A run with fresh observations; the tasks take turns."""
        task = self.others[number % len(self.others)]
        X, y = self.observed.draw(task, self.rng)
        return SourceData(task, X, transform(y, method(ONE_BY_ONE).scaling))

    def warm_up(self) -> None:
        """Do everything once, so that no measurement includes the loading of a library."""
        rows = self.past[:1]
        sources = fit_sources(rows, shape=self.shape, cache=None, jobs=1)
        for name in WEIGHTED:
            self.believe_with(name, sources)
        self.learn(rows)

    def weighted(self) -> Iterator[Measurement]:
        """All that concerns TST-R and RGPE."""
        theta = np.empty((0, self.shape.d + 2))
        seconds = 0.0
        for count in self.plan.few:
            new = self.past[len(theta) : count]
            with _watched() as watch:
                fitted = fit_sources(new, shape=self.shape, cache=None, jobs=1)
            seconds += watch.seconds
            theta = np.vstack((theta, fitted.theta))
            yield self.row("once", ONE_BY_ONE, count, seconds)
            yield from self.online("online", Sources(self.past[:count], shape=self.shape, theta=theta))
        yield from self.weights(Sources(self.past, shape=self.shape, theta=theta))
        for count in self.plan.many:
            # A run beyond those that were fitted has the hyperparameters of one of them; that changes no time.
            runs = [*self.past[:count], *(self.past_run(i) for i in range(len(self.past), count))]
            copied = np.resize(theta, (count, theta.shape[1]))
            yield from self.online("many", Sources(runs, shape=self.shape, theta=copied))

    def online(self, kind: Kind, sources: Sources) -> Iterator[Measurement]:
        """The weighted methods with these past runs."""
        for name in WEIGHTED:
            with _watched() as watch:
                self.believe_with(name, sources)
            yield self.row(kind, name, len(sources), watch.seconds)

    def weights(self, sources: Sources) -> Iterator[Measurement]:
        """RGPE's weights alone."""
        fitted = self.believe_with(ONE_BY_ONE, sources)
        target: GP = fitted.fits[method(ONE_BY_ONE).scaling]
        loo, _ = target.loo()
        for samples in self.plan.resamples:
            with _watched() as watch:
                rgpe_weights(fitted.F, loo, target.y, samples=samples, horizon=self.horizon, rng=self.stream())
            yield self.row("resamples", ONE_BY_ONE, samples, watch.seconds)

    def together(self, count: int) -> Iterator[Measurement]:
        """The multi-task process."""
        with _watched() as watch:
            frame = self.learn(self.past[:count])
        yield self.row("once", TOGETHER, count, watch.seconds)
        with _watched() as watch:
            self.believe_in(TOGETHER, frame)
        yield self.row("online", TOGETHER, count, watch.seconds)

    def learn(self, past: list[SourceData]) -> Frame:
        """Fit past runs together, however many they are."""
        rows = sum(run.y.size for run in past)
        learned = MultiTask(most=rows).learn(past, shape=self.shape, sizes=self.space.sizes, rng=self.stream())
        return Frame(self.space, None, None, learned, self.horizon)

    def believe_with(self, name: str, sources: Sources) -> Belief:
        """Fit and weigh with models of past runs."""
        weighting = method(name).weighting
        weigher = None if weighting is None else weighting.prepare(sources, self.stream())
        return self.believe_in(name, Frame(self.space, sources, weigher, None, self.horizon))

    def believe_in(self, name: str, frame: Frame) -> Belief:
        """What the optimizer does between the last value it is told and the search for the next configuration."""
        return believe(method(name), frame, self.X, self.y, before=None, rng=self.stream())

    @property
    def horizon(self) -> int:
        """Evaluations planned."""
        return 2 * self.plan.observations

    def stream(self) -> np.random.Generator:
        """A fresh stream, the same for all methods and sizes."""
        return np.random.default_rng((self.plan.seed, self.repetition))

    def row(self, kind: Kind, name: str, x: int, seconds: float) -> Measurement:
        """A measurement of this repetition."""
        return Measurement(MeasurementKey(kind, name, x, self.repetition), seconds)


class _Observer:
    """Random observations of tasks; what a table lists is looked up once."""

    def __init__(self, benchmark: Benchmark, count: int) -> None:
        self.benchmark, self.count = benchmark, count
        self.tables: dict[str, tuple[FloatArray, FloatArray]] = {}

    def draw(self, name: str, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Points and errors: different listed ones where the task has a list, else uniform."""
        task = self.benchmark.task(name)
        if task.candidates is None:
            X = uniform(self.benchmark.space, self.count, rng)
            return X, task.evaluate_many(X)
        if name not in self.tables:
            X = self.benchmark.space.encode(task.candidates)
            self.tables[name] = X, task.evaluate_many(X)
        X, y = self.tables[name]
        if len(X) < self.count:
            raise InputError(f"task {name!r}: expected at least {self.count} configurations, it has {len(X)}")
        rows = rng.permutation(len(X))[: self.count]
        return X[rows], y[rows]


@dataclass(slots=True)
class _Watch:
    seconds: float = 0.0


@contextmanager
def _watched() -> Iterator[_Watch]:
    """Count the seconds of what is done inside, with one BLAS thread as in the optimizer."""
    watch = _Watch()
    with single_threaded():
        begin = time.process_time()
        yield watch
        watch.seconds = time.process_time() - begin
