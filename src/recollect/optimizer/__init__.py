"""The decision: methods as data, and `Optimizer`, the one stateful class that runs them."""
