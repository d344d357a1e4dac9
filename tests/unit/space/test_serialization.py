"""Spaces written as JSON and read back."""

from __future__ import annotations

import json
from typing import Any

import ConfigSpace as CS
import numpy as np
import pytest

from recollect.errors import SpaceError
from recollect.space.configspace import OTHER_CHOICES
from recollect.space.sampling import uniform
from recollect.space.serialization import from_json, to_json
from recollect.space.space import compile_space


def rich() -> CS.ConfigurationSpace:
    source = CS.ConfigurationSpace(
        {
            "kind": CS.CategoricalHyperparameter("kind", ["a", None, 2, 2.5, True], weights=[1, 2, 3, 4, 5]),
            "level": CS.OrdinalHyperparameter("level", ["s", "m", "l"]),
            "depth": CS.UniformIntegerHyperparameter("depth", 1, 9, log=True),
            "rate": CS.UniformFloatHyperparameter("rate", 1e-4, 1 / 3, log=True),
            "other": (0.0, 1.0),
            "fixed": CS.Constant("fixed", 7),
        }
    )
    rate, kind, level, depth, other = (source[name] for name in ("rate", "kind", "level", "depth", "other"))
    source.add(
        CS.AndConjunction(
            CS.NotEqualsCondition(rate, kind, 2),
            CS.OrConjunction(CS.LessThanCondition(rate, level, "l"), CS.GreaterThanCondition(rate, depth, 4)),
        ),
        CS.InCondition(other, level, ["s", "m"]),
        CS.ForbiddenAndConjunction(CS.ForbiddenEqualsClause(depth, 9), CS.ForbiddenInClause(level, ["l"])),
        CS.ForbiddenGreaterThanRelation(rate, other),
    )
    return source


def test_a_space_read_back_draws_and_reads_the_same_points() -> None:
    space = compile_space(rich())
    again = from_json(to_json(space))
    assert again.names == space.names
    assert again.forbidden_texts == space.forbidden_texts
    X = uniform(space, 200, np.random.default_rng(0))
    np.testing.assert_array_equal(uniform(again, 200, np.random.default_rng(0)), X)
    assert again.decode(X) == space.decode(X)
    np.testing.assert_array_equal(again.encode(space.decode(X)), X)
    np.testing.assert_array_equal(again.default, space.default)


def test_the_text_is_json_with_a_version_and_does_not_change_when_written_again() -> None:
    text = to_json(compile_space(rich()))
    assert "format_version" in json.loads(text)
    assert to_json(from_json(text)) == text


@pytest.mark.parametrize(
    "hyperparameter",
    [
        CS.CategoricalHyperparameter("h", [(1, 2), (3,)]),
        CS.OrdinalHyperparameter("h", [b"a", b"b"]),
        CS.Constant("h", (1, 2)),
    ],
)
def test_choices_that_json_does_not_bring_back_are_refused(hyperparameter: Any) -> None:
    with pytest.raises(SpaceError, match="'h': only str, int, float, bool and None can be stored"):
        to_json(compile_space({"h": hyperparameter}))


def test_lists_and_tuples_as_choices_get_the_same_advice() -> None:
    advice = set()
    for choices in ([[1, 2], [3, 4]], [(1, 2), (3, 4)]):
        with pytest.raises(SpaceError) as caught:
            to_json(compile_space({"h": choices}))
        advice.add(str(caught.value).partition("; ")[2])
    assert advice == {OTHER_CHOICES}


def test_meta_data_that_json_cannot_hold_is_refused() -> None:
    with pytest.raises(SpaceError, match="cannot be stored as JSON"):
        to_json(compile_space({"h": CS.Constant("h", 1, meta={"x": object()})}))


@pytest.mark.parametrize(
    "text", ["", "[]", "3", "{", '{"hyperparameters": [{"name": "a"}]}', '{"hyperparameters": []}']
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(SpaceError):
        from_json(text)
