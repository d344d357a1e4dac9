"""Forests as arrays: what is refused, and the stored file."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from recollect.bench.problems.forest_model import FEATURE_BITS, Forest, flatten, load_forest, save_forest
from recollect.errors import InputError

# One tree: feature 0 <= 0.5 -> 1, else feature 1 <= 0.25 -> 2, else 3. And a tree that is the leaf 10.
LINK = np.array([1 << FEATURE_BITS, 0, 1 << FEATURE_BITS | 1, 0, 0, 0], dtype=np.uint32)
THRESHOLD = np.array([0.5, np.inf, 0.25, np.inf, np.inf, np.inf], dtype=np.float32)
VALUE = np.array([np.nan, 1.0, np.nan, 2.0, 3.0, 10.0])
ROOTS = np.array([0, 5], dtype=np.int64)


def small(**changed: Any) -> Forest:
    given = {"link": LINK.copy(), "threshold": THRESHOLD.copy(), "value": VALUE.copy(), "roots": ROOTS.copy()}
    return Forest(**{**given, "width": 2, **changed})


def grown() -> Forest:
    rng = np.random.default_rng(0)
    X = rng.random((80, 3))
    return flatten(RandomForestRegressor(10, random_state=1).fit(X, X @ [1.0, -2.0, 0.5]))


def altered(array: np.ndarray, position: int, value: float) -> np.ndarray:
    array = array.copy()
    array[position] = value
    return array


def test_a_handwritten_forest_predicts_its_leaves() -> None:
    points = [[0.5, 0.9], [0.50001, 0.25], [0.9, 0.26], [-3.0, 5.0]]
    assert small().predict(points).tolist() == [5.5, 6.0, 6.5, 5.5]
    assert small().bounds() == (5.5, 6.5)
    assert small().depth == 2


def test_no_points_have_no_predictions() -> None:
    assert small().predict(np.empty((0, 2))).shape == (0,)


def test_one_point_alone_is_predicted_bitwise_as_among_others() -> None:
    forest, Q = grown(), np.random.default_rng(1).random((50, 3))
    together = forest.predict(Q)
    assert [forest.predict(q[None])[0] for q in Q] == together.tolist()


def test_predictions_lie_within_the_bounds() -> None:
    low, high = grown().bounds()
    predictions = grown().predict(np.random.default_rng(1).random((500, 3)))
    assert low <= predictions.min() < predictions.max() <= high


def test_a_forest_cannot_be_changed() -> None:
    forest = small()
    for array in (forest.link, forest.threshold, forest.value, forest.roots, forest.words):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([[0.0]], r"expected features of shape \(m, 2\), got shape \(1, 1\)"),
        ([0.0, 0.0], "got shape"),
        ([[0.0, np.nan]], "expected finite features, got nan in row 0"),
        ([[0.0, 0.0], [1e300, 0.0]], "expected finite features, got 1e.300 in row 1"),
    ],
)
def test_points_that_are_no_features_are_refused(points: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        small().predict(points)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"link": altered(LINK, 2, 3 << FEATURE_BITS)}, "outside of its tree"),
        ({"link": altered(LINK, 0, 2 << FEATURE_BITS)}, "child of one other"),
        ({"link": altered(LINK, 0, 1 << FEATURE_BITS | 2)}, "a feature beyond the 2"),
        ({"threshold": altered(THRESHOLD, 0, np.nan)}, "finite thresholds of inner nodes"),
        ({"threshold": altered(THRESHOLD, 1, 0.0)}, "inf of leaves"),
        ({"value": altered(VALUE, 3, np.nan)}, "a finite value of every leaf"),
        ({"value": VALUE[:-1]}, "of one length"),
        ({"value": VALUE.astype(np.float32)}, "got uint32, float32, float32, int64"),
        ({"roots": np.array([1, 5])}, "increasing roots"),
        ({"roots": np.array([0, 0, 5])}, "increasing roots"),
        ({"roots": np.array([0, 6])}, "a node of its own"),
        ({"roots": np.array([], dtype=np.int64)}, "increasing roots"),
    ],
)
def test_arrays_that_are_no_trees_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        small(**changed)


def test_a_forest_with_two_targets_is_refused() -> None:
    X = np.random.default_rng(0).random((20, 2))
    with pytest.raises(InputError, match="one target, got 2"):
        flatten(RandomForestRegressor(2, random_state=1).fit(X, X))


def test_too_many_features_are_refused() -> None:
    X = np.random.default_rng(0).random((20, 5000))
    with pytest.raises(InputError, match="at most 4096 features"):
        flatten(RandomForestRegressor(20, random_state=1).fit(X, X[:, -1]))


def test_a_stored_forest_comes_back_as_it_was(tmp_path: Path) -> None:
    forest = grown()
    save_forest(forest, tmp_path / "forest.npz", numbers={"spearman": 0.9, "unknown": math.nan})
    again, numbers = load_forest(tmp_path / "forest.npz")
    for name in ("link", "threshold", "value", "roots", "words"):
        np.testing.assert_array_equal(getattr(again, name), getattr(forest, name))
    assert (again.width, again.depth) == (forest.width, forest.depth)
    assert numbers["spearman"] == 0.9
    assert math.isnan(numbers["unknown"])


def test_no_array_of_the_file_needs_pickle_and_no_other_file_is_left(tmp_path: Path) -> None:
    save_forest(grown(), tmp_path / "forest.npz")
    with np.load(tmp_path / "forest.npz", allow_pickle=False) as stored:
        assert {stored[name].dtype.hasobject for name in stored} == {False}
        assert int(stored["format"]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["forest.npz"]


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "forest.npz"
    save_forest(small(), path)
    before = path.read_bytes()

    def full(place: Path, content: bytes) -> None:
        with place.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="no space left"):
        save_forest(grown(), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["forest.npz"]


def rewritten(path: Path, change: Callable[[dict[str, np.ndarray]], None]) -> None:
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored}
    change(arrays)
    np.savez(path, **arrays)


def drop_value(arrays: dict[str, np.ndarray]) -> None:
    del arrays["value"]


def change_leaf(arrays: dict[str, np.ndarray]) -> None:
    arrays["value"][1] += 1.0


def change_number(arrays: dict[str, np.ndarray]) -> None:
    arrays["numbers"] = np.array([0.95])


def raise_format(arrays: dict[str, np.ndarray]) -> None:
    arrays["format"] = np.array(2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop_value, "cannot be read"),
        (change_leaf, "does not match its checksum"),
        (change_number, "does not match its checksum"),
        (raise_format, "expected a forest of format 1, got format 2"),
    ],
)
def test_a_file_with_other_content_is_refused(
    tmp_path: Path, change: Callable[[dict[str, np.ndarray]], None], message: str
) -> None:
    save_forest(small(), tmp_path / "forest.npz", numbers={"spearman": 0.9})
    rewritten(tmp_path / "forest.npz", change)
    with pytest.raises(InputError, match=f"forest.npz: .*{message}"):
        load_forest(tmp_path / "forest.npz")


@pytest.mark.parametrize("keep", [0, 10, 0.3, 0.9])
def test_a_cut_file_is_refused(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "forest.npz"
    save_forest(grown(), path)
    content = path.read_bytes()
    path.write_bytes(content[: keep if isinstance(keep, int) else int(keep * len(content))])
    with pytest.raises(InputError, match="cannot be read"):
        load_forest(path)


def test_every_flipped_byte_of_the_arrays_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "forest.npz"
    save_forest(grown(), path)
    content = bytearray(path.read_bytes())
    for position in np.random.default_rng(0).integers(len(content) // 4, len(content) // 2, 20):
        damaged = content.copy()
        damaged[position] ^= 0x55
        path.write_bytes(damaged)
        with pytest.raises(InputError):
            load_forest(path)


def test_other_files_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save(tmp_path / "numbers.npy", np.ones(3))
    for name in ("objects.npy", "numbers.npy"):
        with pytest.raises(InputError, match="cannot be read"):
            load_forest(tmp_path / name)
    with pytest.raises(InputError, match="no such file"):
        load_forest(tmp_path / "nothing.npz")
