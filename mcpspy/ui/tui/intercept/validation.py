"""An edited message: as text to edit, and what is wrong with it.

Owns the difference between what is no JSON, which has a line and a column, and
what is JSON that the protocol does not have: somebody who tests a peer may want
to send that. Pure.
"""

from __future__ import annotations

import json
from typing import NamedTuple, NoReturn

from msgspec import DecodeError
from msgspec.json import format as lay_out

from mcpspy.core.protocol.message import Malformed, Notification, Request, read_frame
from mcpspy.core.recording.decode import Frame
from mcpspy.core.sanitize import sanitize


class ValidationProblem(NamedTuple):
    """Something that is wrong."""

    text: str
    is_json: bool = True
    """Whether it can be read at all."""


def editable(data: bytes) -> str | None:
    r"""Return a message as text to edit; None if that cannot be: it is not UTF-8.

    JSON is laid out. What a terminal might obey is escaped, as JSON escapes it:
    `\u009b` is the same character.
    """
    try:
        text = lay_out(data, indent=2).decode()
    except (DecodeError, RecursionError):
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return None
    except UnicodeDecodeError:
        return None
    return text.translate(
        {ord(one): f"\\u{ord(one):04x}" for one in set(text) if one != "\n" and sanitize(one) != one}
    )


def troubles(text: str, side: str, original: bytes = b"") -> list[ValidationProblem]:
    """Return what is wrong with a message of this side; `original` is what goes on otherwise."""
    try:
        json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        return [
            ValidationProblem(
                f"no JSON: line {error.lineno}, column {error.colno}: {error.msg}", is_json=False
            )
        ]
    except ValueError as error:
        return [ValidationProblem(f"no JSON: {error}", is_json=False)]
    except RecursionError:
        return [ValidationProblem("nested too deep to be read", is_json=False)]
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return [ValidationProblem("half a character (a lone surrogate) cannot be sent", is_json=False)]
    found: list[str] = []
    for message in read_frame(Frame(0.0, side, data)):
        found += [message.why] if isinstance(message, Malformed) else []
        found += message.flaws
    if not found:
        found += _compared(data, original, side)
    return [ValidationProblem(said) for said in dict.fromkeys(found)]


def request_troubles(text: str) -> list[ValidationProblem]:
    """Return what is wrong with a request that is to be sent: an object of method and params."""
    found = troubles(text, "client")
    if found and not found[0].is_json:
        return found
    said = json.loads(text)
    if not isinstance(said, dict) or not isinstance(said.get("method"), str) or not said["method"]:
        return [ValidationProblem('an object with "method", a text', is_json=False)]
    if not isinstance(said.get("params", {}), dict):
        return [ValidationProblem('"params" has to be an object', is_json=False)]
    others = ", ".join(sanitize(key) for key in said if key not in ("method", "params"))
    return [ValidationProblem(f"left out when it is sent: {others}")] if others else []


def _compared(data: bytes, original: bytes, side: str) -> list[str]:
    """Return what a message does to a conversation that went on with another one."""
    if not original:
        return []
    new, old = _shape(data, side), _shape(original, side)
    if new == old or len(old) != 1:
        return []
    (kind, id_text), *_ = old
    if len(new) == 1 and new[0][0] == kind:
        waits = "the answer goes to nobody" if kind == "request" else "nobody waits for it"
        return [f"its id was {sanitize(id_text or 'none')}: with another one {waits}"]
    return [f"it was a {kind}: whoever sent it may wait for ever"] if kind == "request" else []


def _shape(data: bytes, side: str) -> list[tuple[str, str | None]]:
    kinds = {Request: "request", Notification: "notification"}
    return [
        (kinds.get(type(message), "answer"), getattr(message, "id", None))
        for message in read_frame(Frame(0.0, side, data))
    ]


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
