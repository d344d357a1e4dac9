"""Search spaces for commands with placeholders, and a filled command."""

from __future__ import annotations

from typing import Any

from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer

from recollect import Space, compile_space
from recollect.tuning.commands import parse_command


def space(**others: Any) -> Space:
    """Return a space with a number and a choice, and others."""
    return compile_space({"lr": (0.0, 1.0), "name": ["a", "b"], **others})


def conditional() -> Space:
    """Return a space in which only trees have a depth."""
    made = ConfigurationSpace()
    kernel, depth = Categorical("kernel", ["tree", "line"]), Integer("depth", (1, 9))
    made.add(kernel, depth, Float("lr", (0.0, 1.0)), EqualsCondition(depth, kernel, "tree"))
    return compile_space(made)


def filled(command: list[str], config: dict[str, Any], searched: Space | None = None) -> list[str]:
    """Return the arguments of a command for a configuration."""
    return parse_command(command, searched or space()).fill(config, score_file="SCORE")
