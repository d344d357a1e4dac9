"""Search spaces cut down to smaller ranges: what changes, what stays, what is refused."""

from __future__ import annotations

import math
from typing import Any

import ConfigSpace as CS
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from recollect.errors import ConfigError, InputError
from recollect.space.columns import Choices, Interval
from recollect.space.narrowing import narrow
from recollect.space.sampling import uniform
from recollect.space.serialization import from_json, to_json
from recollect.space.space import Space, compile_space


def mixed() -> Space:
    return compile_space(
        {
            "rate": (0.0, 2.0),
            "log_rate": (1e-4, 1e-1, "log"),
            "depth": (1, 15),
            "units": (16, 1024, "log"),
            "kind": CS.CategoricalHyperparameter("kind", ["b", "a", None], weights=[5, 2, 3]),
            "fixed": "adam",
            "level": CS.OrdinalHyperparameter("level", ["s", "m", "l", "xl"]),
        }
    )


def rich() -> Space:
    """Nested conditions, every sort of clause, choices that JSON does not know."""
    marks = (object(), (1, 2), b"x")
    source = CS.ConfigurationSpace(
        name="rich",
        meta={"a": 1},
        space={
            "kind": CS.CategoricalHyperparameter("kind", list(marks), weights=[1, 2, 3]),
            "level": CS.OrdinalHyperparameter("level", ["s", "m", "l"]),
            "depth": CS.UniformIntegerHyperparameter("depth", 1, 9, log=True),
            "rate": CS.UniformFloatHyperparameter("rate", 1e-4, 1 / 3, log=True, meta={"unit": "1/s"}),
            "momentum": (0.0, 1.0),
            "width": (1, 100),
            "a": (0.0, 1.0),
            "b": (0.0, 1.0),
        },
    )
    of = dict(source)
    source.add(
        CS.AndConjunction(
            CS.NotEqualsCondition(of["rate"], of["kind"], marks[0]),
            CS.OrConjunction(
                CS.LessThanCondition(of["rate"], of["level"], "l"), CS.GreaterThanCondition(of["rate"], of["depth"], 4)
            ),
        ),
        CS.InCondition(of["momentum"], of["kind"], [marks[1], marks[2]]),
        CS.ForbiddenAndConjunction(CS.ForbiddenEqualsClause(of["depth"], 9), CS.ForbiddenInClause(of["level"], ["l"])),
        CS.ForbiddenGreaterThanRelation(of["a"], of["b"]),
    )
    return compile_space(source)


def column(space: Space, name: str) -> Any:
    return space.columns[space.names.index(name)]


@pytest.mark.parametrize(
    ("name", "ends", "default"),
    [
        ("rate", (0.25, 1.5), 1.0),  # the default stays where it was
        ("rate", (0.0, 0.5), 0.5),  # or moves to the nearer end
        ("rate", (1.25, 2.0), 1.25),
        ("log_rate", (1e-3, 1e-2), math.sqrt(1e-5)),
        ("log_rate", (1e-4, 1e-3), 1e-3),
        ("depth", (3, 12), 8),
        ("depth", (9, 10), 9),
        ("depth", (1, 7), 7),
        ("units", (100, 200), 128),
        ("units", (16, 17), 17),
        ("level", ("m", "l"), "m"),
        ("level", ("s", "l"), "s"),
    ],
)
def test_the_range_is_as_asked_and_the_default_stays_inside(name: str, ends: tuple[Any, Any], default: Any) -> None:
    space = mixed()
    small = narrow(space, {name: ends})
    old, new = column(space, name), column(small, name)
    assert type(new) is type(old)
    assert (new.value(0.0), new.value(1.0)) == ends
    found = new.value(new.default)
    assert found == (default if name == "level" else pytest.approx(default, rel=1e-9))
    if not isinstance(new, Interval):
        inside = [old.value(u) for u in np.linspace(0, 1, 3000)]
        inside = inside[inside.index(ends[0]) : len(inside) - inside[::-1].index(ends[1])]
        assert [new.value(u) for u in new.centres(np.arange(float(new.size)))] == list(dict.fromkeys(inside))
    if name != "level":
        assert new.log == old.log
    assert isinstance(new.value(0.0), type(old.value(0.0)))


def test_what_is_not_named_stays_as_it_was() -> None:
    space = mixed()
    small = narrow(space, {"rate": (0.5, 1.0), "depth": (2, 3)})
    assert small.names == space.names
    for name in ("log_rate", "units", "kind", "fixed", "level"):
        old, new = column(space, name), column(small, name)
        assert (new.expected(), new.default, new.size) == (old.expected(), old.default, old.size)
    np.testing.assert_array_equal(column(small, "kind").cumulative, [0.5, 0.7, 1.0])
    assert column(space, "rate").upper == 2.0
    assert space.encode([dict(space.source.get_default_configuration())]).shape == (1, 7)


