"""recollect inside other libraries: a sampler for Optuna, a search for scikit-learn.

Importing a module of this package loads the library that it serves; the core never imports them.
"""
