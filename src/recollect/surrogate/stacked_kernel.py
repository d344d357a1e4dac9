"""The kernel of ``kernels.py`` for many Gaussian processes, each with inputs and length scales of its own.

Everything here is a correlation, a kernel of amplitude one; amplitudes are factors that the caller applies.

Notation: g processes of similar size, padded to N rows each; c numerical and e categorical columns; m points at which
all of them are evaluated.  With p_j = 5 / l_j^2 and everything relative to the centre of the cube, ::

    t^2 = sum_j p_j (x_j - q_j)^2 = (x, 1) R + sum_j p_j x_j^2,        R = (-2 p q, sum_j p_j q_j^2)

so that one product of (x, 1) (m, c+1), which all share, with R (g, c+1, N), which is stored, gives the distances of all
pairs.  Padding rows are finite and meaningless: whoever sums over N gives them weight zero or leaves them out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recollect.numerics.arrays import BoolArray, FloatArray, IntArray
from recollect.surrogate.kernels import KernelShape, activity_patterns, filled, finish_kernel

WordArray = npt.NDArray[np.uint64]
Take = slice | IntArray

CENTRE = 0.5  # of the unit cube: small norms, hence small rounding errors
SMALLEST_PAD = 16
LARGEST_BLOCK = 1 << 21  # entries of the inputs of one block: 16 MB
LARGEST_PIECE = 1 << 18  # entries of one temporary array: 2 MB, which is also about what stays in the cache


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Points in the forms that the stacked kernel needs."""

    numerical: FloatArray  # (m, c)
    codes: FloatArray  # (m, e)
    patterns: WordArray | None  # (m, words), None unless conditional
    left: FloatArray  # (m, c + 1)
    squares: FloatArray  # (m, c)
    columns: IntArray  # (v,) categorical column of each value that occurs in it
    values: FloatArray  # (v,)
    chosen: FloatArray  # (m, v) 1 where the point has that value

    def __len__(self) -> int:
        """Number of points."""
        return len(self.numerical)

    def at(self, span: slice) -> Points:
        """Some of the points."""
        patterns = None if self.patterns is None else self.patterns[span]
        numerical, codes, left, squares = (a[span] for a in (self.numerical, self.codes, self.left, self.squares))
        return Points(numerical, codes, patterns, left, squares, self.columns, self.values, self.chosen[span])


def make_points(X: FloatArray, shape: KernelShape) -> Points:
    """``X (m, d)`` prepared."""
    values = filled(X, shape)
    numerical, codes = values[:, ~shape.categorical], values[:, shape.categorical]
    centred = numerical - CENTRE
    left = np.column_stack((centred, np.ones(len(X))))
    occurring = [np.unique(codes[:, j]) for j in range(codes.shape[1])]
    columns = np.repeat(np.arange(len(occurring)), [len(v) for v in occurring])
    levels = np.concatenate(occurring) if occurring else np.zeros(0)
    chosen = (codes[:, columns] == levels).astype(np.float64)
    patterns = activity_patterns(X) if shape.conditional else None
    return Points(numerical, codes, patterns, left, centred * centred, columns, levels, chosen)


@dataclass(frozen=True, slots=True, eq=False)
class Padded:
    """Inputs of g processes as arrays of one height N; rows beyond a process's own are zeros."""

    numerical: FloatArray  # (g, N, c)
    codes: FloatArray  # (g, N, e)
    patterns: WordArray | None  # (g, N, words)

    def at(self, some: slice) -> Padded:
        """Some of the processes."""
        patterns = None if self.patterns is None else self.patterns[some]
        return Padded(self.numerical[some], self.codes[some], patterns)


def pad(X: Sequence[FloatArray], shape: KernelShape) -> Padded:
    """Inputs ``X[i] (n_i, d)`` padded to the largest of them."""
    sizes = np.array([len(rows) for rows in X])
    flat = np.concatenate(X)
    occupied = np.arange(sizes.max()) < sizes[:, None]  # (g, N)
    values = filled(flat, shape)
    numerical = np.zeros((*occupied.shape, int((~shape.categorical).sum())))
    numerical[occupied] = values[:, ~shape.categorical]
    codes = np.zeros((*occupied.shape, int(shape.categorical.sum())))
    codes[occupied] = values[:, shape.categorical]
    if not shape.conditional:
        return Padded(numerical, codes, None)
    words = activity_patterns(flat)
    patterns = np.zeros((*occupied.shape, words.shape[1]), dtype=np.uint64)
    patterns[occupied] = words
    return Padded(numerical, codes, patterns)


@dataclass(frozen=True, slots=True, eq=False)
class Scales:
    """Length scales of g processes as the factors they enter the kernel with."""

    precision: FloatArray  # (g, c)  p = 5 / l^2 of the numerical columns
    penalty: FloatArray  # (g, e)  1 / (2 l^2) of the categorical columns

    def at(self, some: Take) -> Scales:
        """Some of the processes."""
        return Scales(self.precision[some], self.penalty[some])


