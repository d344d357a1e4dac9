"""File formats of runs: JSON lines and CSV."""
