"""What the server logs is limited."""

from __future__ import annotations

import logging

import pytest

pytest.importorskip("uvicorn", reason="the dashboard needs it")


def test_messages_beyond_the_limit_of_a_minute_are_left_out_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from recollect.report.dashboard import connections

    now = [30.0]
    monkeypatch.setattr("recollect.report.dashboard.connections.time.monotonic", lambda: now[0])
    logger = logging.getLogger("uvicorn.error")
    with connections.limited_logs():
        for number in range(100):
            logger.warning("message %d", number)
        now[0] += 60.0
        logger.warning("message %d", 100)
    assert len(caplog.messages) == connections.MAX_LOGGED + 2
    assert caplog.messages[-3:] == [
        f"message {connections.MAX_LOGGED - 1}",
        "further messages of this minute are left out",
        "message 100",
    ]
    for number in range(100):
        logger.warning("message %d", number)
    assert len(caplog.messages) == connections.MAX_LOGGED + 102, "afterwards there is no limit"
