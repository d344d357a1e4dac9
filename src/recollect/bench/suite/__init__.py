"""The embedded suite: errors of real models, trained by recollect on public data sets, shipped with the package.

Six search spaces that mirror the paper's six benchmarks, each measured with the same configurations on the
same data sets. Public names, loaded when first used: `SUITE` (the six names), `load_suite`, `check_stored`,
`build_suite`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.lazy import lazily

if TYPE_CHECKING:
    from recollect.bench.suite.builder import build_suite
    from recollect.bench.suite.spaces import SUITE
    from recollect.bench.suite.store import check_stored, load_suite

__all__ = ["SUITE", "build_suite", "check_stored", "load_suite"]

_HOME = {"SUITE": "spaces", "build_suite": "builder", "check_stored": "store", "load_suite": "store"}

__getattr__ = lazily(__name__, _HOME)
