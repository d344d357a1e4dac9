"""The implementation of `recollect.optuna.TransferSampler`."""
