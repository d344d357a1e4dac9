"""Arrays in, arrays out: linear algebra, normal distribution, point sets, descent. Knows nothing of optimization."""
