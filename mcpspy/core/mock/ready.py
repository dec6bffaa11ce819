"""The short way from a request to its answer.

Owns the requests of which nothing is odd and that were answered with one message and nothing besides:
nearly all of a session, at a quarter of what any message takes. Refuses the rest, and what the server
keeps in mind of a client. That goes the way of `conversation`.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import DecodeError, Raw, Struct
from msgspec.json import Decoder

from mcpspy.core.canonical import Pointer
from mcpspy.core.mock.choice import Choice
from mcpspy.core.mock.glance import glance, is_plain
from mcpspy.core.rewrite import one_line, replaced

_KEPT = "logging/setLevel"
"""The request that the server keeps in mind."""


class _Asking(Struct, gc=False):
    """The members of a request."""

    jsonrpc: str
    id: Raw
    method: str
    params: Raw = Raw(b"")


_decode = Decoder(_Asking).decode


class Ready(NamedTuple):
    """The answer to a request."""

    id: bytes
    """The request's, JSON text."""
    data: bytes


def ready(data: bytes, choice: Choice, ignored: tuple[Pointer, ...]) -> Ready | None:
    """Return what is answered to a line or body; None if that takes more than a look, and nothing was done."""
    try:
        asking = _decode(data)
    except (DecodeError, RecursionError):
        return None
    id = bytes(asking.id)  # noqa: A001
    if asking.jsonrpc != "2.0" or asking.method == _KEPT or not (is_plain(id) and id.isascii()):
        return None
    wanted = glance(asking.method, bytes(asking.params), ignored)
    answer = None if wanted is None else choice.plain_answer(wanted.digest)
    return None if answer is None else Ready(id, replaced(one_line(answer), ("id",), id))
