"""Trials and runs: what has been tried."""
