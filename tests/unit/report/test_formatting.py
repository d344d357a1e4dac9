"""Numbers as text, and the choice of what to show of many."""

from __future__ import annotations

from recollect.report.formatting import compact_number, thinned


def test_labels_are_short() -> None:
    assert [compact_number(value) for value in (0.0, 1.0, -0.25, 1024.0, 0.001, 0.00098, 1e-10, 123456.0, 1 / 3)] == [
        *("0", "1", "-0.25", "1024", "0.001", "9.8e-4", "1e-10", "1.2e5", "0.333")
    ]


def test_thinning_keeps_what_is_to_be_kept_in_order() -> None:
    assert thinned(5, 9) == [0, 1, 2, 3, 4]
    found = thinned(1000, 50, keep=[7, 501])
    assert {7, 501} <= set(found)
    assert found == sorted(set(found))
    assert len(found) <= 50
