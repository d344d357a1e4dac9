"""The neural models of `recollect.neural`, by name: they are loaded when they are used, for they need JAX."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from recollect.errors import MissingExtraError
from recollect.numerics.arrays import IntArray
from recollect.surrogate.kernels import KernelShape
from recollect.transfer.joint import JointModel, Learned
from recollect.transfer.sources import SourceData

_PLACES = {"ablr": ("ablr", "AdaptiveRegression"), "gcp-prior": ("copula_prior", "CopulaPrior")}


@dataclass(frozen=True, slots=True)
class NeuralModel:
    """A joint model of `recollect.neural` with its default settings."""

    name: Literal["ablr", "gcp-prior"]

    def check(self, past: Sequence[SourceData]) -> None:
        """Refuse an installation without JAX."""
        self._load().check(past)

    def learn(
        self, past: Sequence[SourceData], *, shape: KernelShape, sizes: IntArray, rng: np.random.Generator
    ) -> Learned:
        """Learn from the past runs."""
        return self._load().learn(past, shape=shape, sizes=sizes, rng=rng)

    def _load(self) -> JointModel:
        module, settings = _PLACES[self.name]
        try:
            made = getattr(importlib.import_module(f"recollect.neural.{module}"), settings)()
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                f"method {self.name} needs {error.name}, which is not installed: pip install 'recollect[neural]'"
            ) from error
        return cast(JointModel, made)