def test_nothing_to_cut_leaves_the_space_as_it_was() -> None:
    space = rich()
    whole = {"rate": (1e-4, column(space, "rate").upper), "width": (1, 100)}
    for small in (narrow(space, {}), narrow(space, whole)):
        X = uniform(space, 100, np.random.default_rng(0))
        np.testing.assert_array_equal(uniform(small, 100, np.random.default_rng(0)), X)
        assert small.decode(X) == space.decode(X)
        np.testing.assert_array_equal(small.default, space.default)
        assert small.source == space.source


@pytest.mark.parametrize(
    ("name", "value"), [("rate", 0.5), ("log_rate", 1e-1), ("depth", 7), ("units", 16), ("level", "xl")]
)
def test_a_single_value_makes_a_constant(name: str, value: Any) -> None:
    small = narrow(mixed(), {name: (value, value)})
    assert column(small, name).choices == (value,)
    assert type(column(small, name).choices[0]) is type(value)
    assert not small.varying[small.names.index(name)]
    assert all(config[name] == value for config in small.decode(uniform(small, 5, np.random.default_rng(0))))


def test_a_constant_is_active_where_the_hyperparameter_was() -> None:
    space = rich()
    small = narrow(space, {"rate": (0.01, 0.01), "momentum": (0.5, 0.5)})
    assert small.names == space.names
    assert small.condition_texts == space.condition_texts
    configs = small.decode(uniform(small, 300, np.random.default_rng(1)))
    assert 0 < sum("rate" in config for config in configs) < 300
    assert {config["rate"] for config in configs if "rate" in config} == {0.01}
    assert np.isnan(space.encode(configs)).sum() == sum(len(space.names) - len(config) for config in configs)


def test_conditions_clauses_and_foreign_choices_survive() -> None:
    space = rich()
    small = narrow(space, {"rate": (0.01, 0.02), "momentum": (0.5, 0.75), "width": (10, 20)})
    assert small.names == space.names
    assert small.condition_texts == space.condition_texts
    assert small.forbidden_texts == space.forbidden_texts
    assert (small.source.name, small.source.meta) == ("rich", {"a": 1})
    assert small.source["rate"].meta == {"unit": "1/s"}
    assert column(small, "kind").choices == column(space, "kind").choices
    X = uniform(small, 400, np.random.default_rng(2))
    configs = small.decode(X)
    # The old space agrees on what is active and what is legal, or it would refuse them.
    np.testing.assert_array_equal(np.isnan(space.encode(configs)), np.isnan(X))
    # And the other way round, for what lies in the ranges; the rest is refused.
    for config in space.decode(uniform(space, 400, np.random.default_rng(3))):
        inside = 10 <= config["width"] <= 20 and 0.5 <= config.get("momentum", 0.5) <= 0.75
        if inside and 0.01 <= config.get("rate", 0.01) <= 0.02:
            small.encode([config])
        else:
            with pytest.raises(ConfigError):
                small.encode([config])
    for child in small.source.conditions:  # hyperparameters of the new space, not of the old one
        assert child.child is small.source[child.child.name]


@pytest.mark.parametrize(
    ("name", "ends"),
    [("depth", (2, 3)), ("level", ("s", "m")), ("a", (0.2, 0.3)), ("b", (0.2, 0.3)), ("depth", (5, 5))],
)
def test_parents_and_members_of_clauses_keep_their_range(name: str, ends: tuple[Any, Any]) -> None:
    space = rich()
    small = narrow(space, {name: ends, "width": (10, 20)})
    assert column(small, name).expected() == column(space, name).expected()
    assert column(small, "width").expected() == "an integer in [10, 20]"


def test_conditions_on_values_that_never_occur_survive() -> None:
    source = CS.ConfigurationSpace({"depth": (1, 5), "rate": (0.0, 1.0)})
    never = CS.EqualsCondition(source["rate"], source["depth"], 9, check_condition_legality=False)
    source.add(never)
    small = narrow(compile_space(source), {"rate": (0.5, 0.75)})
    assert not small.activity(uniform(small, 20, np.random.default_rng(0)))[:, 1].any()


def test_a_space_can_be_narrowed_again_and_stored() -> None:
    space = narrow(
        narrow(mixed(), {"rate": (0.5, 1.5), "level": ("m", "xl")}), {"rate": (0.75, 1.0), "units": (20, 20)}
    )
    assert column(space, "rate").expected() == "a number in [0.75, 1.0]"
    assert column(space, "level").choices == ("m", "l", "xl")
    again = from_json(to_json(space))
    X = uniform(space, 50, np.random.default_rng(0))
    assert again.decode(X) == space.decode(X)


