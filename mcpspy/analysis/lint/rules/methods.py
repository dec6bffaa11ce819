"""Methods: of which revision, whose to send, with an id or without."""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.lint.finding import Kind
from mcpspy.analysis.lint.rule import ERROR, Rules, Told
from mcpspy.analysis.lint.rules.handshake import PING
from mcpspy.analysis.lint.seen import Seen
from mcpspy.core.protocol.message import Notification, Request
from mcpspy.core.protocol.spec import METHODS, MODERN, NOTIFICATION, REQUEST, REVISIONS, SERVER

RULES = Rules()
rule = RULES.rule

_DATED = tuple(
    name
    for name, method in METHODS.items()
    if (method.since > REVISIONS[0] or method.until is not None) and name != "server/discover"
)
"""Methods that not all revisions have; a server of any may be asked for its own."""


@rule(
    "LIFE108",
    ERROR,
    "a method that this revision does not have",
    page="2026-07-28/changelog",
    on=(Kind.REQUEST, Kind.NOTIFICATION),
    about=_DATED,
    valid=(
        PING,
        '> {"id":2,"method":"x/of-an-extension"}\n< {"id":2,"result":{}}',
        '@ 2026-07-28\n> {"id":1,"method":"server/discover"}\n< {"id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}',
    ),
    invalid=(
        '@ 2026-07-28\n> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}',
        '@ 2025-03-26\n< {"id":2,"method":"elicitation/create","params":{"message":"a","requestedSchema":{"type":"object","properties":{}}}}\n> {"id":2,"result":{"action":"decline"}}',
    ),
)
def unknown_method(seen: Seen) -> Iterator[Told]:
    """The method is of another revision: it was taken out, or came later. Names that no revision has are an
    extension's, and nobody's business.
    """
    method, revision = METHODS[seen.method], seen.revision
    if revision is None:
        return
    if seen.side == SERVER and isinstance(seen.what, Request) and revision >= MODERN:
        return  # MOD104 says it.
    if method.since > revision:
        yield Told(f"{seen.method} came with {method.since}; this is {revision}")
    elif method.until is not None and method.until < revision and seen.method != "initialize":
        yield Told(f"{seen.method} was there until {method.until}; this is {revision}")


def _is_the_others(_: Kind, method: str, side: str) -> bool:
    known = METHODS.get(method)
    return known is not None and known.sender not in (side, "either")


@rule(
    "LIFE109",
    ERROR,
    "a method that is the other side's to send",
    page="2025-11-25/schema",
    on=(Kind.REQUEST, Kind.NOTIFICATION),
    only=_is_the_others,
    valid=(PING,),
    invalid=(
        '< {"id":2,"method":"tools/list"}\n> {"id":2,"error":{"code":-32601,"message":"no"}}',
        '> {"method":"notifications/message","params":{"level":"info","data":"a"}}',
    ),
)
def wrong_side(seen: Seen) -> Iterator[Told]:
    """Tools, resources and prompts are asked for by the client; roots, samples and elicitations by the server."""
    yield Told(f"{seen.method} from the {seen.side}: it is the {METHODS[seen.method].sender}'s to send")


def _is_of_the_other_kind(kind: Kind, method: str, _: str) -> bool:
    known = METHODS.get(method)
    return known is not None and known.kind == (NOTIFICATION if kind is Kind.REQUEST else REQUEST)


@rule(
    "LIFE110",
    ERROR,
    "a notification with an id, or a request without",
    page="2025-11-25/basic#messages",
    on=(Kind.REQUEST, Kind.NOTIFICATION),
    only=_is_of_the_other_kind,
    valid=(PING,),
    invalid=(
        '> {"id":5,"method":"notifications/roots/list_changed"}\n< {"id":5,"result":{}}',
        '> {"method":"tools/list"}',
    ),
)
def wrong_kind(seen: Seen) -> Iterator[Told]:
    """A request without an `id` is a notification to its receiver: it is never answered. A notification with one
    waits for an answer that does not come.
    """
    if isinstance(seen.what, Notification):
        yield Told(f"{seen.method} without an id: it will not be answered")
    else:
        yield Told(f"{seen.method} with an id: notifications have none")
