"""TST-R with a bandwidth rho chosen from results (paper, appendix on TST-R).

A family is a method of the catalog without its bandwidth: ``tstr-ei``, ``tstr-taf+copula``. Its runs are called
``tstr-ei+rho0.3``; runs called ``tstr-ei`` count as runs with the default bandwidth unless there are others with it.
Three strategies choose a value, all from results that already exist:

    tstr-ei+rho-others   TST-R(EI)          on each benchmark, the best value on the others  `rho_from_other_benchmarks`
    tstr-ei+rho-tasks    TST-R(EI,HPO)      on each task, the best value on the others       `rho_from_other_tasks`
    tstr-ei+rho-svm      TST-R(EI,HPO,svm)  the best value on that benchmark, used on all    `rho_from_benchmark`

The last one is optimistic on the benchmark itself: it has seen the answers. The first and the last need values that
were run on every benchmark with two or more values. If values were run on different tasks or repetitions, only the runs
that all of them have count.

Notation: ``scores[rho][benchmark][task]`` is the mean normalised regret with that rho after the last trial, averaged
over repetitions; lower is better. Every rho must have been run on the same tasks. Of tied values the smallest is taken:
it trusts past runs least.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from recollect._text import name_list
from recollect.bench.analysis.aggregate import BenchmarkResults, ExperimentResults, MethodResult, aggregate_curves
from recollect.bench.analysis.statistics import common_repetitions, task_means
from recollect.bench.paper.published import LAST_EVALUATION, TST_METHODS
from recollect.errors import InputError
from recollect.transfer.weighting.ranking_weights import TwoStageWeighting

RHO_GRID = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""The values tried in the paper."""

RHO_OTHERS, RHO_TASKS, RHO_PREFIX = "rho-others", "rho-tasks", "rho-"
RHO_SUFFIX = re.compile(r"\+rho(\d*\.?\d+)(?![^+])")

TaskScores: TypeAlias = Mapping[str, float]
RhoScores: TypeAlias = Mapping[float, Mapping[str, TaskScores]]
ResultsByRho: TypeAlias = Mapping[float, MethodResult]


def rho_from_other_benchmarks(scores: RhoScores, benchmark: str) -> float:
    """Return the rho with the best average over all other benchmarks, each with the same weight."""
    tasks = _checked_tasks(scores)
    others = [name for name in tasks if name != benchmark]
    if not others:
        names = name_list(map(repr, tasks))
        raise InputError(f"rho: expected results on benchmarks other than {benchmark!r}, got {names}")
    return _best(scores, {name: tasks[name] for name in others})


def rho_from_other_tasks(scores: RhoScores, benchmark: str, task: str) -> float:
    """Return the rho with the best average over the other tasks of the benchmark."""
    tasks = _tasks_of(scores, benchmark)
    if task not in tasks:
        raise InputError(f"rho: benchmark {benchmark!r} has no task {task!r}; it has {name_list(map(repr, tasks))}")
    others = [name for name in tasks if name != task]
    if not others:
        raise InputError(f"rho: expected results on tasks of {benchmark!r} other than {task!r}, got none")
    return _best(scores, {benchmark: others})


def rho_from_benchmark(scores: RhoScores, benchmark: str) -> float:
    """Return the rho with the best average over all tasks of the benchmark."""
    return _best(scores, {benchmark: _tasks_of(scores, benchmark)})


def with_chosen_rho(experiment: ExperimentResults) -> ExperimentResults:
    """Return the results with every result that choosing the bandwidth can add."""
    families: dict[str, dict[str, ResultsByRho]] = {}
    for benchmark, results in experiment.benchmarks.items():
        for family, by_rho in _families(results).items():
            families.setdefault(family, {})[benchmark] = by_rho
    added = [result for family, by_rho in families.items() for result in _chosen(experiment, family, by_rho)]
    return experiment.with_methods(added)


def _families(results: BenchmarkResults) -> dict[str, ResultsByRho]:
    """Return results by family and bandwidth, bandwidths in order."""
    families: dict[str, dict[float, MethodResult]] = {}
    for name, result in results.methods.items():
        if name.partition("+")[0] not in TST_METHODS:
            continue
        family, explicit = RHO_SUFFIX.sub("", name), RHO_SUFFIX.search(name)
        rho = float(explicit[1]) if explicit else TwoStageWeighting().rho
        if explicit or rho not in families.get(family, {}):
            families.setdefault(family, {})[rho] = result
    return {family: dict(sorted(by_rho.items())) for family, by_rho in families.items()}


