"""Messages as text to edit, and the problems of an edited text. Pure.

Text that is not JSON is sent only if the user confirms. JSON that violates the protocol only causes a warning: a user
who tests a peer may want to send it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import NamedTuple, NoReturn

from msgspec import DecodeError
from msgspec.json import format as lay_out

from mcpspy.core.protocol.message import Malformed, Notification, Request, read_frame
from mcpspy.core.recording.decode import Frame
from mcpspy.core.sanitize import hidden_characters, sanitize


class ValidationProblem(NamedTuple):
    text: str
    is_json: bool = True
    """False if the text cannot be parsed, or cannot be sent as a request."""
    is_fatal: bool = False
    """True if the session would refuse the text: an id cannot be put into it."""


def editable(data: bytes) -> str | None:
    r"""Return a message as text to edit, indented if it is JSON; None if it is not UTF-8.

    Characters that a terminal might interpret are escaped, as `\u009b`.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    with suppress(DecodeError, RecursionError):
        text = lay_out(text, indent=2)
    hidden = {*hidden_characters(text), *set(text) & set("\t\r\u2028\u2029")}
    return text.translate({ord(one): _escaped(one) for one in hidden})


def _escaped(character: str) -> str:
    """Return a character as escapes of JSON, which has no more than four digits in each."""
    data = character.encode("utf-16-be")
    return "".join(f"\\u{data[at : at + 2].hex()}" for at in range(0, len(data), 2))


def problems(text: str, side: str, original: bytes = b"") -> list[ValidationProblem]:
    """Return the problems of a message from this side; `original` is the message it replaces."""
    try:
        json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        return [
            ValidationProblem(
                f"invalid JSON: line {error.lineno}, column {error.colno}: {error.msg}", is_json=False
            )
        ]
    except ValueError as error:
        return [ValidationProblem(f"invalid JSON: {error}", is_json=False)]
    except RecursionError:
        return [ValidationProblem("invalid JSON: nested too deeply", is_json=False)]
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return [ValidationProblem("contains a lone surrogate, which UTF-8 cannot encode", is_json=False)]
    found: list[str] = []
    for message in read_frame(Frame(0.0, side, data)):
        found += [message.why] if isinstance(message, Malformed) else []
        found += message.flaws
    if not found:
        found += _compared(data, original, side)
    return [ValidationProblem(label) for label in dict.fromkeys(found)]


def request_problems(text: str) -> list[ValidationProblem]:
    """Return the problems of a request to be sent."""
    found = problems(text, "client")
    if found and not found[0].is_json:
        return [found[0]._replace(is_fatal=True)]
    fields = json.loads(text)
    if not isinstance(fields, dict) or not isinstance(fields.get("method"), str) or not fields["method"]:
        why = 'not a request: use an object with a "method" string'
        return [ValidationProblem(why, is_json=False, is_fatal=True)]
    return found + (
        [] if isinstance(fields.get("params", {}), dict) else [ValidationProblem('"params" is not an object')]
    )


def _compared(data: bytes, original: bytes, side: str) -> list[str]:
    """Return the problems that arise if the message replaces the original."""
    if not original:
        return []
    new, old = _shape(data, side), _shape(original, side)
    if new == old or len(old) != 1:
        return []
    (kind, id_text), *_ = old
    if len(new) == 1 and new[0][0] == kind:
        return [f"id changed (was {sanitize(id_text or 'none')}): the response will not match its request"]
    return ["was a request: its sender may wait forever for the response"] if kind == "request" else []


def _shape(data: bytes, side: str) -> list[tuple[str, str | None]]:
    kinds = {Request: "request", Notification: "notification"}
    return [
        (kinds.get(type(message), "response"), getattr(message, "id", None))
        for message in read_frame(Frame(0.0, side, data))
    ]


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not allowed")
