"""Search spaces whose choices a memory cannot store: tuples, estimators and functions are tuned under their text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from recollect.errors import SpaceError
from recollect.integrations.sklearn.names import text_of
from recollect.numerics.arrays import native
from recollect.runs.run import Config
from recollect.space.space import Space, SpaceLike, compile_space


@dataclass(frozen=True, slots=True, eq=False)
class StorableSpace:
    """A space whose choices can all be stored, and the choice behind each text, by hyperparameter."""

    space: Space
    choices_by_text: Mapping[str, Mapping[str, Any]]

    def params(self, config: Config) -> Config:
        """Return a configuration of the space as parameters for an estimator."""
        choices = self.choices_by_text
        return {k: choices.get(k, {}).get(v, v) if isinstance(v, str) else v for k, v in config.items()}

    def config(self, params: Mapping[str, Any]) -> Config:
        """Return parameters for an estimator as a configuration of the space."""
        return {
            name: text_of(value) if name in self.choices_by_text and not _storable(value) else value
            for name, value in params.items()
        }


def make_storable(space: SpaceLike) -> StorableSpace:
    """Return a space with texts for the choices that cannot be stored; only dicts can have such choices."""
    choices_by_text: dict[str, dict[str, Any]] = {}
    if isinstance(space, dict):
        return StorableSpace(compile_space(_texts_only(space, choices_by_text)), choices_by_text)
    if isinstance(space, list) and all(isinstance(entry, dict) for entry in space):
        dicts: list[Any] = [_texts_only(dict(entry), choices_by_text) for entry in space]
        return StorableSpace(compile_space(dicts), choices_by_text)
    return StorableSpace(compile_space(space), {})


def _texts_only(space: Mapping[str, Any], choices_by_text: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a dict with texts for the choices that cannot be stored; add these choices to ``choices_by_text``."""
    texts_only = dict(space)
    for name, entry in space.items():
        choices = entry["choices"] if isinstance(entry, Mapping) and "choices" in entry else entry
        choices = choices.tolist() if isinstance(choices, np.ndarray) and choices.dtype.hasobject else choices
        if not isinstance(choices, list):
            continue
        texts_only[name] = _with_choices(entry, choices)
        if not all(map(_storable, choices)):
            texts = [choice if _storable(choice) else text_of(choice) for choice in choices]
            if len(set(texts)) < len(choices):
                raise SpaceError(f"{name!r}: choices must differ as text, because they are stored as text; got {texts}")
            hidden = {text_of(choice): choice for choice in choices if not _storable(choice)}
            choices_by_text.setdefault(name, {}).update(hidden)
            texts_only[name] = _with_choices(entry, texts)
    return texts_only


def _with_choices(entry: Any, choices: list[Any]) -> Any:
    """Return a list of choices in the notation of ``entry``."""
    return {**entry, "choices": choices} if isinstance(entry, Mapping) else choices


def _storable(choice: Any) -> bool:
    return native(choice) is None or isinstance(native(choice), str | int | float | bool)
