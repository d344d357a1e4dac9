"""Conditions inferred from the trials of define-by-run objectives, and the spaces made of them."""

from __future__ import annotations

import itertools
from typing import Any

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, create_trial

from recollect import Run, compile_space
from recollect.integrations.optuna.inferred_space import (
    InferredSpace,
    infer_study_space,
    parse_stated_space,
    restrict_space,
)
from recollect.integrations.optuna.past_studies import PastStudy, read_past
from recollect.space.presence import PresenceRule, TrialParams, infer_conditions

KERNELS = CategoricalDistribution(["linear", "poly", "rbf"])
SVM: dict[str, BaseDistribution] = {
    "kernel": KERNELS,
    "C": FloatDistribution(1e-3, 1e3, log=True),
    "gamma": FloatDistribution(1e-4, 10.0, log=True),
    "degree": IntDistribution(2, 5),
}
LINEAR = {"kernel": "linear", "C": 1.0}
POLY = {"kernel": "poly", "C": 2.0, "degree": 3}
RBF = {"kernel": "rbf", "C": 0.5, "gamma": 0.1}


def explain(records: list[dict[str, Any]], parents: dict[str, bool]) -> dict[str, PresenceRule | None]:
    names = dict.fromkeys(name for record in records for name in record)
    return infer_conditions(names, parents, [[TrialParams(record) for record in records]])


def trials(*params: dict[str, Any], distributions: dict[str, BaseDistribution] = SVM) -> list[FrozenTrial]:
    return [
        create_trial(params=given, distributions={name: distributions[name] for name in given}, value=float(number))
        for number, given in enumerate(params)
    ]


def past_of(*params: dict[str, Any], distributions: dict[str, BaseDistribution] = SVM) -> tuple[PastStudy, ...]:
    study = optuna.create_study()
    study.add_trials(trials(*params, distributions=distributions))
    return read_past(study)


def infer(completed: list[FrozenTrial], past: tuple[PastStudy, ...] = (), stated: Any = None) -> InferredSpace:
    inferred = infer_study_space(completed, past, parse_stated_space(stated))
    assert inferred is not None
    return inferred


@pytest.fixture(autouse=True)
def _quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)


def test_a_child_is_there_exactly_for_certain_choices_of_its_parent() -> None:
    rules = explain([LINEAR, POLY, RBF, POLY], {"kernel": False})
    assert rules == {
        "kernel": None,
        "C": None,
        "degree": PresenceRule("kernel", ("poly",)),
        "gamma": PresenceRule("kernel", ("rbf",)),
    }


def test_layers_that_come_with_their_number_have_a_threshold_which_covers_numbers_never_seen() -> None:
    records = [{"layers": n, **{f"units {i}": 8 for i in range(n)}} for n in (1, 3, 5, 3)]
    rules = explain(records, {"layers": True})
    assert rules["units 0"] is None
    assert rules["units 2"] == PresenceRule("layers", low=3)
    third = rules["units 4"]
    assert third is not None
    assert [third.holds({"layers": n}) for n in (1, 4, 5, 9)] == [False, False, True, True]


def test_a_number_may_decide_from_below_or_by_single_values() -> None:
    few = [{"n": n, **({"small": 1} if n < 3 else {})} for n in (1, 2, 5, 7)]
    assert explain(few, {"n": True})["small"] == PresenceRule("n", high=2)
    odd = [{"n": n, **({"odd": 1} if n % 2 else {})} for n in (1, 2, 3, 1, 2, 3)]
    assert explain(odd, {"n": True})["odd"] == PresenceRule("n", (1, 3))


def test_numbers_that_came_once_each_explain_nothing_but_a_threshold() -> None:
    odd = [{"n": n, **({"odd": 1} if n % 2 else {})} for n in (1, 2, 3, 4)]
    assert "odd" not in explain(odd, {"n": True})


