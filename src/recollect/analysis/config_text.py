"""A configuration as text to copy: JSON, the arguments of a program, Python. All digits are kept."""

from __future__ import annotations

import json
import shlex
from typing import Any

from recollect.numerics.arrays import native
from recollect.runs.run import Config


def config_json(config: Config, *, indent: int | None = None) -> str:
    """Return a configuration as JSON; values that JSON does not have become texts."""
    return json.dumps(_native(config), ensure_ascii=False, default=str, indent=indent)


def config_arguments(config: Config) -> str:
    """Return a configuration as options for a shell: ``--lr=0.01 '--kernel=a b'``."""
    texts = (f"--{name}={value if isinstance(value, str) else value_json(value)}" for name, value in config.items())
    return " ".join(map(shlex.quote, texts))


def config_python(config: Config) -> str:
    """Return a configuration as a dict in Python."""
    return repr(_native(config))


def value_json(value: Any) -> str:
    """Return one value of a configuration as JSON, with all digits; what JSON does not have becomes a text."""
    return json.dumps(native(value), ensure_ascii=False, default=str)


def _native(config: Config) -> Config:
    return {name: native(value) for name, value in config.items()}
