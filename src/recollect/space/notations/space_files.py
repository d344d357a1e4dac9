"""Space files: JSON, YAML and TOML.

A file has one entry per hyperparameter, as in `recollect.space.notations.entries`; JSON and YAML may have a list of
such objects (`alternatives`) or ConfigSpace's own format::

    {"low": 1e-4, "high": 0.1, "log": true}     a range; of integers if both bounds are; also with "step"
    [1e-4, 0.1, "log"]                          the same, short
    ["rbf", "poly"], {"choices": [16, 32]}      choices
    3, "adam", true, null                       a constant

YAML is read by the rules of version 1.2: ``1e-4`` is a number, and ``on``, ``off``, ``yes``, ``no`` are text.
"""

from __future__ import annotations

import json
import re
import tomllib
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from recollect.errors import InputError, RecollectError, RecollectWarning, SpaceError

ENDINGS = (".json", ".yaml", ".yml", ".toml")
YAML_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")
YAML_BOOLEAN = re.compile(r"(true|True|TRUE|false|False|FALSE)$")


def read_entries(path: Path) -> Any:
    """Return the content of a space file: a dict, a list of dicts, or a ConfigurationSpace.

    Raises:
        InputError: The file cannot be read.
        SpaceError: Its content is not a search space.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # editors on Windows write a byte order mark
    except OSError as error:
        raise InputError(f"{path}: the search space cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise SpaceError(f"{path}: expected a search space as text, but this is not text: {error.reason}") from error
    ending = path.suffix.lower()
    kind, parse = ("YAML", _parse_yaml) if ending in (".yaml", ".yml") else ("TOML", tomllib.loads)
    if ending not in ENDINGS[1:]:
        kind, parse = "JSON", _parse_json
    content = _parsed(path, kind, parse, text)
    if isinstance(content, dict) and _is_configspace(content):
        return _configuration_space(path, content)
    dicts = content if isinstance(content, list) else [content]
    if not dicts or not all(isinstance(entry, dict) for entry in dicts):
        expected = "an object with one entry per hyperparameter, or a list of such objects"
        raise SpaceError(f"{path}: expected {expected} as {kind}, got {text.strip()[:80]!r}")
    for entry in dicts:
        _warn_about_pairs(entry, str(path))
    return content


def _parsed(path: Path, kind: str, parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except RecollectError as error:
        raise SpaceError(f"{path}: {error}") from error
    except (ValueError, TypeError, RecursionError) as error:  # TypeError: a key that cannot be hashed
        raise SpaceError(f"{path}: expected a search space as {kind}: {error}") from error


def _parse_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_without_duplicates)


def _parse_yaml(text: str) -> Any:
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """Reads numbers and booleans as YAML 1.2 does, and refuses a key that occurs twice."""

    replaced = ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:float")
    Loader.yaml_implicit_resolvers = {
        start: [pair for pair in pairs if pair[0] not in replaced]
        for start, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
        pairs = [(loader.construct_object(key), loader.construct_object(value, deep=True)) for key, value in node.value]
        return _without_duplicates(pairs)

    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", YAML_BOOLEAN, list("tTfF"))
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", YAML_FLOAT, list("-+.0123456789"))
    Loader.add_constructor("tag:yaml.org,2002:map", mapping)
    try:
        return yaml.load(text, Loader=Loader)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error


def _without_duplicates(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    content: dict[Any, Any] = {}
    for name, value in pairs:
        if name in content:
            raise SpaceError(f"the key {name!r} occurs twice")
        content[name] = value
    return content


def _is_configspace(content: Mapping[str, Any]) -> bool:
    listed = content.get("hyperparameters")
    return isinstance(listed, list) and all(isinstance(entry, dict) for entry in listed)


def _configuration_space(path: Path, content: Mapping[str, Any]) -> Any:
    from ConfigSpace import ConfigurationSpace

    try:
        return ConfigurationSpace.from_serialized_dict(dict(content))
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise SpaceError(f"{path}: expected a search space in ConfigSpace's format: {error}") from error


def _warn_about_pairs(entries: Mapping[str, Any], where: str) -> None:
    """Warn about two numbers in a list: a range is meant as often as two choices."""
    for name, entry in entries.items():
        if isinstance(entry, list) and len(entry) == 2 and all(type(choice) in (int, float) for choice in entry):
            low, high = map(json.dumps, entry)
            warnings.warn(
                f'{where}: {name!r} has two choices; write {{"low": {low}, "high": {high}}} for a range, or '
                f'{{"choices": [{low}, {high}]}} if two choices are intended',
                RecollectWarning,
                stacklevel=4,
            )
