"""A sampler that learns from past studies; it is part of the package `recollect`."""

from recollect.optuna import TransferSampler


__all__ = ["TransferSampler"]
