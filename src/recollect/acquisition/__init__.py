"""How good is a candidate, and which candidate is best."""
