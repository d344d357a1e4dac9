"""The measuring: benchmarks, experiments and their statistics."""