def test_children_can_have_children() -> None:
    records = [
        {"optimizer": "adam"},
        {"optimizer": "sgd", "nesterov": False},
        {"optimizer": "sgd", "nesterov": True, "momentum": 0.9},
        {"optimizer": "adam"},
    ]
    rules = explain(records, {"optimizer": False, "nesterov": False})
    assert rules["nesterov"] == PresenceRule("optimizer", ("sgd",))
    assert rules["momentum"] == PresenceRule("nesterov", (True,))


def test_what_no_parent_explains_is_left_out_and_does_not_explain_others() -> None:
    records = [{"a": "x", "whim": "p"}, {"a": "x"}, {"a": "x", "whim": "q", "under": 1}]
    assert explain(records, {"a": False, "whim": False}) == {"a": None}


def test_of_several_parents_that_fit_the_least_likely_by_chance_is_taken() -> None:
    records = [
        {"many": number, "flag": number % 2 == 0, **({"child": 1} if number % 2 == 0 else {})} for number in range(6)
    ]
    assert explain(records, {"many": False, "flag": False})["child"] == PresenceRule("flag", (True,))


def test_two_children_of_one_parent_do_not_explain_each_other() -> None:
    records = [LINEAR, {**POLY, "shrinking": True}, {**POLY, "shrinking": False}, RBF]
    rules = explain(records, {"kernel": False, "shrinking": False})
    assert rules["degree"] == rules["shrinking"] == PresenceRule("kernel", ("poly",))


def test_among_equals_the_parent_asked_for_just_before_the_child_is_taken() -> None:
    records = [{"a": "x", "b": "x", "child": 1}, {"a": "y", "b": "y"}]
    assert explain(records, {"a": False, "b": False})["child"] == PresenceRule("b", ("x",))


@settings(deadline=None, max_examples=80, derandomize=True)
@given(data=st.data())
def test_every_rule_holds_in_every_trial_it_was_inferred_from(data: Any) -> None:
    flags = st.fixed_dictionaries({"p": st.sampled_from("abc"), "q": st.integers(1, 3)})
    records = []
    for _ in range(data.draw(st.integers(1, 8))):
        record = dict(data.draw(flags))
        for name in data.draw(st.sets(st.sampled_from("rst"))):
            record[name] = data.draw(st.booleans())
        records.append(record)
    rules = explain(records, {"p": False, "q": True, "r": False})
    for (name, rule), record in itertools.product(rules.items(), records):
        assert (name in record) == (rule is None or rule.holds(record))


def test_a_scheme_is_a_real_conditional_space() -> None:
    inferred = infer(trials(LINEAR, POLY, RBF))
    assert inferred.space.conditional
    for params in (LINEAR, POLY, RBF):
        assert inferred.config_of(params) == params
    assert inferred.config_of({**LINEAR, "gamma": 0.1}) is None
    assert inferred.config_of({"kernel": "rbf", "C": 1.0}) is None
    assert all(inferred.matches(trial) for trial in trials(LINEAR, POLY, RBF))
    assert not inferred.matches(trials({**LINEAR, "degree": 3})[0])


@pytest.mark.parametrize("step", [1, 2])
def test_a_threshold_of_an_integer_parent_becomes_a_condition(step: int) -> None:
    known: dict[str, BaseDistribution] = {"layers": IntDistribution(1, 9, step=step)}
    known |= {f"units {i}": IntDistribution(4, 64) for i in range(9)}
    given = [{"layers": n, **{f"units {i}": 8 for i in range(n)}} for n in (1, 5, 7)]
    inferred = infer(trials(*given, distributions=known))
    for params in given:
        config = inferred.config_of(params)
        assert config is not None
        assert inferred.params_of(config) == params
    assert inferred.config_of({"layers": 9, **{f"units {i}": 8 for i in range(7)}}) is not None
    assert inferred.config_of({"layers": 9}) is None


