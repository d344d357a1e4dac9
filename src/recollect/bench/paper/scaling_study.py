"""The scaling study: fitting time by number of past runs, weighting time by resamples (paper, appendix on scaling).

Tasks of a benchmark get n random observations each. Every `Measurement` is in seconds of processor time, which other
programs do not lengthen:

    once       fit x past runs before the new task begins: one by one (``rgpe-mean``; ``tstr-ei`` uses the same fits),
               or all together (``mtgp``)
    online     with x past runs fitted, fit the new task's n observations: its model, the past runs' predictions, the
               weights; for ``mtgp`` one fit of all (x + 1) n observations that starts from the fit of the past runs
    many       as online, for thousands of past runs; only the weighted methods can do that
    resamples  the weights of RGPE alone, from x resamples

The new task's model is fitted from scratch, as in the paper. During a tuning run it takes less time, since every fit
starts from the one before. The horizon is 2 n, so past runs still take part. Only this process works. The size limit of
``mtgp`` (`transfer.joint`) is off; its measurements come last and get the remaining time.

Measurements are appended to a CSV file as they finish, so a study that was stopped can be resumed:

    format,benchmark,observations,kind,method,x,repetition,seconds,version
    1,adaboost-grid,50,online,rgpe-mean,25,0,0.0363,0.3.0

In the figure, lines are means over repetitions, dots are single measurements. Both axes of its last two panels are
logarithmic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar, cast, get_args

import numpy as np

from recollect import __version__
from recollect.bench.analysis import figure_style as style
from recollect.bench.analysis.figure_data import LineStyle
from recollect.bench.benchmark import Benchmark
from recollect.bench.experiment.append_file import CsvRecords
from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray
from recollect.numerics.linalg import single_threaded
from recollect.optimizer.catalog import method
from recollect.optimizer.model import FittedModel, TransferContext, fit_model
from recollect.runs.usability import MIN_TRIALS
from recollect.space.sampling import uniform
from recollect.surrogate.gp import GP
from recollect.surrogate.scaling import transform
from recollect.transfer.joint import MultiTaskModel
from recollect.transfer.source_fitting import fit_sources
from recollect.transfer.sources import SourceData, Sources
from recollect.transfer.weighting.ranking_weights import rgpe_weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MeasurementKind = Literal["once", "online", "many", "resamples"]
WEIGHTED_METHODS = ("tstr-ei", "rgpe-mean")
SEPARATE_FITS, JOINT_FIT = "rgpe-mean", "mtgp"
FORMAT = 1
FIELDS = ("format", "benchmark", "observations", "kind", "method", "x", "repetition", "seconds", "version")
_TST, _RGPE = LineStyle("green", 3), LineStyle("blue")
LINES: dict[tuple[MeasurementKind, str], tuple[str, LineStyle]] = {
    ("online", "tstr-ei"): ("TST-R", _TST),
    ("online", "rgpe-mean"): ("RGPE", _RGPE),
    ("online", "mtgp"): ("multi-task GP", LineStyle("vermillion", 1)),
    ("once", "rgpe-mean"): ("past runs, one by one", LineStyle("blue", 2, 0.9)),
    ("once", "mtgp"): ("past runs, together", LineStyle("vermillion", 2, 0.9)),
    ("many", "tstr-ei"): ("TST-R", _TST),
    ("many", "rgpe-mean"): ("RGPE", _RGPE),
    ("resamples", "rgpe-mean"): ("RGPE", _RGPE),
}
PANELS: tuple[tuple[str, str, tuple[MeasurementKind, ...]], ...] = (
    ("fitting with few past runs", "past runs", ("online", "once")),
    ("fitting with many past runs", "past runs", ("many",)),
    ("weights of RGPE alone", "resamples", ("resamples",)),
)
T = TypeVar("T")


class MeasurementKey(NamedTuple):
    """What is measured; x: number of past runs or resamples."""

    kind: MeasurementKind
    method: str
    x: int
    repetition: int


class Measurement(NamedTuple):
    """How many seconds of one core something took."""

    key: MeasurementKey
    seconds: float


@dataclass(frozen=True, slots=True)
class MeasurementFile:
    """A file of measurements on one benchmark with this many observations per task."""

    path: Path
    benchmark: str
    observations: int

    def open(self) -> list[Measurement]:
        """Return the measurements; the file is created if there is none, and a cut last line is dropped."""
        return self._records().open(self.path)

    def append(self, measurements: Iterable[Measurement]) -> list[Measurement]:
        """Write measurements as they finish, and return them."""
        written = []
        for measurement in measurements:
            self._records().append(self.path, measurement)
            written.append(measurement)
        return written

    def _records(self) -> CsvRecords[Measurement]:
        return CsvRecords(FIELDS, self._to_cells, self._from_cells)

    def _to_cells(self, one: Measurement) -> list[object]:
        return [FORMAT, self.benchmark, self.observations, *one.key, f"{one.seconds:.4g}", __version__]

    def _from_cells(self, cells: Sequence[str]) -> Measurement:
        form, benchmark, observations, kind, name, x, repetition, seconds, _ = cells
        if form != str(FORMAT) or kind not in get_args(MeasurementKind):
            raise ValueError(f"expected a measurement of format {FORMAT}, got {','.join(cells)[:80]!r}")
        if (benchmark, observations) != (self.benchmark, str(self.observations)):
            expected = f"{self.benchmark} with {self.observations} observations"
            raise ValueError(f"expected {expected}, got {benchmark} with {observations}; name another folder")
        key = MeasurementKey(cast("MeasurementKind", kind), name, int(x), int(repetition))
        return Measurement(key, float(seconds))


@dataclass(frozen=True, slots=True)
class ScalingPlan:
    """What to measure: numbers of past runs (``few`` with ``mtgp``, ``many`` without), resamples, repetitions.

    No measurement starts that would end after ``seconds_limit`` if it took as long as the longest one before it.
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
                raise InputError(f"ScalingPlan: expected {name} to be increasing numbers from 1 on, got {sizes}")
        if not self.few:
            raise InputError("ScalingPlan: expected at least one number of past runs in few, got none")
        if self.repetitions < 1 or self.observations < MIN_TRIALS:
            got = f"{self.repetitions} and {self.observations}"
            raise InputError(f"ScalingPlan: expected repetitions >= 1 and observations >= {MIN_TRIALS}, got {got}")
        if not self.seconds_limit > 0:
            raise InputError(f"ScalingPlan: expected seconds_limit > 0, got {self.seconds_limit}")

    def keys(self) -> list[MeasurementKey]:
        """Return what is measured if time allows, in order."""
        joint = [key for x in self.few for repetition in range(self.repetitions) for key in _joint_keys(x, repetition)]
        return [key for repetition in range(self.repetitions) for key in self.weighted_keys(repetition)] + joint

    def weighted_keys(self, repetition: int) -> list[MeasurementKey]:
        """Return what is measured of TST-R and RGPE in a repetition."""
        keys: list[tuple[MeasurementKind, str, int]] = []
        for x in self.few:
            keys += [("once", SEPARATE_FITS, x), *(("online", name, x) for name in WEIGHTED_METHODS)]
        keys += [("resamples", SEPARATE_FITS, x) for x in self.resamples]
        keys += [("many", name, x) for x in self.many for name in WEIGHTED_METHODS]
        return [MeasurementKey(*key, repetition) for key in keys]


