"""Acquisition functions, which score candidates, and the searches that maximize them."""