def test_a_range_that_changes_between_trials_is_loose() -> None:
    changed = create_trial(
        params={"C": 1.0, "lr": 0.5},
        distributions={"C": FloatDistribution(0.0, 2.0), "lr": FloatDistribution(0.0, 1.0)},
        value=1.0,
    )
    first = create_trial(
        params={"C": 1.0, "lr": 0.5},
        distributions={"C": FloatDistribution(0.0, 5.0), "lr": FloatDistribution(0.0, 1.0)},
        value=1.0,
    )
    inferred = infer([first, changed])
    assert set(inferred.distributions) == {"lr"}
    assert inferred.independent == {"C"}
    assert inferred.config_of({"C": 1.0, "lr": 0.5}) == {"lr": 0.5}


def test_what_a_space_cannot_express_is_loose_and_what_has_one_value_too() -> None:
    known = {
        "lr": FloatDistribution(0.0, 1.0),
        "seed": IntDistribution(0, 2**60),
        "tiny": FloatDistribution(1e-20, 1e-9, log=True),
        "fixed": CategoricalDistribution(["a"]),
        "mixed": CategoricalDistribution([1, True]),
    }
    given = {"lr": 0.5, "seed": 2**59, "tiny": 1e-12, "fixed": "a", "mixed": 1}
    inferred = infer(trials(given, distributions=known))
    assert set(inferred.distributions) == {"lr"}
    assert inferred.independent == {"seed", "tiny", "fixed", "mixed"}


def test_before_the_first_trial_past_studies_show_what_will_be_asked_for_and_when() -> None:
    inferred = infer([], past_of(LINEAR, POLY, RBF, RBF))
    assert dict(inferred.distributions) == SVM
    assert inferred.rules["gamma"] == PresenceRule("kernel", ("rbf",))


def test_where_past_studies_disagree_the_range_holds_all_of_theirs_unless_another_is_stated() -> None:
    other = {**SVM, "C": FloatDistribution(1e-5, 1e2, log=True)}
    past = (*past_of(LINEAR, RBF), *past_of(LINEAR, RBF, distributions=other))
    assert infer([], past).distributions["C"] == FloatDistribution(1e-5, 1e3, log=True)
    assert infer([], past, {"C": (1e-2, 1e2, "log")}).distributions["C"] == FloatDistribution(1e-2, 1e2, log=True)


def test_a_run_without_a_space_does_not_object_to_what_studies_agree_on() -> None:
    run = Run("old", configs=[LINEAR, RBF], values=[1.0, 2.0])
    assert set(infer([], (*past_of(LINEAR, RBF), *read_past(run))).distributions) == {"kernel", "C", "gamma"}
    with_space = Run("old", configs=[{"a": 0.5}], values=[1.0], space={"a": (0.0, 1.0)})
    assert infer([], read_past(with_space)).distributions == {"a": FloatDistribution(0.0, 1.0)}


def test_the_studys_own_distributions_come_before_stated_ones_and_those_before_past_ones() -> None:
    past = past_of(LINEAR)
    stated = {"C": (1e-2, 1e2, "log")}
    assert infer([], past, stated).distributions["C"] == FloatDistribution(1e-2, 1e2, log=True)
    own = {**SVM, "C": FloatDistribution(0.5, 1.5)}
    assert infer(trials(LINEAR, distributions=own), past, stated).distributions["C"] == FloatDistribution(0.5, 1.5)


def test_branches_that_the_study_has_not_visited_are_known_from_the_past() -> None:
    inferred = infer(trials(LINEAR), past_of(LINEAR, POLY, RBF))
    assert set(inferred.distributions) == set(SVM)


def test_what_the_past_always_had_and_this_objective_does_not_ask_for_is_dropped() -> None:
    known = {**SVM, "momentum": FloatDistribution(0.0, 1.0)}
    past = past_of({**LINEAR, "momentum": 0.5}, {**RBF, "momentum": 0.1}, distributions=known)
    assert "momentum" in infer([], past).distributions
    assert "momentum" not in infer(trials(LINEAR, RBF), past).distributions


