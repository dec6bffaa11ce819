"""Responses that mcpspy writes: results, errors, and the rejection of a message that is none."""

from __future__ import annotations

import json
from typing import Any

from mcpspy.core.protocol.message import Malformed
from mcpspy.core.protocol.spec import INVALID_REQUEST, PARSE_ERROR

UNREADABLE = ("not JSON", "starts with a byte order mark", "nested too deep", "blank line")


def result(id: bytes, value: Any) -> bytes:  # noqa: A002
    """Return a result; `id` is JSON text."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id, _written(value))


def error(id: bytes, code: int, message: str, data: Any = None) -> bytes:  # noqa: A002
    """Return an error; `id` is JSON text, `null` if it is unknown."""
    value = {"code": code, "message": message, **({"data": data} if data is not None else {})}
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id, _written(value))


def given(id: bytes, member: str, value: Any) -> bytes:  # noqa: A002
    """Return a response with this `result` or `error`; `id` is JSON text."""
    return b'{"jsonrpc":"2.0","id":%b,"%b":%b}' % (id, member.encode(), _written(value))


def rejection(message: Malformed) -> bytes:
    code = PARSE_ERROR if message.why.startswith(UNREADABLE) else INVALID_REQUEST
    return error(b"null", code, message.why[:200])


def _written(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
