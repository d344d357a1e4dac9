"""One file per source of published results: each turns its authors' files into a `Benchmark`."""
