"""Optuna's studies, alone or all that a storage holds."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.errors import InputError
from recollect.history.importers.asked import Asked, Found
from recollect.history.optuna_runs import run_of_study
from recollect.history.storage import faults, open_store, quiet

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.study import Study

WHY = "a study says what its value and its parameters are"
UNFINISHED = "trials that have not finished or were pruned with nothing to compare with"


def is_study(source: Any) -> bool:
    """Whether this is a study of Optuna, which is not imported to find out."""
    return _is_a(source, "study", "Study")


def is_storage(source: Any) -> bool:
    """Whether this is a storage of Optuna, which is not imported to find out."""
    return _is_a(source, "storages", "BaseStorage")


def read_study(study: Study, asked: Asked) -> Found:
    """Read one study, named ``task`` if that is asked for."""
    with faults(f"study {study.study_name!r}"):
        asked.refuse_columns(f"study {study.study_name!r}", WHY)
        run = run_of_study(study, asked.task)
        asked.way(f"study {study.study_name!r}", run.direction)
        return Found([run], {UNFINISHED: len(study.get_trials(deepcopy=False)) - len(run)})


def read_storage(where: str | Path | BaseStorage, asked: Asked) -> Found:
    """Read all studies of a storage, or the one named ``task``."""
    import optuna

    if isinstance(where, str):
        _check_file(where)
    store = open_store(where)
    asked.refuse_columns(store.name, WHY)
    skipped: Counter[str] = Counter()
    runs = []
    with faults(store.name), quiet():
        names = optuna.study.get_all_study_names(store.optuna)
        asked.check_task(store.name, names, called="study")
        for name in filter(asked.wants, names):
            study = optuna.load_study(study_name=name, storage=store.optuna)
            if len(study.directions) > 1 and asked.task is None:
                skipped["studies with several objectives"] += 1
                continue
            found = read_study(study, asked)
            skipped.update(found.skipped)
            if found.runs[0].trials:
                runs += found.runs
            else:
                skipped["studies without a finished trial"] += 1
    return Found(runs, skipped)


def _check_file(address: str) -> None:
    """Refuse the name of a file that is not there: opening it would make one."""
    kind, _, place = address.partition(":")
    if kind == "journal":
        path = Path(place).expanduser()
    elif kind.startswith("sqlite"):
        path = Path(place.removeprefix("///").partition("?")[0])
    else:
        return
    if not path.is_file() or not path.stat().st_size:
        raise InputError(f"{address}: there is no such storage")


def _is_a(source: Any, module: str, name: str) -> bool:
    home = sys.modules.get(f"optuna.{module}")
    return home is not None and isinstance(source, getattr(home, name))