def measure_scaling(
    benchmark: Benchmark, plan: ScalingPlan, done: Collection[MeasurementKey] = ()
) -> Iterator[Measurement]:
    """Measure what is not done yet, and yield each measurement as soon as it is finished."""
    before = time.monotonic()
    deadline, longest = before + plan.seconds_limit, 0.0
    for measurement in _all_measurements(benchmark, plan, set(done)):
        yield measurement
        now = time.monotonic()
        before, longest = now, max(longest, now - before)
        if now + longest > deadline:
            return


def _all_measurements(benchmark: Benchmark, plan: ScalingPlan, done: set[MeasurementKey]) -> Iterator[Measurement]:
    if done.issuperset(plan.keys()):
        return
    streams = np.random.default_rng(plan.seed).spawn(plan.repetitions)
    repetitions = [_Repetition(benchmark, plan, number, rng) for number, rng in enumerate(streams)]
    repetitions[0].warm_up()
    for repetition in repetitions:
        if not done.issuperset(plan.weighted_keys(repetition.number)):
            yield from (one for one in repetition.weighted() if one.key not in done)
    for count in plan.few:
        for repetition in repetitions:
            if not done.issuperset(_joint_keys(count, repetition.number)):
                yield from (one for one in repetition.joint(count) if one.key not in done)


