"""The notes that say what became of a message.

Owns their fields; which of them there are is in docs/format.md.
"""

from __future__ import annotations

from binascii import b2a_base64

from mcpspy.core.intercept.steps import Fields, Remark
from mcpspy.core.intercept.waiting import Asked
from mcpspy.core.message import AnyMessage, Failure, Malformed, Notification, Request, Result

KIND = "rule"
"""The kind of these notes, whoever asked for the effect."""


def remark(action: str, fields: Fields, lane: object = None) -> Remark:
    """Return the note of an effect; what is empty is left out."""
    return Remark(
        KIND, {"action": action, **{k: v for k, v in fields.items() if v is not None and v != ""}}, lane
    )


def about(message: AnyMessage, asked: Asked | None) -> Fields:
    """Return which message it is."""
    fields: Fields = {"stream": message.frame.stream, "from": message.side}
    if isinstance(message, Request | Result | Failure):
        fields["id"] = message.id
    if isinstance(message, Request | Notification):
        return {**fields, "method": message.method, "subject": message.subject}
    if asked is not None and not isinstance(message, Malformed):
        return {**fields, "method": asked.method, "subject": asked.subject}
    return fields


def about_request(asked: Asked) -> Fields:
    """Return which request it is."""
    return {
        "stream": asked.stream,
        "from": asked.side,
        "id": asked.id,
        "method": asked.method,
        "subject": asked.subject,
    }


def said(name: str, data: bytes, encoded: str = "sent_b64") -> Fields:
    """Return a message's own text under a name; in Base64, under another, if it is not UTF-8."""
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {encoded: b2a_base64(data, newline=False).decode()}
