"""`stop_when="unlikely"`: the model's claim, its calibration on how past runs went on, and the rule that ends a run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

from recollect import Run, compile_space, maximize, minimize
from recollect.errors import InputError
from recollect.tuning.improvement_forecast import (
    CHECK_INTERVAL,
    CLAIM_POWER,
    MIN_OBSERVATIONS,
    UNLIKELY,
    Forecast,
    ImprovementForecast,
    UnlikelyRule,
    calibrated_probability,
)

SPACE = {"a": (0.0, 1.0), "b": (0.0, 1.0)}


def points(count: int, seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).random((count, 2))


def bowl(X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(((X - 0.4) ** 2).sum(axis=1))


def best_at(position: int, seed: int, count: int = 30) -> tuple[Any, Any]:
    """Return a random run whose best trial is at a position; what follows is no better."""
    X = points(count, seed)
    y = bowl(X)
    order = [*range(count)]
    best = int(y.argmin())
    order[position], order[best] = best, position
    return X[order], y[order]


def calibrated(own: float, rates: Any, windows: Any, improved: Any, remaining: float = 20.0) -> float:
    return calibrated_probability(
        own, remaining, rates=np.asarray(rates), windows=np.asarray(windows), improved=np.asarray(improved, dtype=bool)
    )


def test_the_forecast_is_the_posterior_predictive_probability() -> None:
    rates, windows = np.array([0.02, 0.05, 0.1, 0.3]), np.array([40.0, 40.0, 20.0, 10.0])
    improved = np.array([False, False, True, False])
    centre = float(np.exp(np.log(rates).mean()))

    def expected(rate: float, window: float) -> float:
        return float(window * centre * (rate / centre) ** CLAIM_POWER)

    def posterior(f: float) -> float:
        counts = [f * expected(rate, window) for rate, window in zip(rates, windows, strict=True)]
        terms = [
            1 - math.exp(-count) if better else math.exp(-count) for count, better in zip(counts, improved, strict=True)
        ]
        return math.exp(-f) * math.prod(terms)

    total, _ = quad(posterior, 0, 50)
    reference, _ = quad(lambda f: posterior(f) * (1 - math.exp(-f * expected(0.08, 20.0))), 0, 50)
    assert calibrated(0.08, rates, windows, improved) == pytest.approx(reference / total, rel=1e-3)


@pytest.mark.parametrize("claim", [0.002, 0.05, 0.8])
@pytest.mark.parametrize("count", [1, 24, 50])
def test_if_no_past_run_improved_the_probability_is_that_of_the_closed_form(claim: float, count: int) -> None:
    found = calibrated(claim, np.full(count, claim), np.full(count, 20.0), np.zeros(count))
    assert found == pytest.approx(20 * claim / (1 + (count + 1) * 20 * claim), rel=1e-3)


def test_without_past_runs_the_model_is_taken_at_its_word() -> None:
    assert calibrated(0.03, [], [], []) == pytest.approx(1 - math.exp(-20 * 0.03))


def test_past_runs_that_did_not_improve_lower_the_probability_and_more_of_them_lower_it_more() -> None:
    found = [
        calibrated(0.1, np.full(k, 0.1), np.full(k, 20.0), np.full(k, better))
        for k, better in ((20, False), (3, False), (3, True), (20, True))
    ]
    assert found == sorted(found)
    assert found[0] < UNLIKELY < found[1]


@pytest.mark.parametrize("own", [0.01, 0.5, 20.0])
def test_of_24_past_runs_none_improved_so_that_an_improvement_is_unlikely_whatever_the_model_claims(own: float) -> None:
    rates = np.geomspace(0.001, 1.0, 24)
    assert calibrated(own, rates, np.full(24, 20.0), np.zeros(24)) < UNLIKELY


def test_a_higher_claim_means_a_higher_probability() -> None:
    rates = np.array([0.01, 0.02, 0.3, 0.4])  # the model was wrong about all of them
    improved = np.array([True, True, False, False])
    found = [calibrated(own, rates, np.full(4, 20.0), improved) for own in (0.01, 0.1, 0.5)]
    assert found == sorted(set(found))


def forecast(past: list[Any], run: tuple[Any, Any], n: int, **options: Any) -> Forecast:
    X, y = run
    return ImprovementForecast(compile_space(SPACE), past, **options)(X[:n], y[:n], len(y) - n)


def test_it_counts_the_past_runs_that_went_on_and_those_that_improved_then() -> None:
    past = [best_at(3, 1), best_at(20, 2), best_at(25, 3), best_at(2, 4, count=12)]
    found = forecast(past, best_at(5, 9), 12)
    assert (found.observations, found.remaining, found.past, found.improved) == (12, 18, 3, 2)
    assert forecast(past, best_at(5, 9), 12, min_improvement=1e6).improved == 0


def test_whether_past_runs_went_on_to_improve_decides() -> None:
    run = best_at(5, 9)
    done, improving = ([best_at(position, seed) for seed in range(24)] for position in (4, 25))
    low, high, own = (forecast(past, run, 15) for past in (done, improving, []))
    assert low.claimed == high.claimed == own.claimed == own.probability
    assert low.improved == 0
    assert high.improved > 18  # of 24; the others improved by less than is worthwhile
    assert low.probability < UNLIKELY
    assert low.reason
    assert high.probability > 0.9
    assert not high.reason
    assert (own.past, own.improved) == (0, 0)


def test_nothing_is_probable_where_everything_has_been_tried() -> None:
    space = compile_space({"n": (1, 12)})
    X = space.encode([{"n": n} for n in range(1, 13)])
    found = ImprovementForecast(space, [])(X, np.arange(12.0), 5)
    assert found.claimed < 1e-6
    assert "by the model of this task" in found.reason


def test_values_that_are_all_equal_and_conditional_spaces_have_a_forecast() -> None:
    space = compile_space([{"kind": ["x"], "a": (0.0, 1.0)}, {"kind": ["y", "z"], "b": (0.0, 1.0)}])
    configs = [{"kind": "x", "a": i / 20} for i in range(6)] + [{"kind": "z", "b": i / 20} for i in range(6)]
    X = space.encode(configs)
    for y in (np.ones(12), np.arange(12.0), np.array([*[1.0] * 11, 1e300])):
        found = ImprovementForecast(space, [(X, y)] * 3)(X[:11], y[:11], 7)
        assert 0.0 <= found.probability <= 1.0


def test_the_rule_waits_looks_now_and_then_and_keeps_its_answer() -> None:
    calls: list[int] = []

    def fake(_X: Any, y: Any, remaining: int) -> Forecast:
        calls.append(len(y))
        return Forecast(0.01 if len(y) >= 15 else 0.5, 0.5, len(y), remaining, 0, 0)

    rule = UnlikelyRule(fake, 50)  # type: ignore[arg-type]
    run = Run("t", space=compile_space(SPACE))
    reasons = []
    for x in points(20, 0):
        run = run.with_trial(Run("t", [{"a": x[0], "b": x[1]}], [1.0]).trials[0])
        reasons.append(bool(rule(run)))
    assert calls == [MIN_OBSERVATIONS, MIN_OBSERVATIONS + CHECK_INTERVAL]
    assert reasons == [False] * 14 + [True] * 6


def as_runs(position: int, direction: Any = "minimize", sign: float = 1.0) -> list[Run]:
    pairs = [best_at(position, seed) for seed in range(12)]
    return [
        Run(f"past {i}", [{"a": a, "b": b} for a, b in X.tolist()], sign * y, direction=direction)
        for i, (X, y) in enumerate(pairs)
    ]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_run_ends_where_past_runs_had_nothing_more_to_gain(sign: float) -> None:
    direction: Any = "minimize" if sign > 0 else "maximize"
    tune = minimize if sign > 0 else maximize
    options: dict[str, Any] = {"trials": 30, "method": "random", "progress": False, "stop_when": "unlikely", "seed": 1}

    def objective(config: dict[str, Any]) -> float:
        return float(sign * bowl(np.array([[config["a"], config["b"]]]))[0])

    early = tune(objective, SPACE, past=as_runs(4, direction, sign), **options)
    assert MIN_OBSERVATIONS <= len(early.run) < 30
    assert "unlikely" in early.stopped
    late = tune(objective, SPACE, past=as_runs(28, direction, sign), **options)
    assert len(late.run) == 30
    assert len(tune(objective, SPACE, past=as_runs(4, direction, sign), **{**options, "stop_when": None}).run) == 30


@pytest.mark.parametrize("option", [{"stop_when": "now"}, {"min_improvement": -1.0}, {"min_improvement": float("nan")}])
def test_options_that_make_no_sense_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(option))):
        minimize(lambda config: config["a"], SPACE, trials=2, progress=False, **option)
