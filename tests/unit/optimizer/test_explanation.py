"""Explanations: plain data, and a short text with a table of the past runs."""

from __future__ import annotations

import re
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from recollect import FAILED, Explanation, Influence, Optimizer, RecollectWarning, Run
from recollect.acquisition.functions import MixtureImprovement
from recollect.numerics.arrays import FloatArray
from recollect.optimizer.explanation import TEXT_WIDTH, PriorInfluence, transfer_verdict

SPACE = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
GRID = [{"a": i / 7, "b": j / 4} for i in range(8) for j in range(5)]


def value(config: dict[str, Any]) -> float:
    return float((config["a"] - 0.3) ** 2 + config["b"])


def wrong(config: dict[str, Any]) -> float:
    return -value(config)


PAST = [
    Run("good", GRID[::3], [value(c) for c in GRID[::3]]),
    Run("bad", GRID[1::3], [wrong(c) for c in GRID[1::3]]),
    Run("extra column", [c | {"z": 1} for c in GRID[2::3]], [value(c) for c in GRID[2::3]]),
]


def tuned(method: str, trials: int, past: Any = PAST, **options: Any) -> Optimizer:
    optimizer = Optimizer(SPACE, past, method, candidates=GRID, **options)
    for _ in range(trials):
        config = optimizer.ask()
        optimizer.tell(config, value(config))
    return optimizer


def test_before_any_model_only_the_past_runs_themselves_are_described() -> None:
    shown = Optimizer(SPACE, PAST).explain()
    assert shown.reason == "nothing has been suggested yet"
    assert [entry.task for entry in shown.past] == ["good", "bad", "extra column"]
    assert [entry.observations for entry in shown.past] == [14, 13, 13]
    assert all((e.weight, e.share, e.misranked, e.dropped) == (None,) * 4 for e in shown.past)
    assert (shown.best_value, shown.predicted_mean) == (None, None)
    assert "no best value yet" in str(shown)


def misranked_one_by_one(f: FloatArray, y: FloatArray) -> int:
    different = [(a, b) for a, b in permutations(range(len(y)), 2) if y[a] != y[b]]
    return sum((f[a] < f[b]) != (y[a] < y[b]) for a, b in different)


def test_misranked_pairs_are_those_of_all_results_and_drop_probabilities_those_of_the_weights() -> None:
    optimizer = tuned("rgpe-taf", 8)
    model, shown = optimizer._model, optimizer.explain()
    X, y = optimizer._history.modelled()
    assert model is not None
    assert model.sources is not None
    assert (len(y), len(model.y)) == (8, 7)  # the last result came after the last suggestion
    for i, entry in enumerate(shown.past):
        assert entry.misranked == misranked_one_by_one(model.sources.means(X)[i], y)
        assert entry.drop_probability == pytest.approx(1 - model.weights.keep_probability[i])
        assert entry.dropped == model.weights.dropped[i]
    assert shown.past[0].misranked < shown.past[1].misranked  # type: ignore[operator]
    assert shown.target.observations == 8


def test_the_mean_weight_is_that_of_all_suggestions_by_models() -> None:
    optimizer, seen = Optimizer(SPACE, PAST, "rgpe-mean", candidates=GRID, horizon=12), []
    for _ in range(12):
        config = optimizer.ask()
        shown = optimizer.explain()
        if shown.past[0].weight is not None:
            seen.append([entry.weight for entry in (*shown.past, shown.target)])
        mean = [entry.mean_weight for entry in (*shown.past, shown.target)]
        assert mean == (pytest.approx(np.mean(seen, axis=0)) if seen else [None] * 4)
        optimizer.tell(config, value(config))
    assert shown.pairs == 11 * 10
    assert optimizer.explain().pairs == 12 * 11
    assert [entry.dropped for entry in shown.past] == [True] * 3
    assert shown.past[0].mean_weight > 0.15 > shown.past[1].mean_weight  # type: ignore[operator]


def test_one_trial_is_not_plural() -> None:
    assert "1 trial finished" in str(tuned("rgpe-taf", 1).explain())


def test_the_share_is_the_part_in_the_value_of_the_last_suggestion() -> None:
    optimizer = tuned("rgpe-mogp+none", 3)
    model = optimizer._model
    assert model is not None
    ensemble = model.ensemble(np.empty((0, 2)))
    (x,) = optimizer.space.encode([optimizer.run.configs[-1]])
    shares = MixtureImprovement().prepare(ensemble, np.random.default_rng(0)).shares(x)
    assert 0 < shares[-1] < 1
    shown = optimizer.explain()
    entries = [shown.past[i] for i in ensemble.active_sources]
    assert [e.share for e in (*entries, shown.target)] == pytest.approx(shares.tolist())


