"""Suggestions, tables and pages are those that were recorded (``make record`` renews the record)."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from tests.regression import recording

import recollect

SUGGESTED = json.loads(recording.SUGGESTIONS.read_text())
PRINTED = json.loads(recording.OUTPUTS.read_text())
ELSEWHERE = SUGGESTED["machine"] != recording.machine()
"""With other versions of the numerical libraries the last bits of a suggestion may differ."""


def close(got: Any, expected: Any) -> Any:
    if isinstance(expected, float) and ELSEWHERE:
        return got == pytest.approx(expected, rel=1e-3, abs=1e-6)
    if isinstance(expected, dict):
        return got.keys() == expected.keys() and all(close(got[name], expected[name]) for name in expected)
    return got == expected


def test_the_record_has_every_case_and_no_other() -> None:
    assert sorted(SUGGESTED["suggestions"]) == sorted(map(recording.key, recording.cases()))


@pytest.mark.parametrize("case", list(recording.cases()), ids=recording.key)
def test_suggestions_are_the_recorded_ones(case: recording.Case) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", recollect.RecollectWarning)
        got = recording.suggest(case)
    expected = SUGGESTED["suggestions"][recording.key(case)]
    assert len(got) == len(expected)
    assert all(map(close, got, expected)), f"suggested {got}, recorded {expected}"


@pytest.mark.skipif(PRINTED["machine"] != recording.machine(), reason="recorded with other versions of libraries")
def test_tables_and_pages_are_the_recorded_ones(tmp_path: Path) -> None:
    got = recording.outputs(tmp_path)
    assert got.keys() == PRINTED["outputs"].keys()
    for name, expected in PRINTED["outputs"].items():
        assert got[name] == expected, name
