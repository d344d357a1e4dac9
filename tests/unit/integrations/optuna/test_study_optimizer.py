"""`TransferSampler` and trials that failed, were pruned, are queued, or run elsewhere at the same time."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
import sqlalchemy
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from recollect.integrations.optuna import study_optimizer
from recollect.optuna import TransferSampler

KNOWN: dict[str, BaseDistribution] = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(-1.0, 1.0)}
Params = dict[str, Any]


@pytest.fixture(autouse=True)
def _quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.fixture(scope="module")
def past() -> list[optuna.Study]:
    studies = []
    for shift in (0.1, 0.2):
        study = optuna.create_study(study_name=f"shift {shift}")
        for x, y in np.random.default_rng(int(100 * shift)).uniform((0, -1), (1, 1), (10, 2)):
            params = {"x": float(x), "y": float(y)}
            study.add_trial(create_trial(params=params, distributions=KNOWN, value=float((x - shift) ** 2 + y**2)))
        studies.append(study)
    return studies


def ask_for(trial: optuna.Trial) -> Params:
    return {"x": trial.suggest_float("x", 0.0, 1.0), "y": trial.suggest_float("y", -1.0, 1.0)}


def bowl(params: Params) -> float:
    return (params["x"] - 0.15) ** 2 + float(params["y"]) ** 2


def both(study: optuna.Study, past: list[optuna.Study]) -> list[optuna.Study]:
    """The same study in the hands of two processes that share nothing but the storage and the seed."""
    return [
        optuna.load_study(study_name=study.study_name, storage=study._storage, sampler=TransferSampler(past, seed=0))
        for _ in range(2)
    ]


@pytest.fixture
def pair(past: list[optuna.Study]) -> list[optuna.Study]:
    return both(optuna.create_study(storage=optuna.storages.InMemoryStorage()), past)


def plan(past: list[optuna.Study], count: int) -> list[Params]:
    """What one process suggests for trials that run side by side."""
    study = optuna.create_study(sampler=TransferSampler(past, seed=0))
    return [ask_for(study.ask()) for _ in range(count)]


def test_failed_trials_are_told_as_failed_and_not_suggested_again(past: list[optuna.Study]) -> None:
    sampler = TransferSampler(past, seed=0)
    study = optuna.create_study(sampler=sampler)

    def objective(trial: optuna.Trial) -> float:
        params = ask_for(trial)
        if params["x"] < 0.4:
            raise RuntimeError("too small")
        return bowl(params)

    study.optimize(objective, n_trials=8, catch=RuntimeError)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 8
    assert sampler.explain(study).failed == sum(trial.state == TrialState.FAIL for trial in study.trials[:-1]) > 0


def test_a_trial_that_fails_before_it_has_asked_for_everything_failed_where_it_would_have_gone(
    past: list[optuna.Study],
) -> None:
    sampler = TransferSampler(past, seed=0)
    study = optuna.create_study(sampler=sampler)

    def objective(trial: optuna.Trial) -> float:
        if trial.suggest_float("x", 0.0, 1.0) is not None and trial.number < 4:
            raise RuntimeError("on purpose")
        return trial.suggest_float("y", -1.0, 1.0)

    study.optimize(objective, n_trials=5, catch=RuntimeError)
    assert len({trial.params["x"] for trial in study.trials}) == 5
    assert sampler.explain(study).failed == 4


def test_nan_and_infinite_values_are_failures(past: list[optuna.Study]) -> None:
    sampler = TransferSampler(past, seed=0)
    study = optuna.create_study(sampler=sampler)
    results = iter([float("nan"), float("inf"), 1.0, 2.0])
    study.optimize(lambda trial: (ask_for(trial), next(results))[1], n_trials=4)
    assert (sampler.explain(study).trials, sampler.explain(study).failed) == (3, 2)


def pruned_study(past: list[optuna.Study], *, report: bool) -> tuple[optuna.Study, TransferSampler]:
    sampler = TransferSampler(past, seed=0)
    study = optuna.create_study(sampler=sampler)
    for number in range(6):
        trial = study.ask()
        value = bowl(ask_for(trial))
        if report:
            trial.report(10 + value, 1)
        study.tell(trial, None if number % 2 else value, state=TrialState.PRUNED if number % 2 else TrialState.COMPLETE)
    return study, sampler


def test_a_pruned_trial_that_reported_counts_with_an_estimated_value(past: list[optuna.Study]) -> None:
    study, sampler = pruned_study(past, report=True)
    ask_for(study.ask())
    assert sampler.explain(study).trials == 6
    told = sampler._view(study).optimizer.optimizer.run.values  # type: ignore[union-attr]
    assert max(told) < 10  # type: ignore[type-var]


def test_a_pruned_trial_that_reported_nothing_is_neither_told_nor_tried_again(past: list[optuna.Study]) -> None:
    study, sampler = pruned_study(past, report=False)
    ask_for(study.ask())
    assert sampler.explain(study).trials == 3
    assert sampler.explain(study).failed == 0
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 7
    (first,) = plan(past, 1)
    again = optuna.create_study(sampler=TransferSampler(past, seed=0))
    again.add_trial(create_trial(params=first, distributions=KNOWN, state=TrialState.PRUNED))
    assert ask_for(again.ask()) != first


def test_pruners_of_all_kinds_work(past: list[optuna.Study]) -> None:
    for pruner in (optuna.pruners.MedianPruner(n_startup_trials=1), optuna.pruners.HyperbandPruner(max_resource=9)):
        study = optuna.create_study(sampler=TransferSampler(past, seed=0), pruner=pruner)

        def objective(trial: optuna.Trial) -> float:
            value = bowl(ask_for(trial))
            for step in range(9):
                trial.report(value + 1 / (step + 1), step)
                if trial.should_prune():
                    raise optuna.TrialPruned
            return value

        study.optimize(objective, n_trials=10)
        assert len({tuple(trial.params.values()) for trial in study.trials}) == 10


def test_trials_asked_for_together_differ(past: list[optuna.Study]) -> None:
    assert len({tuple(params.values()) for params in plan(past, 5)}) == 5


def test_what_another_process_is_trying_is_pending_here(pair: list[optuna.Study], past: list[optuna.Study]) -> None:
    here, there = pair
    suggested = [ask_for(study.ask()) for study in (there, here, there, here)]
    assert suggested == plan(past, 4)


def test_what_was_suggested_elsewhere_is_known_before_the_objective_has_asked_for_all_of_it(
    pair: list[optuna.Study], past: list[optuna.Study]
) -> None:
    here, there = pair
    there.ask().suggest_float("x", 0.0, 1.0)
    assert ask_for(here.ask()) == plan(past, 2)[1]


def test_processes_that_begin_at_the_same_moment_begin_with_different_configurations(
    pair: list[optuna.Study], past: list[optuna.Study]
) -> None:
    here, there = pair
    trials = [there.ask(), here.ask(), there.ask()]  # all are running, none has asked for anything yet
    assert [ask_for(trial) for trial in reversed(trials)] == plan(past, 3)[::-1]


def test_a_trial_begun_long_ago_that_never_asked_for_anything_does_not_hold_others_up(
    pair: list[optuna.Study], past: list[optuna.Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = pair
    there.ask()
    assert ask_for(here.ask()) == plan(past, 2)[1]
    monkeypatch.setattr(study_optimizer, "RESERVATION_TIME", timedelta(seconds=-1))
    assert ask_for(here.ask()) == plan(past, 2)[0]  # what had been put aside is free again


def test_a_promise_that_turns_out_otherwise_is_corrected(pair: list[optuna.Study], past: list[optuna.Study]) -> None:
    here, there = pair
    late = there.ask()
    first = ask_for(here.ask())
    assert first == plan(past, 2)[1]
    there.sampler = optuna.samplers.RandomSampler(seed=3)
    other = ask_for(late)
    assert other != plan(past, 1)[0]
    assert ask_for(here.ask()) == plan(past, 1)[0]
    optimizer = here.sampler._view(here).optimizer  # type: ignore[attr-defined]
    assert other in optimizer.optimizer.pending
    assert len(optimizer.optimizer.pending) == 3


def test_results_of_another_process_are_told_whatever_their_order(pair: list[optuna.Study]) -> None:
    here, there = pair
    trials = [study.ask() for study in (here, there, here, there)]
    params = [ask_for(trial) for trial in trials]
    for position in (3, 0, 2, 1):
        there.tell(trials[position].number, bowl(params[position]))
    ask_for(here.ask())
    explanation = here.sampler.explain(here)  # type: ignore[attr-defined]
    assert (explanation.trials, explanation.failed) == (4, 0)
    assert explanation.best_value == min(map(bowl, params))


def test_the_same_configuration_on_two_trials_stays_pending_until_both_have_ended(past: list[optuna.Study]) -> None:
    sampler = TransferSampler(past, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial({"x": 0.5, "y": 0.5})
    study.enqueue_trial({"x": 0.5, "y": 0.5})
    first, second = study.ask(), study.ask()
    for trial in (first, second):
        ask_for(trial)
    ask_for(study.ask())
    study.tell(first, 1.0)
    ask_for(study.ask())
    optimizer = sampler._view(study).optimizer
    assert optimizer is not None
    assert {"x": 0.5, "y": 0.5} in optimizer.optimizer.pending
    study.tell(second, 1.5)
    ask_for(study.ask())
    assert {"x": 0.5, "y": 0.5} not in optimizer.optimizer.pending
    assert optimizer.optimizer.run.values == [1.0, 1.5]


def test_what_is_queued_is_not_suggested_to_others(past: list[optuna.Study]) -> None:
    first, second = plan(past, 2)
    study = optuna.create_study(sampler=TransferSampler(past, seed=0))
    study.enqueue_trial(second)
    study.enqueue_trial(first)
    assert ask_for(study.ask()) == second
    waiting = study.ask()
    assert ask_for(study.ask()) not in (first, second)
    assert ask_for(waiting) == first


def test_long_suggestions_are_published_in_pieces(
    pair: list[optuna.Study], past: list[optuna.Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_optimizer, "MAX_ATTRIBUTE_LENGTH", 7)
    here, there = pair
    trial = there.ask()
    trial.suggest_float("x", 0.0, 1.0)
    pieces = [key for key in there.trials[0].system_attrs if key.startswith(study_optimizer.SUGGESTION_KEY)]
    assert len(pieces) > 3
    assert ask_for(here.ask()) == plan(past, 2)[1]


def test_a_suggestion_is_published_last_piece_first(past: list[optuna.Study], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_optimizer, "MAX_ATTRIBUTE_LENGTH", 7)
    study = optuna.create_study(sampler=TransferSampler(past, seed=0))
    study.ask().suggest_float("x", 0.0, 1.0)
    pieces = [key for key in study.trials[0].system_attrs if key.startswith(study_optimizer.SUGGESTION_KEY)]
    assert pieces == [f"{study_optimizer.SUGGESTION_KEY}:{index}" for index in reversed(range(len(pieces)))]


def test_a_trial_that_gets_its_suggestion_while_it_is_read_is_read_again(
    tmp_path: Path, past: list[optuna.Study]
) -> None:
    url = f"sqlite:///{tmp_path}/shared.db"
    optuna.create_study(storage=url, study_name="shared")
    here, there = (
        optuna.load_study(study_name="shared", storage=url, sampler=TransferSampler(past, seed=0)) for _ in range(2)
    )
    late = there._storage.create_new_trial(there._study_id)
    seen = []

    @sqlalchemy.event.listens_for(here._storage._backend.engine, "before_cursor_execute")  # type: ignore[attr-defined]
    def suggest_there(*details: Any) -> None:
        _, _, statement, trials, *_ = details
        if "FROM trial_params" in statement and len(trials) == 2 and not seen:  # attributes have been read by now
            seen.append(optuna.trial.Trial(there, late).suggest_float("x", 0.0, 1.0))

    first, second = plan(past, 2)
    assert ask_for(here.ask()) == second
    assert seen == [first["x"]]


def test_a_trial_of_another_sampler_costs_one_reading(
    past: list[optuna.Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = optuna.create_study(sampler=TransferSampler(past, seed=0))
    other = optuna.load_study(
        study_name=study.study_name, storage=study._storage, sampler=optuna.samplers.RandomSampler(seed=0)
    )
    ask_for(other.ask())
    readings = []
    read = study._storage.get_all_trials
    monkeypatch.setattr(study._storage, "get_all_trials", lambda *a, **k: readings.append(1) or read(*a, **k))
    counts = []
    for _ in range(3):
        ask_for(study.ask())
        counts.append(len(readings))
        readings.clear()
    assert counts[0] == counts[1] + 1 == counts[2] + 1


def test_threads_try_every_configuration_of_a_finite_space_exactly_once() -> None:
    study = optuna.create_study(sampler=TransferSampler(seed=0))
    known = {"a": CategoricalDistribution(["p", "q", "r"]), "b": IntDistribution(1, 4)}
    study.add_trial(create_trial(params={"a": "p", "b": 1}, distributions=known, value=1.0))
    meeting = threading.Barrier(4, timeout=60)

    def objective(trial: optuna.Trial) -> float:
        if trial.number <= 4:
            meeting.wait()
        return float(trial.suggest_int("b", 1, 4) + len(trial.suggest_categorical("a", ["p", "q", "r"])))

    study.optimize(objective, n_trials=11, n_jobs=4)
    assert len({tuple(sorted(trial.params.items())) for trial in study.trials}) == 12


def test_workers_share_a_database(tmp_path: Path, past: list[optuna.Study]) -> None:
    url = f"sqlite:///{tmp_path}/shared.db"
    study = optuna.create_study(storage=url, study_name="shared")
    errors = []

    def work() -> None:
        try:
            own = optuna.load_study(study_name="shared", storage=url, sampler=TransferSampler(past, seed=0))
            own.optimize(lambda trial: bowl(ask_for(trial)), n_trials=3)
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert errors == []
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 6
