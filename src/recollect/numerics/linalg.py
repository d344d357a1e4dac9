"""Cholesky factors of covariance matrices, with as little jitter as possible, and BLAS on one thread.

Notation: ``A (n, n)`` symmetric positive definite, ``L (n, n)`` its lower Cholesky factor, ``A + jitter I = L L^T``.
``scale`` is the typical size of the diagonal (the kernel's amplitude): jitter is relative to it.

A covariance matrix with repeated points is positive definite in theory, but sometimes not in floating point.  Of the
ladder 0, 1e-12, 1e-11, ..., 1e-6 (times ``scale``) the smallest jitter that works is added.  More would change the
model, so an error is raised instead.

The matrices of a Gaussian process on tens to hundreds of points are so small that waking a thread pool costs more than
the product itself, and several workers on one machine would fight for the cores.  Every routine of the library that
uses BLAS in a loop therefore runs inside `single_threaded`.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from recollect.errors import InputError, NumericalError
from recollect.numerics.arrays import FloatArray

JITTER_LADDER = (0.0, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)


def cholesky(A: FloatArray, scale: float) -> tuple[FloatArray, float]:
    """Return the lower factor of ``A (n, n)``, and the jitter added to its diagonal; NumericalError if none helps."""
    from scipy.linalg.lapack import dpotrf

    diagonal = A.diagonal()
    # A is symmetric: the transpose of a C-ordered array is the same matrix in the order LAPACK wants, without a copy.
    ordered = A.T if A.flags.c_contiguous else A
    if np.isfinite(diagonal).all():
        for step in JITTER_LADDER:
            jitter = step * scale
            shifted = ordered if step == 0.0 else ordered + np.diag(np.full(diagonal.size, jitter))
            L, info = dpotrf(shifted, lower=1, clean=1)
            if info == 0 and np.isfinite(L).all():
                return L, jitter
    raise NumericalError(_not_positive_definite(A, scale))


def append_cholesky(L: FloatArray, B: FloatArray, C: FloatArray) -> tuple[FloatArray, float]:
    """Return the lower factor of ``[[L L^T, B^T], [B, C]]``, and the jitter that was added to the diagonal of ``C``.

    ``B (k, n)`` is K(new, old), ``C (k, k)`` is K(new, new). The new rows are ``[W^T, chol(C - W^T W)]`` with
    ``W = L^-1 B^T``; the ladder is applied to this Schur complement, relative to the largest diagonal entry of ``C``.
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


def solve_lower(L: FloatArray, B: FloatArray, *, overwrite: bool = False, transposed: bool = False) -> FloatArray:
    """Return ``L^-1 B``, or ``L^-T B`` if ``transposed``, for a lower factor ``L (n, n)``, ``B (n,)`` or ``(n, m)``.

    The result takes the memory of B if ``overwrite``.
    """
    from scipy.linalg.lapack import dtrtrs

    if B.size == 0:
        return np.zeros(B.shape)
    solution, info = dtrtrs(L, B, lower=1, trans=transposed, overwrite_b=overwrite)
    if info != 0:
        raise NumericalError(f"solve_lower: the factor {L.shape} is singular (LAPACK dtrtrs returned {info})")
    return np.asarray(solution).reshape(B.shape)


def solve_posdef(L: FloatArray, B: FloatArray) -> FloatArray:
    """Return ``(L L^T)^-1 B`` for a lower factor ``L (n, n)`` and ``B (n,)`` or ``B (n, m)``."""
    from scipy.linalg.lapack import dpotrs

    if B.size == 0:
        return np.zeros(B.shape)
    solution, info = dpotrs(L, B, lower=1)
    if info != 0:
        raise NumericalError(f"solve_posdef: LAPACK dpotrs refused the factor {L.shape} and {B.shape} ({info})")
    return np.asarray(solution).reshape(B.shape)


def inv_posdef(L: FloatArray) -> FloatArray:
    """Return ``(L L^T)^-1``, exactly symmetric."""
    from scipy.linalg.lapack import dpotri

    inverse, info = dpotri(L, lower=1)
    if info != 0:
        raise NumericalError(f"inv_posdef: the factor {L.shape} is singular (LAPACK dpotri returned {info})")
    lower: FloatArray = np.tril(inverse)  # dpotri fills the lower triangle only
    lower += np.tril(lower, -1).T
    return lower


def _not_positive_definite(A: FloatArray, scale: float) -> str:
    """Return the message for a matrix that no jitter of the ladder could help."""
    if not np.isfinite(A).all():
        hint = "it has entries that are not finite"
    else:
        eigenvalues = np.linalg.eigvalsh(A)
        hint = f"eigenvalues from {eigenvalues[0]:.3g} to {eigenvalues[-1]:.3g}"
    smallest = float(A.diagonal().min()) if A.size else float("nan")
    got = f"shape {A.shape}, smallest diagonal entry {smallest:.3g}, {hint}"
    jitter = f"jitter up to {JITTER_LADDER[-1]:g} x {scale:.3g} did not help"
    return f"cholesky: expected a positive definite matrix, got {got}; {jitter}"


class _SingleThreaded:
    """Remembers which thread owns the limit, and how deeply it is nested.

    The number of threads is a property of the process, not of a Python thread, and only the thread that set the limit
    can lift it safely.  So one Python thread at a time owns it: the first to enter.  Nested entries of the owner are
    counted.  Other threads that enter meanwhile find the limit set, and lose it when the owner leaves, which costs them
    only time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner: int | None = None
        self._depth = 0
        self._controller: Any = None
        self._limiter: Any = None

    def __enter__(self) -> None:
        thread = threading.get_ident()
        with self._lock:
            if self._owner is None:
                if self._controller is None:
                    self._controller = _find_blas()
                self._limiter = self._controller.limit(limits=1)
                self._limiter.__enter__()  # so leaving hands control over to other threads
                self._owner = thread
            if self._owner == thread:
                self._depth += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            if self._owner != threading.get_ident():
                return
            self._depth -= 1
            if self._depth == 0:
                self._limiter.__exit__(None, None, None)
                self._owner = self._limiter = None


def _find_blas() -> Any:
    """Return a controller of the BLAS libraries in the process; scanning takes milliseconds, so it is done once."""
    import scipy.linalg  # noqa: F401  (NumPy and SciPy may bring a BLAS each; both must be loaded before the scan)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


_SHARED = _SingleThreaded()


def single_threaded() -> _SingleThreaded:
    """Return a context manager in which BLAS uses one thread; it may be nested and entered from several threads."""
    return _SHARED
