"""What past runs say: rankings, weights, ensembles.

Public names, loaded when first used: `rgpe_weights`, `tst_weights`, `Weights`, `slowdown_factor`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.transfer.bound import slowdown_factor
    from recollect.transfer.rgpe import rgpe_weights
    from recollect.transfer.tst import tst_weights
    from recollect.transfer.weights import Weights

__all__ = ["Weights", "rgpe_weights", "slowdown_factor", "tst_weights"]

_HOME = {"Weights": "weights", "rgpe_weights": "rgpe", "slowdown_factor": "bound", "tst_weights": "tst"}


def __getattr__(name: str) -> Any:
    """Import a public name from where it lives when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'recollect.transfer' has no attribute {name!r}")
    return getattr(import_module(f"recollect.transfer.{_HOME[name]}"), name)
