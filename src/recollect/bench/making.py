"""Make the runs of a list, whatever happens to them.

A run that crashes is tried once more at the end. When a process is killed, every run that was under way is tried again
by itself: so one that always takes its process down takes no other with it, and what had not begun just goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from recollect.bench.cell import Crashed, Job, Made, run_job
from recollect.bench.engines import Engine, Lost
from recollect.bench.results import Key

LOST = "the process that made it ended without an answer, twice"

Keep = Callable[[Made], None]
Tell = Callable[[int, int], None]


def make_all(jobs: Sequence[Job], engine: Engine, *, keep: Keep, tell: Tell) -> tuple[Crashed, ...]:
    """Make runs and keep each as it comes; return those that could not be made. ``tell(done, total)`` counts."""
    if not jobs:
        return ()
    work = _Work({job.key: job for job in jobs}, engine, keep, tell)
    work.count()
    work.try_all(work.left)
    work.try_all([key for key in work.left if key not in work.given_up])
    return tuple(work.failed[key] for key in work.left)


@dataclass(slots=True, eq=False)
class _Work:
    """left: what is not made yet. failed: the last reason of each that failed. given_up: what was tried enough."""

    jobs: dict[Key, Job]
    engine: Engine
    keep: Keep
    tell: Tell
    left: dict[Key, Job] = field(init=False)
    failed: dict[Key, Crashed] = field(default_factory=dict)
    given_up: set[Key] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.left = dict(self.jobs)

    def count(self) -> None:
        self.tell(len(self.jobs) - len(self.left), len(self.jobs))

    def try_all(self, keys: Iterable[Key]) -> None:
        """Try each once, and those that were lost a second time, alone."""
        todo = dict.fromkeys(keys)
        while todo:
            answered, lost = self._round(todo)
            for key in lost:
                self._try_alone(key)
            if not answered and not lost:  # the engine does nothing at all
                self._give_up(todo)
                return
            for key in (*answered, *lost):
                del todo[key]

    def _round(self, keys: Iterable[Key]) -> tuple[list[Key], list[Key]]:
        """Ask for runs; return which were answered, one way or the other, and which were lost on the way."""
        answered, lost = [], []
        for answer in self.engine.answers(run_job, [self.jobs[key] for key in keys]):
            if isinstance(answer, Lost):
                lost.append(answer.key)
                continue
            answered.append(answer.key)
            if isinstance(answer, Crashed):
                self.failed[answer.key] = answer
            else:
                self.keep(answer)
                del self.left[answer.key]
            self.count()
        return answered, lost

    def _try_alone(self, key: Key) -> None:
        answered, _ = self._round([key])
        if not answered:
            self._give_up([key])

    def _give_up(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self.failed[key] = Crashed(key, LOST)
            self.given_up.add(key)
