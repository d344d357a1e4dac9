"""Files with configurations: JSON (one object or a list of them), JSON lines, or CSV with one column per
hyperparameter.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recollect._files import read_text
from recollect.errors import InputError
from recollect.storage.formats.csv_columns import csv_rows, typed_column
from recollect.storage.formats.json_lines import json_objects, parse_json, require_object

Config = dict[str, Any]


def read_configs(path: Path) -> list[Config]:
    """Return the configurations in a file; it may end in .gz.

    An empty cell of a CSV file, and null in JSON, stand for a hyperparameter that is inactive.

    Raises:
        InputError: The file does not exist, or has none of the formats.
    """
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; expected a .json, .jsonl or .csv file with configurations")
    ending, text = Path(path.name.removesuffix(".gz")).suffix.lower(), read_text(path)
    if ending == ".csv":
        configs = _from_csv(str(path), text)
    elif ending == ".jsonl":
        configs = [content for _, content in json_objects(str(path), text)]
    elif ending == ".json":
        content = parse_json(str(path), text)
        listed = content if isinstance(content, list) else [content]
        configs = [require_object(f"{path}, configuration {number}", entry) for number, entry in enumerate(listed)]
    else:
        raise InputError(f"{path}: expected a .json, .jsonl or .csv file with configurations")
    return [{name: value for name, value in config.items() if value is not None} for config in configs]


def _from_csv(where: str, text: str) -> list[Config]:
    rows = [row for _, row in csv_rows(where, text)]
    if not rows:
        raise InputError(f"{where}: expected a header with the names of hyperparameters, but the file is empty")
    names = [name.strip() for name in rows[0]]
    columns = [typed_column([row[index] for row in rows[1:]]) for index in range(len(names))]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
