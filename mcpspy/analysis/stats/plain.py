"""A message of which nothing is odd, read from its line in one go.

Owns what is decoded of such a line, and which methods say more than that they
were asked. What does not fit its types is read the long way, by `core.recording.decode`
and `core.protocol.message`; nothing is read that those would read otherwise.
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Raw, Struct, UnsetType, field
from msgspec.json import Decoder

from mcpspy.core.protocol.peers import INTRODUCTIONS
from mcpspy.core.protocol.spec import META, METHODS
from mcpspy.core.session.exchange import SUBSCRIBE

ABSENT = Raw()

PAYLOAD = b',"msg":'
"""What stands before a message that is in its line as it was on the wire; a `}` stands behind it."""

HEAD = 128
"""Bytes in which the head of a frame ends."""


class Meta(Struct, gc=False):
    """What a request says of itself."""

    revision: Raw = field(name=META + "protocolVersion", default=ABSENT)
    """It is of a revision without a handshake (2026-07-28)."""


class Params(Struct, gc=False):
    """What a request is about; not one that goes on with another one (2026-07-28)."""

    name: str = ""
    uri: str = ""
    meta: Meta | None = field(name="_meta", default=None)
    request_state: UnsetType = field(name="requestState", default=UNSET)
    input_responses: UnsetType = field(name="inputResponses", default=UNSET)


class Result(Struct, gc=False):
    """How an answer went; not a question or a task (2026-07-28)."""

    is_error: bool = field(name="isError", default=False)
    result_type: Literal["", "complete"] = field(name="resultType", default="")


class Message(Struct, gc=False):
    """The members of a message, payloads skipped; not of an error."""

    jsonrpc: Literal["2.0"]
    id: int | UnsetType = UNSET
    """0 may have been `-0`, which is another id: pairing goes by the text."""
    method: str = ""
    params: Params | None = None
    result: Result | None = None
    error: UnsetType = UNSET


class Line(Struct, gc=False, forbid_unknown_fields=True):
    """A frame that ended as it should: over stdio, or in an HTTP body that is JSON."""

    t: float
    msg: Message
    side: Literal["client", "server"] = field(name="from")
    stream: str | None = None
    http: int | None = None


decode = Decoder(Line).decode
"""Return the line; raise DecodeError or RecursionError if it does not fit."""

SUBJECTS = {
    name: method.subject for name, method in METHODS.items() if method.subject in Params.__struct_fields__
}
"""Method → the member of `Params` that says what it is about."""

LONG_WAY = frozenset(
    {*INTRODUCTIONS, SUBSCRIBE, "notifications/cancelled", "notifications/initialized"}
    | {name for name, method in METHODS.items() if method.subject and name not in SUBJECTS}
) - {"notifications/progress", "notifications/message"}
"""Methods that say more than that they were asked, or are about something that is not in `Params`."""
