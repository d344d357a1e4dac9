"""Which study is meant: an id alone does not say, since SQLite gives the id of a removed study to the next one.

recollect gives each study an identity when it creates it. Whoever goes on with a study that was removed meanwhile gets
a TaskRemovedError, also if there is another one with its id.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from recollect.errors import TaskRemovedError

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

IDENTITY_KEY = "recollect:identity"


def new_identity() -> str:
    """Return the identity of a new study."""
    return uuid4().hex


@dataclass(frozen=True, slots=True)
class StudyKey:
    """A study: Optuna's id and the identity, None for studies of other programs and of versions before 0.4.0."""

    id: int
    identity: str | None = None

    @property
    def stored_identity(self) -> str | None:
        """The identity as databases store it."""
        return None if self.identity is None else json.dumps(self.identity)

    def condition(self) -> ColumnElement[bool]:
        """Return the condition, for a statement of SQLAlchemy, that the study with this id has this identity."""
        from optuna.storages._rdb import models
        from sqlalchemy import select

        table = models.StudyUserAttributeModel.__table__
        identity = select(table.c.value_json).where(table.c.study_id == self.id, table.c.key == IDENTITY_KEY)
        return identity.scalar_subquery() == self.stored_identity

    def trials_after(self, fetch: Callable[[str], Iterable[Any]], trial: int) -> list[int]:
        """Return the ids of its trials above an id; KeyError if it was removed. One query."""
        rows = list(
            fetch(
                "select a.value_json, t.trial_id from studies s "
                f"left join study_user_attributes a on a.study_id = s.study_id and a.key = '{IDENTITY_KEY}' "
                f"left join trials t on t.study_id = s.study_id and t.trial_id > {int(trial)} "
                f"where s.study_id = {int(self.id)}"
            )
        )
        if not rows or rows[0][0] != self.stored_identity:
            raise KeyError(f"study {self.id} was removed")
        return [own for _, own in rows if own is not None]


@contextmanager
def noticing_removal(where: str) -> Iterator[None]:
    """Turn the KeyError that a storage raises for a study that does not exist into a TaskRemovedError."""
    try:
        yield
    except KeyError as error:
        raise TaskRemovedError(f"{where}: the task was removed while it ran") from error
