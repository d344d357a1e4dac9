"""What `pyproject.toml` cannot say: the description on PyPI is README with absolute links."""

import sys
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "tools"))

from site_map import absolute_links  # noqa: E402

setup(
    long_description=absolute_links((ROOT / "README.md").read_text(encoding="utf-8")),
    long_description_content_type="text/markdown",
)
