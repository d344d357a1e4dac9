"""The page on finished experiments: what methods did on benchmarks, and which differences are more than chance."""
