"""Choices that a memory cannot store (tuples, estimators, functions) go by their text while they are tuned."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recollect.errors import SpaceError
from recollect.history.optuna_runs import native
from recollect.history.run import Config
from recollect.space.space import Space, SpaceLike, compile_space

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True, eq=False)
class Wording:
    """A space in which every choice can be stored, and what the texts in it stand for, by name of hyperparameter."""

    space: Space
    meanings: Mapping[str, Mapping[str, Any]]

    def params(self, config: Config) -> Config:
        """Return a configuration of the space as parameters for an estimator."""
        return {name: self._meant(name, value) for name, value in config.items()}

    def _meant(self, name: str, value: Any) -> Any:
        meanings = self.meanings.get(name, {})
        return meanings[value] if isinstance(value, str) and value in meanings else value


def reword(space: SpaceLike) -> Wording:
    """Return a space with texts in place of choices that cannot be stored; only a dict has such choices."""
    if not isinstance(space, dict):
        return Wording(compile_space(space), {})
    meanings: dict[str, dict[str, Any]] = {}
    worded = dict(space)
    for name, given in space.items():
        if isinstance(given, list) and not all(map(_storable, given)):
            texts = [choice if _storable(choice) else text_of(choice) for choice in given]
            meanings[name] = {text_of(choice): choice for choice in given if not _storable(choice)}
            if len(set(texts)) < len(given):
                raise SpaceError(f"{name!r}: choices must differ as text, for so they are stored; got {texts}")
            worded[name] = texts
    return Wording(compile_space(worded), meanings)


def text_of(choice: Any) -> str:
    """Return a choice as text, the same in every process."""
    named = getattr(choice, "__qualname__", None)
    text = named if isinstance(named, str) else ADDRESS.sub("", repr(choice))
    return " ".join(text.split())


def _storable(choice: Any) -> bool:
    return native(choice) is None or isinstance(native(choice), str | int | float | bool)
