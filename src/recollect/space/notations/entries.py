"""A dict with one entry per hyperparameter.

    (lo, hi)          two ints: integer; otherwise: float        (lo, hi, "log")   the same on a log scale; a list, too
    [a, b, c], array  choices; at least three numbers in rising  range(2, 21, 2)   integers, with a step
                      or falling order keep their order          3, "adam", None   constant
    {"low": lo, "high": hi}                                      a range, also with "log": True or "step": s
    {"choices": [...]}                                           choices, also with "ordered": False or True
    a frozen SciPy distribution, an Optuna distribution, or a ConfigSpace hyperparameter

What ConfigSpace would change silently (it rounds bounds to 13 decimals) or report obscurely is refused.
"""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect._text import is_unicode
from recollect.errors import SpaceError
from recollect.numerics.arrays import native
from recollect.space.columns import EDGE_RELATIVE
from recollect.space.configspace import DECIMALS, check_integers, index_of
from recollect.space.notations.optuna_distributions import MAX_STEPS, entry_of_optuna, is_optuna_distribution
from recollect.space.notations.scipy_distributions import entry_of_scipy, is_scipy_distribution

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace
    from ConfigSpace.hyperparameters import Hyperparameter

FORMS = (
    '(lo, hi), (lo, hi, "log"), a list of choices, range(...), {"low": lo, "high": hi, "step": s}, one constant, or a '
    "distribution of SciPy, Optuna or ConfigSpace"
)
LARGEST_BOUND = 1e290  # ConfigSpace's rounding overflows above this
MIN_ORDERED = 3  # numbers that keep their order as choices; between two there is nothing to learn from it


def space_from_dict(mapping: Mapping[Any, Any]) -> ConfigurationSpace:
    """Return the ConfigurationSpace that the dict describes."""
    from ConfigSpace import ConfigurationSpace

    space = ConfigurationSpace()
    try:
        space.add(*hyperparameters_of(mapping).values())
    except (ValueError, TypeError) as error:
        if isinstance(error, SpaceError):
            raise
        raise SpaceError(f"ConfigSpace refuses this space: {error}") from error
    return space