def _joint_keys(x: int, repetition: int) -> tuple[MeasurementKey, MeasurementKey]:
    """Return what is measured of the multi-task process with this many past runs in a repetition."""
    return MeasurementKey("once", JOINT_FIT, x, repetition), MeasurementKey("online", JOINT_FIT, x, repetition)


class _Repetition:
    """One repetition: a new task, past runs on other tasks, and their measurements."""

    def __init__(self, benchmark: Benchmark, plan: ScalingPlan, number: int, rng: np.random.Generator) -> None:
        self.benchmark, self.plan, self.number, self.rng = benchmark, plan, number, rng
        self.space, self.shape, self.horizon = benchmark.space, benchmark.space.kernel_shape, 2 * plan.observations
        self.tables: dict[str, tuple[FloatArray, FloatArray]] = {}
        order = [benchmark.tasks[i] for i in rng.permutation(len(benchmark.tasks))]
        self.others = order[1:] or order
        self.X, self.y = self.observe(order[0])
        self.past = [self.past_run(index) for index in range(plan.few[-1])]

    def observe(self, name: str) -> tuple[FloatArray, FloatArray]:
        """Draw points and their errors: different candidates of a task that has some, otherwise uniform points."""
        task, count = self.benchmark.task(name), self.plan.observations
        if task.candidates is None:
            X = uniform(self.space, count, self.rng)
            return X, task.evaluate_many(X)
        if name not in self.tables:
            X = self.space.encode(task.candidates)
            self.tables[name] = X, task.evaluate_many(X)
        X, y = self.tables[name]
        if len(X) < count:
            raise InputError(f"task {name!r}: expected at least {count} configurations, got {len(X)}")
        rows = self.rng.permutation(len(X))[:count]
        return X[rows], y[rows]

    def past_run(self, index: int) -> SourceData:
        """Return a run with new observations; the tasks take turns."""
        task = self.others[index % len(self.others)]
        X, y = self.observe(task)
        return SourceData(task, X, transform(y, method(SEPARATE_FITS).scaling))

    def warm_up(self) -> None:
        """Do everything once, so that no measurement includes the import of a library."""
        sources = fit_sources(self.past[:1], shape=self.shape, cache=None, jobs=1)
        for name in WEIGHTED_METHODS:
            self.fit_weighted(name, sources)
        self.fit_jointly(self.past[:1])

    def weighted(self) -> Iterator[Measurement]:
        """Measure TST-R and RGPE, and the weights of RGPE alone."""
        theta, seconds = np.empty((0, self.shape.d + 2)), 0.0
        for count in self.plan.few:
            new = self.past[len(theta) : count]
            fit = partial(fit_sources, new, shape=self.shape, cache=None, jobs=1)
            fitted, once = self.timed("once", SEPARATE_FITS, count, fit)
            seconds += once.seconds
            theta = np.vstack((theta, fitted.theta))
            yield once._replace(seconds=seconds)
            yield from self.online("online", Sources(self.past[:count], shape=self.shape, theta=theta))
        model = self.fit_weighted(SEPARATE_FITS, Sources(self.past, shape=self.shape, theta=theta))
        target: GP = model.fits[method(SEPARATE_FITS).scaling]
        weigh = partial(rgpe_weights, model.F, target.loo()[0], target.y, horizon=self.horizon)
        for samples in self.plan.resamples:
            resample = partial(weigh, samples=samples, rng=self.stream())
            yield self.timed("resamples", SEPARATE_FITS, samples, resample)[1]
        for count in self.plan.many:
            # Runs beyond those that were fitted get the hyperparameters of one of them; that does not change the time.
            runs = [*self.past[:count], *(self.past_run(index) for index in range(len(self.past), count))]
            copied = np.resize(theta, (count, theta.shape[1]))
            yield from self.online("many", Sources(runs, shape=self.shape, theta=copied))

    def online(self, kind: MeasurementKind, sources: Sources) -> Iterator[Measurement]:
        """Measure the weighted methods with these past runs."""
        for name in WEIGHTED_METHODS:
            yield self.timed(kind, name, len(sources), partial(self.fit_weighted, name, sources))[1]

    def joint(self, count: int) -> Iterator[Measurement]:
        """Measure the multi-task process."""
        context, once = self.timed("once", JOINT_FIT, count, partial(self.fit_jointly, self.past[:count]))
        yield once
        yield self.timed("online", JOINT_FIT, count, partial(self.fit_target, JOINT_FIT, context))[1]

    def fit_jointly(self, past: list[SourceData]) -> TransferContext:
        """Fit past runs together, however many there are."""
        model = MultiTaskModel(max_observations=sum(run.y.size for run in past))
        joint = model.prepare(past, shape=self.shape, sizes=self.space.sizes, rng=self.stream())
        return TransferContext(self.space, None, None, joint, self.horizon)

    def fit_weighted(self, name: str, sources: Sources) -> FittedModel:
        """Fit the new task, and weight the models of past runs."""
        weighting = method(name).weighting
        weigher = None if weighting is None else weighting.prepare(sources, self.stream())
        return self.fit_target(name, TransferContext(self.space, sources, weigher, None, self.horizon))

    def fit_target(self, name: str, context: TransferContext) -> FittedModel:
        """Do what the optimizer does after the last ``tell`` and before it searches for the next configuration."""
        return fit_model(method(name), context, self.X, self.y, previous=None, rng=self.stream())

    def stream(self) -> np.random.Generator:
        """Return a new random stream, the same for all methods and sizes."""
        return np.random.default_rng((self.plan.seed, self.number))

    def timed(self, kind: MeasurementKind, name: str, x: int, work: Callable[[], T]) -> tuple[T, Measurement]:
        """Return a result and the processor time it took, with one BLAS thread as in the optimizer."""
        with single_threaded():
            start = time.process_time()
            result = work()
            seconds = time.process_time() - start
        return result, Measurement(MeasurementKey(kind, name, x, self.number), seconds)


