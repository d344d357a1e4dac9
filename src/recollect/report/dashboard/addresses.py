"""Which page is where. Names are in the query, percent-encoded: slashes, dots and quotes in them mean nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from recollect.history.memory import Memory
from recollect.report.dashboard.marks import Marked
from recollect.report.overview import Links, overview_page
from recollect.report.page import Page

START, PROBLEM, RUN = "/", "/problem", "/run"


@dataclass(frozen=True, slots=True)
class Address:
    """A page: the start without names, a problem, or a task; a task without a problem is a study of another tool."""

    problem: str | None = None
    task: str | None = None

    @property
    def url(self) -> str:
        """Where it is on the server."""
        if self.task is not None:
            return _with_names(RUN, {"problem": self.problem, "task": self.task})
        return START if self.problem is None else _with_names(PROBLEM, {"name": self.problem})

    @property
    def title(self) -> str:
        """What it is called in a link to it."""
        return self.task or self.problem or "All problems"

    @property
    def above(self) -> tuple[Address, ...]:
        """The pages that lead here, the start first."""
        if self.task is not None and self.problem is not None:
            return (Address(), Address(self.problem))
        return () if self.task is None and self.problem is None else (Address(),)

    def concerns(self, marked: Sequence[Marked]) -> tuple[Marked, ...]:
        """Return the studies that the page tells of; none if there is no such page."""
        if self.problem is None and self.task is None:
            return tuple(marked)
        entries = [one.entry for one in marked]
        own = (self.problem, self.task)
        if self.task is not None and own not in [(entry.problem, entry.task) for entry in entries]:
            return ()
        return tuple(one for one in marked if one.entry.problem == self.problem or one.entry.task == self.task)

    def page(self, memory: Memory) -> Page:
        """Make the page, which may take a while; on one core, as the others may be busy with the runs that it shows."""
        if self.task is None:
            return overview_page(memory, self.problem, links=LINKS, jobs=1)
        from recollect.report.run import report_run

        return report_run(memory, self.problem, self.task)


def find_address(path: str, query: Mapping[str, str]) -> Address | None:
    """Return the page that a path and its query ask for; None if there is no such path or a name is missing."""
    if path == START:
        return Address()
    if path == PROBLEM and "name" in query:
        return Address(query["name"])
    if path == RUN and "task" in query:
        return Address(query.get("problem"), query["task"])
    return None


def _with_names(path: str, names: Mapping[str, str | None]) -> str:
    return f"{path}?{urlencode({key: name for key, name in names.items() if name is not None}, quote_via=quote)}"


def _problem(name: str) -> str:
    return Address(name).url


def _run(problem: str | None, task: str) -> str:
    return Address(problem, task).url


LINKS = Links(_problem, _run)
