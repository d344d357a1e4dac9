"""Random forests as plain arrays: fitted once by scikit-learn, evaluated by NumPy, stored without pickle.

All trees form one list of N nodes, each tree in breadth-first order, so that the right child of a node follows its left
child. A point descends all trees at once: one step of all (point, tree) pairs is a handful of array operations, and the
loop is over the depth. A node is one word of 8 bytes, so that a step costs one memory access:

    link       (N,) uint32   left child's distance from the node in the upper 20 bits, feature in the lower 12;
                             distance 0 = leaf
    threshold  (N,) float32  a point goes left if its feature is <= threshold; +inf for leaves
    value      (N,) float64  prediction of a leaf; nan for inner nodes
    roots      (T,) int64    first node of each tree

Features (m, p) are rounded to float32 first, as scikit-learn does; for such numbers, <= a float64 threshold is the same
as <= the largest float32 that is not above it, which is what is stored here.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from recollect._files import write_atomically
from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from sklearn.ensemble import RandomForestRegressor

FORMAT = 1  # of the stored file
ARRAYS = ("link", "threshold", "value", "roots")
FEATURE_BITS = 12
MAX_FEATURES = 1 << FEATURE_BITS
MAX_DISTANCE = 1 << (32 - FEATURE_BITS)  # of a left child from its parent, exclusive
_HALVES = [("link", np.uint32), ("threshold", np.float32)]
NODE = np.dtype(_HALVES if sys.byteorder == "little" else _HALVES[::-1])  # the link is the lower half of the word

POINTS_PER_BLOCK = 1024  # bounds the memory
PAIRS_PER_BLOCK = 65_536  # (point, tree) pairs: a step's data stay in the processor's cache
PRUNE_INTERVAL = 4  # steps between two removals of the pairs that have reached a leaf
MIN_PAIRS_TO_PRUNE = 4096  # for fewer pairs, removing costs more than carrying them along


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Trees in arrays (see the head of the module), for points of ``width`` features; checked on creation."""

    link: npt.NDArray[np.uint32]
    threshold: npt.NDArray[np.float32]
    value: FloatArray
    roots: npt.NDArray[np.int64]
    width: int
    words: npt.NDArray[np.int64] = field(init=False, repr=False)
    depth: int = field(init=False)

    def __post_init__(self) -> None:
        """Check that the arrays are trees, and interleave link and threshold."""
        _check(self)
        nodes = np.empty(self.link.size, dtype=NODE)
        nodes["link"], nodes["threshold"] = self.link, self.threshold
        object.__setattr__(self, "words", nodes.view(np.int64))
        object.__setattr__(self, "depth", _depth(self.link, self.roots))
        # the two columns of the table, rather than copies of them
        object.__setattr__(self, "link", nodes["link"])
        object.__setattr__(self, "threshold", nodes["threshold"])
        for array in (self.words, self.link, self.threshold, self.value, self.roots):
            array.setflags(write=False)

    def predict(self, features: npt.ArrayLike) -> FloatArray:
        """Return the mean over the trees (m,) at points (m, p)."""
        points: FloatArray = np.asarray(features, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.width:
            raise InputError(f"forest: expected features of shape (m, {self.width}), got shape {points.shape}")
        with np.errstate(over="ignore"):
            single = np.ascontiguousarray(points, dtype=np.float32)
        if not np.isfinite(single).all():
            row, column = np.argwhere(~np.isfinite(single))[0]
            raise InputError(f"forest: expected finite features, got {points[row, column]} in row {row}, {column=}")
        mean = np.empty(len(single))
        for begin in range(0, len(single), POINTS_PER_BLOCK):
            block = slice(begin, begin + POINTS_PER_BLOCK)
            mean[block] = self._leaves(single[block]).mean(axis=1)
        return mean

    def bounds(self) -> tuple[float, float]:
        """Return the means over the trees of the smallest and of the largest leaf: no prediction is beyond them."""
        leaves = self.link >> FEATURE_BITS == 0
        low = np.minimum.reduceat(np.where(leaves, self.value, np.inf), self.roots)
        high = np.maximum.reduceat(np.where(leaves, self.value, -np.inf), self.roots)
        return float(low.mean()), float(high.mean())

    def _leaves(self, points: npt.NDArray[np.float32]) -> FloatArray:
        """Return the predictions (m, T) of every tree at points (m, p)."""
        m, flat = len(points), points.ravel()
        out = np.empty((m, self.roots.size))
        group = max(1, PAIRS_PER_BLOCK // m)
        offsets = np.arange(m, dtype=np.intp) * self.width
        for first in range(0, self.roots.size, group):
            roots = self.roots[first : first + group]
            node = np.repeat(roots, m)  # pairs of one tree are neighbours, and so is what they read
            self._descend(node, np.tile(offsets, roots.size), flat)
            out[:, first : first + group] = self.value.take(node).reshape(roots.size, m).T
        return out

    def _descend(self, node: IntArray, row: IntArray, flat: npt.NDArray[np.float32]) -> None:
        """Move ``node``, in place, from roots to leaves; ``row`` is where each pair's point begins in ``flat``."""
        here, walking = node, None
        for step in range(self.depth):
            word = self.words.take(here)
            column = word & (MAX_FEATURES - 1)
            column += row
            right = flat.take(column) > word.view(NODE)["threshold"]
            word >>= FEATURE_BITS
            word &= MAX_DISTANCE - 1
            here = here + word
            here += right
            if step % PRUNE_INTERVAL == PRUNE_INTERVAL - 1 and here.size >= MIN_PAIRS_TO_PRUNE:
                going = np.flatnonzero(word)
                if going.size < 0.8 * here.size:
                    if walking is None:
                        node[:], walking = here, going
                    else:
                        node[walking] = here
                        walking = walking[going]
                    here, row = here[going], row[going]
        if walking is None:
            node[:] = here
        else:
            node[walking] = here


def flatten(model: RandomForestRegressor) -> Forest:
    """Return a fitted RandomForestRegressor with one target as a Forest: same predictions, up to rounding."""
    if model.n_outputs_ != 1:
        raise InputError(f"flatten: expected a forest with one target, got {model.n_outputs_}")
    trees = [_tree_arrays(estimator.tree_) for estimator in model.estimators_]
    roots = np.cumsum([0, *(link.size for link, _, _ in trees[:-1])], dtype=np.int64)
    link, threshold, value = map(np.concatenate, zip(*trees, strict=True))
    return Forest(link, threshold, value, roots, int(model.n_features_in_))


def save_forest(forest: Forest, path: str | os.PathLike[str], *, numbers: Mapping[str, float] | None = None) -> None:
    """Write a forest as npz (plain arrays, no pickle), completely or not at all; ``numbers`` are stored with it."""
    extra = dict(numbers or {})
    arrays = {name: np.ascontiguousarray(getattr(forest, name)) for name in ARRAYS}
    head = {
        "format": np.array(FORMAT),
        "width": np.array(forest.width),
        "names": np.array(list(extra), dtype=np.str_),
        "numbers": np.array(list(extra.values()), dtype=np.float64),
        "digest": np.array(_digest(arrays, forest.width, extra)),
    }
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **head, **arrays)
    write_atomically(Path(path), content.getvalue())


def load_forest(path: str | os.PathLike[str]) -> tuple[Forest, dict[str, float]]:
    """Return what `save_forest` wrote; InputError with the reason for any other or a damaged file."""
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as stored:
            if int(stored["format"]) != FORMAT:
                raise InputError(f"{path}: expected a forest of format {FORMAT}, got format {int(stored['format'])}")
            numbers = dict(zip(map(str, stored["names"]), map(float, stored["numbers"]), strict=True))
            arrays = {name: stored[name] for name in ARRAYS}
            width, digest = int(stored["width"]), str(stored["digest"])
        if _digest(arrays, width, numbers) != digest:
            raise InputError(f"{path}: the content does not match its checksum")
        return Forest(**arrays, width=width), numbers
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"{path}: expected a stored forest, but there is no such file") from error
    except (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path}: expected a stored forest, but it cannot be read: {error}") from error


