"""recollect inside Optuna: ``from recollect.optuna import TransferSampler``.

Importing this module imports Optuna.
"""

from __future__ import annotations

from recollect.integrations.optuna.sampler import TransferSampler

__all__ = ["TransferSampler"]