def hyperparameters_of(mapping: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the hyperparameters that a dict describes, by name."""
    for name in mapping:
        if not isinstance(name, str) or not name or not is_unicode(name):
            got = f"{name!r} ({type(name).__name__})"
            raise SpaceError(f"the name of a hyperparameter must be a non-empty string in valid Unicode; got {got}")
    return {name: hyperparameter_of(name, spec) for name, spec in mapping.items()}


def hyperparameter_of(name: str, spec: Any) -> Hyperparameter[Any, Any]:  # noqa: PLR0911 - one return per notation
    """Return the hyperparameter that one entry describes."""
    from ConfigSpace.hyperparameters import Constant, Hyperparameter

    spec = native(spec)
    if isinstance(spec, Hyperparameter):
        if spec.name != name:
            raise SpaceError(f"the hyperparameter under {name!r} has the name {spec.name!r}; the two must agree")
        return spec
    if is_optuna_distribution(spec):
        return hyperparameter_of(name, entry_of_optuna(name, spec))
    if is_scipy_distribution(spec):
        return hyperparameter_of(name, entry_of_scipy(name, spec))
    if isinstance(spec, tuple):
        return _range(name, spec)
    if isinstance(spec, range):
        return _steps(name, spec if spec.step > 0 else spec[::-1])
    if isinstance(spec, Mapping):
        return _described(name, spec)
    if isinstance(spec, np.ndarray):
        if spec.ndim != 1:
            raise SpaceError(f"{name!r}: expected choices as an array of one dimension, got shape {spec.shape}")
        return _choices(name, spec.tolist(), ordered=None)
    if isinstance(spec, list):
        return _range(name, tuple(spec)) if _is_log_range(spec) else _choices(name, spec, ordered=None)
    if isinstance(spec, float) and not math.isfinite(spec):
        raise SpaceError(f"{name!r}: a constant must be finite, got {spec!r}")
    if spec is None or isinstance(spec, str | numbers.Real):
        return Constant(name, spec)
    raise SpaceError(f"{name!r}: expected {FORMS}; got {spec!r} ({type(spec).__name__})")


def _choices(name: str, choices: list[Any], *, ordered: bool | None) -> Hyperparameter[Any, Any]:
    """Return a hyperparameter with these choices; ``ordered`` None: if they are numbers in order."""
    from ConfigSpace.hyperparameters import CategoricalHyperparameter, OrdinalHyperparameter

    choices = [native(choice) for choice in choices]
    if not choices:
        raise SpaceError(f"{name!r}: expected at least one choice, got an empty list")
    if len(index_of(name, choices)) < len(choices):
        twice = next(choice for position, choice in enumerate(choices) if choice in choices[:position])
        raise SpaceError(f"{name!r}: choices must differ (1, 1.0 and True are equal), but {twice!r} occurs twice")
    if (in_order(choices) if ordered is None else ordered) and len(choices) > 1:
        return OrdinalHyperparameter(name, choices)
    return CategoricalHyperparameter(name, choices)


def in_order(choices: Sequence[Any]) -> bool:
    """Return whether choices are enough numbers in rising or falling order."""
    if len(choices) < MIN_ORDERED or not all(_is_number(choice) for choice in choices):
        return False
    rising = [first < second for first, second in itertools.pairwise(choices)]
    return all(rising) or not any(rising)


def _is_log_range(spec: list[Any]) -> bool:
    """Return whether a list is a range on a log scale, as it comes from JSON, which has no tuples."""
    return len(spec) == 3 and all(map(_is_number, spec[:2])) and isinstance(spec[2], str) and spec[2] == "log"


def _is_number(value: Any) -> bool:
    real = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    return real and abs(value) < math.inf  # math.isfinite cannot take integers beyond the largest float


def _described(name: str, spec: Mapping[Any, Any]) -> Hyperparameter[Any, Any]:
    """Return the hyperparameter that an entry with named parts describes."""
    flags = {key: spec.get(key) for key in ("log", "ordered")}
    wrong_flag = next((key for key, flag in flags.items() if flag is not None and not isinstance(flag, bool)), None)
    if spec.keys() <= {"choices", "ordered"} and isinstance(spec.get("choices"), list | tuple | np.ndarray):
        if wrong_flag is None:
            return _choices(name, [*spec["choices"]], ordered=flags["ordered"])
    elif {"low", "high"} <= spec.keys() <= {"low", "high", "log", "step"} and wrong_flag is None:
        low, high, log, step = spec["low"], spec["high"], bool(flags["log"]), spec.get("step")
        if step is None:
            return _range(name, (low, high, "log") if log else (low, high))
        return _stepped_range(name, low, high, step=step, log=log)
    forms = '{"low": 1, "high": 9}, also with "log": True or "step": 2, {"choices": [...]}, also with "ordered": False'
    raise SpaceError(f"{name!r}: expected {forms}; got {dict(spec)!r:.200}")


def _stepped_range(name: str, low: Any, high: Any, *, step: Any, log: bool) -> Hyperparameter[Any, Any]:
    if not all(map(_is_number, (low, high, step))) or step <= 0 or low > high or log:
        rule = "a step needs finite bounds, the lower first, must be above 0 and excludes a log scale"
        raise SpaceError(f"{name!r}: {rule}; got low {low!r}, high {high!r}, step {step!r}, log {log}")
    if all(isinstance(part, numbers.Integral) for part in (low, step)):
        return _steps(name, range(int(low), math.floor(high) + 1, int(step)))
    start, end, width = (Decimal(str(float(part))) for part in (low, high, step))
    count = int((end - start) / width) + 1
    return _steps(name, [float(start + k * width) for k in range(min(count, MAX_STEPS + 1))])


def _steps(name: str, values: Sequence[Any]) -> Hyperparameter[Any, Any]:
    """Return a hyperparameter with these evenly spaced values, the smallest first; a range may be of any length."""
    from ConfigSpace.hyperparameters import Constant, OrdinalHyperparameter

    if not values:
        raise SpaceError(f"{name!r}: the range is empty")
    if not values[1:]:
        return Constant(name, values[0])
    if isinstance(values, range) and values.step == 1:
        return _range(name, (values[0], values[-1]))
    if values[MAX_STEPS:]:
        raise SpaceError(f"{name!r}: a range with a step has at most {MAX_STEPS} values; leave out the step")
    return OrdinalHyperparameter(name, [*values])


def _range(name: str, spec: tuple[Any, ...]) -> Hyperparameter[Any, Any]:
    from ConfigSpace.hyperparameters import Constant, UniformFloatHyperparameter, UniformIntegerHyperparameter

    if len(spec) not in (2, 3) or (len(spec) == 3 and spec[2] != "log"):
        raise SpaceError(f'{name!r}: a range is (lo, hi) or (lo, hi, "log"), got {spec!r}; choices go in a list')
    for bound in spec[:2]:
        real = isinstance(bound, numbers.Real) and not isinstance(bound, bool)
        if not (real and abs(bound) < math.inf):  # math.isfinite cannot take integers beyond the largest float
            raise SpaceError(f"{name!r}: expected finite numbers as bounds, got {bound!r}; choices go in a list")
    log, whole = len(spec) == 3, all(isinstance(bound, numbers.Integral) for bound in spec[:2])
    with np.errstate(over="ignore"):  # of a comparison with a float32
        too_large = not whole and any(abs(bound) > LARGEST_BOUND for bound in spec[:2])
    if too_large:
        raise SpaceError(f"{name!r}: bounds must lie within +-{LARGEST_BOUND}, got {spec[0]!r} and {spec[1]!r}")
    lower, upper = (int(bound) if whole else float(bound) for bound in spec[:2])
    if lower > upper:
        raise SpaceError(f"{name!r}: expected the lower bound before the upper, got {spec[0]!r} and {spec[1]!r}")
    if log and lower <= 0:
        raise SpaceError(f"{name!r}: a log scale needs a lower bound above 0, got {spec[0]!r}")
    if lower == upper:
        return Constant(name, lower)
    if whole:
        check_integers(name, int(lower), int(upper), log=log)
        return UniformIntegerHyperparameter(name, lower, upper, log=log)
    _check_decimals(name, lower, upper)
    return UniformFloatHyperparameter(name, lower, upper, log=log)


def _check_decimals(name: str, lower: float, upper: float) -> None:
    for bound in (lower, upper):
        rounded = round(bound, DECIMALS)
        if abs(rounded - bound) > EDGE_RELATIVE * abs(bound):
            change = f"ConfigSpace keeps {DECIMALS} decimals of a bound, so {bound!r} would become {rounded!r}"
            raise SpaceError(f"{name!r}: {change}; tune a rescaled quantity instead, for example its exponent")
    if round(lower, DECIMALS) == round(upper, DECIMALS):
        raise SpaceError(f"{name!r}: the bounds ({lower!r}, {upper!r}) agree in the {DECIMALS} decimals that are kept")