def scaling_figure(title: str, measurements: Sequence[Measurement]) -> Figure:
    """Draw the measurements: one panel for each question that has any."""
    shown = [panel for panel in PANELS if any(one.key.kind in panel[2] for one in measurements)]
    if not shown:
        raise InputError("scaling_figure: expected at least one measurement, got none")
    note = ["Seconds of one core. Dots: single measurements; lines: their means."]
    if any(one.key.kind == "once" for one in measurements):
        note.append("Thin lines: fitting the past runs, once, before the new task begins.")
    layout = style.PanelLayout(4.6, 1.9, right=style.room_for([f"{label} (to 10)" for label, _ in LINES.values()]))
    with style.panels(len(shown), 1, layout, heading=title, note=note) as (figure, all_axes):
        for axes, (panel_title, x, kinds) in zip(all_axes, shown, strict=True):
            _draw_panel(axes, [one for one in measurements if one.key.kind in kinds])
            if "online" not in kinds:
                axes.set_xscale("log")
                style.plain_ticks(axes.xaxis)
            axes.set_title(panel_title)
            axes.set_xlabel(f"number of {x}")
            axes.set_ylabel("seconds")
    return figure


def _draw_panel(axes: Axes, measurements: Sequence[Measurement]) -> None:
    seconds = [one.seconds for one in measurements]
    axes.set_yscale("log")
    axes.set_ylim(0.6 * min(seconds), 1.6 * max(seconds))
    style.plain_ticks(axes.yaxis)
    first, last = (choose(one.key.x for one in measurements) for choose in (min, max))
    ends, styles = {}, {}
    for key, (label, line_style) in LINES.items():
        own = [one for one in measurements if (one.key.kind, one.key.method) == key]
        if not own:
            continue
        x, means = mean_seconds(own)
        dots = [one.key.x for one in own], [one.seconds for one in own]
        axes.plot(*dots, ".", color=style.COLOURS[line_style.colour], markersize=2.5, alpha=0.5)
        style.draw_line(axes, x, means, line_style)
        name = f"{label} (to {x[-1]:,.0f})" if x[-1] < last else label
        ends[name], styles[name] = float(means[-1]), line_style
    axes.set_xlim(first, max(last, first + 1))
    style.name_ends(axes, ends, styles)


def mean_seconds(measurements: Sequence[Measurement]) -> tuple[FloatArray, FloatArray]:
    """Return the sizes in increasing order, and the mean over repetitions at each."""
    sizes = sorted({one.key.x for one in measurements})
    means = [np.mean([one.seconds for one in measurements if one.key.x == size]) for size in sizes]
    return np.array(sizes, dtype=np.float64), np.array(means)
