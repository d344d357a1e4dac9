"""`TransferSampler` when past studies differ: in a range, in choices, in the name of a parameter."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import IntDistribution

from recollect import InputError, InputTypeError, RecollectWarning, Run
from recollect.optuna import TransferSampler

LOSS = {"adam": 0.1, "sgd": 0.4, "rmsprop": 0.2}
SEEDS = 10


@pytest.fixture(autouse=True)
def _quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def objective(
    trial: optuna.Trial, shift: float = 0.1, name: str = "lr", high: float = 1.0, choices: Any = ("adam", "sgd")
) -> float:
    lr, layers = trial.suggest_float(name, 1e-5, high, log=True), trial.suggest_int("layers", 1, 6)
    return (math.log10(lr) + 3 - shift) ** 2 + (layers - 3) ** 2 / 9 + LOSS[trial.suggest_categorical("opt", choices)]


def past_studies(differences: dict[int, dict[str, Any]]) -> list[optuna.Study]:
    shifts = np.random.default_rng(0).uniform(-0.4, 0.4, 8)
    studies = []
    for number, shift in enumerate(shifts.tolist()):
        options = {"shift": shift, **differences.get(number, {})}
        study = optuna.create_study(study_name=f"exp{number}", sampler=optuna.samplers.TPESampler(seed=number))
        study.optimize(lambda trial, options=options: objective(trial, **options), n_trials=25)
        studies.append(study)
    return studies


@pytest.fixture(scope="module")
def eight() -> list[optuna.Study]:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return past_studies({2: {"name": "learning_rate"}, 5: {"high": 2.0}, 7: {"choices": tuple(LOSS)}})


def first_values(past: list[optuna.Study], trials: int, **options: Any) -> tuple[list[float], list[str]]:
    """Return the mean of the best value after each trial, and the warnings of one study."""
    curves, messages = [], []
    for seed in range(SEEDS):
        study = optuna.create_study(sampler=TransferSampler(past, seed=seed, **options))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            study.optimize(objective, n_trials=trials)
        curves.append(np.minimum.accumulate([trial.value for trial in study.trials]))
        messages = [str(entry.message) for entry in caught if entry.category is RecollectWarning]
    return np.mean(curves, axis=0).tolist(), messages


def test_one_study_with_a_wider_range_does_not_take_away_the_first_trial() -> None:
    values, messages = first_values(past_studies({7: {"high": 2.0}}), 1)
    assert values[0] <= 0.2
    assert len(messages) == 1


def test_eight_realistic_studies_give_good_first_trials_without_a_stated_space(eight: list[optuna.Study]) -> None:
    values, messages = first_values(eight, 5)
    assert values[0] <= 0.2
    assert values[2] <= 0.15
    assert values[4] <= 0.12
    (message,) = messages  # says once what was assumed and how to state it; no study is left out
    for part in ("'lr'", "'opt'", "high=2.0", "space=", "rename="):
        assert part in message


def test_what_is_stated_or_agreed_on_is_not_warned_about(eight: list[optuna.Study]) -> None:
    space = {"lr": (1e-5, 1.0, "log"), "opt": ["adam", "sgd"]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for sampler in (TransferSampler(eight, space=space, seed=0), TransferSampler(eight[:2], seed=0)):
            optuna.create_study(sampler=sampler).optimize(objective, n_trials=2)


def test_only_studies_that_are_left_out_are_named_and_only_once_it_is_known(eight: list[optuna.Study]) -> None:
    other = Run("another model", [{"depth": 3}, {"depth": 4}], [1.0, 2.0])
    sampler = TransferSampler([*eight[:2], other], seed=0)
    study = optuna.create_study(sampler=sampler)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study.optimize(objective, n_trials=1)
    with pytest.warns(RecollectWarning, match=r"left out .*: 'another model'$") as caught:
        study.optimize(objective, n_trials=2)
    assert len(caught) == 1


def test_a_renamed_parameter_is_learned_from(eight: list[optuna.Study]) -> None:
    sampler = TransferSampler([eight[2]], rename={"learning_rate": "lr"}, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=1)
    space = sampler.space(study)
    assert space is not None
    assert set(space.names) == {"lr", "layers", "opt"}
    gap = math.log10(study.trials[0].params["lr"]) - math.log10(eight[2].best_params["learning_rate"])
    assert abs(gap) < 1.0


def test_a_new_name_that_the_study_does_not_ask_for_is_said_once(eight: list[optuna.Study]) -> None:
    sampler = TransferSampler([eight[2]], rename={"learning_rate": "lrr"}, seed=0)
    with pytest.warns(RecollectWarning) as caught:
        optuna.create_study(sampler=sampler).optimize(objective, n_trials=3)
    texts = [str(warning.message) for warning in caught if "rename" in str(warning.message)]
    assert len(texts) == 1
    for name in ("'lrr'", "layers", "lr", "opt"):
        assert name in texts[0]


def test_renaming_is_checked(eight: list[optuna.Study]) -> None:
    with pytest.raises(InputTypeError, match="rename: expected new names by old ones"):
        TransferSampler(eight, rename=["lr"])  # type: ignore[arg-type]
    with pytest.warns(RecollectWarning, match="rename: no past run has 'learning rate'"):
        TransferSampler(eight, rename={"learning rate": "eta"})
    with pytest.raises(InputError, match="both 'layers' and 'lr'"):
        TransferSampler(eight, rename={"layers": "lr"})


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), (1, 2)])
def test_a_past_value_that_is_no_number_of_a_parameter_with_steps_is_dropped(odd: Any) -> None:
    past = Run("old", [{"n": 2}, {"n": 8}, {"n": 14}, {"n": odd}], [5.0, 0.0, 4.0, 6.0])
    sampler = TransferSampler(past, space={"n": IntDistribution(2, 20, step=6)}, seed=2**40)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: trial.suggest_int("n", 2, 20, step=6), 1)
    (entry,) = sampler.explain(study).past
    assert (entry.used, entry.observations) == (True, 3)
