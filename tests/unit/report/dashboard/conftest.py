"""A memory in a file, copied for each test."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.dashboard import example

from recollect import Memory


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memory") / "tuning.db"
    with Memory(path) as memory:
        memory.add(example("first"), "svm")
        memory.add(example("second"), "svm")
    return path


@pytest.fixture
def file(model: Path, tmp_path: Path) -> Path:
    (tmp_path / "tuning.db").write_bytes(model.read_bytes())
    return tmp_path / "tuning.db"
