"""Search spaces as people write them, one module per notation; all of them become a ConfigurationSpace.

entries                a dict with one entry per hyperparameter: ranges, choices, constants
scipy_distributions    frozen distributions of SciPy, as RandomizedSearchCV takes them
optuna_distributions   Optuna's distributions
alternatives           a list of dicts, GridSearchCV's way to say which hyperparameters belong together
space_files            JSON, YAML and TOML files
"""
