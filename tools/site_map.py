"""Where each file of the repository is found on the site, and the project's public addresses.

The addresses are decided in one place, ``[project.urls]`` of `pyproject.toml`. `setup.py` uses this module to make the
links of README absolute for PyPI; it needs nothing but the standard library.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Pages of the site that are files outside of docs.
BORROWED = {
    "architecture.md": "ARCHITECTURE.md",
    "benchmark-scripts.md": "benchmarks/README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "examples.md": "examples/README.md",
    "security.md": "SECURITY.md",
}
LINK = re.compile(r"\]\((?!\w+:)([^)\s#]+)(#[^)\s]*)?\)")


def project_urls() -> dict[str, str]:
    """Return the addresses by their labels."""
    urls: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    return urls


def is_placeholder(url: str) -> bool:
    """Tell whether an address is under ``.example``, which nobody can own (RFC 2606)."""
    return url.split("/")[2].endswith(".example")


def page_of(path: str) -> str | None:
    """Return the page or file of the site that shows a file of the repository, or None if there is none."""
    borrowed = {source: page for page, source in BORROWED.items()}
    return borrowed.get(path, path.removeprefix("docs/") if path.startswith("docs/") else None)


def absolute_links(readme: str) -> str:
    """Return README with absolute links: to the site where it has the page, else to the repository."""
    urls = project_urls()

    def absolute(match: re.Match[str]) -> str:
        path, anchor = match.groups(default="")
        page = page_of(path)
        if page is None:
            return f"]({urls['Source']}/blob/main/{path}{anchor})"
        return f"]({urls['Documentation']}{re.sub(r'[.]md$', '.html', page)}{anchor})"

    return LINK.sub(absolute, readme)
