"""The data of every benchmark figure. `bench.analysis.figures` (matplotlib) and `report.benchmark` (plotly) draw it.

Colours are names of Okabe and Ito's palette, which readers with any kind of colour vision can tell apart, and dash
patterns are numbers; each plotter has its own colour codes and patterns for them. No two lines of a panel differ in
colour alone. ``gp`` is black and random search is grey everywhere.

Notation: b tasks, h evaluations; a regret curve is the mean over tasks of the regrets (b, h) of a method.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from recollect.bench.analysis import aggregate
from recollect.bench.analysis.aggregate import AverageRanks, BenchmarkResults, ExperimentResults, MethodResult
from recollect.bench.analysis.statistics import RankTest, common_repetitions, rank_test
from recollect.bench.experiment.experiment_run import WEIGHT_COLUMNS, CompletedRun
from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray

BOOTSTRAP_DRAWS = 1000
BAND_LEVEL = 0.95
REFERENCES = ("gp", "random")
METHODS_PER_PANEL = 6  # besides the references
LOG_SCALE_RATIO = 10.0  # from this ratio of the highest to the lowest regret on, the axis is logarithmic
MAX_DECADES = 4.0  # on a logarithmic axis
OTHER_FAMILIES = "other models of past runs"
FAMILIES: dict[str, tuple[str, ...]] = {  # in order, with the beginnings of the names of their methods
    "without models of past runs": ("gcp", "random", "gp", "smfo"),
    OTHER_FAMILIES: (),
    **{"TST-R": ("tstr",), "RGPE": ("rgpe",)},
}
OUTSIDE = "contestants from outside"
LINE_UPS = (("gp", "random", "tstr-ei", "rgpe-mean"), ("gp", "random", "tstr-taf", "rgpe-taf"))
"""Methods that combine models and methods that combine acquisition functions, each with the references.

Contestants from outside are added to both.
"""

COLOURS = ("blue", "vermillion", "green", "pink", "orange", "sky")
DASH_PATTERNS = 5
COUNT_QUANTILES = ((0.05, 0.95), (0.25, 0.75))


@dataclass(frozen=True, slots=True)
class LineStyle:
    """The name of a colour, the number of a dash pattern (0 is solid), and a width in points."""

    colour: str
    dash: int = 0
    width: float = 1.4


@dataclass(frozen=True, slots=True, eq=False)
class RegretCurve:
    """The mean regret (h,) of a method."""

    result: MethodResult
    label: str  # the name of the method, with the number of tasks or repetitions if others have more
    regret: FloatArray
    band: FloatArray | None  # lower and upper ends (2, h) of the bootstrap interval over tasks; None with a single task
    style: LineStyle
    complete: bool  # whether the method has all runs

    @property
    def last_known(self) -> float:
        """The regret after the last evaluation for which it is known; nan if there is none."""
        finite = self.regret[np.isfinite(self.regret)]
        return float(finite[-1]) if len(finite) else float("nan")


@dataclass(frozen=True, slots=True, eq=False)
class RegretPanel:
    """The curves of one panel, and those of complete methods in other panels, which are drawn pale."""

    title: str
    curves: tuple[RegretCurve, ...]
    pale: tuple[FloatArray, ...]

    def lowest(self, evaluations: int) -> RegretCurve | None:
        """Return the lowest curve of a complete method after this many evaluations."""
        complete = [curve for curve in self.curves if curve.complete]
        return min(complete, key=lambda curve: float(curve.regret[evaluations - 1]), default=None)


@dataclass(frozen=True, slots=True, eq=False)
class RegretCurves:
    """All regret panels of a benchmark; ``limits`` are the ends of the regret axis, the lower one is 0 if linear."""

    benchmark: str
    tasks: int
    horizon: int
    limits: tuple[float, float]
    panels: tuple[RegretPanel, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CriticalDifferences:
    """Which average ranks differ significantly after this many evaluations (Demsar, JMLR 2006)."""

    benchmark: str
    test: RankTest
    evaluations: int
    incomplete: tuple[str, ...]  # methods that are left out because they lack runs
    variants: int  # how many are left out because there are too many methods


@dataclass(frozen=True, slots=True, eq=False)
class MeanRegret:
    """A method's mean regret over all evaluations, with its bootstrap interval over tasks."""

    result: MethodResult
    mean: float
    low: float
    high: float
    complete: bool


@dataclass(frozen=True, slots=True, eq=False)
class DifferenceFromReference:
    """A method's regret minus that of ``gp`` on every task, and the task where that is largest."""

    result: MethodResult
    by_task: Mapping[str, float]
    worst_task: str
    worst: float
    complete: bool


