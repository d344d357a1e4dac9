"""The kernel of ``kernels`` for many Gaussian processes, each with inputs and length scales of its own.

Everything here is a correlation, a kernel of amplitude one; the caller applies the amplitudes.

Notation: g processes of similar size, padded to N rows each; c numerical and e categorical columns; m points at which
all of them are evaluated.  With p_j = 5 / l_j^2 and everything relative to the centre of the cube, ::

    t^2 = sum_j p_j (x_j - q_j)^2 = (x, 1) R + sum_j p_j x_j^2,        R = (-2 p q, sum_j p_j q_j^2)

so one product of (x, 1) (m, c+1), which all share, with R (g, c+1, N), which is stored, gives the distances of all
pairs.  Padding rows are finite and meaningless: a sum over N gives them weight zero or leaves them out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from recollect.numerics.arrays import BoolArray, FloatArray, IntArray, KernelShape
from recollect.surrogate.kernels import WordArray, activity_patterns, equal_patterns, fill_inactive, kernel_in_place

Selector = slice | IntArray  # of processes

CENTRE = 0.5  # of the unit cube: small norms, hence small rounding errors
SMALLEST_PAD = 16
LARGEST_BLOCK = 1 << 21  # entries of the inputs of one block: 16 MB
LARGEST_PIECE = 1 << 18  # entries of one temporary array: 2 MB, which is also about what stays in the cache


@dataclass(frozen=True, slots=True, eq=False)
class PreparedPoints:
    """Points in the forms that the batched kernel needs."""

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

    def at(self, span: slice) -> PreparedPoints:
        """Return some of the points."""
        patterns = None if self.patterns is None else self.patterns[span]
        numerical, codes, left, squares = (a[span] for a in (self.numerical, self.codes, self.left, self.squares))
        return PreparedPoints(numerical, codes, patterns, left, squares, self.columns, self.values, self.chosen[span])


def prepare_points(X: FloatArray, shape: KernelShape) -> PreparedPoints:
    """Return ``X (m, d)`` prepared."""
    values = fill_inactive(X, shape)
    numerical, codes = values[:, ~shape.categorical], values[:, shape.categorical]
    centred = numerical - CENTRE
    left = np.column_stack((centred, np.ones(len(X))))
    occurring = [np.unique(codes[:, j]) for j in range(codes.shape[1])]
    columns = np.repeat(np.arange(len(occurring)), [len(v) for v in occurring])
    levels = np.concatenate(occurring) if occurring else np.zeros(0)
    chosen = (codes[:, columns] == levels).astype(np.float64)
    patterns = activity_patterns(X) if shape.conditional else None
    return PreparedPoints(numerical, codes, patterns, left, centred * centred, columns, levels, chosen)


@dataclass(frozen=True, slots=True, eq=False)
class PaddedInputs:
    """Inputs of g processes as arrays of one height N; rows beyond a process's own are zeros."""

    numerical: FloatArray  # (g, N, c)
    codes: FloatArray  # (g, N, e)
    patterns: WordArray | None  # (g, N, words)

    def at(self, some: slice) -> PaddedInputs:
        """Return some of the processes."""
        patterns = None if self.patterns is None else self.patterns[some]
        return PaddedInputs(self.numerical[some], self.codes[some], patterns)


