"""recollect inside scikit-learn: ``from recollect.sklearn import TransferSearchCV``.

Importing this module imports scikit-learn (extra ``sklearn``).
"""

from __future__ import annotations

from recollect.integrations.sklearn.search import TransferSearchCV

__all__ = ["TransferSearchCV"]
