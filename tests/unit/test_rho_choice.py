"""TST-R with a bandwidth chosen from results, on hand-made runs."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.bench.results import Finished, Key
from recollect.bench.rho import with_chosen_rho
from recollect.bench.study import Study, make_study

Ends = dict[str, dict[str, dict[str, float]]]  # method, benchmark, task: regret after the last of two evaluations


def study_of(ends: Ends, repetitions: int = 1) -> Study:
    runs = [
        Finished(Key(benchmark, method, task, repetition), 0, 0.0, 1.0, np.array([0.99, value]), None, 0.1, "0")
        for method, benchmarks in ends.items()
        for benchmark, tasks in benchmarks.items()
        for task, value in tasks.items()
        for repetition in range(repetitions)
    ]
    return with_chosen_rho(make_study(runs))


def end(study: Study, benchmark: str, method: str) -> dict[str, float]:
    outcome = study.find(benchmark, method)
    assert outcome is not None
    return outcome.at(2)


# On svm 0.1 is best by far on task a only, 0.9 on the two others; on glmnet 0.9 is best.
ENDS: Ends = {
    "tstr-ei+rho0.1": {"svm": {"a": 0.0, "b": 0.4, "c": 0.4}, "glmnet": {"g": 0.6, "h": 0.6}},
    "tstr-ei+rho0.9": {"svm": {"a": 0.9, "b": 0.3, "c": 0.3}, "glmnet": {"g": 0.1, "h": 0.2}},
}


def test_each_task_gets_the_value_that_is_best_on_the_other_tasks() -> None:
    study = study_of(ENDS, repetitions=2)
    assert end(study, "svm", "tstr-ei+rho-tasks") == {"a": 0.9, "b": 0.4, "c": 0.4}
    outcome = study.find("svm", "tstr-ei+rho-tasks")
    assert outcome is not None
    assert (outcome.remark, outcome.repetitions) == ("rho = 0.1 to 0.9", (2, 2))


def test_each_benchmark_gets_the_value_that_is_best_on_the_others() -> None:
    study = study_of(ENDS)
    assert end(study, "svm", "tstr-ei+rho-others") == {"a": 0.9, "b": 0.3, "c": 0.3}
    assert end(study, "glmnet", "tstr-ei+rho-others") == {"g": 0.6, "h": 0.6}


def test_the_best_of_one_benchmark_is_used_on_all() -> None:
    study = study_of(ENDS)
    assert end(study, "glmnet", "tstr-ei+rho-svm") == {"g": 0.6, "h": 0.6}
    assert end(study, "svm", "tstr-ei+rho-svm") == {"a": 0.0, "b": 0.4, "c": 0.4}
    assert end(study, "svm", "tstr-ei+rho-glmnet") == {"a": 0.9, "b": 0.3, "c": 0.3}
    found = study.find("svm", "tstr-ei+rho-glmnet")
    assert found is not None
    assert found.remark == "rho = 0.9"


def test_runs_without_a_value_have_the_default_unless_it_was_run_by_name() -> None:
    plain = {"tstr-ei": {"svm": {"a": 0.0, "b": 0.0}}, "tstr-ei+rho0.1": {"svm": {"a": 0.3, "b": 0.3}}}
    study = study_of(plain)
    assert end(study, "svm", "tstr-ei+rho-svm") == {"a": 0.0, "b": 0.0}
    outcome = study.find("svm", "tstr-ei+rho-svm")
    assert outcome is not None
    assert outcome.remark == "rho = 0.5"
    named = study_of(plain | {"tstr-ei+rho0.5": {"svm": {"a": 0.2, "b": 0.2}}})
    assert end(named, "svm", "tstr-ei+rho-svm") == {"a": 0.2, "b": 0.2}
    first = study_of({"tstr-ei+rho0.5+wd": {"svm": {"a": 0.2}}, "tstr-ei+wd": {"svm": {"a": 0.0}}})
    assert end(first, "svm", "tstr-ei+wd+rho-tasks") == {"a": 0.2}


def test_other_suffixes_make_other_families() -> None:
    study = study_of({"tstr-taf+copula+rho0.2": {"svm": {"a": 0.1}}, "tstr-taf": {"svm": {"a": 0.2}}})
    assert end(study, "svm", "tstr-taf+copula+rho-tasks") == {"a": 0.1}
    assert end(study, "svm", "tstr-taf+rho-tasks") == {"a": 0.2}
    outcome = study.find("svm", "tstr-taf+copula+rho-tasks")
    assert outcome is not None
    assert outcome.remark == "rho = 0.2, the only value run"
    assert study.find("svm", "tstr-taf+rho-svm") is None  # nothing to choose from


def test_values_are_compared_on_the_tasks_that_all_have() -> None:
    ends: Ends = {
        "tstr-ei+rho0.1": {"svm": {"a": 0.0, "b": 0.2, "z": 0.9}},
        "tstr-ei+rho0.2": {"svm": {"a": 0.1, "b": 0.3}},
    }
    study = study_of(ends)
    assert end(study, "svm", "tstr-ei+rho-tasks") == {"a": 0.0, "b": 0.2}
    assert end(study, "svm", "tstr-ei+rho-svm") == {"a": 0.0, "b": 0.2, "z": 0.9}


@pytest.mark.parametrize(
    ("ends", "absent"),
    [
        ({"tstr-ei+rho0.1": {"svm": {"a": 0.1}}, "tstr-ei+rho0.2": {"svm": {"a": 0.1}}}, "tstr-ei+rho-tasks"),
        ({"tstr-ei+rho0.1": {"svm": {"a": 0.1}}, "tstr-ei+rho0.2": {"svm": {"b": 0.1}}}, "tstr-ei+rho-svm"),
        ({"tstr-ei+rho0.1": {"svm": {"a": 0.1}}, "tstr-ei+rho0.2": {"svm": {"a": 0.1}}}, "tstr-ei+rho-others"),
        ({"rgpe-taf": {"svm": {"a": 0.1}}}, "rgpe-taf+rho-tasks"),
    ],
)
def test_what_cannot_be_chosen_is_left_out(ends: Ends, absent: str) -> None:
    assert study_of(ends).find("svm", absent) is None


def test_benchmarks_with_different_values_share_what_they_have_in_common() -> None:
    ends = ENDS | {"tstr-ei+rho0.3": {"svm": {"a": 0.0, "b": 0.0, "c": 0.0}}, "tstr-ei+rho0.7": {"nn": {"n": 0.1}}}
    study = study_of(ends)
    assert end(study, "svm", "tstr-ei+rho-svm") == {"a": 0.0, "b": 0.4, "c": 0.4}  # 0.3 was not run on glmnet
    assert end(study, "svm", "tstr-ei+rho-tasks") == {"a": 0.0, "b": 0.0, "c": 0.0}
    assert study.find("nn", "tstr-ei+rho-svm") is None
