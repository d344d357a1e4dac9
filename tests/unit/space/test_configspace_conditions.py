"""Which hyperparameters are active, which points are legal: every kind of condition and clause."""

from __future__ import annotations

import itertools
from typing import Any

import ConfigSpace as CS
import numpy as np
import pytest

from recollect.errors import ConfigError, SpaceError
from recollect.space.sampling import uniform
from recollect.space.space import Space, compile_space

NAN = np.nan


def source_of(**hyperparameters: Any) -> CS.ConfigurationSpace:
    return CS.ConfigurationSpace(hyperparameters)


def cells(space: Space, config: dict[str, Any]) -> list[str]:
    """The names of what is active in a point that has a value everywhere."""
    X = np.array([[column.codes([config[column.name]])[0] for column in space.columns]])
    return [name for name, on in zip(space.names, space.activity(X)[0], strict=True) if on]


@pytest.mark.parametrize(
    ("kind", "value", "active"),
    [
        (CS.EqualsCondition, 3, [3]),
        (CS.NotEqualsCondition, 3, [1, 2, 4, 5]),
        (CS.LessThanCondition, 3, [1, 2]),
        (CS.GreaterThanCondition, 3, [4, 5]),
        (CS.InCondition, [2, 5], [2, 5]),
    ],
)
@pytest.mark.parametrize("log", [False, True])
def test_conditions_on_integers(kind: Any, value: Any, active: list[int], log: bool) -> None:
    source = source_of(p=CS.UniformIntegerHyperparameter("p", 1, 5, log=log), child=(0.0, 1.0))
    source.add(kind(source["child"], source["p"], value))
    space = compile_space(source)
    assert [p for p in range(1, 6) if "child" in cells(space, {"p": p, "child": 0.5})] == active


def test_conditions_on_ordinals_follow_their_order() -> None:
    source = source_of(p=CS.OrdinalHyperparameter("p", [10, 3, 7]), child=(0.0, 1.0))
    source.add(CS.GreaterThanCondition(source["child"], source["p"], 10))
    space = compile_space(source)
    assert [p for p in (10, 3, 7) if "child" in cells(space, {"p": p, "child": 0.5})] == [3, 7]


@pytest.mark.parametrize("bounds", [(0.1, 0.9), (1e-4, 1.0, "log")])
def test_conditions_on_floats_are_exact_at_the_threshold(bounds: Any) -> None:
    for kind, active in ((CS.EqualsCondition, [0.3]), (CS.LessThanCondition, [0.2]), (CS.GreaterThanCondition, [0.4])):
        source = compile_space({"p": bounds, "child": (0.0, 1.0)}).source
        source.add(kind(source["child"], source["p"], 0.3))
        space = compile_space(source)
        assert [p for p in (0.2, 0.3, 0.4) if "child" in cells(space, {"p": p, "child": 0.5})] == active


def test_conditions_on_constants_hold() -> None:
    source = source_of(p=CS.Constant("p", "c"), child=(0.0, 1.0))
    source.add(CS.EqualsCondition(source["child"], source["p"], "c"))
    assert cells(compile_space(source), {"p": "c", "child": 0.5}) == ["p", "child"]


def test_conjunctions_nest() -> None:
    source = source_of(a=[0, 1], b=[0, 1], c=[0, 1], child=(0.0, 1.0))
    child = source["child"]
    either = CS.OrConjunction(CS.EqualsCondition(child, source["b"], 1), CS.EqualsCondition(child, source["c"], 1))
    source.add(CS.AndConjunction(CS.EqualsCondition(child, source["a"], 1), either))
    space = compile_space(source)
    for a, b, c in itertools.product((0, 1), repeat=3):
        on = "child" in cells(space, {"a": a, "b": b, "c": c, "child": 0.5})
        assert on == bool(a and (b or c))


def chain(kind: Any) -> Space:
    """The root switches the middle, and the middle the leaf."""
    source = source_of(root=["on", "off"], middle=["p", "q"], leaf=(0.0, 1.0))
    source.add(CS.EqualsCondition(source["middle"], source["root"], "on"))
    source.add(kind(source["leaf"], source["middle"], "p"))
    return compile_space(source)


def test_an_inactive_parent_satisfies_no_equality() -> None:
    assert cells(chain(CS.EqualsCondition), {"root": "off", "middle": "p", "leaf": 0.5}) == ["root"]


def test_an_inactive_parent_differs_from_every_value_as_in_configspace() -> None:
    space = chain(CS.NotEqualsCondition)
    assert cells(space, {"root": "off", "middle": "p", "leaf": 0.5}) == ["root", "leaf"]
    CS.Configuration(space.source, values={"root": "off", "leaf": 0.5})
    with pytest.raises(ValueError, match="leaf"):
        CS.Configuration(space.source, values={"root": "off"})
    assert space.decode(space.encode([{"root": "off", "leaf": 0.5}])) == [{"root": "off", "leaf": 0.5}]


