"""Experiments: plan, runs, executors, results."""
