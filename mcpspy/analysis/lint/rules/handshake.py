"""The handshake, until 2025-11-25: the order of `initialize` and what follows.

Owns what a session's beginning looks like, which other examples begin with.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.lint.finding import Kind
from mcpspy.analysis.lint.rule import ERROR, LEGACY, WARNING, Rules, Told
from mcpspy.analysis.lint.seen import Seen
from mcpspy.core.protocol.message import Request
from mcpspy.core.protocol.spec import CLIENT, MODERN, REVISIONS, SERVER

RULES = Rules()
rule = RULES.rule

LIFECYCLE = "2025-11-25/basic/lifecycle"

PING = '> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}'
HELLO = '"protocolVersion":"2025-11-25","capabilities":{},'
ASK = '> {"id":1,"method":"initialize","params":{%s"clientInfo":{"name":"a","version":"1"}}}\n'
ANSWER = '< {"id":1,"result":{%s"serverInfo":{"name":"b","version":"1"}}}'


def _waits(_: Kind, method: str, __: str) -> bool:
    """Whether a request has to wait for the handshake; a probe is how a client of both eras begins."""
    return method not in ("initialize", "ping", "server/discover")


@rule(
    "LIFE101",
    ERROR,
    "a request before the handshake",
    page=LIFECYCLE + "#initialization",
    on=Kind.REQUEST,
    by=CLIENT,
    only=_waits,
    odd=True,
    valid=(
        '@ bare\n> {"id":1,"method":"ping"}\n< {"id":1,"result":{}}',
        '@ bare\n> {"id":1,"method":"server/discover"}\n< {"id":1,"error":{"code":-32601,"message":"no"}}',
        '@ 2026-07-28\n> {"id":1,"method":"tools/list"}\n< {"id":1,"result":{"tools":[]}}',
    ),
    invalid=('@ bare\n> {"id":1,"method":"x/list"}\n< {"id":1,"result":{}}',),
)
def first(seen: Seen) -> Iterator[Told]:
    """Until 2025-11-25 a client begins with `initialize`, and sends nothing before it but pings. Over HTTP this is
    not looked at: the session may be older than the recording.
    """
    if seen.message.frame.stream is not None:
        return
    if (
        not seen.conversation.has_asked
        and (seen.request.revision or "") < MODERN
        and (seen.revision or "") < MODERN
    ):
        yield Told(f"{seen.method} before initialize")


@rule(
    "LIFE102",
    WARNING,
    "a request before the handshake is over",
    page=LIFECYCLE + "#initialization",
    on=Kind.REQUEST,
    only=_waits,
    until=LEGACY,
    odd=True,
    valid=(
        PING,
        "@ bare\n" + ASK % HELLO + '< {"id":1,"method":"ping"}\n> {"id":1,"result":{}}\n' + ANSWER % HELLO,
    ),
    invalid=(
        "@ bare\n"
        + ASK % HELLO
        + '> {"id":2,"method":"x/list"}\n'
        + ANSWER % HELLO
        + '\n< {"id":2,"result":{}}',
    ),
)
def too_soon(seen: Seen) -> Iterator[Told]:
    """Until `initialize` is answered, a client should send nothing but pings; a server nothing but pings and log
    messages until it has heard `notifications/initialized`.
    """
    conversation = seen.conversation
    if not conversation.has_asked:
        return
    if seen.side == CLIENT and not conversation.is_agreed:
        yield Told(f"{seen.method} before initialize was answered")
    elif seen.side == SERVER and not conversation.is_initialized:
        yield Told(f"{seen.method} before notifications/initialized")


@rule(
    "LIFE103",
    ERROR,
    "no notifications/initialized",
    page=LIFECYCLE + "#initialization",
    on=Kind.REQUEST,
    by=CLIENT,
    only=_waits,
    until=LEGACY,
    once=True,
    odd=True,
    valid=(PING,),
    invalid=(
        "@ bare\n" + ASK % HELLO + ANSWER % HELLO + '\n> {"id":2,"method":"x/list"}\n< {"id":2,"result":{}}',
    ),
)
def unconfirmed(seen: Seen) -> Iterator[Told]:
    """The client says `notifications/initialized` once `initialize` is answered, and before it asks for anything.
    Some servers refuse everything until then.
    """
    conversation = seen.conversation
    if conversation.is_agreed and not conversation.is_initialized:
        yield Told(f"{seen.method}, but no notifications/initialized before it")


@rule(
    "LIFE104",
    WARNING,
    "a revision that there is not, or that has no handshake",
    page=LIFECYCLE + "#version-negotiation",
    on=(Kind.REQUEST, Kind.RESULT),
    about="initialize",
    valid=(PING, '@ 2024-11-05\n> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}'),
    invalid=(
        "@ bare\n" + ASK % '"protocolVersion":"1.0","capabilities":{},' + ANSWER % HELLO,
        "@ bare\n" + ASK % HELLO + ANSWER % '"protocolVersion":"2026-07-28","capabilities":{},',
    ),
)
def unknown_revision(seen: Seen) -> Iterator[Told]:
    """Revisions are dates: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25. From 2026-07-28 on there is no
    `initialize`; requests carry their revision in `_meta`.
    """
    version = (seen.params if isinstance(seen.what, Request) else seen.result).get("protocolVersion")
    if (
        isinstance(version, str)
        and version != "2024-10-07"
        and (version not in REVISIONS or version >= MODERN)
    ):
        why = "has no handshake" if version in REVISIONS else "is none"
        yield Told(f"the revision {version[:40]} {why}", version)


@rule(
    "LIFE105",
    ERROR,
    "initialize, again",
    page=LIFECYCLE + "#initialization",
    on=Kind.REQUEST,
    about="initialize",
    valid=(
        PING,
        "@ bare\n"
        + ASK % HELLO
        + '< {"id":1,"error":{"code":-32602,"message":"no"}}\n'
        + (ASK % HELLO + ANSWER % HELLO).replace('"id":1', '"id":2'),
    ),
    invalid=((ASK % HELLO + ANSWER % HELLO).replace('"id":1', '"id":9'),),
)
def twice(seen: Seen) -> Iterator[Told]:
    """There is one handshake in a session. Who wants another revision opens another session."""
    if seen.conversation.is_agreed:
        yield Told("initialize in a session that is initialized")