def test_repair_switches_children_off_and_on_at_their_default() -> None:
    space = chain(CS.EqualsCondition)
    X = np.array([[1.0, 0.0, 0.3], [0.0, NAN, NAN], [0.0, 1.0, 0.3], [NAN, NAN, NAN]])
    expected = [[1.0, NAN, NAN], [0.0, 0.0, 0.5], [0.0, 1.0, NAN], [0.0, 0.0, 0.5]]
    np.testing.assert_array_equal(space.repair(X), expected)
    np.testing.assert_array_equal(space.default, [0.0, 0.0, 0.5])


def test_activity_does_not_change_its_argument() -> None:
    X = np.array([[1.0, 0.0, 0.3]])
    chain(CS.EqualsCondition).activity(X)
    np.testing.assert_array_equal(X, [[1.0, 0.0, 0.3]])


def legal_values(clause_of: Any, values: dict[str, list[Any]], **hyperparameters: Any) -> list[tuple[Any, ...]]:
    source = source_of(**hyperparameters)
    source.add(clause_of(source))
    space = compile_space(source)
    combinations = list(itertools.product(*(values[name] for name in space.names)))
    X = np.array([[column.codes([v])[0] for column, v in zip(space.columns, c, strict=True)] for c in combinations])
    return [combination for combination, legal in zip(combinations, space.legal(X), strict=True) if legal]


@pytest.mark.parametrize(
    ("clause_of", "left"),
    [
        (lambda s: CS.ForbiddenEqualsClause(s["a"], 2), [1, 3, 4]),
        (lambda s: CS.ForbiddenInClause(s["a"], [2, 4]), [1, 3]),
        (lambda s: CS.ForbiddenLessThanClause(s["a"], 2), [2, 3, 4]),
        (lambda s: CS.ForbiddenLessThanEqualsClause(s["a"], 2), [3, 4]),
        (lambda s: CS.ForbiddenGreaterThanClause(s["a"], 3), [1, 2, 3]),
        (lambda s: CS.ForbiddenGreaterThanEqualsClause(s["a"], 4), [1, 2, 3]),
        (lambda s: CS.ForbiddenOrConjunction(*(CS.ForbiddenEqualsClause(s["a"], v) for v in (1, 4))), [2, 3]),
    ],
)
def test_forbidden_clauses_on_one_hyperparameter(clause_of: Any, left: list[int]) -> None:
    default = left[-1]
    integer = CS.UniformIntegerHyperparameter("a", 1, 4, default_value=default)
    assert legal_values(clause_of, {"a": [1, 2, 3, 4]}, a=integer) == [(v,) for v in left]
    ordinal = CS.OrdinalHyperparameter("a", [1, 2, 3, 4], default_value=default)
    assert legal_values(clause_of, {"a": [1, 2, 3, 4]}, a=ordinal) == [(v,) for v in left]


def test_forbidden_conjunctions_need_every_part() -> None:
    left = legal_values(
        lambda s: CS.ForbiddenAndConjunction(
            CS.ForbiddenEqualsClause(s["a"], 2), CS.ForbiddenInClause(s["b"], ["y", "z"])
        ),
        {"a": [1, 2], "b": ["x", "y", "z"]},
        a=[1, 2],
        b=["x", "y", "z"],
    )
    assert left == [(1, "x"), (1, "y"), (1, "z"), (2, "x")]


@pytest.mark.parametrize(
    ("kind", "forbids"),
    [
        (CS.ForbiddenEqualsRelation, lambda a, b: a == b),
        (CS.ForbiddenLessThanRelation, lambda a, b: a < b),
        (CS.ForbiddenLessThanEqualsRelation, lambda a, b: a <= b),
        (CS.ForbiddenGreaterThanRelation, lambda a, b: a > b),
        (CS.ForbiddenGreaterThanEqualsRelation, lambda a, b: a >= b),
    ],
)
def test_relations_compare_values(kind: Any, forbids: Any) -> None:
    pairs = {
        "integer and float": (CS.UniformIntegerHyperparameter, CS.UniformFloatHyperparameter),
        "log float and float": (CS.UniformFloatHyperparameter, CS.UniformFloatHyperparameter),
    }
    a, b = (3, 2) if not forbids(3, 2) else (2, 3) if not forbids(2, 3) else (2, 2)
    for left, right in pairs.values():
        got = legal_values(
            lambda s: kind(s["a"], s["b"]),
            {"a": [1, 2, 3], "b": [1, 2, 3, 2.000000001]},
            a=left("a", 1, 3, default_value=a, log=True),
            b=right("b", 0.7, 3.3, default_value=b),
        )
        assert got == [(u, v) for u in (1, 2, 3) for v in (1, 2, 3, 2.000000001) if not forbids(u, v)]


