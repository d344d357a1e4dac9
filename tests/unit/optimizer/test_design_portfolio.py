"""The portfolio learned from past runs, against a greedy search written out, in all three scalings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare, norm, rankdata

from recollect.numerics.arrays import KernelShape
from recollect.optimizer import design as design_module
from recollect.optimizer.catalog import method
from recollect.optimizer.design import (
    design_size,
    greedy_portfolio,
    learned_design,
    past_configurations,
    predicted_costs,
    prior_design,
)
from recollect.space.space import compile_space
from recollect.surrogate.gp import make_gp
from recollect.surrogate.kernels import Hyperparameters
from recollect.surrogate.scaling import transform
from recollect.transfer.sources import SourceData, Sources

SPACE = compile_space({"a": (0.0, 1.0), "b": (0.0, 1.0)})
SHAPE = KernelShape(np.zeros(2, dtype=bool), False)
RNG = np.random.default_rng(1)
INPUTS = [RNG.random((n, 2)) for n in (2, 5, 8, 6)]
VALUES = [scale * RNG.standard_normal(len(X)) + scale for X, scale in zip(INPUTS, (1.0, 30.0, 0.02, 4.0), strict=True)]
HYPER = [Hyperparameters(0.5 + 0.4 * i, np.array([0.3, 0.2 + 0.2 * i]), (1e-6, 0.2)[i % 2]) for i in range(4)]


def fitted(scaling: Any, inputs: Any = INPUTS, values: Any = VALUES) -> Sources:
    data = [SourceData(str(i), X, transform(y, scaling)) for i, (X, y) in enumerate(zip(inputs, values, strict=True))]
    return Sources(data, shape=SHAPE, theta=np.array([h.log() for h in HYPER[: len(data)]]))


def literal_costs(scaling: str, C: Any) -> Any:
    """Spec 1.7(b), steps 1 and 3: one process for each run, its means at all candidates, brought to one scale."""
    P = []
    for X, y, hyper in zip(INPUTS, VALUES, HYPER, strict=True):
        n = len(y)
        if scaling == "copula":
            delta = 1 / (4 * n**0.25 * np.sqrt(np.pi * np.log(n)))
            seen = norm.ppf(np.clip((rankdata(y) - 1) / (n - 1), delta, 1 - delta))
            P.append(make_gp(X, seen, shape=SHAPE, hyper=hyper).mean(C))
            continue
        means = make_gp(X, y, shape=SHAPE, hyper=hyper).mean(C)
        P.append((means - y.min()) / (y.max() - y.min()) if scaling == "meanvar" else means)
    return np.array(P)


def literal_greedy(P: Any, count: int) -> list[int]:
    """Spec 1.7(b), step 4, for costs without ties."""
    left, best, chosen = set(range(P.shape[1])), [np.inf] * len(P), []
    for _ in range(count):
        reached = {c: np.mean([min(b, row[c]) for b, row in zip(best, P, strict=True)]) for c in sorted(left)}
        winner = min(reached, key=lambda c: reached[c])
        chosen.append(winner)
        best = [min(b, row[winner]) for b, row in zip(best, P, strict=True)]
        left.remove(winner)
    return chosen


@pytest.mark.parametrize("scaling", ["unscaled", "meanvar", "copula"])
def test_it_is_the_greedy_portfolio_of_the_literal_costs(scaling: str) -> None:
    candidates = np.concatenate(INPUTS)
    expected = candidates[literal_greedy(literal_costs(scaling, candidates), 4)]
    smfo = method(f"smfo+{scaling}")
    got = learned_design(smfo, SPACE, None, sources=fitted(scaling), size=4, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(got, expected)


def test_the_scalings_choose_differently_here() -> None:
    candidates = np.concatenate(INPUTS)
    chosen = {tuple(literal_greedy(literal_costs(s, candidates), 4)) for s in ("unscaled", "meanvar", "copula")}
    assert len(chosen) == 3


@pytest.mark.parametrize("scaling", ["unscaled", "meanvar", "copula"])
def test_costs_are_the_means_on_the_scale_of_the_method(scaling: str) -> None:
    C = np.random.default_rng(5).random((9, 2))
    sources = fitted(scaling)
    data = tuple(sources.data(i) for i in range(4))
    got = predicted_costs(sources, data, C, by_range=scaling == "meanvar")
    np.testing.assert_allclose(got, literal_costs(scaling, C), rtol=1e-6, atol=1e-9)


def test_a_constant_past_run_does_not_divide_by_zero() -> None:
    sources = fitted("meanvar", INPUTS[:2], [np.full(2, 7.0), VALUES[1]])
    data = tuple(sources.data(i) for i in range(2))
    assert np.array_equal(predicted_costs(sources, data, INPUTS[0], by_range=True)[0], [0.0, 0.0])


def test_greedy_choices_agree_with_the_literal_search_on_random_costs() -> None:
    rng = np.random.default_rng(2)
    for _ in range(30):
        P = rng.standard_normal((rng.integers(1, 6), rng.integers(1, 12)))
        count = int(rng.integers(1, P.shape[1] + 1))
        chosen, best = greedy_portfolio(P, count, rng).tolist(), np.full(len(P), np.inf)
        assert len(set(chosen)) == count
        for step, winner in enumerate(chosen):
            others = [c for c in range(P.shape[1]) if c not in chosen[:step]]
            reached = [np.minimum(best, P[:, c]).mean() for c in others]
            assert np.minimum(best, P[:, winner]).mean() == pytest.approx(min(reached), abs=1e-12)
            best = np.minimum(best, P[:, winner])


def test_ties_are_drawn_uniformly() -> None:
    P = np.array([[3.0, 1.0, 1.0, 2.0, 1.0], [0.0, 5.0, 5.0, 5.0, 5.0]])
    rng = np.random.default_rng(0)
    drawn = [greedy_portfolio(P, 3, rng).tolist() for _ in range(900)]
    assert {chosen[0] for chosen in drawn} == {0}
    for place in (1, 2):
        counts = np.bincount([chosen[place] for chosen in drawn], minlength=5)
        if place == 1:
            assert set(np.flatnonzero(counts)) == {1, 2, 4}
            assert chisquare(counts[[1, 2, 4]]).pvalue > 1e-3
        else:
            assert counts[3] > 0, "once nothing improves, all that is left ties"


def test_no_more_is_chosen_than_there_is() -> None:
    assert sorted(greedy_portfolio(np.ones((2, 3)), 10, np.random.default_rng(0)).tolist()) == [0, 1, 2]
    assert len(greedy_portfolio(np.ones((2, 0)), 10, np.random.default_rng(0))) == 0


def test_what_was_tried_comes_best_first_of_every_run_in_turn() -> None:
    X = [np.arange(6.0).reshape(3, 2), 10 + np.arange(4.0).reshape(2, 2)]
    runs = (SourceData("p", X[0], np.array([2.0, 0.0, 1.0])), SourceData("q", X[1], np.array([5.0, 4.0])))
    expected = [X[0][1], X[1][1], X[0][2], X[1][0], X[0][0]]
    np.testing.assert_array_equal(past_configurations(runs), expected)


def design(sources: Sources, size: int, *, candidates: Any = None, name: str = "smfo", seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return learned_design(method(name), SPACE, candidates, sources=sources, size=size, rng=rng)


def rows(X: Any) -> set[tuple[float, ...]]:
    return {tuple(x) for x in X.tolist()}


def test_all_that_past_runs_tried_is_used_up_without_repetition() -> None:
    again = [*INPUTS[:3], INPUTS[2][:6]]
    got = design(fitted("meanvar", again, VALUES), 50)
    assert len(got) == 2 + 5 + 8
    assert rows(got) == rows(np.concatenate(INPUTS[:3]))


def test_only_candidates_are_chosen_and_of_those_what_past_runs_tried() -> None:
    sources = fitted("meanvar")
    candidates = np.concatenate([INPUTS[1][:3], INPUTS[3], np.random.default_rng(51).random((20, 2))])
    tried = np.concatenate([INPUTS[1][:3], INPUTS[3]])
    got = design(sources, 3, candidates=candidates)
    assert rows(got) <= rows(tried)
    expected = tried[literal_greedy(literal_costs("meanvar", tried), 3)]
    np.testing.assert_array_equal(got, expected)


def test_when_what_past_runs_tried_is_used_up_the_other_candidates_follow_by_what_they_add() -> None:
    tried, others = INPUTS[3][:3], np.random.default_rng(51).random((20, 2))
    reached, costs = literal_costs("meanvar", tried).min(axis=1), literal_costs("meanvar", others)
    expected = literal_greedy(np.minimum(costs, reached[:, None]), 2)
    assert expected != literal_greedy(costs, 2)
    for seed in range(3):
        got = design(fitted("meanvar"), 5, candidates=np.concatenate([others[:10], tried, others[10:]]), seed=seed)
        assert rows(got[:3]) == rows(tried)
        np.testing.assert_array_equal(got[3:], others[expected])


def test_candidates_that_no_past_run_tried_are_chosen_by_prediction() -> None:
    candidates = np.random.default_rng(51).random((20, 2))
    got = design(fitted("meanvar"), 3, candidates=candidates)
    expected = candidates[literal_greedy(literal_costs("meanvar", candidates), 3)]
    np.testing.assert_array_equal(got, expected)


def test_with_very_many_past_runs_the_design_comes_from_all_over_the_candidates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(design_module, "MAX_PREDICTIONS", 40)  # ten candidates for four past runs
    candidates = np.linspace(0.0, 0.99, 200).reshape(100, 2)
    prior: Any = SimpleNamespace(sources=range(4), functions=lambda rows: -rows[:, 0] * np.ones((4, 1)))
    places = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        by_prior = prior_design(prior, SPACE, candidates, size=1, rng=rng)
        others = design(fitted("meanvar"), 10, candidates=candidates, seed=seed)
        places.append([by_prior[0, 0], others[:, 0].max()])
    assert np.all(np.mean(places, axis=0) > 0.8)


def test_rows_outside_the_new_space_are_never_chosen() -> None:
    moved = [X + shift for X, shift in zip(INPUTS, (0.0, 0.5, -0.5, 0.0), strict=True)]
    inside = [x for X in moved for x in X if np.all((x >= 0) & (x <= 1))]
    assert 8 < len(inside) < 21
    got = design(fitted("meanvar", moved), 50)
    assert rows(got) == rows(np.array(inside))
    far = [X + 2.0 for X in INPUTS]
    assert len(design(fitted("meanvar", far), 5)) == 0


@pytest.mark.parametrize(
    ("name", "learned", "size"),
    [
        ("smfo", True, 33),
        ("smfo", False, 10),
        ("rgpe-taf", True, 1),
        ("rgpe-nei", True, 2),
        ("rgpe-taf+copula", True, 2),
        ("rgpe-taf", False, 10),
        ("gp", False, 5),
        ("gp+paper", False, 10),
        ("random", False, 1),
    ],
)
def test_the_design_has_the_size_of_the_method(name: str, learned: bool, size: int) -> None:
    assert design_size(method(name), 33, learned=learned) == size


@pytest.mark.parametrize(("horizon", "size"), [(2, 3), (20, 3), (24, 4), (30, 5), (500, 5)])
def test_the_sobol_design_leaves_most_trials_of_a_short_run_to_the_model(horizon: int, size: int) -> None:
    assert design_size(method("gp"), horizon, learned=False) == size
