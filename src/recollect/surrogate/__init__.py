"""Models of one function: kernels, Gaussian processes, target scaling. Sees arrays only."""
