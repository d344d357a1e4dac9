"""Cholesky factors of covariance matrices, with as little jitter as possible.

Notation: ``A (n, n)`` symmetric positive definite, ``L (n, n)`` its lower Cholesky factor, ``A + jitter I = L L^T``.
``scale`` is the size of the diagonal that counts as one (the kernel's amplitude): jitter is relative to it.

A covariance matrix with repeated points is positive definite in theory and sometimes not in floating point.  The ladder
0, 1e-12, 1e-11, ..., 1e-6 (times ``scale``) adds the least that works, and gives up rather than turn the model into
another one.
"""

from __future__ import annotations

import numpy as np

from recollect.errors import InputError, NumericalError
from recollect.numerics.arrays import FloatArray

JITTERS = (0.0, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)


def cholesky(A: FloatArray, scale: float) -> tuple[FloatArray, float]:
    """Lower factor of ``A (n, n)`` and the jitter, in the units of ``A``, that had to be added to its diagonal."""
    from scipy.linalg.lapack import dpotrf

    diagonal = A.diagonal()
    # A is symmetric: the transpose of a C-ordered array is the same matrix in the order LAPACK wants, without a copy.
    ordered = A.T if A.flags.c_contiguous else A
    if np.isfinite(diagonal).all():
        for step in JITTERS:
            jitter = step * scale
            shifted = ordered if step == 0.0 else ordered + np.diag(np.full(diagonal.size, jitter))
            L, info = dpotrf(shifted, lower=1, clean=1)
            if info == 0 and np.isfinite(L).all():
                return L, jitter
    raise NumericalError(_why_not(A, scale))


def append_cholesky(L: FloatArray, B: FloatArray, C: FloatArray) -> FloatArray:
    """Lower factor of ``[[L L^T, B^T], [B, C]]`` with ``B (k, n)`` = K(new, old), ``C (k, k)`` = K(new, new)."""
    return append_with_jitter(L, B, C)[0]


def append_with_jitter(L: FloatArray, B: FloatArray, C: FloatArray) -> tuple[FloatArray, float]:
    """As ``append_cholesky``, and the jitter that had to be added to the diagonal of ``C``.

    The new rows are ``[W^T, chol(C - W^T W)]`` with ``W = L^-1 B^T``; the ladder is applied to this Schur complement,
    relative to the largest diagonal entry of ``C``.
    """
    n, k = L.shape[0], C.shape[0]
    if B.shape != (k, n):
        raise InputError(f"append_cholesky: expected B {(k, n)} for L {L.shape} and C {C.shape}, got {B.shape}")
    W = solve_lower(L, B.T)
    corner, jitter = cholesky(C - W.T @ W, float(C.diagonal().max(initial=0.0)))
    joined = np.zeros((n + k, n + k), order="F")
    joined[:n, :n] = L
    joined[n:, :n] = W.T
    joined[n:, n:] = corner
    return joined, jitter


def solve_lower(L: FloatArray, B: FloatArray, *, overwrite: bool = False) -> FloatArray:
    """``L^-1 B`` for a lower factor ``L (n, n)`` and ``B (n,)`` or ``B (n, m)``, in the memory of ``B`` if allowed."""
    from scipy.linalg.lapack import dtrtrs

    if B.size == 0:
        return np.zeros(B.shape)
    solution, info = dtrtrs(L, B, lower=1, overwrite_b=overwrite)
    if info != 0:
        raise NumericalError(f"solve_lower: the factor {L.shape} is singular (LAPACK dtrtrs returned {info})")
    return np.asarray(solution).reshape(B.shape)


def solve_posdef(L: FloatArray, B: FloatArray) -> FloatArray:
    """``(L L^T)^-1 B`` for a lower factor ``L (n, n)`` and ``B (n,)`` or ``B (n, m)``."""
    from scipy.linalg.lapack import dpotrs

    if B.size == 0:
        return np.zeros(B.shape)
    solution, info = dpotrs(L, B, lower=1)
    if info != 0:
        raise NumericalError(f"solve_posdef: LAPACK dpotrs refused the factor {L.shape} and {B.shape} ({info})")
    return np.asarray(solution).reshape(B.shape)


def inverse_from_cholesky(L: FloatArray) -> FloatArray:
    """``(L L^T)^-1``, exactly symmetric."""
    from scipy.linalg.lapack import dpotri

    inverse, info = dpotri(L, lower=1)
    if info != 0:
        raise NumericalError(f"inverse_from_cholesky: the factor {L.shape} is singular (LAPACK dpotri returned {info})")
    lower: FloatArray = np.tril(inverse)  # dpotri fills the lower triangle only
    lower += np.tril(lower, -1).T
    return lower


def _why_not(A: FloatArray, scale: float) -> str:
    """Message for a matrix that no step of the ladder could help."""
    finite = bool(np.isfinite(A).all())
    if not finite:
        hint = "it has entries that are not finite"
    else:
        eigenvalues = np.linalg.eigvalsh(A)
        hint = f"eigenvalues from {eigenvalues[0]:.3g} to {eigenvalues[-1]:.3g}"
    smallest = float(A.diagonal().min()) if A.size else float("nan")
    return (
        f"cholesky: expected a positive definite matrix, got shape {A.shape}, smallest diagonal entry {smallest:.3g}, "
        f"{hint}; jitter up to {JITTERS[-1]:g} x {scale:.3g} did not help"
    )
