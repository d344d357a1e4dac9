"""The project's public addresses, decided in one place: ``[project.urls]`` of `pyproject.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def project_urls() -> dict[str, str]:
    """Return the addresses by their labels."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]


def is_placeholder(url: str) -> bool:
    """Tell whether an address is under ``.example``, which nobody can own (RFC 2606)."""
    return url.split("/")[2].endswith(".example")
