"""Public names of a package that are imported when they are first used, so that importing the package costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any


def lazily(package: str, homes: Mapping[str, str], modules: Collection[str] = ()) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package; ``homes`` says in which of its modules each public name lives.

    modules: those that are public names themselves.
    """

    def __getattr__(name: str) -> Any:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return __getattr__
