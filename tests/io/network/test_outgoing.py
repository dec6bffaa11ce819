"""Proxies of the environment, and the errors of connections."""

from __future__ import annotations

import errno

import pytest
from yarl import URL

from mcpspy.io.network.outgoing import environment_proxy, reason


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://example.org/", "http://proxy:8080"),
        ("http://127.0.0.1:3000/", None),
        ("http://inside.example.net/", None),
        ("https://example.org/", None),
    ],
)
def test_the_proxy_of_the_environment_is_used_for_remote_servers_only(
    url: str, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy:8080")
    monkeypatch.setenv("no_proxy", "inside.example.net")
    monkeypatch.delenv("https_proxy", raising=False)
    found = environment_proxy(URL(url))

    assert found == (None if expected is None else URL(expected))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 9)"),
            "Connection refused",
        ),
        (
            OSError("Multiple exceptions: [Errno 111] Connect call failed, [Errno 111] …"),
            "Connection refused",
        ),
        (OSError(-2, "Name or service not known"), "[Errno -2] Name or service not known"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_a_reason_is_short(error: Exception, expected: str) -> None:
    assert reason(error) == expected