def test_where_the_past_contradicts_the_study_the_study_is_believed() -> None:
    past = past_of({**LINEAR, "gamma": 0.1}, {"kernel": "rbf", "C": 1.0})
    inferred = infer(trials(LINEAR, RBF, {**RBF, "C": 3.0}), past)
    assert inferred.rules["gamma"] == PresenceRule("kernel", ("rbf",))


def test_a_parent_that_lost_the_deciding_choice_loses_the_child() -> None:
    smaller = {**SVM, "kernel": CategoricalDistribution(["linear", "poly"])}
    inferred = infer(trials(LINEAR, distributions=smaller), past_of(LINEAR, POLY, RBF))
    assert set(inferred.distributions) == {"kernel", "C", "degree"}


def test_a_threshold_below_the_range_of_the_parent_is_no_condition() -> None:
    known: dict[str, BaseDistribution] = {"n": IntDistribution(1, 5), "u": FloatDistribution(0.0, 1.0)}
    past = past_of({"n": 1}, {"n": 2, "u": 0.5}, {"n": 4, "u": 0.5}, distributions=known)
    assert infer([], past).rules == {"u": PresenceRule("n", low=2)}
    higher = {**known, "n": IntDistribution(3, 5)}
    assert infer(trials({"n": 3, "u": 0.5}, distributions=higher), past).rules == {}
    lower = {**known, "n": IntDistribution(0, 1)}
    assert set(infer(trials({"n": 0}, distributions=lower), past).distributions) == {"n"}


def test_numbers_of_the_past_between_the_integers_of_the_parent_are_no_obstacle() -> None:
    past_known: dict[str, BaseDistribution] = {"n": FloatDistribution(0.0, 9.0), "u": FloatDistribution(0.0, 1.0)}
    past = past_of({"n": 0.5}, {"n": 2.5, "u": 0.5}, {"n": 7.5, "u": 0.5}, distributions=past_known)
    for step, low in ((1, 3), (4, 4)):
        own: dict[str, BaseDistribution] = {"n": IntDistribution(0, 8, step=step)}
        inferred = infer(trials({"n": 0}, distributions=own), past)
        assert inferred.rules == {"u": PresenceRule("n", low=low)}
        assert inferred.config_of({"n": 4, "u": 0.5}) is not None
        assert inferred.config_of({"n": 0, "u": 0.5}) is None
    upside_down = past_of({"n": 7.5}, {"n": 2.5, "u": 0.5}, {"n": 0.5, "u": 0.5}, distributions=past_known)
    for step, high in ((1, 2), (4, 0)):
        own = {"n": IntDistribution(0, 8, step=step)}
        inferred = infer(trials({"n": 8}, distributions=own), upside_down)
        assert inferred.rules == {"u": PresenceRule("n", high=high)}
        assert inferred.config_of({"n": 0, "u": 0.5}) is not None
        assert inferred.config_of({"n": 8, "u": 0.5}) is None


def test_a_parent_that_was_of_another_kind_in_the_past_decides_nothing() -> None:
    named: dict[str, BaseDistribution] = {
        "n": CategoricalDistribution(["one", "two"]),
        "u": FloatDistribution(0.0, 1.0),
    }
    past = past_of({"n": "one"}, {"n": "two", "u": 0.5}, distributions=named)
    inferred = infer(trials({"n": 3}, {"n": 4}, distributions={"n": IntDistribution(1, 8)}), past)
    assert set(inferred.distributions) == {"n"}


