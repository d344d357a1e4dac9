"""The implementation behind `recollect.optuna` and `recollect.sklearn`, the public modules.

Importing a module of this package imports the library that it serves; the core never imports one of them.
"""
