"""Arrays in, arrays out: linear algebra, normal distribution, point sets, minimization."""
