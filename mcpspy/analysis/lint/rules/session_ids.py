"""Streamable HTTP: the session id, and who gives and sends it (2025-03-26 to 2025-11-25)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.lint.finding import Kind
from mcpspy.analysis.lint.posts import ASKS, TELLS, UNREADABLE
from mcpspy.analysis.lint.rule import ERROR, LEGACY, WARNING, Rules, Told
from mcpspy.analysis.lint.rules.headers import CALL, HTTP, NOW, PING, posted
from mcpspy.analysis.lint.seen import Seen
from mcpspy.core.protocol.spec import MODERN

RULES = Rules()
rule = RULES.rule

SESSION = "mcp-session-id"

_VISIBLE = re.compile(r"[\x21-\x7e]+")

_HELLO = (
    '@ http bare\n> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}\n'
    '= 200 {} %s\n< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"b","version":"1"}}}'
)


@rule(
    "HTTP201",
    ERROR,
    "a session id that comes late",
    page=HTTP + "session-management",
    on=Kind.POST,
    until=LEGACY,
    valid=(PING % "", _HELLO % "{}", PING % '{} {"mcp-session-id":"s-1"}'),
    invalid=(PING % '{} {"mcp-session-id":"s-2"}',),
)
def minted(seen: Seen) -> Iterator[Told]:
    """A server gives a session its id with the answer to `initialize`, and never again."""
    post = posted(seen)
    given = post.response.get(SESSION)
    if given is not None and post.status < 400 and not post.introduces and given != post.request.get(SESSION):
        yield Told(f"a session id that no answer to initialize gave: {str(given)[:60]}", post.response)


@rule(
    "HTTP202",
    ERROR,
    "no session id",
    page=HTTP + "session-management",
    on=Kind.POST,
    about=(ASKS, TELLS, UNREADABLE),
    until=LEGACY,
    valid=(PING % "", (PING % '{"mcp-session-id":null}').replace("@ http", "@ http bare")),
    invalid=(PING % '{"mcp-session-id":null}',),
)
def unsent(seen: Seen) -> Iterator[Told]:
    """The server gave the session an id with the answer to `initialize`: the client sends it with every request
    from then on, or is a stranger.
    """
    post = posted(seen)
    if seen.known.session_ids and SESSION not in post.request and not post.introduces:
        yield Told("no Mcp-Session-Id header, though the server gave one", post.request)


@rule(
    "HTTP203",
    ERROR,
    "a session id with characters that it may not have",
    page=HTTP + "session-management",
    on=Kind.POST,
    until=LEGACY,
    valid=(_HELLO % '{"mcp-session-id":"1868a90c-9f4e"}',),
    invalid=(_HELLO % '{"mcp-session-id":"a b"}', _HELLO % '{"mcp-session-id":""}'),
)
def invisible(seen: Seen) -> Iterator[Told]:
    """Visible ASCII alone, 0x21 to 0x7E; and it should be a thing that nobody guesses."""
    post = posted(seen)
    given = post.response.get(SESSION)
    if isinstance(given, str) and post.introduces and not _VISIBLE.fullmatch(given):
        yield Told(f"the session id {given[:60]!r} is not visible ASCII", given)


@rule(
    "HTTP204",
    WARNING,
    "a session id, where there are no sessions",
    page=NOW + "sending-messages",
    on=Kind.POST,
    since=MODERN,
    once=True,
    valid=(CALL % "",),
    invalid=(CALL % '{} {"mcp-session-id":"s-1"}',),
)
def stateless(seen: Seen) -> Iterator[Told]:
    """2026-07-28 took sessions out: every request stands for itself, and a server gives no ids."""
    post = posted(seen)
    if SESSION in post.response and post.status < 400:
        yield Told("an Mcp-Session-Id from the server", post.response)
