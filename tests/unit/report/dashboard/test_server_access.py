"""Who gets access, and the headers of every response."""

from __future__ import annotations

from typing import Any

import pytest
from tests.helpers.dashboard import ask

from recollect.report.dashboard.server import AccessControl, equal_secrets, is_loopback_name

pytest.importorskip("plotly", reason="pages need plotly")
pytest.importorskip("starlette", reason="the dashboard needs it")


async def inside(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"behind the door"})


def guarded(*, loopback: bool = True, token: str | None = None) -> Any:
    return AccessControl(loopback=loopback, token=token, port=8000).protect(inside)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost:1", "LOCALHOST", "[::1]:8000", "127.1.2.3"])
def test_requests_for_this_machine_are_let_in(host: str) -> None:
    assert ask(guarded(), "/", host=host).text == "behind the door"


FOREIGN = (
    *(None, "", "example.org", "localhost.example.org", "127.0.0.1.example.org", "192.168.0.1:8000", "a@127.0.0.1"),
    *("[::1", "::1:x"),
)


@pytest.mark.parametrize("host", FOREIGN)
def test_requests_for_another_name_are_refused_on_loopback(host: str | None) -> None:
    answer = ask(guarded(), "/", host=host)
    assert answer.status == 421
    assert "behind the door" not in answer.text
    assert ask(guarded(loopback=False, token="t"), "/", host=host, authorization="Bearer t").text == "behind the door"


def test_two_names_of_a_host_are_refused() -> None:
    assert ask(guarded(), "/", host="localhost", Host="example.org").status == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"])
def test_only_reading_is_allowed(method: str) -> None:
    answer = ask(guarded(), "/", method=method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    assert "behind the door" not in answer.text


@pytest.mark.parametrize("given", ["", "?token=", "?token=wrong", "?token=secre", "?token=secrets", "?Token=secret"])
def test_without_the_token_nobody_is_let_in(given: str) -> None:
    for app in (guarded(token="secret"), guarded(loopback=False, token="secret")):
        answer = ask(app, f"/{given}")
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert "behind the door" not in answer.text
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "header", ["Bearer wrong", "Bearer ", "Bearer", "secret", "Basic secret", "Bearer s\u00e9cret"]
)
def test_a_wrong_bearer_is_refused(header: str) -> None:
    assert ask(guarded(token="secret"), "/", authorization=header).status == 401


def test_the_token_is_taken_as_bearer_or_in_the_query_and_then_from_a_cookie_that_is_not_the_token() -> None:
    app = guarded(token="s3cret+/")
    assert ask(app, "/", authorization="bearer s3cret+/").text == "behind the door"
    answer = ask(app, "/problem?name=svm&token=s3cret%2B%2F")
    assert answer.status == 303
    cookie, *attributes = answer.headers["set-cookie"].split("; ")
    assert sorted(map(str.lower, attributes)) == ["httponly", "path=/", "samesite=lax"]
    assert "s3cret" not in cookie
    again = ask(app, "/", cookie=f"other=1; {cookie}")
    assert again.text == "behind the door"
    assert "set-cookie" not in again.headers
    assert ask(app, "/", cookie=cookie[:-1] + ("0" if cookie[-1] != "0" else "1")).status == 401
    assert ask(app, "/", cookie=cookie.replace("8000", "8001")).status == 401
    assert ask(guarded(token="another"), "/", cookie=cookie).status == 401
    assert ask(app, "/", cookie="recollect-8000=\x7f; ;;=").status == 401
    assert ask(app, "/", method="POST", cookie=cookie).status == 405


@pytest.mark.parametrize(
    ("requested", "location"),
    [
        ("/?token=t", "/"),
        ("/problem?token=x&name=a%2Fb%26c&token=t", "/problem?name=a%2Fb%26c"),
        ("//example.org/x?token=t", "/example.org/x"),
        ("/\\\\example.org?token=t", "/%5C%5Cexample.org"),
        ("/a\r\nb?token=t", "/a%0D%0Ab"),
    ],
)
def test_the_token_leaves_the_address_by_a_redirect_to_the_same_server(requested: str, location: str) -> None:
    for method in ("GET", "HEAD"):
        answer = ask(guarded(token="t"), requested, method=method)
        assert (answer.status, answer.headers["location"]) == (303, location)
        assert "behind the door" not in answer.text
        assert answer.headers["referrer-policy"] == "no-referrer"


def test_secrets_are_compared_in_constant_time_and_an_empty_one_is_never_right(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def recorded(one: bytes, other: bytes) -> bool:
        asked.append((one, other))
        return one == other

    monkeypatch.setattr("recollect.report.dashboard.server.hmac.compare_digest", recorded)
    assert equal_secrets("a", "a")
    assert not equal_secrets("a", "b")
    assert not equal_secrets("", "")
    assert asked == [(b"a", b"a"), (b"a", b"b"), (b"", b"")]


def test_every_answer_tells_browsers_to_be_careful() -> None:
    for answer in (
        ask(guarded(), "/"),
        ask(guarded(), "/", host="x"),
        ask(guarded(), "/", method="POST"),
        ask(guarded(token="t"), "/"),
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
