"""Checks of arguments: each turns a value into the type that is needed, or raises an error that names the argument."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Iterable, Mapping
from typing import SupportsFloat, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from recollect.errors import InputError, InputTypeError
from recollect.numerics.arrays import FloatArray

Item = TypeVar("Item")


def as_list(name: str, value: Iterable[Item], *, of: str) -> list[Item]:
    """Return ``value`` as a list; ``of`` says in the error what it should hold. A string or a dict is not a list."""
    message = f"{name} must be a list of {of}, got {type(value).__name__}"
    if isinstance(value, str | bytes | Mapping):
        raise InputTypeError(message)
    try:
        return list(value)
    except TypeError as error:
        raise InputTypeError(message) from error


def as_finite(name: str, value: ArrayLike, *, shape: tuple[int | None, ...]) -> FloatArray:
    """Return ``value`` as a float array of ``shape`` (None: any length) without nan or infinite entries."""
    array = as_shape(name, value, shape=shape)
    if not np.isfinite(array).all():
        count = int(array.size - np.isfinite(array).sum())
        raise InputError(f"{name} must be finite, got {count} nan or infinite values of {array.size}")
    return array


def as_shape(name: str, value: ArrayLike, *, shape: tuple[int | None, ...]) -> FloatArray:
    """Return ``value`` as a float array of ``shape`` (None: any length)."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputTypeError(f"{name} must be an array of numbers, got {type(value).__name__}: {error}") from error
    if array.ndim != len(shape) or any(size not in (None, n) for size, n in zip(shape, array.shape, strict=True)):
        expected = "(" + ", ".join("any" if size is None else str(size) for size in shape) + ("," * (len(shape) == 1))
        raise InputError(f"{name} must have shape {expected}), got {array.shape}")
    return array


def as_count(name: str, value: SupportsIndex, *, minimum: int) -> int:
    """Return ``value`` as an int of at least ``minimum``."""
    try:
        count = operator.index(value)
    except TypeError as error:
        raise InputTypeError(f"{name} must be an integer, got {value!r}") from error
    if count < minimum:
        raise InputError(f"{name} must be at least {minimum}, got {count}")
    return count


def as_text(name: str, value: str) -> str:
    """Return ``value`` if it is a string."""
    if not isinstance(value, str):
        raise InputTypeError(f"{name} must be a string, got {value!r} ({type(value).__name__})")
    return value


def as_number(value: object, where: str, expected: str = "a number or recollect.FAILED") -> float:
    """Return a user's value as a float, which may be nan or inf; InputTypeError for anything but a number."""
    if type(value) is float:  # nearly always, and the tests below are slow
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    # A number of another library has no dimension: a Decimal, a tensor of PyTorch or JAX.
    foreign = isinstance(value, SupportsFloat) and not isinstance(value, np.generic) and not getattr(value, "ndim", 0)
    try:
        if not isinstance(value, (bool, np.bool_)) and (foreign or isinstance(value, numbers.Real)):
            return float(value)  # type: ignore[arg-type]
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]
    except (TypeError, ValueError, RuntimeError):  # a tensor of complex numbers, a Decimal that is a signal
        pass
    raise InputTypeError(f"{where}: expected {expected}, got {value!r} ({type(value).__name__})")


def as_positive(name: str, value: SupportsFloat) -> float:
    """Return ``value`` as a finite float above zero."""
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"{name} must be a number, got {value!r}") from error
    except OverflowError:
        number = math.inf
    if not (math.isfinite(number) and number > 0.0):
        raise InputError(f"{name} must be a finite number above 0, got {value!r}")
    return number


def as_generator(name: str, value: np.random.Generator) -> np.random.Generator:
    """Return ``value`` if it is a NumPy random generator."""
    if not isinstance(value, np.random.Generator):
        raise InputTypeError(f"{name} must be a numpy.random.Generator, got {type(value).__name__}")
    return value