def _digest(arrays: Mapping[str, np.ndarray[Any, Any]], width: int, numbers: Mapping[str, float]) -> str:
    """Return the checksum of a stored forest."""
    digest = hashlib.sha256(repr((FORMAT, width, sorted(numbers.items()))).encode())
    for name, array in arrays.items():
        digest.update(f"{name} {array.shape} {array.dtype.str}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _tree_arrays(tree: Any) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.float32], FloatArray]:
    """Return link, threshold and value of one scikit-learn tree, breadth first."""
    left, right = np.asarray(tree.children_left), np.asarray(tree.children_right)
    level, levels = np.zeros(1, dtype=np.intp), []
    while level.size:
        levels.append(level)
        parents = level[left[level] >= 0]
        level = np.column_stack([left[parents], right[parents]]).ravel()
    order = np.concatenate(levels)
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    inner = left[order] >= 0
    distance = np.where(inner, place[left[order]] - np.arange(order.size), 0)
    feature = np.where(inner, np.asarray(tree.feature)[order], 0)
    if distance.max() >= MAX_DISTANCE or feature.max() >= MAX_FEATURES:
        raise InputError(
            f"flatten: expected trees with fewer than {MAX_DISTANCE} nodes per level and at most {MAX_FEATURES} "
            f"features, got {int(distance.max())} and {int(feature.max()) + 1}"
        )
    exact = np.asarray(tree.threshold)[order]
    single = exact.astype(np.float32)
    single = np.where(single > exact, np.nextafter(single, np.float32(-np.inf)), single)  # the largest not above
    threshold = np.where(inner, single, np.float32(np.inf))
    value = np.where(inner, np.nan, np.asarray(tree.value)[order, 0, 0])
    return (distance << FEATURE_BITS | feature).astype(np.uint32), threshold, value


def _check(forest: Forest) -> None:
    """Raise InputError unless every path from a root ends in a leaf of its tree with a finite value."""
    link, roots, size = forest.link, forest.roots, forest.link.size
    if not (link.shape == forest.threshold.shape == forest.value.shape == (size,)) or roots.ndim != 1:
        raise InputError("forest: expected link, threshold and value of one length, and a list of roots")
    types = [str(array.dtype) for array in (link, forest.threshold, forest.value, roots)]
    if types != ["uint32", "float32", "float64", "int64"]:
        raise InputError(f"forest: expected uint32, float32, float64 and int64, got {', '.join(types)}")
    if roots.size == 0 or roots[0] != 0 or np.any(np.diff(roots) <= 0) or roots[-1] >= size:
        raise InputError("forest: expected increasing roots from 0, each with a node of its own")
    ends = np.repeat(np.append(roots[1:], size), np.diff(np.append(roots, size)))
    distance = (link >> FEATURE_BITS).astype(np.int64)
    leaf = distance == 0
    if np.any(~leaf & (np.arange(size) + distance + 1 >= ends)):
        raise InputError("forest: a child lies outside of its tree")
    left = np.flatnonzero(~leaf) + distance[~leaf]
    parents = np.bincount(np.concatenate([left, left + 1, roots]), minlength=size)
    if np.any(parents != 1):
        raise InputError("forest: expected every node to be a root or the child of one other")
    if np.any((link & (MAX_FEATURES - 1)) >= forest.width):
        raise InputError(f"forest: a node uses a feature beyond the {forest.width} there are")
    if not np.isfinite(forest.threshold[~leaf]).all() or np.any(forest.threshold[leaf] != np.inf):
        raise InputError("forest: expected finite thresholds of inner nodes, and inf of leaves")
    if not np.isfinite(forest.value[leaf]).all():
        raise InputError("forest: expected a finite value of every leaf")


def _depth(link: npt.NDArray[np.uint32], roots: npt.NDArray[np.int64]) -> int:
    """Return the number of steps from a root to the farthest leaf."""
    level, steps = roots, 0
    while True:
        distance = (link[level] >> FEATURE_BITS).astype(np.int64)
        left = level[distance > 0] + distance[distance > 0]
        if not left.size:
            return steps
        level, steps = np.concatenate([left, left + 1]), steps + 1
