"""The dashboard without a browser: who is let in, what is answered, when pages are made anew; nothing is written."""

from __future__ import annotations

import asyncio
import hashlib
import re
import socket
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
import pytest

import recollect
from recollect import Memory, Run
from recollect.cli.main import main
from recollect.errors import InputError, MissingExtraError, StorageError
from recollect.report.dashboard.addresses import Address, find_address
from recollect.report.dashboard.gate import Gate, is_loopback_name, same
from recollect.report.dashboard.live import live_page, live_script, notice, plotly_url, waiting_page
from recollect.report.dashboard.marks import joint_mark, read_marks
from recollect.report.dashboard.opening import open_to_read
from recollect.report.dashboard.serving import check_installed, find_place, serve
from recollect.report.dashboard.shelf import Shelf, in_thread
from recollect.report.html import tag
from recollect.report.page import Page, Section, render

pytest.importorskip("plotly", reason="pages need plotly")
pytest.importorskip("starlette", reason="the dashboard needs it")

from recollect.report.dashboard.site import make_site

HOSTILE = [
    *("a/b/../c", "%2F%2e%2e", "\"'><script>alert(1)</script>", "smile \U0001f600"),
    *("?task=x&problem=y#z", " spaces ", "\u202e"),
]
SPACE: dict[str, Any] = {"x": (0.0, 1.0)}
ASSETS = Path(recollect.__file__).parent / "report" / "dashboard"


def example(task: str) -> Run:
    return Run(task, [{"x": k / 4} for k in range(4)], [1.0, 0.5, 0.7, 2.0], space=SPACE)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memory") / "tuning.db"
    with Memory(path) as memory:
        memory.add(example("first"), "svm")
        memory.add(example("second"), "svm")
    return path


@pytest.fixture
def file(model: Path, tmp_path: Path) -> Path:
    (tmp_path / "tuning.db").write_bytes(model.read_bytes())
    return tmp_path / "tuning.db"


@dataclass(frozen=True)
class Answered:
    status: int
    headers: dict[str, str]
    text: str


def ask(app: Any, path: str, *, method: str = "GET", host: str | None = "127.0.0.1:8000", **headers: str) -> Answered:
    """Ask an application, as a server would."""
    target, _, query = path.partition("?")
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http", "http_version": "1.1", "scheme": "http", "root_path": "", "method": method,
        "path": target, "raw_path": target.encode(), "query_string": query.encode(),
        "headers": [*([(b"host", host.encode())] if host is not None else []), *pairs],
        "server": ("127.0.0.1", 8000), "client": ("127.0.0.1", 1),
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    body = b"".join(message.get("body", b"") for message in sent[1:])
    found = {bytes(name).decode(): bytes(value).decode() for name, value in sent[0]["headers"]}
    return Answered(sent[0]["status"], found, body.decode())


