"""The name of the method that every entry point uses unless another one is given; it imports nothing."""

DEFAULT_METHOD = "task-prior"
