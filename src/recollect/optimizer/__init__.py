"""The decision: methods as data, and the one stateful class that runs them."""