def _chosen(experiment: ExperimentResults, family: str, results: Mapping[str, ResultsByRho]) -> Iterator[MethodResult]:
    for benchmark, by_rho in results.items():
        if result := _chosen_by_task(experiment, family, benchmark, by_rho):
            yield result
    compared = {benchmark: by_rho for benchmark, by_rho in results.items() if len(by_rho) > 1}
    common = sorted(set.intersection(*map(set, compared.values()))) if compared else []
    scores = _scores(experiment, {name: {rho: by_rho[rho] for rho in common} for name, by_rho in compared.items()})
    if not scores:
        return
    for benchmark, by_rho in compared.items():
        if len(compared) > 1:
            rho = rho_from_other_benchmarks(scores, benchmark)
            yield replace(by_rho[rho], method=f"{family}+{RHO_OTHERS}", remark=f"rho = {rho:g}")
        for chosen_on in compared:
            rho = rho_from_benchmark(scores, chosen_on)
            yield replace(by_rho[rho], method=f"{family}+{RHO_PREFIX}{chosen_on}", remark=f"rho = {rho:g}")


def _chosen_by_task(
    experiment: ExperimentResults, family: str, benchmark: str, by_rho: ResultsByRho
) -> MethodResult | None:
    """Return on each task the runs with the value that is best on the other tasks."""
    if len(by_rho) == 1:
        ((rho, only),) = by_rho.items()
        return replace(only, method=f"{family}+{RHO_TASKS}", remark=f"rho = {rho:g}, the only value run")
    scores = _scores(experiment, {benchmark: by_rho})
    tasks = sorted(scores[min(scores)][benchmark]) if scores else []
    if len(tasks) < 2:
        return None
    chosen = {task: rho_from_other_tasks(scores, benchmark, task) for task in tasks}
    curves = {run: curve for task, rho in chosen.items() for run, curve in by_rho[rho].curves.items() if run[0] == task}
    low, high = min(chosen.values()), max(chosen.values())
    remark = f"rho = {low:g}" if low == high else f"rho = {low:g} to {high:g}"
    seconds = float(np.mean([by_rho[rho].seconds for rho in chosen.values()]))
    return aggregate_curves(benchmark, f"{family}+{RHO_TASKS}", curves=curves, seconds=seconds, remark=remark)


def _scores(experiment: ExperimentResults, results: Mapping[str, ResultsByRho]) -> RhoScores:
    """Return the regrets that the tables show, on runs that all values have; empty if a benchmark has no such run."""
    scores: dict[float, dict[str, TaskScores]] = {}
    for benchmark, by_rho in results.items():
        evaluations = min(LAST_EVALUATION, experiment.benchmarks[benchmark].horizon)
        regrets = {rho: result.run_regrets(evaluations) for rho, result in by_rho.items()}
        runs = common_repetitions(list(regrets.values()))
        if not runs:
            return {}
        for rho, run_regrets in regrets.items():
            scores.setdefault(rho, {})[benchmark] = task_means(run_regrets, runs)
    return scores


def _best(scores: RhoScores, tasks: Mapping[str, list[str]]) -> float:
    """Return the smallest rho with the best mean over benchmarks of the mean over these tasks of each."""

    def mean_regret(rho: float) -> float:
        return float(np.mean([np.mean([scores[rho][name][task] for task in own]) for name, own in tasks.items()]))

    return min(sorted(scores), key=mean_regret)


def _tasks_of(scores: RhoScores, benchmark: str) -> list[str]:
    tasks = _checked_tasks(scores)
    if benchmark not in tasks:
        names = name_list(map(repr, tasks))
        raise InputError(f"rho: no results on benchmark {benchmark!r}; there are results on {names}")
    return tasks[benchmark]


def _checked_tasks(scores: RhoScores) -> dict[str, list[str]]:
    """Return the tasks of each benchmark; refuse results with which values of rho cannot be compared."""
    if not scores:
        raise InputError("rho: expected results for at least one value of rho, got none")
    first = next(iter(scores))
    tasks = {name: list(results) for name, results in scores[first].items()}
    for rho, benchmarks in scores.items():
        if {name: results.keys() for name, results in benchmarks.items()} != {n: set(t) for n, t in tasks.items()}:
            raise InputError(f"rho: expected results on the same tasks for every value, but {rho} and {first} differ")
        for name, results in benchmarks.items():
            invalid = [task for task, value in results.items() if not math.isfinite(value)]
            if not results or invalid:
                got = f"{results[invalid[0]]} for task {invalid[0]!r}" if invalid else "no task"
                raise InputError(f"rho: expected finite regrets, got {got} of {name!r} with rho = {rho}")
    return tasks