@dataclass(frozen=True, slots=True, eq=False)
class WeightEvolution:
    """How the weights of an ensemble change during runs of one method on one benchmark.

    Mean weights (n, 4) are those of the new task's model, of the past run that weighs most in each run and step, of the
    second, and of all other past runs together.
    """

    benchmark: str
    method: str
    runs: int
    observations: FloatArray  # numbers (n,) of observations of the new task for which there are weights
    means: FloatArray
    median_count: FloatArray  # of models with a weight (n,)
    count_bands: FloatArray  # quantile bands (bands, 2, n) of that number, widest first


def line_styles(methods: Sequence[str]) -> dict[str, LineStyle]:
    """Return the style of each method of a panel: fixed for references, by position for the others."""
    styles: dict[str, LineStyle] = {}
    grey_dashes = iter(range(2, DASH_PATTERNS))
    others = 0
    for name in methods:
        if name == "gp":
            styles[name] = LineStyle("black")
        elif name == "random":
            styles[name] = LineStyle("grey", 1)
        elif re.fullmatch(aggregate.RANDOM_MULTIPLE_NAME, name):
            styles[name] = LineStyle("grey", next(grey_dashes, 2))
        else:
            styles[name] = LineStyle(COLOURS[others % len(COLOURS)], others % DASH_PATTERNS)
            others += 1
    return styles


def bootstrap_band(regrets: FloatArray) -> FloatArray:
    """Return the ends (2, h) of a percentile interval for the mean of regrets (b, h) over tasks.

    Tasks are drawn with replacement; methods with the same number of tasks share the draws.
    """
    b = len(regrets)
    counts = np.random.default_rng(0).multinomial(b, np.full(b, 1.0 / b), size=BOOTSTRAP_DRAWS)
    ends = (1.0 - BAND_LEVEL) / 2.0, (1.0 + BAND_LEVEL) / 2.0
    return np.asarray(np.quantile(counts @ regrets / b, ends, axis=0))


def regret_limits(curves: Sequence[FloatArray]) -> tuple[float, float]:
    """Return the ends of an axis for curves (h,): the lower one is 0, or positive if a log scale shows more."""
    values = np.concatenate(curves)
    values = values[np.isfinite(values)]
    high = float(values.max(initial=0.0)) or 1.0
    low = float(values[values > 0.0].min(initial=high))
    if high / low < LOG_SCALE_RATIO:
        return 0.0, 1.05 * high
    return max(0.8 * low, high * 10.0**-MAX_DECADES), 1.2 * high


