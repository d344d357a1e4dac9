"""What past runs say: rankings, weights, ensembles.

Public names, loaded when first used: `rgpe_weights`, `tst_weights`, `Weights`, `slowdown_factor`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.lazy import lazily

if TYPE_CHECKING:
    from recollect.transfer.bound import slowdown_factor
    from recollect.transfer.rgpe import rgpe_weights
    from recollect.transfer.tst import tst_weights
    from recollect.transfer.weights import Weights

__all__ = ["Weights", "rgpe_weights", "slowdown_factor", "tst_weights"]

_HOME = {"Weights": "weights", "rgpe_weights": "rgpe", "slowdown_factor": "bound", "tst_weights": "tst"}

__getattr__ = lazily(__name__, _HOME)
