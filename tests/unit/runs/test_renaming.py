"""Hyperparameters of past runs under new names: what is carried over, and what is noticed."""

from __future__ import annotations

import warnings

import pytest

from recollect import InputError, InputTypeError, RecollectWarning, Run
from recollect.runs.renaming import check_new_names, rename_hyperparameters

OLD = Run("old", [{"learning_rate": 0.1, "depth": 3}], [1.0])
NEW = Run("new", [{"lr": 0.1, "depth": 3}], [1.0])


@pytest.mark.parametrize("runs", [[OLD], [NEW], [OLD, NEW], []])
def test_runs_get_the_new_name_and_those_that_have_it_keep_it(runs: list[Run]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        renamed = rename_hyperparameters(runs, {"learning_rate": "lr"})
    assert [run.configs for run in renamed] == [NEW.configs] * len(runs)


@pytest.mark.parametrize("runs", [[OLD], [OLD, NEW]])
def test_an_old_name_that_no_run_has_is_noticed_also_if_some_have_the_new_one(runs: list[Run]) -> None:
    with pytest.warns(RecollectWarning, match="'learning rate'.*depth.*learning_rate") as caught:
        assert rename_hyperparameters(runs, {"learning rate": "lr"}) == runs
    assert len(caught) == 1


def test_a_new_name_that_the_space_does_not_have_is_refused_with_those_it_has() -> None:
    check_new_names({"learning_rate": "lr"}, ("lr", "depth"))
    check_new_names(None, ())
    with pytest.raises(InputError, match=r"'lrr'.*lr and depth"):
        check_new_names({"learning_rate": "lrr"}, ("lr", "depth"))
    with pytest.raises(InputTypeError):
        check_new_names(["lr"], ("lr",))  # type: ignore[arg-type]
