"""Markdown export: no text of a peer is interpreted as Markdown."""

from __future__ import annotations

from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from msgspec.structs import replace

from mcpspy.analysis.export.markdown import LARGEST, document, export
from mcpspy.core.protocol.message import Notification
from tests.analysis.export.sessions import (
    EVERY,
    HEADER,
    call,
    client,
    failure,
    note,
    recorded,
    result,
    server,
    session_of,
)

PROGRESS = (
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1,"total":2}}'
)


def headings(text: str) -> list[str]:
    """Return the headings, as a Markdown parser sees them."""
    tokens = MarkdownIt().parse(text)
    return [tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open"]


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_every_request_has_a_section_with_both_bodies(path: Path) -> None:
    session = recorded(path)
    tokens = MarkdownIt().parse("".join(export([session])))
    fences = [token.content for token in tokens if token.type == "fence"]
    answered = sum(exchange.answer is not None for exchange in session.exchanges())

    titles = [
        tokens[at + 1].content for at, token in enumerate(tokens) if token.tag == "h3" and token.nesting == 1
    ]
    assert titles.count("request") == sum(1 for _ in session.exchanges())
    assert titles.count("response") == answered
    assert len(fences) >= titles.count("request") + answered
    assert not [token for token in tokens if token.type.startswith(("html", "link", "image"))]


def test_progress_and_cancellation_are_in_the_section_of_their_request() -> None:
    entries = (
        call(0.1, 1, more=b',"_meta":{"progressToken":7}'),
        server(0.2, PROGRESS),
        client(0.3, b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'),
        call(0.4, 2),
        failure(0.5, 2),
        note(0.6, "stderr", text="a ``` word"),
        note(0.7, "http", method="POST"),
    )
    text = "".join(export([session_of(*entries)]))
    unwanted = session_of(*entries, keep=lambda change: isinstance(change.what, Notification))

    assert headings(text) == [
        *(
            "`weather`, recorded 2026-11-21T08:13:03.745Z",
            "`tools/call` `forecast`",
            "request",
            "notifications",
        ),
        *("`tools/call` `forecast`", "request", "response", "`stderr` ````a ``` word````"),
    ]
    assert "- `0.200 s` `1/2`\n- `0.300 s` `notifications/cancelled 1`\n" in text
    assert "````text\na ``` word\n````" in text
    assert [title for title in headings("".join(export([unwanted]))) if "notifications" in title] == [
        *("`notifications/progress` `1/2`", "`notifications/cancelled` `1`")
    ], "they have their own section if their request is filtered out"


def test_a_request_that_was_sent_again_after_a_redirect_has_one_section() -> None:
    head = {"http": 1, "stream": "1"}
    session = session_of(
        call(0, http=1),
        note(0.1, "http", **head, method="POST", path="/mcp", status=307, response={"location": "/mcp/"}),
        note(0.2, "http-end", **head, hung_up=None),
        *(call(1, http=2), result(2, http=2)),
        header=replace(HEADER, transport="http", command=None, upstream="http://h/mcp"),
    )
    text = "".join(export([session]))

    assert [each for each in headings(text) if "forecast" in each] == ["`tools/call` `forecast`"]
    assert "`307 → /mcp/; ok`" in text


def test_sessions_follow_each_other() -> None:
    text = "".join(export([session_of(call(0.1)), session_of(result(0.2))]))

    assert sum("recorded" in title for title in headings(text)) == 2
    assert "No response yet." not in text
    assert "No response yet." in "".join(export([session_of(call(0.1), is_over=False)]))


@pytest.mark.parametrize("name", ["``` # x", "`", "<script>", "[a](b)", "x\\n# y", "\\u202e"])
def test_a_name_is_never_markup(name: str) -> None:
    text = "".join(
        export([session_of(call(0.1, name=name.encode()), result(0.2, members=b'"a":"```\\n# no"'))])
    )
    tokens = MarkdownIt().parse(text)

    assert len(headings(text)) == 4
    assert not [
        each for token in tokens for each in token.children or () if each.type in ("link_open", "html_inline")
    ]
    assert "\u202e" not in text


def test_a_users_note_is_quoted_and_a_large_body_is_cut() -> None:
    (change, *_) = session_of(call(0.1, more=b',"a":[%b]' % b",".join([b"1234567"] * 20_000))).changes
    text = "".join(document(HEADER, [(change, "look\nhere")]))

    assert "\n> look\n> here\n" in text
    assert "\nCut: the first " in text
    assert len(text) < LARGEST + 1000