async def inside(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inside"})


def gate(*, loopback: bool = True, token: str | None = None) -> Gate:
    return Gate(inside, loopback=loopback, token=token, port=8000)


# Who is let in.


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost:1", "LOCALHOST", "[::1]:8000", "127.1.2.3"])
def test_requests_for_this_machine_are_let_in(host: str) -> None:
    assert ask(gate(), "/", host=host).text == "inside"


FOREIGN = (
    *(None, "", "example.org", "localhost.example.org", "127.0.0.1.example.org", "192.168.0.1:8000", "a@127.0.0.1"),
    *("[::1", "::1:x"),
)


@pytest.mark.parametrize("host", FOREIGN)
def test_requests_for_another_name_are_refused_on_loopback(host: str | None) -> None:
    answer = ask(gate(), "/", host=host)
    assert answer.status == 421
    assert "inside" not in answer.text
    assert ask(gate(loopback=False, token="t"), "/?token=t", host=host).text == "inside"


def test_two_names_of_a_host_are_refused() -> None:
    assert ask(gate(), "/", host="localhost", Host="example.org").status == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"])
def test_only_reading_is_allowed(method: str) -> None:
    answer = ask(gate(), "/", method=method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    assert "inside" not in answer.text


@pytest.mark.parametrize("given", ["", "?token=", "?token=wrong", "?token=secre", "?token=secrets", "?Token=secret"])
def test_without_the_token_nobody_is_let_in(given: str) -> None:
    for app in (gate(token="secret"), gate(loopback=False, token="secret")):
        answer = ask(app, f"/{given}")
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert "inside" not in answer.text
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "header", ["Bearer wrong", "Bearer ", "Bearer", "secret", "Basic secret", "Bearer s\u00e9cret"]
)
def test_a_wrong_bearer_is_refused(header: str) -> None:
    assert ask(gate(token="secret"), "/", authorization=header).status == 401


def test_the_token_is_taken_as_bearer_or_in_the_query_and_then_from_a_cookie_that_is_not_the_token() -> None:
    app = gate(token="s3cret+/")
    assert ask(app, "/", authorization="bearer s3cret+/").text == "inside"
    answer = ask(app, "/problem?name=svm&token=s3cret%2B%2F")
    assert answer.text == "inside"
    cookie, *attributes = answer.headers["set-cookie"].split("; ")
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=Strict"]
    assert "s3cret" not in cookie
    again = ask(app, "/", cookie=f"other=1; {cookie}")
    assert again.text == "inside"
    assert "set-cookie" not in again.headers
    assert ask(app, "/", cookie=cookie[:-1] + ("0" if cookie[-1] != "0" else "1")).status == 401
    assert ask(app, "/", cookie=cookie.replace("8000", "8001")).status == 401
    assert ask(gate(token="another"), "/", cookie=cookie).status == 401
    assert ask(app, "/", cookie="recollect-8000=\x7f; ;;=").status == 401
    assert ask(app, "/", method="POST", cookie=cookie).status == 405


def test_secrets_are_compared_in_constant_time_and_an_empty_one_is_never_right(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def recorded(one: bytes, other: bytes) -> bool:
        asked.append((one, other))
        return one == other

    monkeypatch.setattr("recollect.report.dashboard.gate.hmac.compare_digest", recorded)
    assert same("a", "a")
    assert not same("a", "b")
    assert not same("", "")
    assert asked == [(b"a", b"a"), (b"a", b"b"), (b"", b"")]


def test_every_answer_tells_browsers_to_be_careful() -> None:
    for answer in (
        ask(gate(), "/"),
        ask(gate(), "/", host="x"),
        ask(gate(), "/", method="POST"),
        ask(gate(token="t"), "/"),
    ):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'; frame-ancestors 'none'")


def test_names_of_hosts_are_read_strictly() -> None:
    assert is_loopback_name(" localhost ")
    assert not is_loopback_name("localhost:")
    assert not is_loopback_name("0.0.0.0")


# Where it listens.


def test_loopback_needs_no_token_and_any_other_place_does() -> None:
    assert find_place().loopback
    assert find_place("localhost", 0).loopback
    assert find_place("127.0.0.2", 1).url == "http://127.0.0.2:1/"
    for host in ("0.0.0.0", "192.0.2.1"):
        with pytest.raises(InputError, match=f"others can reach '{re.escape(host)}', so it needs a token"):
            find_place(host, 8000)
    place = find_place("0.0.0.0", 8000, token="t")
    assert not place.loopback
    assert place.url == "http://127.0.0.1:8000/"


@pytest.mark.parametrize("token", ["", " ", "a b ", "\u00e9", "a\nb"])
def test_a_token_that_cannot_be_sent_is_refused(token: str) -> None:
    with pytest.raises(InputError, match="token: expected"):
        find_place(token=token)


@pytest.mark.parametrize("host", ["", "no such host.invalid", "\udcff"])
def test_a_host_that_is_none_is_refused(host: str) -> None:
    with pytest.raises(InputError, match="host: expected a name or an address of this machine"):
        find_place(host, token="t")


def test_a_port_that_is_in_use_is_named(file: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=rf"port {port} of 127\.0\.0\.1 is in use: choose another one with --port"):
            serve(open_to_read(str(file)), find_place(port=port), token=None, begun=lambda _: None)


def test_a_place_that_is_not_this_machine_is_named(file: Path) -> None:
    with pytest.raises(InputError, match="nobody can listen there"):
        serve(open_to_read(str(file)), find_place("192.0.2.1", 8000, token="t"), token="t", begun=lambda _: None)


def test_a_missing_server_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    check_installed()
    monkeypatch.setattr("recollect.report.dashboard.serving.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'recollect\[dashboard\]'"):
        check_installed()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing.db"], "nothing.db: there is no such memory"),
        (["tuning.db", "--host", "0.0.0.0"], "others can reach '0.0.0.0', so it needs a token"),
        (["tuning.db", "--token", ""], "token: expected at least one character"),
        (["empty.db"], "empty.db: there is no such memory"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(
    arguments: list[str], sentence: str, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(file.parent)
    (file.parent / "empty.db").touch()
    monkeypatch.setattr(sys, "argv", ["recollect", "dashboard", "--no-browser", "--port", "0", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in file.parent.iterdir()) == ["empty.db", "tuning.db"]


# Reading only.


def test_a_memory_is_opened_for_reading_only(file: Path) -> None:
    before = file.read_bytes()
    with open_to_read(str(file)) as memory:
        assert memory.store.name == str(file)
        assert [run.task for run in memory.runs()] == ["first", "second"]
        with pytest.raises(StorageError, match="readonly"):
            memory.remove("first", "svm")
        with pytest.raises(StorageError, match="readonly"):
            memory.add(example("third"), "svm")
    assert file.read_bytes() == before


@pytest.mark.parametrize("name", ["a b.db", "100%.db", "a#b.db", "file:x.db"])
def test_any_name_of_a_file_can_be_opened(model: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(model.read_bytes())
    with open_to_read(str(tmp_path / name)) as memory:
        assert len(read_marks(memory)) == 2


def test_an_address_of_a_file_and_a_journal_can_be_opened(file: Path) -> None:
    with open_to_read(f"sqlite:///{file}") as memory:
        assert len(read_marks(memory)) == 2
    with Memory(f"journal:{file.parent}/log") as written:
        written.add(example("first"), "svm")
    with open_to_read(f"journal:{file.parent}/log") as memory:
        assert [one.entry.task for one in read_marks(memory)] == ["first"]


@pytest.mark.parametrize("where", ["no.db", "no/no.db", "sqlite:///no.db", "journal:no.log"])
def test_what_is_not_there_is_refused_and_not_made(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageError, match="there is no such memory"):
        open_to_read(where)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("address", "opened"),
    [
        ("postgresql://me@h/n", "postgresql://me@h/n?options=-c%20default_transaction_read_only%3Don"),
        (
            "postgresql+psycopg://h/n?a=b",
            "postgresql+psycopg://h/n?a=b&options=-c%20default_transaction_read_only%3Don",
        ),
        ("postgresql://h/n?options=-c%20x%3Dy", "postgresql://h/n?options=-c%20x%3Dy"),
        ("mysql://h/n", "mysql://h/n?init_command=SET%20SESSION%20TRANSACTION%20READ%20ONLY"),
        ("redis://h:6379", "redis://h:6379"),
    ],
)
def test_databases_are_asked_for_sessions_that_only_read(
    address: str, opened: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []

    def unreachable(where: str) -> Memory:
        given.append(where)
        raise StorageError("not there")

    monkeypatch.setattr("recollect.report.dashboard.opening.Memory", unreachable)
    with pytest.raises(StorageError, match="not there"):
        open_to_read(address)
    assert given == [opened]


# Addresses and marks.


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_leads_back_to_itself(name: str) -> None:
    from starlette.datastructures import QueryParams

    for address in (Address(), Address(name), Address(name, name), Address(None, name)):
        path, _, query = address.url.partition("?")
        assert path in ("/", "/problem", "/run")
        assert re.fullmatch(r"[\w%.~=&-]*", query)
        assert find_address(path, QueryParams(query)) == address
    assert find_address("/run", QueryParams("problem=x")) is None
    assert find_address("/problem", QueryParams("")) is None


def test_pages_lead_back_to_those_above() -> None:
    assert [page.url for page in Address("p", "t").above] == ["/", "/problem?name=p"]
    assert [page.url for page in Address("p").above] == ["/"]
    assert Address().above == ()


@pytest.mark.parametrize("where", ["file", "memory"])
def test_marks_change_when_a_trial_ends_and_only_for_its_study(where: str, file: Path) -> None:
    memory = Memory(file) if where == "file" else Memory(optuna.storages.InMemoryStorage())
    if where == "memory":
        memory.add(example("first"), "svm")
        memory.add(example("second"), "svm")
    first, second = read_marks(memory)
    assert read_marks(memory) == (first, second)
    study = optuna.load_study(storage=memory.store.optuna, study_name="svm/second")
    trial = study.ask({"x": optuna.distributions.FloatDistribution(0, 1)})
    assert read_marks(memory) == (first, second), "a trial that only runs is not on the pages yet"
    study.tell(trial, 0.3)
    after = read_marks(memory)
    assert after[0] == first
    assert after[1].mark != second.mark
    memory.remove("first", "svm")
    assert [one.entry.task for one in read_marks(memory)] == ["second"]
    assert joint_mark(after) != joint_mark(after[1:])


def test_a_page_concerns_its_problem_and_runs_of_the_same_task_elsewhere(file: Path) -> None:
    with Memory(file) as memory:
        memory.add(example("first"), "forest")
        marked = read_marks(memory)
    tasks = [(one.entry.problem, one.entry.task) for one in marked]
    assert [(one.entry.problem, one.entry.task) for one in Address("svm").concerns(marked)] == tasks[:2]
    assert [(one.entry.problem, one.entry.task) for one in Address("svm", "first").concerns(marked)] == tasks
    assert [(one.entry.problem, one.entry.task) for one in Address("svm", "second").concerns(marked)] == tasks[:2]
    assert Address("svm", "third").concerns(marked) == ()
    assert Address("nothing").concerns(marked) == ()
    assert Address(None, "first").concerns(marked) == ()


# Live pages.

PAGE = Page("A <page>", "About it.", (Section("One", (tag("p", {}, "text"),)),), "here")


def rules(policy: str) -> dict[str, list[str]]:
    return {
        name: content.split() for name, *rest in (rule.split(" ", 1) for rule in policy.split("; ")) for content in rest
    }


def hashed(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_a_live_page_may_ask_its_own_server_and_nothing_else_more_than_a_static_one() -> None:
    live, static = live_page(PAGE, Address("svm"), "v1"), render(PAGE)
    scripts = re.findall(r"<script>(.*?)</script>", live.text, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", live.text, re.DOTALL)
    found = rules(live.policy)
    assert found["connect-src"] == ["'self'"]
    assert found["script-src"] == ["'self'", *map(hashed, scripts)]
    assert sorted(found["style-src-elem"]) == sorted(map(hashed, [*styles, ""]))
    assert found["default-src"] == found["frame-ancestors"] == found["base-uri"] == found["form-action"] == ["'none'"]
    assert found["img-src"] == ["data:"]
    inner = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', static)
    assert inner is not None
    assert "connect-src" not in inner[1]
    assert "http-equiv" not in live.text


def test_a_live_page_is_small_and_has_its_scripts_as_functions() -> None:
    live = live_page(PAGE, Address("svm", "a<b"), "v1")
    assert len(live.text) < 60_000
    assert f'<script src="{plotly_url()}"></script>' in live.text
    own = (ASSETS.parent / "assets" / "figures.js").read_text()
    assert f"(document, addEventListener, matchMedia) => {{\n{own}\n}}" in live.text
    assert '<div id="live" data-version="v1">' in live.text
    assert '<a href="/">All problems</a><a href="/problem?name=svm">svm</a>' in live.text
    assert live.text.index('class="skip"') < live.text.index('id="live"') < live.text.index("<header>")
    assert live_script([]).count("=> {") < live_script(["a", "b"]).count("=> {")


def test_own_assets_load_nothing_and_evaluate_nothing() -> None:
    text = (ASSETS / "live.js").read_text() + (ASSETS / "live.css").read_text()
    assert not re.search(
        r"https?:|@import|url\(|\beval\b|innerHTML|insertAdjacentHTML|document\.write|new Function", text
    )


def test_a_notice_escapes_what_it_says_and_runs_nothing() -> None:
    page = notice("<b>", "<script>alert(1)</script>")
    assert "<script" not in page.text
    assert "&lt;script&gt;" in page.text
    assert "script-src" not in page.policy
    assert page.policy.startswith("default-src 'none'")


# The shelf.


def shelved(memory: Memory, work: Callable[[Shelf], Awaitable[Any]], **given: Any) -> Any:
    async def all_of_it() -> Any:
        return await work(Shelf(memory, **{"patience": 60, **given}))

    return asyncio.run(all_of_it())


@pytest.fixture
def making(monkeypatch: pytest.MonkeyPatch) -> list[Address]:
    """Record which pages are made; each takes a moment."""
    made: list[Address] = []

    def page(self: Address, memory: Memory) -> Page:
        made.append(self)
        time.sleep(0.05)
        return PAGE

    monkeypatch.setattr(Address, "page", page)
    return made


def test_a_page_is_made_once_for_all_who_ask_and_again_when_something_changed(
    file: Path, making: list[Address], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.report.dashboard.shelf.AGE", 0.0)

    async def work(shelf: Shelf) -> None:
        answers = await asyncio.gather(*(shelf.look(Address("svm")) for _ in range(5)))
        assert making == [Address("svm")]
        first = answers[0]
        assert first is not None
        assert first.page is not None
        assert all(answer == first for answer in answers)
        known = await shelf.look(Address("svm"), first.version)
        assert known is not None
        assert known.page is None
        with Memory(file) as memory:
            memory.add(example("third"), "svm")
        second = await shelf.look(Address("svm"), first.version)
        assert second is not None
        assert second.page is not None
        assert second.version != first.version
        assert making == [Address("svm")] * 2
        assert await shelf.look(Address("nothing")) is None

    shelved(open_to_read(str(file)), work)


def test_what_takes_long_is_announced_and_comes_later(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    threads = []

    def page(self: Address, memory: Memory) -> Page:
        threads.append(threading.current_thread())
        go_on.wait(10)
        return PAGE

    monkeypatch.setattr(Address, "page", page)

    async def work(shelf: Shelf) -> None:
        waiting = await shelf.look(Address("svm"))
        assert waiting is not None
        assert waiting.version == ""
        assert waiting.page == waiting_page(Address("svm"))
        go_on.set()
        while (answer := await shelf.look(Address("svm"))) is not None and not answer.version:
            await asyncio.sleep(0.01)
        assert answer is not None
        assert answer.page is not None
        assert "About it." in answer.page.text

    shelved(open_to_read(str(file)), work, patience=0.01)
    assert len(threads) == 1
    assert threads[0].daemon, "it does not keep the server from ending"
    assert threads[0] is not threading.main_thread()


def test_a_page_that_fails_is_tried_again_and_whoever_waits_hears_of_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes: Iterator[Page | None] = iter([None, PAGE])

    def page(self: Address, memory: Memory) -> Page:
        found = next(outcomes)
        if found is None:
            raise StorageError("the disk is away")
        return found

    monkeypatch.setattr(Address, "page", page)

    async def work(shelf: Shelf) -> None:
        with pytest.raises(StorageError, match="the disk is away"):
            await shelf.look(Address("svm"))
        answer = await shelf.look(Address("svm"))
        assert answer is not None
        assert answer.page is not None

    shelved(open_to_read(str(file)), work)


def test_only_so_many_pages_are_kept(file: Path, making: list[Address], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.report.dashboard.shelf.MOST", 1)

    async def work(shelf: Shelf) -> None:
        for address in (Address(), Address("svm"), Address("svm"), Address()):
            await shelf.look(address)

    shelved(open_to_read(str(file)), work)
    assert making == [Address(), Address("svm"), Address()]


def test_work_in_a_thread_gives_its_result_or_its_error() -> None:
    assert asyncio.run(in_thread(lambda: 3)) == 3
    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_thread(lambda: 1 // 0))


# The site.


def test_pages_are_answered_with_their_policy_and_version(file: Path) -> None:
    app = make_site(open_to_read(str(file)))
    answer = ask(app, "/")
    assert answer.status == 200
    assert "connect-src 'self'" in answer.headers["content-security-policy"]
    assert '<a href="/problem?name=svm">svm</a>' in answer.text
    again = ask(app, "/", if_none_match=answer.headers["etag"])
    assert (again.status, again.text) == (304, "")
    assert ask(app, "/", if_none_match='"something"').status == 200
    assert ask(app, "/", method="HEAD").status == 200
    assert ask(app, "/favicon.ico").status == 204


def test_plotly_is_a_file_that_browsers_keep(file: Path) -> None:
    answer = ask(make_site(open_to_read(str(file))), plotly_url())
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
    assert "plotly.js v" in answer.text[:300]


@pytest.mark.parametrize(
    "path",
    [
        "/nothing", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/problem", "/run?problem=svm", "/problem/..",
        "/problem?name=nothing", "/run?problem=svm&task=../../etc/passwd", "/plotly-0.js", "/live.js", "//etc/passwd",
    ],
)  # fmt: skip
def test_there_is_nothing_but_the_pages(path: str, file: Path) -> None:
    answer = ask(make_site(open_to_read(str(file))), path)
    assert answer.status == 404
    assert "no such page" in answer.text


def test_a_memory_that_has_gone_away_is_a_sentence_and_no_page(file: Path) -> None:
    app = make_site(open_to_read(str(file)))
    file.unlink()
    answer = ask(app, "/")
    assert answer.status == 503
    assert "tuning.db" in answer.text
    assert "Traceback" not in answer.text