def pad_inputs(X: Sequence[FloatArray], shape: KernelShape) -> PaddedInputs:
    """Return inputs ``X[i] (n_i, d)`` padded to the largest of them."""
    sizes = np.array([len(rows) for rows in X])
    flat = np.concatenate(X)
    occupied = np.arange(sizes.max()) < sizes[:, None]  # (g, N)
    values = fill_inactive(flat, shape)

    def padded(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        array = np.zeros((*occupied.shape, rows.shape[1]), dtype=rows.dtype)
        array[occupied] = rows
        return array

    patterns = padded(activity_patterns(flat)) if shape.conditional else None
    return PaddedInputs(padded(values[:, ~shape.categorical]), padded(values[:, shape.categorical]), patterns)


@dataclass(frozen=True, slots=True, eq=False)
class KernelScales:
    """Length scales of g processes, as the factors with which they enter the kernel."""

    precision: FloatArray  # (g, c)  p = 5 / l^2 of the numerical columns
    penalty: FloatArray  # (g, e)  1 / (2 l^2) of the categorical columns

    def at(self, selector: Selector) -> KernelScales:
        """Return some of the processes."""
        return KernelScales(self.precision[selector], self.penalty[selector])


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """g processes padded to N rows, ready to be correlated with any points."""

    indices: IntArray  # (g,) which of all processes these are
    right: FloatArray  # (g, c + 1, N)
    codes: FloatArray  # (g, N, e)
    patterns: WordArray | None  # (g, N, words)
    scales: KernelScales

    @property
    def height(self) -> int:
        """Number of rows N of each process."""
        return int(self.right.shape[2])

    def correlations(self, points: PreparedPoints, selector: Selector) -> FloatArray:
        """Return correlations ``(g', m, N)`` of the inputs of some processes with the points."""
        scales = self.scales.at(selector)
        squared: FloatArray = np.matmul(points.left, self.right[selector])
        squared += (scales.precision @ points.squares.T)[:, :, None]
        np.maximum(squared, 0.0, out=squared)
        half_hamming: FloatArray | None = None
        if points.columns.size:
            # what each value costs against each row (g', v, N): exactly zero where they are equal
            differs = self.codes[selector][:, :, points.columns] != points.values
            costs = scales.penalty[:, None, points.columns] * differs
            half_hamming = np.matmul(points.chosen, costs.transpose(0, 2, 1))
        same: BoolArray | None = None
        if self.patterns is not None and points.patterns is not None:
            same = equal_patterns(points.patterns, self.patterns[selector])
        return kernel_in_place(squared, half_hamming, same, 1.0)


def make_blocks(
    X: Sequence[FloatArray], lengthscales: FloatArray, shape: KernelShape
) -> Iterator[tuple[Block, PaddedInputs]]:
    """Yield blocks of similar size, each with the padded inputs it was built from.

    Sizes up to 16, 32, 64, ... share blocks, so one long run does not make all others long.
    """
    sizes = np.array([len(rows) for rows in X], dtype=np.intp)
    exponent = np.frexp(np.maximum(sizes, SMALLEST_PAD) - 1)[1]
    for kind in np.unique(exponent):
        alike = np.flatnonzero(exponent == kind)
        for some in chunks(len(alike), int(sizes[alike].max()) * max(shape.d, 1), LARGEST_BLOCK):
            indices = alike[some]
            padded = pad_inputs([X[i] for i in indices], shape)
            inverse = lengthscales[indices] ** -2.0
            scales = KernelScales(5.0 * inverse[:, ~shape.categorical], 0.5 * inverse[:, shape.categorical])
            yield Block(indices, _right(padded, scales), padded.codes, padded.patterns, scales), padded


def chunks(count: int, size: int, limit: int | None = None) -> Iterator[slice]:
    """Yield slices of ``range(count)``: ``limit`` entries at most, or one item, for items of ``size`` entries."""
    width = max(1, (limit or LARGEST_PIECE) // max(size, 1))
    for begin in range(0, count, width):
        yield slice(begin, min(begin + width, count))


def exact_correlations(inputs: PaddedInputs, scales: KernelScales) -> FloatArray:
    """Return correlations ``(g, N, N)`` of each process's inputs, from exact differences as in `kernels.covariance`."""
    g, height, _ = inputs.numerical.shape
    t = np.zeros((g, height, height))
    step = np.empty_like(t)
    for j in range(scales.precision.shape[1]):
        column = inputs.numerical[:, :, j]
        np.subtract(column[:, :, None], column[:, None, :], out=step)
        step *= np.sqrt(scales.precision[:, j])[:, None, None]
        step *= step
        t += step
    half_hamming = np.zeros_like(t) if scales.penalty.shape[1] else None
    for j in range(scales.penalty.shape[1]):
        column = inputs.codes[:, :, j]
        half_hamming += (column[:, :, None] != column[:, None, :]) * scales.penalty[:, j, None, None]
    same = None if inputs.patterns is None else equal_patterns(inputs.patterns, inputs.patterns)
    return kernel_in_place(t, half_hamming, same, 1.0)


def prior_correlations(A: PreparedPoints, B: PreparedPoints, scales: KernelScales) -> FloatArray:
    """Return correlations ``(g, a, b)`` between two sets of points, from exact differences.

    The differences do not depend on the process: they are computed once, and one product weighs them for all.
    """
    a, b = len(A), len(B)
    differences = A.numerical.T[:, :, None] - B.numerical.T[:, None, :]
    differences *= differences
    t = scales.precision @ differences.reshape(scales.precision.shape[1], a * b)
    half_hamming: FloatArray | None = None
    if scales.penalty.shape[1]:
        differs = (A.codes.T[:, :, None] != B.codes.T[:, None, :]).reshape(scales.penalty.shape[1], a * b)
        half_hamming = scales.penalty @ differs
    values = kernel_in_place(t, half_hamming, None, 1.0).reshape(len(t), a, b)
    if A.patterns is not None and B.patterns is not None:
        values *= equal_patterns(A.patterns, B.patterns[None])
    return values


def _right(inputs: PaddedInputs, scales: KernelScales) -> FloatArray:
    """Return the stored factor R ``(g, c + 1, N)``."""
    g, height, c = inputs.numerical.shape
    right = np.empty((g, c + 1, height))
    centred = inputs.numerical - CENTRE
    weighted = centred * scales.precision[:, None, :]
    right[:, c] = np.einsum("gnc,gnc->gn", centred, weighted)
    weighted *= -2.0
    right[:, :c] = weighted.transpose(0, 2, 1)
    return right
