"""The page of a memory: all tasks of a problem, or all problems."""