@pytest.mark.parametrize("method", ["rgpe-taf", "rgpe-nei", "rgpe-taf+copula", "tstr-ei", "smfo", "gp", "random"])
def test_the_text_has_a_line_for_every_past_run_the_most_influential_first(method: str) -> None:
    shown = tuned(method, 12).explain()
    summary, _, rest = str(shown).partition("\nmethod ")
    assert " ".join(summary.splitlines()) == shown.summary
    assert max(map(len, summary.splitlines())) <= TEXT_WIDTH
    lines = rest.splitlines()
    assert all(text in lines[0] for text in (f"{method}:", "12 trials", f"best value {shown.best_value:.6g}"))
    assert lines[1].startswith(f"last suggestion: {shown.reason}")
    head = next(i for i, line in enumerate(lines) if line.startswith("past run"))
    columns = ["past run", "trials", "right order", "mean weight", "last suggestion"]
    assert re.split(r"  +", lines[head]) == columns
    table = lines[head + 1 : head + 5]
    assert table[-1].startswith("(this task)")
    assert {line.split("  ")[0] for line in table[:-1]} == {"good", "bad", "extra column"}
    first = sorted(shown.past, key=lambda entry: -(entry.mean_weight or 0.0))
    if first[0].mean_weight is not None:
        assert [line.split("  ")[0] for line in table[:-1]] == [entry.task for entry in first]
        for line, entry in zip(table[:-1], first, strict=True):
            right = 1 - entry.misranked / shown.pairs  # type: ignore[operator]
            last = "not used" if entry.dropped else f"{entry.weight:.0%}"
            assert re.split(r"  +", line)[1:] == [
                str(entry.observations),
                f"{right:.0%}",
                f"{entry.mean_weight:.0%}",
                last,
            ]
    assert any(line.startswith("extra column: ") and "'z'" in line for line in lines[head + 5 :])


def test_the_text_lists_ten_past_runs_and_all_on_request() -> None:
    past = [Run(f"past {number}", GRID[::3], [value(c) + number for c in GRID[::3]]) for number in range(13)]
    shown = tuned("rgpe-taf", 5, past).explain()

    def listed(text: str) -> int:
        return sum(line.startswith("past ") and line[5].isdigit() for line in text.splitlines())

    assert listed(str(shown)) == 10
    assert "3 more past runs" in str(shown)
    assert listed(shown.text(limit=None)) == 13
    assert "more past runs" not in shown.text(limit=None)


def influence(task: str, misranked: int, weight: float) -> Influence:
    return Influence(task, 20, used=True, weight=weight, misranked=misranked, dropped=False, mean_weight=weight)


def explained(past: list[Influence], *, observations: int = 10) -> Explanation:
    pairs = observations * (observations - 1)
    own = 1.0 - sum(entry.mean_weight or 0.0 for entry in past)
    target = Influence("(this task)", observations, used=True, mean_weight=own)
    return Explanation("rgpe-taf", observations, 0, 0.5, "why", None, None, target, tuple(past), (), pairs)


@pytest.mark.parametrize(
    ("past", "verdict"),
    [
        ([], "no past runs"),
        ([Influence("one", 0, used=False)], "not used"),
        ([Influence("one", 0, used=False), Influence("two", 0, used=False)], "None of the 2 past runs"),
        ([Influence("one", 9, used=True)], "1 past run in use; whether it helps has not been measured"),
        ([influence("one", 10, 0.4), influence("two", 45, 0.1)], "Past runs helped: 'one' puts 89% of"),
        ([influence("one", 10, 0.01)], "Past runs helped little: 'one'"),
        ([influence("one", 40, 0.4), influence("two", 50, 0.1)], "It is not clear that past runs helped"),
    ],
)
def test_the_summary_says_whether_past_runs_helped(past: list[Influence], verdict: str) -> None:
    assert verdict in explained(past).summary
    assert " ".join(str(explained(past)).splitlines()).startswith(explained(past).summary)


def test_few_results_are_too_early_for_a_verdict() -> None:
    assert "Too early" in explained([influence("one", 0, 0.9)], observations=4).summary


def test_what_is_above_chance_agrees_with_kendalls_test() -> None:
    rng = np.random.default_rng(0)
    order = np.arange(12)
    for _ in range(50):
        guess = order + rng.normal(scale=rng.uniform(1, 20), size=12)
        wrong = sum((order[i] - order[j]) * (guess[i] - guess[j]) < 0 for i in order for j in order)
        test = stats.kendalltau(order, guess, alternative="greater", method="asymptotic")
        helped = "Past runs helped" in explained([influence("one", int(wrong), 0.4)], observations=12).summary
        assert helped == (test.pvalue < 0.05)


def test_predictions_are_in_the_units_of_the_user_and_absent_under_ranks() -> None:
    for method in ("rgpe-nei", "rgpe-taf"):
        optimizer = Optimizer(SPACE, PAST, method, candidates=GRID, horizon=8)
        for config in GRID[::4]:
            optimizer.tell(config, 1000 + 5 * value(config))
        suggested = optimizer.ask()
        shown = optimizer.explain()
        assert shown.predicted_mean == pytest.approx(1000 + 5 * value(suggested), abs=2)
        assert shown.predicted_std is not None
        assert 0 < shown.predicted_std < 5
    shown = tuned("rgpe-taf+copula", 6).explain()
    assert (shown.predicted_mean, shown.predicted_std) == (None, None)


