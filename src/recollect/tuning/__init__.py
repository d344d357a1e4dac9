"""Tuning: run an objective and keep every trial in a memory, alone or together with other processes."""
