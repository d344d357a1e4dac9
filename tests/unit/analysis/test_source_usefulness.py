"""What each past run was worth to a run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kendalltau
from tests.helpers.example_runs import (
    LEARNER,
    PLAIN,
    run_data,
    usual,
)

from recollect import Optimizer, Run
from recollect.analysis.source_usefulness import WeightHistory, overlap, source_usefulness, weight_history
from recollect.optimizer.catalog import method
from recollect.report.run.run_page import source_summary
from recollect.runs.run import State, Trial
from recollect.space.alignment import align
from recollect.space.space import compile_space
from recollect.transfer.screening import Screening


def test_rank_agreement_is_that_of_the_models_behind_the_suggestions() -> None:
    data = usual()
    found = {source.task: source for source in source_usefulness(data, method("rgpe-taf"), weight_history(data))}
    opt = Optimizer(LEARNER, data.past, "rgpe-taf", horizon=40, run=data.run)
    opt.ask()
    n = len(data.run.succeeded)
    for entry in opt.explain().past:
        assert entry.misranked is not None
        assert found[entry.task].agreement == pytest.approx(1 - entry.misranked / (n * (n - 1)))


def test_rank_agreement_with_equal_values_is_that_of_kendall_over_pairs_that_differ() -> None:
    X = np.linspace(0.05, 0.95, 10)
    configs = [{"x": float(x), "y": 0.5} for x in X]
    values = [float(int(8 * (x - 0.5) ** 2)) for x in X]
    own = Run("own", configs, values, space=PLAIN)
    past = Run("past", configs, [float(x) for x in X])
    (source,) = source_usefulness(run_data(own, [past]), method("rgpe-taf"), None)
    ranks = np.arange(10)
    tau = kendalltau(ranks, values).statistic
    pairs = [(a, b) for a in range(10) for b in range(a) if values[a] != values[b]]
    right = [(ranks[a] > ranks[b]) == (values[a] > values[b]) for a, b in pairs]
    assert source.agreement == pytest.approx(np.mean(right))
    assert (source.agreement > 0.5) == (tau > 0)


def test_a_past_run_with_the_same_order_agrees_and_one_with_the_opposite_order_does_not() -> None:
    configs = [{"x": x, "y": 0.5} for x in np.linspace(0, 1, 12).tolist()]
    own = Run("own", configs, [config["x"] for config in configs], space=PLAIN)
    same = Run("same", configs, [3 + 10 * config["x"] for config in configs])
    opposite = Run("opposite", configs, [-config["x"] for config in configs])
    sources = source_usefulness(run_data(own, [same, opposite]), method("rgpe-taf"), None)
    assert {source.task: source.agreement for source in sources} == {"same": 1.0, "opposite": 0.0}
    summary = source_summary(sources, 12)
    assert "same ranks its trials best, with 100%" in summary
    assert "opposite ranks them worst, with 0%" in summary


def test_of_more_past_runs_than_take_part_only_those_that_were_weighed_get_a_model() -> None:
    configs = [{"x": x, "y": 0.5} for x in np.linspace(0, 1, 6).tolist()]
    own = Run("own", configs, [config["x"] for config in configs], space=PLAIN)
    past = [Run(f"past {n}", configs, [config["x"] + n for config in configs]) for n in range(5)]
    few = replace(method("rgpe-taf"), screening=Screening(4))
    weights = np.array([[0.5, 0.25]])
    history = WeightHistory(
        np.array([0]),
        np.array([0.25]),
        ("past 3", "past 1"),
        weights,
        np.zeros((1, 2), dtype=np.bool_),
        np.zeros(2, int),
    )
    data = run_data(own, past)
    for seen, modelled in ((None, set()), (history, {"past 1", "past 3"})):
        sources = source_usefulness(data, few, seen)
        assert len(sources) == 5
        assert {source.task for source in sources if source.agreement is not None} == modelled


def test_the_best_configuration_of_a_past_run_is_ranked_among_finished_trials_only() -> None:
    configs = [{"x": x, "y": 0.5} for x in np.linspace(0, 1, 12).tolist()]
    finished = [Trial.of(config, config["x"]) for config in configs[:4]]
    pruned = [Trial(config, None, State.PRUNED, estimate=-config["x"]) for config in configs[4:]]
    own = Run("own", trials=[*finished, *pruned], space=PLAIN)
    past = Run("past", [{"x": 0.33, "y": 0.4}, *configs[1:]], [-1.0, *(config["x"] for config in configs[1:])])
    (source,) = source_usefulness(run_data(own, [past]), method("rgpe-taf"), None)
    assert source.best is not None
    assert not source.best.tried
    assert source.best.rank is not None
    assert 1 <= source.best.rank <= len(finished) + 1


def test_overlap_is_the_share_of_values_that_fit_as_they_are() -> None:
    space = compile_space({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    assert overlap(align(space, [{"x": 0.1, "y": 0.2}] * 4), 2) == 1.0
    assert overlap(align(space, [{"x": 0.1}] * 4), 2) == 0.5
    assert overlap(align(space, [{"x": 0.1, "y": 0.2}] * 3 + [{"x": 9.0, "y": 0.2}]), 2) == 0.75
    assert overlap(align(space, [{"x": 0.1, "y": 0.2, "z": 1}] * 4), 2) == 0.5
    assert overlap(align(space, []), 2) == 0.0
