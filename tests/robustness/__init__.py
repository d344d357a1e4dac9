"""Random and hostile input for everything that meets the outside: ``python -m tests.robustness --help``."""
