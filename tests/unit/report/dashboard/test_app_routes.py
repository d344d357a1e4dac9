"""Which page has which URL."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.helpers.dashboard import example

from recollect import Memory
from recollect.report.dashboard.app import PageRoute, find_route
from recollect.report.dashboard.read_only import read_study_states

pytest.importorskip("plotly", reason="pages need plotly")
pytest.importorskip("starlette", reason="the dashboard needs it")

HOSTILE = [
    *("a/b/../c", "%2F%2e%2e", "\"'><script>alert(1)</script>", "smile \U0001f600"),
    *("?task=x&problem=y#z", " spaces ", "\u202e"),
]


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_leads_back_to_itself(name: str) -> None:
    from starlette.datastructures import QueryParams

    compared = [PageRoute(problem, compared=(name, "other")) for problem in (name, None)]
    for route in (PageRoute(), PageRoute(name), PageRoute(name, name), PageRoute(None, name), *compared):
        path, _, query = route.url.partition("?")
        assert path in ("/", "/problem", "/run", "/compare")
        assert re.fullmatch(r"[\w%.~=&-]*", query)
        assert find_route(path, QueryParams(query), QueryParams(query).getlist("task")) == route
    assert find_route("/run", QueryParams("problem=x")) is None
    assert find_route("/problem", QueryParams("")) is None


def test_pages_lead_back_to_those_above() -> None:
    assert [page.url for page in PageRoute("p", "t").parents] == ["/", "/problem?name=p"]
    assert [page.url for page in PageRoute("p").parents] == ["/"]
    assert [page.url for page in PageRoute("p", compared=("a", "b")).parents] == ["/", "/problem?name=p"]
    assert PageRoute().parents == ()


def test_a_page_concerns_its_problem_and_runs_of_the_same_task_elsewhere(file: Path) -> None:
    with Memory(file) as memory:
        memory.add(example("first"), "forest")
        states = read_study_states(memory)
    tasks = [(state.entry.problem, state.entry.task) for state in states]
    assert [(state.entry.problem, state.entry.task) for state in PageRoute("svm").studies(states)] == tasks[:2]
    assert [(state.entry.problem, state.entry.task) for state in PageRoute("svm", "first").studies(states)] == tasks
    assert [(state.entry.problem, state.entry.task) for state in PageRoute("svm", "second").studies(states)] == tasks[
        :2
    ]
    assert PageRoute("svm", "third").studies(states) == ()
    assert PageRoute("nothing").studies(states) == ()
    assert PageRoute(None, "first").studies(states) == ()
