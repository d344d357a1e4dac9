"""The doing: run an objective, keep every trial in a memory, alone or together with other processes."""
