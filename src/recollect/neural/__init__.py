"""Neural baselines: adaptive Bayesian linear regression and a learned prior for copula processes (extra `neural`).

Importing the modules of this package loads JAX; the core imports them only when a method uses them.
"""
