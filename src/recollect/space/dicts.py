"""Search spaces written as a plain dict, turned into a ConfigurationSpace.

    (lo, hi)          two ints: integer; otherwise: float        (lo, hi, "log")   the same on a log scale
    [a, b, c]         categorical                                 3, "adam", None   constant
    a ConfigSpace hyperparameter                                  itself

Whatever ConfigSpace would change silently (bounds are rounded to 13 decimals) or report obscurely is refused here.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from recollect.errors import SpaceError
from recollect.space.columns import EDGE_RELATIVE
from recollect.space.hyperparameters import check_integers

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace
    from ConfigSpace.hyperparameters import Hyperparameter

FORMS = '(lo, hi), (lo, hi, "log"), a list of choices, one constant, or a ConfigSpace hyperparameter'
DECIMALS = 13
LARGEST_BOUND = 1e290
"""ConfigSpace's rounding overflows above this."""


def space_from_dict(mapping: Mapping[Any, Any]) -> ConfigurationSpace:
    """Return the ConfigurationSpace that the dict describes."""
    from ConfigSpace import ConfigurationSpace

    for name in mapping:
        if not isinstance(name, str) or not name:
            raise SpaceError(f"a hyperparameter's name must be a non-empty str, got {name!r} ({type(name).__name__})")
    space = ConfigurationSpace()
    try:
        space.add(*(_hyperparameter(name, spec) for name, spec in mapping.items()))
    except (ValueError, TypeError) as error:
        if isinstance(error, SpaceError):
            raise
        raise SpaceError(f"ConfigSpace refuses this space: {error}") from error
    return space


def _hyperparameter(name: str, spec: Any) -> Hyperparameter[Any, Any]:
    from ConfigSpace.hyperparameters import CategoricalHyperparameter, Constant, Hyperparameter

    if isinstance(spec, Hyperparameter):
        if spec.name != name:
            raise SpaceError(f"the hyperparameter under {name!r} calls itself {spec.name!r}; the two must agree")
        return spec
    if isinstance(spec, tuple):
        return _range(name, spec)
    if isinstance(spec, list):
        return CategoricalHyperparameter(name, _checked_choices(name, spec))
    if isinstance(spec, float) and not math.isfinite(spec):
        raise SpaceError(f"{name!r}: a constant must be finite, got {spec!r}")
    if spec is None or isinstance(spec, str | numbers.Real):
        return Constant(name, spec)
    raise SpaceError(f"{name!r}: expected {FORMS}; got {spec!r} ({type(spec).__name__})")


def _checked_choices(name: str, choices: list[Any]) -> list[Any]:
    if not choices:
        raise SpaceError(f"{name!r}: expected at least one choice, got an empty list")
    try:
        repeated = [choice for position, choice in enumerate(choices) if choice in set(choices[:position])]
    except TypeError as error:
        raise SpaceError(f"{name!r}: choices must be hashable (tuples, not lists): {error}") from error
    if any(isinstance(choice, float) and math.isnan(choice) for choice in choices):
        raise SpaceError(f"{name!r}: nan cannot be a choice, it does not equal itself")
    if repeated:
        raise SpaceError(f"{name!r}: choices must differ (1, 1.0 and True are equal), but {repeated[0]!r} comes twice")
    return choices


def _range(name: str, spec: tuple[Any, ...]) -> Hyperparameter[Any, Any]:
    from ConfigSpace.hyperparameters import Constant, UniformFloatHyperparameter, UniformIntegerHyperparameter

    if len(spec) not in (2, 3) or (len(spec) == 3 and spec[2] != "log"):
        raise SpaceError(f'{name!r}: a range is (lo, hi) or (lo, hi, "log"), got {spec!r}; choices go in a list')
    for bound in spec[:2]:
        if not isinstance(bound, numbers.Real) or isinstance(bound, bool) or not _finite(bound):
            raise SpaceError(f"{name!r}: expected finite numbers as bounds, got {bound!r}; choices go in a list")
    log, whole = len(spec) == 3, all(isinstance(bound, numbers.Integral) for bound in spec[:2])
    if not whole and max(map(abs, spec[:2])) > LARGEST_BOUND:
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


def _finite(number: Any) -> bool:
    return bool(abs(number) < math.inf)  # math.isfinite cannot take integers beyond the largest float


def _check_decimals(name: str, lower: float, upper: float) -> None:
    for bound in (lower, upper):
        kept = round(bound, DECIMALS)
        if abs(kept - bound) > EDGE_RELATIVE * abs(bound):
            raise SpaceError(
                f"{name!r}: ConfigSpace keeps {DECIMALS} decimals of a bound, so {bound!r} would become {kept!r}; "
                "tune a rescaled quantity instead, for example its exponent"
            )
    if round(lower, DECIMALS) == round(upper, DECIMALS):
        raise SpaceError(f"{name!r}: the bounds ({lower!r}, {upper!r}) agree in all {DECIMALS} decimals that are kept")
