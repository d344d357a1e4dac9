"""The page about finished experiments: how methods compare on benchmarks, and which differences are significant."""
