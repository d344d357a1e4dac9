"""How past runs are weighed: one module per weighting."""
