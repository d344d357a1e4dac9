"""`TransferSampler`: what it suggests, from which past, in which space."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler
from optuna.trial import create_trial

import recollect
from recollect import InputError, InputTypeError, Optimizer, RecollectWarning, Run, SpaceError
from recollect.integrations.optuna import study_optimizer
from recollect.optuna import TransferSampler
from recollect.storage.optuna_conversion import run_of_study, space_of_distributions

Objective = Callable[[optuna.Trial], float]
KNOWN: dict[str, BaseDistribution] = {
    "lr": FloatDistribution(1e-4, 1.0, log=True),
    "depth": IntDistribution(1, 9),
    "loss": CategoricalDistribution(["hinge", "log"]),
}


@pytest.fixture(autouse=True)
def _quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def value_of(params: dict[str, Any], shift: float) -> float:
    away = (math.log10(params["lr"]) + 2 + shift) ** 2 + 0.1 * abs(params["depth"] - 6)
    return away + 0.3 * (params["loss"] == "hinge")


def ask_for(trial: optuna.Trial) -> dict[str, Any]:
    return {
        "lr": trial.suggest_float("lr", 1e-4, 1.0, log=True),
        "depth": trial.suggest_int("depth", 1, 9),
        "loss": trial.suggest_categorical("loss", ["hinge", "log"]),
    }


def past_study(shift: float, *, sign: float = 1.0, storage: Any = None, name: str | None = None) -> optuna.Study:
    direction = "minimize" if sign > 0 else "maximize"
    study = optuna.create_study(direction=direction, storage=storage, study_name=name or f"shift {shift}")
    rng = np.random.default_rng(int(1000 * (shift + 5)))
    for _ in range(12):
        params = {
            "lr": float(10 ** rng.uniform(-4, 0)),
            "depth": int(rng.integers(1, 10)),
            "loss": str(rng.choice(["hinge", "log"])),
        }
        study.add_trial(create_trial(params=params, distributions=KNOWN, value=sign * value_of(params, shift)))
    return study


@pytest.fixture(scope="module")
def past() -> list[optuna.Study]:
    return [past_study(shift) for shift in (-0.2, 0.0, 0.2)]


def drive(sampler: TransferSampler, trials: int, *, sign: float = 1.0) -> list[dict[str, Any]]:
    study = optuna.create_study(sampler=sampler, direction="minimize" if sign > 0 else "maximize")
    study.optimize(lambda trial: sign * value_of(ask_for(trial), 0.1), n_trials=trials)
    return [trial.params for trial in study.trials]


class Spy(RandomSampler):
    """A random sampler that notes what it was asked for."""

    def __init__(self) -> None:
        super().__init__(seed=0)
        self.asked: list[tuple[int, str]] = []

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        self.asked.append((trial.number, param_name))
        return super().sample_independent(study, trial, param_name, param_distribution)


def test_the_suggestions_are_those_of_the_optimizer_itself_from_the_first_trial_on(past: list[optuna.Study]) -> None:
    optimizer = Optimizer(space_of_distributions(KNOWN), past=[run_of_study(study) for study in past], seed=3)
    expected = []
    for _ in range(7):
        expected.append(optimizer.ask())
        optimizer.tell(expected[-1], value_of(expected[-1], 0.1))
    assert drive(TransferSampler(past=past, seed=3), 7) == expected


def test_maximizing_the_negative_is_the_same_as_minimizing(past: list[optuna.Study]) -> None:
    mirrored = [past_study(shift, sign=-1.0) for shift in (-0.2, 0.0, 0.2)]
    down = drive(TransferSampler(past=past, seed=3), 6)
    assert drive(TransferSampler(past=mirrored, seed=3), 6, sign=-1.0) == down


def test_the_first_suggestion_is_the_first_of_the_portfolio_and_nothing_is_left_to_chance(
    past: list[optuna.Study],
) -> None:
    spy = Spy()
    sampler = TransferSampler(past=past, seed=0, independent_sampler=spy)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: value_of(ask_for(trial), 0.1), n_trials=1)
    assert sampler.explain(study).reason == "point 1 of the portfolio learned from past runs"
    study.optimize(lambda trial: value_of(ask_for(trial), 0.1), n_trials=4)
    assert spy.asked == []


def test_transfer_finds_better_values_in_five_trials_than_plain_bayesian_optimization(past: list[optuna.Study]) -> None:
    def best(sampler: TransferSampler) -> float:
        return min(value_of(params, 0.1) for params in drive(sampler, 5))

    with_past = [best(TransferSampler(past=past, seed=seed)) for seed in range(3)]
    without = [best(TransferSampler(seed=seed)) for seed in range(3)]
    assert np.mean(with_past) < 0.5 * np.mean(without)


def test_studies_storages_urls_and_runs_may_be_mixed(tmp_path: Path, past: list[optuna.Study]) -> None:
    expected = drive(TransferSampler(past=past, seed=1), 3)
    url = f"sqlite:///{tmp_path}/first.db"
    past_study(-0.2, storage=url)
    storage = optuna.storages.InMemoryStorage()
    past_study(0.0, storage=storage)
    run = run_of_study(past[2])
    assert drive(TransferSampler(past=[url, storage, run], seed=1), 3) == expected
    assert drive(TransferSampler(past=iter([tmp_path / "first.db", past[1], run]), seed=1), 3) == expected


def test_one_thing_need_not_be_in_a_list(past: list[optuna.Study]) -> None:
    assert drive(TransferSampler(past=past[0], seed=1), 2) == drive(TransferSampler(past=past[:1], seed=1), 2)


def test_a_run_without_a_space_teaches_once_the_study_has_shown_its_own(past: list[optuna.Study]) -> None:
    sampler = TransferSampler(past=[run_of_study(study) for study in past], seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: value_of(ask_for(trial), 0.1), n_trials=1)
    with pytest.raises(InputError, match="not suggested anything"):
        sampler.explain(study)
    with pytest.raises(InputError, match="not suggested anything"):
        TransferSampler(seed=0).explain()
    assert sampler.space(study) is not None
    study.optimize(lambda trial: value_of(ask_for(trial), 0.1), n_trials=1)
    assert sampler.explain() == sampler.explain(study)
    assert [entry.task for entry in sampler.explain(study).past] == ["shift -0.2", "shift 0.0", "shift 0.2"]


def test_a_stated_space_makes_runs_teach_from_the_first_trial_on(past: list[optuna.Study]) -> None:
    runs = [run_of_study(study) for study in past]
    as_dict = {"lr": (1e-4, 1.0, "log"), "depth": (1, 9), "loss": ["hinge", "log"]}
    expected = drive(TransferSampler(past=past, seed=1), 3)
    for space in (as_dict, space_of_distributions(KNOWN).source, KNOWN):
        assert drive(TransferSampler(past=runs, seed=1, space=space), 3) == expected


@pytest.mark.filterwarnings("ignore:past run:recollect.RecollectWarning")
@pytest.mark.parametrize(
    "ask",
    [
        lambda trial: trial.suggest_float("lr", 0.5, 2.0, log=True),
        lambda trial: trial.suggest_float("lr", 1e-4, 1.0),
        lambda trial: trial.suggest_float("lr", 0.0, 1.0, step=0.25),
        lambda trial: trial.suggest_int("lr", 1, 3),
        lambda trial: trial.suggest_categorical("lr", [0.1, 0.2]),
        lambda trial: trial.suggest_float("lr", 0.3, 0.3),
    ],
)
def test_an_objective_that_asks_for_something_else_than_the_past_gets_it(
    past: list[optuna.Study], ask: Callable[[optuna.Trial], float]
) -> None:
    study = optuna.create_study(sampler=TransferSampler(past=past, seed=0))
    study.optimize(lambda trial: ask(trial) + trial.suggest_int("depth", 1, 9), n_trials=4)
    for trial in study.trials:
        distribution = trial.distributions["lr"]
        assert distribution._contains(distribution.to_internal_repr(trial.params["lr"]))


def test_choices_that_differ_from_the_past_are_met_and_learned(past: list[optuna.Study]) -> None:
    sampler = TransferSampler(past=past, seed=0)
    study = optuna.create_study(sampler=sampler)

    def objective(trial: optuna.Trial) -> float:
        return float(
            len(trial.suggest_categorical("loss", ["hinge", "log", "squared"])) + trial.suggest_int("depth", 1, 9)
        )

    study.optimize(objective, n_trials=4)
    space = sampler.space(study)
    assert space is not None
    assert "squared" in str(space.source)


def test_a_value_in_another_range_that_happens_to_fit_is_used(past: list[optuna.Study]) -> None:
    spy = Spy()
    study = optuna.create_study(sampler=TransferSampler(past=past, seed=0, independent_sampler=spy))
    trial = study.ask()
    lr = trial.suggest_float("lr", 1e-6, 10.0)
    assert spy.asked == []
    assert lr == drive(TransferSampler(past=past, seed=0), 1)[0]["lr"]


def svm(shift: float) -> Objective:
    def objective(trial: optuna.Trial) -> float:
        kernel = trial.suggest_categorical("kernel", ["linear", "poly", "rbf"])
        value = abs(math.log10(trial.suggest_float("C", 1e-3, 1e3, log=True)) - shift)
        if kernel == "rbf":
            return value + abs(math.log10(trial.suggest_float("gamma", 1e-4, 10.0, log=True)) + 1)
        return value + 1 + (trial.suggest_int("degree", 2, 5) if kernel == "poly" else 0)

    return objective


def test_conditional_parameters_are_planned_once_their_condition_is_known() -> None:
    spy = Spy()
    sampler = TransferSampler(seed=1, independent_sampler=spy)
    study = optuna.create_study(sampler=sampler)
    study.optimize(svm(0.5), n_trials=12)
    first = {
        name: next(t.number for t in study.trials if name in t.params) for name in ("kernel", "C", "gamma", "degree")
    }
    assert {(number, name) for name, number in first.items()} >= set(spy.asked) - {(1, "kernel")}
    space = sampler.space(study)
    assert space is not None
    assert sorted(space.condition_texts)[2:] == ["degree | kernel in {'poly'}", "gamma | kernel in {'rbf'}"]
    assert len(sampler.explain(study).past) == 0
    assert sampler.explain(study).trials == 11


def test_conditions_seen_in_past_studies_hold_from_the_first_trial() -> None:
    old = optuna.create_study(sampler=RandomSampler(seed=1))
    old.optimize(svm(0.0), n_trials=25)
    spy = Spy()
    study = optuna.create_study(sampler=TransferSampler(past=old, seed=1, independent_sampler=spy))
    study.optimize(svm(0.3), n_trials=6)
    assert spy.asked == []
    assert study.trials[0].params["kernel"] == old.best_params["kernel"] == "rbf"


def test_what_comes_and_goes_for_no_reason_and_what_no_space_holds_is_sampled_independently() -> None:
    spy = Spy()
    sampler = TransferSampler(seed=0, independent_sampler=spy)
    study = optuna.create_study(sampler=sampler)

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.suggest_int("seed", 0, 2**60)
        return x + (trial.suggest_float("whim", 0.0, 1.0) if x > 0.5 else 0.0)

    study.optimize(objective, n_trials=8)
    whims = [trial.number for trial in study.trials if "whim" in trial.params]
    assert 0 < len(whims) < 8
    assert {number for number, name in spy.asked if name == "whim"} >= set(whims[1:])
    assert [number for number, name in spy.asked if name == "seed"] == list(range(8))
    space = sampler.space(study)
    assert space is not None
    assert space.names == ("x",)


def test_fine_steps_and_bounds_that_configspace_rounds_are_kept_exactly() -> None:
    study = optuna.create_study(sampler=TransferSampler(seed=0))
    third = 1e-4 / 3
    for _ in range(6):
        trial = study.ask()
        fine = trial.suggest_float("fine", 0.0, 1.0, step=1e-5)
        small = trial.suggest_float("small", third, 2 * third)
        assert abs(fine / 1e-5 - round(fine / 1e-5)) < 1e-6
        assert third <= small <= 2 * third
        study.tell(trial, fine + small)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 6


def test_past_studies_teach_about_parameters_with_steps_also_with_other_steps() -> None:
    def stepped(step: float, seed: int) -> optuna.Study:
        study = optuna.create_study(sampler=RandomSampler(seed=seed), study_name=f"step {step}")
        study.optimize(lambda trial: value(trial, step), n_trials=20)
        return study

    def value(trial: optuna.Trial, step: float) -> float:
        rate = trial.suggest_float("rate", 0.0, 1.0, step=step)
        return abs(rate - 0.3) + abs(trial.suggest_int("width", 8, 64, step=8) - 40) / 20

    sampler = TransferSampler(
        past=[stepped(0.05, 1), stepped(0.02, 2)], space={"rate": FloatDistribution(0, 1, step=0.05)}
    )
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: value(trial, 0.05), n_trials=5)
    explanation = sampler.explain(study)
    assert [(entry.observations, entry.alignment) for entry in explanation.past] == [(20, ""), (20, "")]
    assert study.best_value < 0.15


def test_a_finite_space_is_tried_once_and_then_sampled_at_random() -> None:
    study = optuna.create_study(sampler=TransferSampler(seed=0))
    study.optimize(
        lambda trial: float(trial.suggest_categorical("a", [0, 1, 2]) + trial.suggest_int("b", 0, 1)), n_trials=9
    )
    assert len({tuple(trial.params.values()) for trial in study.trials[:6]}) == 6
    assert len(study.trials) == 9


def test_the_same_seed_gives_the_same_suggestions_also_from_a_copy(past: list[optuna.Study]) -> None:
    sampler = TransferSampler(past=past, seed=5)
    copies = [copy.deepcopy(sampler), pickle.loads(pickle.dumps(sampler))]
    expected = drive(sampler, 4)
    for twin in (*copies, copy.deepcopy(sampler), pickle.loads(pickle.dumps(sampler))):
        assert drive(twin, 4) == expected


def test_another_seed_or_none_or_reseeding_gives_other_suggestions() -> None:
    expected = drive(TransferSampler(seed=5), 3)
    reseeded = TransferSampler(seed=5)
    reseeded.reseed_rng()
    unseeded = TransferSampler()
    for other in (TransferSampler(seed=6), reseeded, unseeded, copy.deepcopy(TransferSampler())):
        assert drive(other, 3) != expected
    assert drive(copy.deepcopy(TransferSampler()), 3) != drive(copy.deepcopy(TransferSampler()), 3)


def test_reseeding_in_the_middle_of_a_study_keeps_what_was_told_and_changes_what_is_suggested() -> None:
    sampler = TransferSampler(seed=5)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: value_of(ask_for(trial), 0.1), n_trials=3)
    sampler.reseed_rng()
    study.optimize(lambda trial: value_of(ask_for(trial), 0.1), n_trials=1)
    assert sampler.explain(study).trials == 3
    undisturbed = drive(TransferSampler(seed=5), 4)
    assert [trial.params for trial in study.trials[:3]] == undisturbed[:3]
    assert study.trials[3].params != undisturbed[3]


def test_one_sampler_serves_several_studies(past: list[optuna.Study]) -> None:
    sampler = TransferSampler(past=past, seed=5)
    studies = [optuna.create_study(sampler=sampler) for _ in range(10)]
    for study in studies:
        study.optimize(lambda trial: value_of(ask_for(trial), 0.1), n_trials=1)
    studies[0].optimize(lambda trial: value_of(ask_for(trial), 0.1), n_trials=1)
    assert sampler.explain(studies[0]).trials == 1


def test_a_study_that_was_deleted_and_made_again_starts_afresh(tmp_path: Path, past: list[optuna.Study]) -> None:
    sampler = TransferSampler(past=past, seed=5)
    storage = optuna.storages.get_storage(f"sqlite:///{tmp_path}/x.db")
    suggestions = []
    for _ in range(2):
        study = optuna.create_study(sampler=sampler, storage=storage, study_name="again")
        study.optimize(lambda trial: value_of(ask_for(trial), 0.1), n_trials=2)
        suggestions.append([trial.params for trial in study.trials])
        optuna.delete_study(study_name="again", storage=storage)
    assert suggestions[0] == suggestions[1]


def test_the_optimizer_is_kept_from_trial_to_trial(past: list[optuna.Study], monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Counted(Optimizer):
        def __init__(self, *given: Any, **more: Any) -> None:
            made.append(1)
            super().__init__(*given, **more)

    monkeypatch.setattr(study_optimizer, "Optimizer", Counted)
    drive(TransferSampler(past=past, seed=5), 5)
    assert len(made) == 1


def test_a_study_is_not_its_own_past(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/all.db"
    past_study(0.0, storage=url, name="old")
    study = past_study(0.2, storage=url, name="now")
    sampler = TransferSampler(past=url, seed=0)
    study.sampler = sampler
    study.optimize(lambda trial: value_of(ask_for(trial), 0.2), n_trials=1)
    assert [entry.task for entry in sampler.explain(study).past] == ["old"]
    assert sampler.explain(study).trials == 12


def test_a_study_of_the_same_name_elsewhere_is_past(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/elsewhere.db"
    past_study(0.0, storage=url, name="svm")
    sampler = TransferSampler(past=url, seed=0)
    study = optuna.create_study(sampler=sampler, study_name="svm")
    study.optimize(lambda trial: value_of(ask_for(trial), 0.2), n_trials=1)
    assert [entry.task for entry in sampler.explain(study).past] == ["svm"]


def test_what_a_storage_holds_besides_is_left_out_with_a_warning(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/all.db"
    past_study(0.0, storage=url, name="old")
    past_study(0.1, storage=url, name="upwards", sign=-1.0)
    strange = optuna.create_study(storage=url, study_name="strange")
    one = {"z": FloatDistribution(0.0, 1.0)}
    for z in (0.2, 0.4, 0.6):
        strange.add_trial(create_trial(params={"z": z}, distributions=one, value=z))
    optuna.create_study(storage=url, study_name="many", directions=["minimize", "maximize"])
    with pytest.warns(RecollectWarning, match="'many' is left out: it has 2 objectives"):
        sampler = TransferSampler(past=url, seed=0)
    study = optuna.create_study(sampler=sampler)
    with pytest.warns(RecollectWarning, match="left out .*'upwards'"):
        study.optimize(lambda trial: value_of(ask_for(trial), 0.2), n_trials=1)
    with pytest.warns(RecollectWarning, match="none of the parameters depth, loss, lr: 'strange'"):
        study.optimize(lambda trial: value_of(ask_for(trial), 0.2), n_trials=1)
    assert [entry.task for entry in sampler.explain(study).past] == ["old"]


@pytest.mark.parametrize("kind", ["studies", "run"])
def test_a_past_that_was_named_must_have_the_same_direction_which_shows_before_anything_is_evaluated(
    past: list[optuna.Study], kind: str
) -> None:
    named = past if kind == "studies" else Run("down", [{"lr": 0.1}, {"lr": 0.2}], [1.0, 2.0])
    study = optuna.create_study(sampler=TransferSampler(past=named), direction="maximize", study_name="up")
    evaluated = []

    def objective(trial: optuna.Trial) -> float:
        evaluated.append(trial.number)
        return trial.suggest_float("lr", 1e-4, 1.0, log=True)

    with pytest.raises(InputError, match=r"past: '.*' .*minimize.* study 'up' .*maximize"):
        study.optimize(objective, n_trials=2, catch=(ValueError,))
    assert not evaluated
    assert [trial.state for trial in study.trials] == [optuna.trial.TrialState.FAIL]


def test_wrong_arguments_are_refused_when_the_sampler_is_made(tmp_path: Path) -> None:
    with pytest.raises(InputTypeError, match=r"past\[1\]: expected an optuna.Study, .* got 3 \(int\)"):
        TransferSampler(past=[Run("a", configs=[], values=[]), 3])
    with pytest.raises(InputTypeError, match=r"past: expected studies, .* got 3 \(int\)"):
        TransferSampler(past=3)
    with pytest.raises(InputError, match="has 2 objectives"):
        TransferSampler(past=optuna.create_study(directions=["minimize", "maximize"]))
    with pytest.raises(recollect.errors.StorageError, match=r"nowhere\.db"):
        TransferSampler(past=f"sqlite:///{tmp_path}/nowhere.db")
    with pytest.raises(recollect.errors.StorageError, match=r"nowhere\.db"):
        TransferSampler(past=tmp_path / "nowhere.db")
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match="horizon"):
        TransferSampler(horizon=0)
    with pytest.raises(InputError, match="nonsense"):
        TransferSampler(method="nonsense")
    with pytest.raises(SpaceError, match="'a'"):
        TransferSampler(space={"a": (2.0, 1.0)})
    with pytest.raises(InputError, match="seed"):
        TransferSampler(seed=-1)


def test_several_objectives_are_refused_in_one_sentence() -> None:
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=TransferSampler(), study_name="two")
    with pytest.raises(InputError, match="study 'two' has 2 objectives, but only one can be optimized here"):
        study.ask().suggest_float("x", 0.0, 1.0)


def test_constraints_are_reported_as_not_taken_into_account() -> None:
    study = optuna.create_study(sampler=TransferSampler(seed=0))
    trial = study.ask()
    trial.suggest_float("x", 0.0, 1.0)
    if hasattr(trial, "set_constraint"):
        trial.set_constraint("c", 1.0)
    else:  # before Optuna 5 only samplers could do so
        study._storage.set_trial_system_attr(trial._trial_id, "constraints", [1.0])
    study.tell(trial, 1.0)
    with pytest.warns(RecollectWarning, match="has constraints"):
        study.ask().suggest_float("x", 0.0, 1.0)


def test_values_that_others_fix_are_respected_and_learned_from(past: list[optuna.Study]) -> None:
    sampler = TransferSampler(past=past, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial({"depth": 2})
    study.optimize(lambda trial: value_of(ask_for(trial), 0.1), n_trials=3)
    assert study.trials[0].params["depth"] == 2
    assert sampler.explain(study).trials == 2


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_fixed_parameter_leaves_a_smaller_space(past: list[optuna.Study]) -> None:
    sampler = TransferSampler(past=past, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: value_of(ask_for(trial), 0.1), n_trials=1)
    study.sampler = optuna.samplers.PartialFixedSampler({"depth": 2}, sampler)
    study.optimize(lambda trial: value_of(ask_for(trial), 0.1), n_trials=3)
    assert [trial.params["depth"] for trial in study.trials[1:]] == [2, 2, 2]
    assert sampler.explain(study).trials == 3
    optimizer = sampler._view(study).optimizer
    assert optimizer is not None
    assert set(optimizer.optimizer.space.names) == {"lr", "loss"}


def test_a_stated_space_with_conditions_leaves_out_trials_that_do_not_fit_it() -> None:
    from ConfigSpace import ConfigurationSpace, EqualsCondition, Float

    source = ConfigurationSpace({"kernel": ["linear", "rbf"]})
    source.add(Float("gamma", (0.1, 1.0)))
    source.add(EqualsCondition(source["gamma"], source["kernel"], "rbf"))
    sampler = TransferSampler(space=source, seed=0)
    study = optuna.create_study(sampler=sampler)
    kernels = CategoricalDistribution(["linear", "rbf"])
    gamma = FloatDistribution(0.1, 5.0)
    study.add_trial(create_trial(params={"kernel": "linear"}, distributions={"kernel": kernels}, value=1.0))
    outside = {"kernel": "rbf", "gamma": 3.0}
    study.add_trial(create_trial(params=outside, distributions={"kernel": kernels, "gamma": gamma}, value=1.0))
    trial = study.ask()
    with pytest.warns(
        RecollectWarning, match="trial 1 is left out: .*'gamma': 3.0.* does not belong to the stated space"
    ):
        kernel = trial.suggest_categorical("kernel", ["linear", "rbf"])
    assert kernel == "rbf"
    assert sampler.explain(study).trials == 1


@pytest.mark.parametrize("odd", [3, "random", RandomSampler])
def test_an_independent_sampler_that_is_none_is_refused_when_the_sampler_is_created(odd: Any) -> None:
    with pytest.raises(InputTypeError, match="independent_sampler"):
        TransferSampler(independent_sampler=odd)