def test_single_values_of_the_past_that_the_parent_cannot_have_are_dropped_from_the_rule() -> None:
    known: dict[str, BaseDistribution] = {"n": IntDistribution(0, 9), "u": FloatDistribution(0.0, 1.0)}
    odd = [{"n": n, **({"u": 0.5} if n % 2 else {})} for n in (1, 2, 3, 7, 1, 2, 3, 7)]
    inferred = infer(
        trials({"n": 1, "u": 0.5}, distributions={**known, "n": IntDistribution(1, 5, step=2)}),
        past_of(*odd, distributions=known),
    )
    assert inferred.rules == {"u": PresenceRule("n", (1, 3))}


def test_a_stated_hyperparameter_is_used_as_it_was_stated() -> None:
    from ConfigSpace import ConfigurationSpace, OrdinalHyperparameter

    source = ConfigurationSpace()
    source.add(OrdinalHyperparameter("size", ["s", "m", "l"]))
    inferred = infer([], (), source)
    assert not inferred.space.categorical[0]
    same = infer(trials({"size": "m"}, distributions={"size": CategoricalDistribution(["s", "m", "l"])}), (), source)
    assert not same.space.categorical[0]


def test_a_stated_space_with_conditions_is_taken_as_it_is() -> None:
    from ConfigSpace import ConfigurationSpace, EqualsCondition, Float

    source = ConfigurationSpace({"kernel": ["linear", "rbf"]})
    source.add(Float("gamma", (0.1, 1.0)))
    source.add(EqualsCondition(source["gamma"], source["kernel"], "rbf"))
    inferred = infer(trials(LINEAR, POLY), past_of(RBF), source)
    assert inferred.fixed
    assert inferred.space.source is source
    assert inferred.config_of({"kernel": "rbf", "gamma": 0.5, "C": 1.0}) == {"kernel": "rbf", "gamma": 0.5}
    assert inferred.config_of({"kernel": "poly", "C": 1.0}) is None


def test_a_space_may_be_stated_in_several_ways_at_once() -> None:
    assert parse_stated_space(None) is None
    mixed: Any = {"a": FloatDistribution(0.0, 1.0), "b": (0, 1)}
    both = parse_stated_space(mixed)
    assert both is not None
    assert both.distributions == {"a": FloatDistribution(0.0, 1.0), "b": IntDistribution(0, 1)}
    stepped = parse_stated_space({"a": FloatDistribution(0.0, 1.0, step=0.5)})
    assert stepped is not None
    assert stepped.distributions["a"] == FloatDistribution(0.0, 1.0, step=0.5)
    assert stepped.space.sizes.tolist() == [3]


def test_a_narrower_search_space_keeps_the_rules_among_what_is_left() -> None:
    inferred = infer(trials(LINEAR, POLY, RBF))
    without_c = restrict_space(inferred, {name: SVM[name] for name in ("kernel", "gamma", "degree")})
    assert without_c is not None
    assert without_c.rules == inferred.rules
    without_kernel = restrict_space(inferred, {name: SVM[name] for name in ("C", "gamma", "degree")})
    assert without_kernel is not None
    assert set(without_kernel.distributions) == {"C"}
    assert restrict_space(None, {}) is None


def test_steps_are_met_whatever_rounding_left_of_them() -> None:
    inferred = infer([], (), {"x": FloatDistribution(0.0, 1.0, step=0.1), "n": IntDistribution(1, 9, step=2)})
    config = inferred.config_of({"x": 0.3, "n": 5})
    assert config == {"x": 3, "n": 2}
    assert inferred.params_of(config) == {"x": 3 * 0.1, "n": 5}
    assert inferred.config_of({"x": 2.0, "n": 5}) is None


def test_the_space_of_a_scheme_has_the_columns_of_its_distributions() -> None:
    inferred = infer(trials(LINEAR, POLY, RBF))
    assert set(inferred.space.names) == set(SVM)
    plain = compile_space({"C": (1e-3, 1e3, "log")})
    assert inferred.space.encode([LINEAR])[0][inferred.space.names.index("C")] == plain.encode([{"C": 1.0}])[0][0]
