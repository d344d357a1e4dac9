"""Past runs from elsewhere: `read_runs`, loaded when first used, and one file for each kind of source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.lazy import lazily

if TYPE_CHECKING:
    from recollect.history.importers.recognise import read_runs

__all__ = ["read_runs"]

__getattr__ = lazily(__name__, {"read_runs": "recognise"})