def method_panels(methods: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return titles and methods of panels: one for few methods, else families in pieces, each with the references."""
    references = [name for name in REFERENCES if name in methods]
    rest = [name for name in methods if name not in REFERENCES]
    if len(rest) <= METHODS_PER_PANEL:
        return [("", [*references, *rest])]
    families: dict[str, list[str]] = {title: [] for title in (*FAMILIES, OUTSIDE)}
    for name in rest:
        if aggregate.is_from_outside(name):
            families[OUTSIDE].append(name)
            continue
        title = next((title for title, starts in FAMILIES.items() if name.startswith(starts)), OTHER_FAMILIES)
        families[OTHER_FAMILIES if name.startswith("gcp-prior") else title].append(name)
    panels = []
    for title, names in families.items():
        pieces = -(-len(names) // METHODS_PER_PANEL)
        for number in range(pieces):
            suffix = f" ({number + 1} of {pieces})" if pieces > 1 else ""
            piece = names[number * len(names) // pieces : (number + 1) * len(names) // pieces]
            panels.append((title + suffix, [*references, *piece]))
    return panels


def regret_curves(results: BenchmarkResults, *, unit: float = 1.0) -> RegretCurves:
    """Return the regret panels of a benchmark; ``unit`` is what a normalised regret of 1 is shown as."""
    methods = {result.method: result for result in results.ordered}
    regrets = {name: unit * result.adtm for name, result in methods.items()}
    complete = {result.method for result in results.complete}
    bands = {name: unit * bootstrap_band(own.regrets) for name, own in methods.items() if len(own.tasks) > 1}
    panels = []
    for title, names in method_panels(list(methods)):
        curves = []
        for name, style in line_styles(names).items():
            missing = results.missing_text(methods[name])
            label = f"{name} ({missing})" if missing else name
            curves.append(RegretCurve(methods[name], label, regrets[name], bands.get(name), style, name in complete))
        pale = [regret for name, regret in regrets.items() if name in complete and name not in names]
        panels.append(RegretPanel(title, tuple(curves), tuple(pale)))
    limits = regret_limits(list(regrets.values()))
    return RegretCurves(results.benchmark, results.tasks, results.horizon, limits, tuple(panels))


def line_up_ranks(experiment: ExperimentResults) -> list[tuple[str, list[AverageRanks | None]]]:
    """Return the ranks of both line-ups on each benchmark that has one with three methods that share a run."""
    ranked = []
    for name, results in experiment.benchmarks.items():
        ranks: list[AverageRanks | None] = []
        outside = [method for method in results.methods if aggregate.is_from_outside(method)]
        for names in LINE_UPS:
            own = [results.methods[method] for method in (*names, *outside) if method in results.methods]
            shared = common_repetitions([method.curves for method in own])
            ranks.append(aggregate.average_ranks(own) if len(own) > 2 and shared else None)
        if any(ranks):
            ranked.append((name, ranks))
    return ranked


def critical_differences(results: BenchmarkResults, *, max_methods: int | None = None) -> CriticalDifferences | None:
    """Compare the average ranks of the methods with the most runs; None with fewer than two of them or two tasks.

    If there are more than ``max_methods``, variants are left out.
    """
    many = max_methods is not None and len(results.methods) > max_methods
    methods = [result for result in results.ordered if not (many and result.is_variant)]
    complete = aggregate.complete_results(methods, results.horizon)
    regrets = {result.method: result.run_regrets(results.horizon) for result in complete}
    if len(complete) < 2 or len({task for task, _ in common_repetitions(list(regrets.values()))}) < 2:
        return None
    incomplete = tuple(result.method for result in methods if result not in complete)
    variants = len(results.methods) - len(methods)
    return CriticalDifferences(results.benchmark, rank_test(regrets), results.horizon, incomplete, variants)


def mean_regrets(results: BenchmarkResults, *, unit: float = 1.0) -> list[MeanRegret]:
    """Return methods with a known mean regret, complete ones first, then from the lowest to the highest."""
    complete = results.complete
    rows = []
    for result in (result for result in results.ordered if not np.isnan(result.area)):
        low, high = (unit * bootstrap_band(result.regrets.mean(axis=1, keepdims=True)))[:, 0].tolist()
        rows.append(MeanRegret(result, unit * result.area, low, high, result in complete))
    return sorted(rows, key=lambda row: (not row.complete, row.mean))


def differences_from_reference(results: BenchmarkResults, *, unit: float = 1.0) -> list[DifferenceFromReference]:
    """Return methods that share runs with ``gp``, complete ones first, then from the best to the worst worst case."""
    reference, complete = results.reference, results.complete
    if reference is None:
        return []
    rows = []
    for result in (result for result in results.ordered if result is not reference):
        differences = aggregate.task_differences(result, reference, results.horizon)
        by_task = {task: unit * difference for task, difference in differences.items()}
        if by_task:
            task = max(by_task, key=lambda name: by_task[name])
            rows.append(DifferenceFromReference(result, by_task, task, by_task[task], result in complete))
    return sorted(rows, key=lambda row: (not row.complete, row.worst))


def has_weights(run: CompletedRun) -> bool:
    """Return whether a run has weights at some step; not every method uses models."""
    return run.weights is not None and bool(np.isfinite(run.weights).any())


def weight_evolution(runs: Sequence[CompletedRun]) -> WeightEvolution:
    """Return how weights change in those runs of one method on one benchmark that recorded them."""
    recorded = [run.weights for run in runs if has_weights(run) and run.weights is not None]
    if not recorded or len({run.key[:2] for run in runs}) != 1:
        got = sorted({f"{run.key.method} on {run.key.benchmark}" for run in runs})
        raise InputError(f"weight figure: expected runs of one method on one benchmark with weights, got {got}")
    weights = np.full((len(recorded), max(map(len, recorded)), WEIGHT_COLUMNS), np.nan)  # (runs, observations, 5)
    for row, own in zip(weights, recorded, strict=True):
        row[: len(own)] = own
    observations = np.flatnonzero(np.isfinite(weights).all(axis=2).any(axis=0))
    weights = weights[:, observations]
    means, counts = np.nanmean(weights, axis=0)[:, :4], weights[:, :, 4]
    median, bands = np.nanmedian(counts, axis=0), np.nanquantile(counts, COUNT_QUANTILES, axis=0)
    return WeightEvolution(*runs[0].key[:2], len(weights), observations.astype(np.float64), means, median, bands)