def test_numpy_numbers_become_native_ones() -> None:
    small = narrow(mixed(), {"depth": (np.int64(3), np.int64(3)), "rate": (np.float64(0.5), np.float32(1.5))})
    (config,) = small.decode(uniform(small, 1, np.random.default_rng(0)))
    assert (type(config["depth"]), type(config["rate"])) == (int, float)


@pytest.mark.parametrize("ends", [(1.0, math.nextafter(1.0, 2)), (0.7, 0.7 * (1 + 9e-13))])
@pytest.mark.parametrize("log", [False, True])
def test_ends_that_no_scale_tells_apart_make_a_constant(ends: tuple[float, float], log: bool) -> None:
    space = compile_space({"v": CS.UniformFloatHyperparameter("v", 0.5, 2, log=log)})
    small = narrow(space, {"v": ends})
    assert isinstance(small.columns[0], Choices)
    assert small.decode(small.default[None]) == [{"v": ends[0]}]


FLOATS = [(-5.0, 5.0), (0.0, 1e6), (-1e12, 1e12), (1e-12, 1.0), (1e-12, 1e12), (1 / 3, 1e5 / 3), (0.1, 1e8 / 7)]


@settings(deadline=None, max_examples=200, derandomize=True)
@given(st.sampled_from(FLOATS), st.booleans(), st.floats(0, 1), st.floats(0, 1), st.integers(1, 17), st.floats(0, 1))
def test_float_ranges_are_rounded_outward_and_stay_within_the_old_one(
    bounds: tuple[float, float], log: bool, s: float, t: float, digits: int, at: float
) -> None:
    log = log and bounds[0] > 0
    space = compile_space({"v": CS.UniformFloatHyperparameter("v", *bounds, log=log)})
    (old,) = space.columns
    assert isinstance(old, Interval)
    ends = [float(f"{old.value(u):.{digits - 1}e}") for u in sorted((s, t))]
    low, high = (min(max(end, old.lower), old.upper) for end in ends)
    assume(high - low > 1e-12 * max(abs(low), abs(high)))
    small = narrow(space, {"v": (low, high)})
    (new,) = small.columns
    assert isinstance(new, Interval)
    assert new.log == log
    assert old.lower <= new.lower <= low < high <= new.upper <= old.upper
    assert low - new.lower <= max(1.01e-13, 2 * np.spacing(abs(low)))
    assert new.upper - high <= max(1.01e-13, 2 * np.spacing(abs(high)))
    small.encode([{"v": low}, {"v": high}])
    space.encode(small.decode([[0.0], [at], [1.0]]))
    default = space.decode(space.default[None])[0]["v"]
    moved = small.decode(small.default[None])[0]["v"]
    assert moved == pytest.approx(min(max(default, low), high), rel=1e-9, abs=2e-13)


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"lr": (0, 1)}, "unknown hyperparameter 'lr'; the space has depth, fixed, kind, level, log_rate, rate, units"),
        ({"rate": (1.0, 0.5)}, r"'rate': expected low <= high, got \(1.0, 0.5\)"),
        ({"level": ("l", "m")}, "'level': expected low <= high"),
        ({"rate": (-0.1, 1.0)}, r"'rate': expected a number in \[0.0, 2.0\] as end of a range, got -0.1"),
        ({"rate": (0.1, 2.1)}, "got 2.1"),
        ({"rate": (0.1, math.nan)}, "got nan"),
        ({"rate": ("0.1", 1.0)}, "got '0.1'"),
        ({"depth": (0, 3)}, r"'depth': expected an integer in \[1, 15\] as end of a range, got 0"),
        ({"depth": (1.5, 3)}, "got 1.5"),
        ({"depth": (1, True)}, "got True"),
        ({"level": ("m", "huge")}, r"'level': expected one of \['s', 'm', 'l', 'xl'\] as end of a range, got 'huge'"),
        ({"kind": ("b", "a")}, r"'kind' has no order, .* it is one of \['b', 'a', None\]"),
        ({"fixed": ("adam", "adam")}, "'fixed' has no order"),
        ({"rate": 0.5}, r"'rate': expected a pair \(low, high\), got 0.5"),
        ({"rate": (0.1, 0.2, 0.3)}, r"expected a pair \(low, high\)"),
        ({"level": "sl"}, r"expected a pair \(low, high\), got 'sl'"),
    ],
)
def test_ranges_that_make_no_sense_are_refused(ranges: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"^narrow: .*{message}"):
        narrow(mixed(), ranges)


def test_a_bad_range_is_refused_even_where_it_would_not_be_used() -> None:
    with pytest.raises(InputError, match="'depth': expected an integer"):
        narrow(rich(), {"depth": (0, 3)})
