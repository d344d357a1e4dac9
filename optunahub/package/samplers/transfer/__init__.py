"""Transfer from past studies: the sampler itself is part of the package `recollect`."""

from recollect.integrations.optuna_sampler import TransferSampler

__all__ = ["TransferSampler"]
