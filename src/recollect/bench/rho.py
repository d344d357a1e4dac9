"""TST-R with a bandwidth chosen from results: outcomes made of runs with several rho (paper, appendix on TST-R).

A family is a method of the catalog without its bandwidth: ``tstr-ei``, ``tstr-taf+copula``. Its runs are called
``tstr-ei+rho0.3``; those called ``tstr-ei`` count as runs with the default bandwidth unless there are others with it.
What is made of them:

    tstr-ei+rho-others      on each benchmark the value that is best on the others
    tstr-ei+rho-tasks       on each task the value that is best on the other tasks of the benchmark
    tstr-ei+rho-svm         the value that is best on that benchmark, used on all

The first and the last need values that were run on every benchmark with two values or more. Where values were run on
different tasks or repetitions, the runs that all have count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np

from recollect.bench.published import LAST
from recollect.bench.statistics import common_places, task_means
from recollect.bench.study import Outcome, Study, make_outcome
from recollect.transfer.bandwidth import rho_from_benchmark, rho_from_other_benchmarks, rho_from_other_tasks
from recollect.transfer.weighting import TwoStageWeighting

ROOTS = ("tstr-ei", "tstr-taf")
OTHERS, TASKS, CHOSEN = "rho-others", "rho-tasks", "rho-"

_Values = Mapping[float, Outcome]
_Scores = dict[float, dict[str, dict[str, float]]]


def with_chosen_rho(study: Study) -> Study:
    """Return the study with every outcome that can be made by choosing the bandwidth."""
    families: dict[str, dict[str, _Values]] = {}
    for benchmark, outcomes in study.outcomes.items():
        for family, values in _families(outcomes).items():
            families.setdefault(family, {})[benchmark] = values
    made = [outcome for family, found in families.items() for outcome in _chosen(study, family, found)]
    return study.with_outcomes(made)


def _families(outcomes: Mapping[str, Outcome]) -> dict[str, _Values]:
    """Outcomes by family and bandwidth, values in order."""
    found: dict[str, dict[float, Outcome]] = {}
    for name, outcome in outcomes.items():
        root, *suffixes = name.split("+")
        if root in ROOTS:
            said = [float(suffix[3:]) for suffix in suffixes if re.fullmatch(r"rho\d*\.?\d+", suffix)]
            family = "+".join([root, *(suffix for suffix in suffixes if not re.fullmatch(r"rho\d*\.?\d+", suffix))])
            rho = said[0] if said else TwoStageWeighting().rho
            if said or rho not in found.get(family, {}):
                found.setdefault(family, {})[rho] = outcome
    return {family: dict(sorted(values.items())) for family, values in found.items()}


def _chosen(study: Study, family: str, found: Mapping[str, _Values]) -> Iterator[Outcome]:
    for benchmark, values in found.items():
        if outcome := _by_tasks(family, values, study.horizons[benchmark]):
            yield outcome
    compared = {benchmark: values for benchmark, values in found.items() if len(values) > 1}
    if not compared:
        return
    common = sorted(set.intersection(*(set(values) for values in compared.values())))
    scores = _scores({name: {rho: values[rho] for rho in common} for name, values in compared.items()}, study.horizons)
    if not scores:
        return
    for benchmark, values in compared.items():
        if len(compared) > 1:
            rho = rho_from_other_benchmarks(scores, benchmark)
            yield _renamed(values[rho], f"{family}+{OTHERS}", f"rho = {rho:g}")
        for source in compared:
            rho = rho_from_benchmark(scores, source)
            yield _renamed(values[rho], f"{family}+{CHOSEN}{source}", f"rho = {rho:g}")


def _by_tasks(family: str, values: _Values, horizon: int) -> Outcome | None:
    """On each task the runs with the value that is best on the other tasks."""
    benchmark = next(iter(values.values())).benchmark
    if len(values) == 1:
        ((rho, only),) = values.items()
        return _renamed(only, f"{family}+{TASKS}", f"rho = {rho:g}, the only value run")
    scores = _scores({benchmark: values}, {benchmark: horizon})
    tasks = sorted(scores[min(scores)][benchmark]) if scores else []
    if len(tasks) < 2:
        return None
    chosen = {task: rho_from_other_tasks(scores, benchmark, task) for task in tasks}
    curves = {
        run: values[rho].curves[run] for task, rho in chosen.items() for run in values[rho].curves if run[0] == task
    }
    low, high = min(chosen.values()), max(chosen.values())
    remark = f"rho = {low:g}" if low == high else f"rho = {low:g} to {high:g}"
    seconds = float(np.mean([values[rho].seconds for rho in chosen.values()]))
    return make_outcome(benchmark, f"{family}+{TASKS}", curves=curves, seconds=seconds, remark=remark)


def _scores(found: Mapping[str, _Values], horizons: Mapping[str, int]) -> _Scores:
    """Regret as the tables show it by rho, benchmark and task, on runs that all have; empty if a benchmark has none."""
    scores: _Scores = {}
    for benchmark, values in found.items():
        ends = {rho: outcome.runs_at(min(LAST, horizons[benchmark])) for rho, outcome in values.items()}
        runs = common_places(list(ends.values()))
        if not runs:
            return {}
        for rho, end in ends.items():
            scores.setdefault(rho, {})[benchmark] = task_means(end, runs)
    return scores


def _renamed(outcome: Outcome, method: str, remark: str) -> Outcome:
    return make_outcome(outcome.benchmark, method, curves=outcome.curves, seconds=outcome.seconds, remark=remark)
