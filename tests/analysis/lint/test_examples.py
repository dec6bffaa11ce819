"""The notation of examples."""

from __future__ import annotations

import json

import pytest

from mcpspy.analysis.lint.examples import UPSTREAM, entries_of, header_of
from mcpspy.core.recording.decode import Frame, Note


def test_omitted_parts_of_an_example_are_valid() -> None:
    *hello, ask, answer = entries_of('> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}')

    assert [json.loads(frame.data).get("method") for frame in hello if isinstance(frame, Frame)] == [
        "initialize",
        None,
        "notifications/initialized",
    ]
    assert isinstance(ask, Frame)
    assert (ask.side, ask.data) == ("client", b'{"jsonrpc": "2.0", "id": 2, "method": "ping"}')
    assert isinstance(answer, Frame)
    assert answer.side == "server"


def test_2026_has_no_handshake_and_its_meta() -> None:
    ask, answer = entries_of(
        '@ 2026-07-28\n> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{"tools":[]}}'
    )

    assert isinstance(ask, Frame)
    assert "io.modelcontextprotocol/clientCapabilities" in json.loads(ask.data)["params"]["_meta"]
    assert isinstance(answer, Frame)
    assert {"resultType", "ttlMs", "cacheScope", "tools", "_meta"} == json.loads(answer.data)["result"].keys()


def test_verbatim_lines_are_verbatim() -> None:
    first, second, third = entries_of("@ bare\n<< {oops}\\x0d\n>> \\xff\\x04\n<< a")

    assert first == Frame(2.0, "server", b"{oops}", eol="\r\n")
    assert second == Frame(4.0, "client", b"\xff", eol="")
    assert third == Frame(6.0, "server", b"a")


def test_http_has_its_heads_and_ends() -> None:
    text = '@ http bare\n> {"id":2,"method":"ping"}\n= 200 {"accept":null} {"x":"y"}\n< {"id":2,"result":{}}\n> {"method":"notifications/x"}'
    entries = [entry for entry in entries_of(text) if isinstance(entry, Frame | Note)]

    assert header_of(text).upstream == UPSTREAM
    assert [entry.kind if isinstance(entry, Note) else entry.side for entry in entries] == [
        "client",
        "http",
        "server",
        "http-end",
        "client",
        "http",
        "http-end",
    ]
    head, second = (entry for entry in entries if isinstance(entry, Note) and entry.kind == "http")
    assert "accept" not in head.fields["request"]
    assert head.fields["response"]["x"] == "y"
    assert second.fields["status"] == 202


def test_an_example_that_is_not_in_the_notation_is_refused() -> None:
    with pytest.raises(ValueError, match="not in the notation"):
        list(entries_of("@ bare\nhello"))
