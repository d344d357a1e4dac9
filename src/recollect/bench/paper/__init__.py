"""The paper's tables, its published values and its side studies."""