def test_a_past_run_that_was_left_out_says_so() -> None:
    with pytest.warns(RecollectWarning):
        optimizer = tuned("rgpe-taf", 4, [*PAST[:1], Run("short", GRID[:1], [1.0])])
    shown = optimizer.explain()
    assert [entry.used for entry in shown.past] == [True, False]
    (line,) = [line for line in str(shown).splitlines() if line.startswith("short ")]
    assert "left out" in line


@pytest.mark.parametrize(
    ("method", "state"), [("gp", "left out"), ("random", "left out"), ("gp-box", "used"), ("mtgp", "used")]
)
def test_past_runs_without_weights_are_used_or_left_out(method: str, state: str) -> None:
    shown = tuned(method, 4).explain()
    assert {entry.used for entry in shown.past} == {state == "used"}
    assert {entry.weight for entry in shown.past} == {None}
    lines = [line for line in str(shown).splitlines() if line.startswith(PAST[0].task)]
    assert [state in line for line in lines] == [True]


def test_failures_are_counted() -> None:
    optimizer = tuned("rgpe-taf", 3)
    optimizer.tell(optimizer.ask(), FAILED)
    assert (optimizer.explain().trials, optimizer.explain().failed) == (4, 1)
    assert "1 of them failed" in str(optimizer.explain())


def test_an_explanation_does_not_change_what_comes_next() -> None:
    quiet, asked = tuned("rgpe-taf", 5), tuned("rgpe-taf", 5)
    for _ in range(3):
        str(asked.explain())
    assert quiet.ask() == asked.ask()


def test_runs_of_the_same_name_are_distinguished() -> None:
    twins = [Run("same", r.configs, r.values) for r in PAST[:2]]
    shown = tuned("rgpe-mean+none", 10, twins).explain()
    apart = tuned("rgpe-mean+none", 10, PAST[:2]).explain()
    assert [e.weight for e in shown.past] == [e.weight for e in apart.past]
    assert shown.past[0].weight != shown.past[1].weight


def test_a_prior_from_past_runs_says_how_much_the_past_counts() -> None:
    past = [PAST[0], PAST[2], Run("also good", GRID[::2], [3.0 * value(c) + 1.0 for c in GRID[::2]])]
    shown = tuned("task-prior", 10, past).explain()
    assert shown.prior is not None
    assert shown.prior.alike + shown.prior.reversed + shown.prior.own_model == pytest.approx(1.0)
    assert shown.prior.alike > 0.5
    assert shown.prior.misranked < 20
    assert shown.prior.pairs == 90 - 18  # before the tenth result
    assert shown.summary.startswith("Past runs helped: ")
    assert f"had {1 - shown.prior.own_model:.0%} of the weight" in shown.summary
    coefficients = [entry.coefficient for entry in shown.past]
    assert sum(c or 0.0 for c in coefficients) == pytest.approx(shown.prior.alike - shown.prior.reversed)
    weights = [entry.weight or 0.0 for entry in (*shown.past, shown.target)]
    assert sum(weights) == pytest.approx(1.0)
    assert weights[-1] == pytest.approx(shown.prior.own_model)
    rows = [line for line in str(shown).splitlines() if line.startswith(("good ", "also good "))]
    assert all(re.search(r"[+-]\d\.\d\d$", row) for row in rows)


def test_a_past_that_contradicts_the_results_counts_reversed_or_not_at_all() -> None:
    past = [Run(f"bad {i}", GRID[i::3], [wrong(c) for c in GRID[i::3]]) for i in range(3)]
    shown = tuned("task-prior", 12, past).explain()
    assert shown.prior is not None
    assert shown.prior.alike < 0.1
    assert re.match("Past runs count in reverse|It is not clear", shown.summary)


@pytest.mark.parametrize(
    ("prior", "verdict"),
    [
        (PriorInfluence(0.9, 0.0, 0.1, misranked=10, pairs=90), "Past runs helped: together they put 89% of"),
        (PriorInfluence(0.2, 0.0, 0.8, misranked=10, pairs=90), "Past runs helped: together they put 89% of"),
        (PriorInfluence(0.9, 0.0, 0.1, misranked=44, pairs=90), "Past runs probably helped: together they put 51%"),
        (PriorInfluence(0.5, 0.0, 0.5, misranked=44, pairs=90), "It is not clear that past runs helped"),
        (PriorInfluence(0.0, 0.9, 0.1, misranked=80, pairs=90), "Past runs count in reverse"),
        (PriorInfluence(0.9, 0.0, 0.1, misranked=0, pairs=12), "Too early to say"),
    ],
)
def test_the_summary_of_a_prior_weighs_order_and_fit(prior: PriorInfluence, verdict: str) -> None:
    shown = transfer_verdict({"one": 1.0}, pairs=90, results=10, past_weight=0.9, prior=prior)
    assert shown.startswith(verdict)


def test_other_methods_have_no_prior_and_no_coefficients() -> None:
    shown = tuned("rgpe-taf", 8).explain()
    assert shown.prior is None
    assert all(entry.coefficient is None for entry in shown.past)
    assert "coefficient" not in str(shown)
