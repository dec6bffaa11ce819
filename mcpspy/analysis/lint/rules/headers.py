"""Streamable HTTP: what the headers of a request say.

Owns what clients send, and what these examples share; each exchange is looked
at when it is over. What travels in them has the same rules as over stdio.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast
from urllib.parse import urlsplit

from mcpspy.analysis.lint.finding import Kind
from mcpspy.analysis.lint.posts import ASKS, POSTED, Post
from mcpspy.analysis.lint.rule import ERROR, Rules, Told
from mcpspy.analysis.lint.seen import Seen
from mcpspy.core.protocol.http_headers import LOOPBACK
from mcpspy.core.protocol.spec import MODERN

RULES = Rules()
rule = RULES.rule

HTTP = "2025-11-25/basic/transports#"
NOW = "2026-07-28/basic/transports/streamable-http#"

VERSION, METHOD, NAME = "mcp-protocol-version", "mcp-method", "mcp-name"

BOTH = ("application/json", "text/event-stream")
_NAMED = ("tools/call", "prompts/get", "resources/read")

PING = '@ http\n> {"id":2,"method":"ping"}\n= 200 %s\n< {"id":2,"result":{}}'
CALL = '@ 2026-07-28 http\n> {"id":2,"method":"tools/call","params":{"name":"a"}}\n= 200 %s\n< {"id":2,"result":{"content":[]}}'


def posted(seen: Seen) -> Post:
    """Return the exchange."""
    return cast(Post, seen.post)


@rule(
    "HTTP101",
    ERROR,
    "no MCP-Protocol-Version",
    page=HTTP + "protocol-version-header",
    on=Kind.POST,
    about=ASKS,
    since="2025-06-18",
    valid=(PING % "", '@ 2025-03-26 http\n> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}'),
    invalid=(PING % '{"mcp-protocol-version":null}', CALL % '{"mcp-protocol-version":null}'),
)
def version(seen: Seen) -> Iterator[Told]:
    """After the handshake a client says with every request which revision was agreed on. A server that does not see
    it takes 2025-03-26 for granted.
    """
    sent = posted(seen).request
    if VERSION not in sent:
        yield Told("no MCP-Protocol-Version header", sent)


@rule(
    "HTTP102",
    ERROR,
    "an MCP-Protocol-Version that is not what was agreed",
    page=HTTP + "protocol-version-header",
    on=Kind.POST,
    about=ASKS,
    since="2025-06-18",
    valid=(PING % "", CALL % ""),
    invalid=(
        PING % '{"mcp-protocol-version":"2025-06-18"}',
        CALL % '{"mcp-protocol-version":"2025-11-25"}',
    ),
)
def other_version(seen: Seen) -> Iterator[Told]:
    """The header says what the handshake agreed on, and from 2026-07-28 on what `_meta` of the same request says:
    a server must refuse another one.
    """
    post = posted(seen)
    given, said = post.request.get(VERSION), post.revision or seen.conversation.revision
    if given is not None and said is not None and given != said and post.status < 400:
        yield Told(f"MCP-Protocol-Version is {str(given)[:40]}; the revision is {said}", post.request)


@rule(
    "HTTP103",
    ERROR,
    "no Mcp-Method, or another than the body's",
    page=NOW + "standard-request-headers",
    on=Kind.POST,
    about=ASKS,
    since=MODERN,
    valid=(CALL % "",),
    invalid=(CALL % '{"mcp-method":null}', CALL % '{"mcp-method":"tools/list"}'),
)
def method(seen: Seen) -> Iterator[Told]:
    """What the header says is what a gateway goes by: it must be the `method` of the body, and a server must refuse
    a request where it is not (-32020).
    """
    post = posted(seen)
    given, said = post.request.get(METHOD), post.posted[0].method
    if given != said and post.status < 400:
        why = (
            "no Mcp-Method header" if given is None else f"Mcp-Method is {str(given)[:60]}, the method {said}"
        )
        yield Told(why, post.request)


@rule(
    "HTTP104",
    ERROR,
    "no Mcp-Name, or another than the body's",
    page=NOW + "standard-request-headers",
    on=Kind.POST,
    about=ASKS,
    since=MODERN,
    valid=(CALL % "", (CALL % '{"mcp-name":"=?base64?w7w=?="}').replace('"name":"a"', '"name":"\u00fc"')),
    invalid=(CALL % '{"mcp-name":null}', CALL % '{"mcp-name":"b"}'),
)
def name(seen: Seen) -> Iterator[Told]:
    """Of tools/call and prompts/get the `name`, of resources/read the `uri`; in Base64 (`=?base64?…?=`) where it is
    not plain ASCII.
    """
    post = posted(seen)
    first = post.posted[0]
    if first.method not in _NAMED or post.status >= 400:
        return
    given = post.request.get(NAME)
    if given is None:
        yield Told("no Mcp-Name header", post.request)
    elif _decoded(str(given)) != first.subject:
        yield Told(f"Mcp-Name is {str(given)[:60]}, the request is about {first.subject}", post.request)


def _decoded(value: str) -> str:
    if not (value.lower().startswith("=?base64?") and value.endswith("?=")):
        return value
    from binascii import a2b_base64

    try:
        return a2b_base64(value[9:-2]).decode("utf-8", "replace")
    except ValueError:
        return value


@rule(
    "HTTP304",
    ERROR,
    "an Accept without both types",
    page=HTTP + "sending-messages-to-the-server",
    on=Kind.POST,
    about=POSTED,
    since="2025-03-26",
    valid=(PING % "", PING % '{"accept":"*/*"}'),
    invalid=(PING % '{"accept":"application/json"}', PING % '{"accept":null}'),
)
def accept(seen: Seen) -> Iterator[Told]:
    """The client takes both, `application/json` and `text/event-stream`, and says so: which one comes is the
    server's choice.
    """
    sent = posted(seen).request
    given = str(sent.get("accept", "")).lower()
    if "*/*" not in given and not all(kind in given for kind in BOTH):
        yield Told(f"Accept is {given[:80] or 'missing'}: it lists both types", sent)


@rule(
    "HTTP501",
    ERROR,
    "a foreign Origin that was let in",
    page=HTTP + "security-warning",
    on=Kind.POST,
    valid=(
        PING % '{"origin":"http://localhost:6274"}',
        PING % '{"origin":"http://127.0.0.1:3001"}',
        (PING % '{"origin":"https://evil.example"}')
        .replace("= 200", "= 403")
        .replace('\n< {"id":2,"result":{}}', ""),
    ),
    invalid=(PING % '{"origin":"https://evil.example"}',),
)
def origin(seen: Seen) -> Iterator[Told]:
    """A page of somebody else's made a browser send this, and the server answered. It must look at `Origin` and
    refuse what it does not know with 403: DNS rebinding gives any page a way to a server on loopback.
    """
    post = posted(seen)
    given = post.request.get("origin")
    if (
        isinstance(given, str)
        and 200 <= post.status < 400
        and _host(given) not in (*LOOPBACK, _host(seen.known.upstream or ""))
    ):
        yield Told(f"the Origin {given[:80]} was let in", post.request)


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