def make_scales(lengthscales: FloatArray, shape: KernelShape) -> Scales:
    """Factors for ``lengthscales (g, d)``."""
    inverse = lengthscales**-2.0
    return Scales(5.0 * inverse[:, ~shape.categorical], 0.5 * inverse[:, shape.categorical])


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """g processes padded to N rows, ready to be correlated with any points."""

    members: IntArray  # (g,) which processes of the stack these are
    right: FloatArray  # (g, c + 1, N)
    codes: FloatArray  # (g, N, e)
    patterns: WordArray | None  # (g, N, words)
    scales: Scales

    @property
    def height(self) -> int:
        """N."""
        return int(self.right.shape[2])

    def correlations(self, points: Points, take: Take) -> FloatArray:
        """Correlations ``(g', m, N)`` of the taken processes' inputs with the points."""
        scales = self.scales.at(take)
        squared: FloatArray = np.matmul(points.left, self.right[take])
        squared += (scales.precision @ points.squares.T)[:, :, None]
        np.maximum(squared, 0.0, out=squared)
        mismatch: FloatArray | None = None
        if points.columns.size:
            # what each value costs against each row (g', v, N): exactly zero where they are equal
            differs = self.codes[take][:, :, points.columns] != points.values
            costs = scales.penalty[:, None, points.columns] * differs
            mismatch = np.matmul(points.chosen, costs.transpose(0, 2, 1))
        same: BoolArray | None = None
        if self.patterns is not None and points.patterns is not None:
            same = equal_patterns(points.patterns, self.patterns[take])
        return finish_kernel(squared, mismatch, same, 1.0)


def make_blocks(
    X: Sequence[FloatArray], lengthscales: FloatArray, shape: KernelShape
) -> Iterator[tuple[Block, Padded]]:
    """Blocks of similar size, each with the padded inputs that it was made from.

    Sizes up to 16, 32, 64, ... share blocks, so that one long run does not make all others long.
    """
    sizes = np.array([len(rows) for rows in X], dtype=np.intp)
    exponent = np.frexp(np.maximum(sizes, SMALLEST_PAD) - 1)[1]
    for kind in np.unique(exponent):
        alike = np.flatnonzero(exponent == kind)
        for some in steps(len(alike), int(sizes[alike].max()) * max(shape.d, 1), LARGEST_BLOCK):
            members = alike[some]
            padded = pad([X[i] for i in members], shape)
            scales = make_scales(lengthscales[members], shape)
            yield Block(members, _right(padded, scales), padded.codes, padded.patterns, scales), padded


def steps(count: int, size: int, limit: int | None = None) -> Iterator[slice]:
    """``range(count)`` in slices of at most ``limit`` entries, for items of ``size`` entries; at least one item.

    Without a limit, the slices are those of temporary arrays.
    """
    width = max(1, (LARGEST_PIECE if limit is None else limit) // max(size, 1))
    for begin in range(0, count, width):
        yield slice(begin, min(begin + width, count))


def exact_correlations(inputs: Padded, scales: Scales) -> FloatArray:
    """Correlations ``(g, N, N)`` of each process's inputs with themselves, from exact differences.

    As in ``kernels.covariance``: a training matrix with little noise needs them.
    """
    g, height, _ = inputs.numerical.shape
    t = np.zeros((g, height, height))
    step = np.empty_like(t)
    for j in range(scales.precision.shape[1]):
        column = inputs.numerical[:, :, j]
        np.subtract(column[:, :, None], column[:, None, :], out=step)
        step *= np.sqrt(scales.precision[:, j])[:, None, None]
        step *= step
        t += step
    mismatch = np.zeros_like(t) if scales.penalty.shape[1] else None
    for j in range(scales.penalty.shape[1]):
        column = inputs.codes[:, :, j]
        mismatch += (column[:, :, None] != column[:, None, :]) * scales.penalty[:, j, None, None]
    same = None if inputs.patterns is None else equal_patterns(inputs.patterns, inputs.patterns)
    return finish_kernel(t, mismatch, same, 1.0)


def prior_correlations(A: Points, B: Points, scales: Scales) -> FloatArray:
    """Correlations ``(g, a, b)`` between two sets of points, from exact differences.

    The differences do not depend on the process: they are taken once, and one product weighs them for all.
    """
    a, b = len(A), len(B)
    steps_apart = A.numerical.T[:, :, None] - B.numerical.T[:, None, :]
    steps_apart *= steps_apart
    t = scales.precision @ steps_apart.reshape(scales.precision.shape[1], a * b)
    mismatch: FloatArray | None = None
    if scales.penalty.shape[1]:
        differs = (A.codes.T[:, :, None] != B.codes.T[:, None, :]).reshape(scales.penalty.shape[1], a * b)
        mismatch = scales.penalty @ differs
    values = finish_kernel(t, mismatch, None, 1.0).reshape(len(t), a, b)
    if A.patterns is not None and B.patterns is not None:
        values *= equal_patterns(A.patterns, B.patterns[None])
    return values


def equal_patterns(A: WordArray, B: WordArray) -> BoolArray:
    """Mask ``(g, a, b)`` of the pairs with the same inactive columns; ``A ([g,] a, words)``, ``B (g, b, words)``."""
    mask: BoolArray = A[..., :, None, 0] == B[:, None, :, 0]
    for word in range(1, B.shape[2]):
        mask &= A[..., :, None, word] == B[:, None, :, word]
    return mask


def _right(inputs: Padded, scales: Scales) -> FloatArray:
    """The stored factor R ``(g, c + 1, N)``."""
    g, height, c = inputs.numerical.shape
    right = np.empty((g, c + 1, height))
    centred = inputs.numerical - CENTRE
    weighted = centred * scales.precision[:, None, :]
    right[:, c] = np.einsum("gnc,gnc->gn", centred, weighted)
    weighted *= -2.0
    right[:, :c] = weighted.transpose(0, 2, 1)
    return right
