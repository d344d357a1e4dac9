"""The implementation of `recollect.sklearn.TransferSearchCV`."""
