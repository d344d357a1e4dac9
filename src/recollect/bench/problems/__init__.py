"""Benchmarks by kind: tabular, CSV files, forests, synthetic functions, and the embedded suite."""
