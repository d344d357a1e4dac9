"""Transfer from past runs: rankings, weights, ensembles.

Public names, loaded on first use: `rgpe_weights`, `tst_weights`, `Weights`, `slowdown_factor`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect._lazy import lazily

if TYPE_CHECKING:
    from recollect.transfer.weighting.base import Weights, slowdown_factor
    from recollect.transfer.weighting.ranking_weights import rgpe_weights, tst_weights

__all__ = ["Weights", "rgpe_weights", "slowdown_factor", "tst_weights"]

_HOME = dict.fromkeys(("Weights", "slowdown_factor"), "weighting.base")
_HOME |= dict.fromkeys(("rgpe_weights", "tst_weights"), "weighting.ranking_weights")

__getattr__ = lazily(__name__, _HOME)