def test_relations_on_ordinals_compare_the_values_not_their_order() -> None:
    got = legal_values(
        lambda s: CS.ForbiddenLessThanRelation(s["a"], s["b"]),
        {"a": [10, 3, 7], "b": [5, 8]},
        a=CS.OrdinalHyperparameter("a", [10, 3, 7]),
        b=[5, 8],
    )
    assert got == [(10, 5), (10, 8), (7, 5)]


def test_relations_on_strings_compare_strings() -> None:
    got = legal_values(
        lambda s: CS.ForbiddenEqualsRelation(s["a"], s["b"]),
        {"a": ["x", "y"], "b": ["y", "x"]},
        a=["x", "y"],
        b=["y", "x"],
    )
    assert got == [("x", "y"), ("y", "x")]


def test_relations_between_values_without_order_are_refused() -> None:
    source = source_of(a=[1, 2, "z"], b=(0, 5))
    source.add(CS.ForbiddenGreaterThanRelation(source["a"], source["b"]))
    with pytest.raises(SpaceError, match="a > b compares values that have no order"):
        compile_space(source)


def test_clauses_on_inactive_hyperparameters_forbid_nothing() -> None:
    source = source_of(root=["on", "off"], a=(1, 3), b=(1, 3))
    source.add(CS.EqualsCondition(source["a"], source["root"], "on"))
    source.add(CS.ForbiddenLessThanRelation(source["a"], source["b"]), CS.ForbiddenEqualsClause(source["a"], 3))
    space = compile_space(source)
    configs = [{"root": "off", "b": 3}, {"root": "on", "a": 2, "b": 2}]
    assert space.legal(space.encode(configs)).all()
    for bad in ({"root": "on", "a": 2, "b": 3}, {"root": "on", "a": 3, "b": 3}):
        with pytest.raises(ConfigError, match=r"configuration 2: \{.*\} is forbidden by the clause: Forbidden: a"):
            space.encode([*configs, bad])


def test_relations_with_one_inactive_choice_forbid_nothing() -> None:
    source = source_of(root=["on", "off"], a=["x", "y"], b=["y", "x"])
    source.add(CS.EqualsCondition(source["a"], source["root"], "on"))
    source.add(CS.ForbiddenEqualsRelation(source["a"], source["b"]))
    space = compile_space(source)
    X = np.array([[1.0, 1.0, NAN], [1.0, 0.0, NAN], [1.0, 0.0, 0.0], [1.0, 0.0, 1.0]])
    assert space.names == ("b", "root", "a")
    assert space.legal(X).tolist() == [True, True, False, True]


def test_a_point_on_the_edge_of_a_relation_stays_legal_through_encoding() -> None:
    source = CS.ConfigurationSpace()
    low, high = CS.UniformFloatHyperparameter("low", 1e-4, 10, log=True), CS.UniformFloatHyperparameter("high", 0, 10)
    source.add(low, high)
    source.add(CS.ForbiddenGreaterThanRelation(low, high))
    space = compile_space(source)
    edge = [{"high": k / 100, "low": k / 100} for k in range(1, 1000)]
    assert space.legal(space.encode(edge)).all()
    assert space.decode(space.encode(edge[:20])) == edge[:20]


def test_unknown_kinds_of_clauses_and_conditions_are_refused() -> None:
    class Strange(CS.ForbiddenEqualsClause):
        pass

    class Odd(CS.EqualsCondition):
        pass

    source = source_of(a=[1, 2], b=[1, 2])
    source.add(Strange(source["a"], 2))
    with pytest.raises(SpaceError, match=r"a == 2 is a Strange, .*supported are EqualsCondition"):
        compile_space(source)
    source = source_of(a=[1, 2], b=[1, 2])
    source.add(Odd(source["b"], source["a"], 2))
    with pytest.raises(SpaceError, match="is a Odd"):
        compile_space(source)


def test_parents_given_as_none_leave_children_inactive_only_if_they_are_so() -> None:
    space = chain(CS.EqualsCondition)
    with pytest.raises(ConfigError, match=r"'middle': expected one of .* got None"):
        space.encode([{"root": "on", "middle": None}])
    assert space.decode(space.encode([{"root": "off", "middle": None, "leaf": None}])) == [{"root": "off"}]


def test_spaces_can_be_sent_to_other_processes() -> None:
    import pickle

    space = chain(CS.EqualsCondition)
    X = uniform(space, 20, np.random.default_rng(0))
    assert pickle.loads(pickle.dumps(space)).decode(X) == space.decode(X)
