"""Parser of viewer commands (docs/control.md).

Every deviation from the format raises CommandError: a misread command could send a message that the user did not
intend.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from mcpspy.core.intercept.actions import CommandError, Fields
from mcpspy.core.jsontools import canonical_bytes, json_parts, one_line
from mcpspy.core.protocol.http_headers import Headers, header_flaw
from mcpspy.core.protocol.message import loads
from mcpspy.core.protocol.spec import CLIENT, SERVER, other
from mcpspy.core.query.parser import Query, QueryError, parse
from mcpspy.core.regex import AllowUnsafe, refuse
from mcpspy.core.rules.edit import to_json
from mcpspy.errors import McpspyError

HOOKS = ("request", "response", "notification", "http_request", "http_response", "stderr")
"""The hooks for which the script process gets messages or lines."""


class ListCommand(NamedTuple):
    """Request the state of interception."""


class InterceptCommand(NamedTuple):
    """Hold messages that match the query; None stops holding."""

    query: Query | None


class ReleaseCommand(NamedTuple):
    """Release the held messages with these tickets, or all for None; `data` replaces the message."""

    tickets: list[int] | None
    data: bytes | None = None


class DropCommand(NamedTuple):
    ticket: int


class AnswerCommand(NamedTuple):
    ticket: int
    member: bytes
    value: Any


class SendCommand(NamedTuple):
    side: str
    method: str
    params: dict[str, Any] | None
    stream: str | None
    is_request: bool
    data: bytes | None = None
    """The message as one line of JSON, instead of method and params; without its final id."""


class ScriptDecision(NamedTuple):
    """Decision of the scripts on a message, or on one message of a batch; by default it is forwarded unchanged."""

    script: str = ""
    data: bytes | None = None
    """Replacement of the message."""
    member: bytes = b""
    """`result` or `error`, if mcpspy responds in the peer's place."""
    value: object = None
    is_dropped: bool = False
    delay: float = 0.0
    is_held: bool = False
    tags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    failures: tuple[Fields, ...] = ()
    """`script` and `failed` of each hook that failed."""
    headers: Headers | None = None
    """All headers of a changed HTTP head."""

    @property
    def own_notes(self) -> list[tuple[str, Fields]]:
        """The actions and fields of the notes that do not depend on what is decided on."""
        return [
            *(("script", failure) for failure in self.failures),
            *(("tag", {"tag": tag}) for tag in self.tags),
            *(("note", {"text": text}) for text in self.notes),
        ]


class ScriptsCommand(NamedTuple):
    """State of the script process: connected, ready (`hooks`), or failed (`failed`)."""

    token: str
    hooks: frozenset[str] | None
    timeout: float
    failed: str
    script: str
    """Name of the script that failed."""
    is_final: bool
    """True if the scripts cannot be loaded: the process is not started again."""


class DecideCommand(NamedTuple):
    ticket: int
    decisions: list[ScriptDecision]


class NoteCommand(NamedTuple):
    script: str
    text: str


Command: TypeAlias = (
    ListCommand
    | InterceptCommand
    | ReleaseCommand
    | DropCommand
    | AnswerCommand
    | SendCommand
    | ScriptsCommand
    | DecideCommand
    | NoteCommand
)


def parse_command(fields: Fields, allow_unsafe: AllowUnsafe = refuse) -> Command:
    name = fields.get("order")
    reader = _PARSERS.get(name) if isinstance(name, str) else None
    if reader is None:
        raise CommandError(f"unknown order {_quoted(name)} (use {', '.join(_PARSERS)})")
    keys, read = reader
    for key in fields:
        if key not in keys and key not in ("n", "order"):
            raise CommandError(f"{name}: unknown key {_quoted(key)}")
    return read(fields, allow_unsafe)


def _hold(fields: Fields, allow_unsafe: AllowUnsafe) -> InterceptCommand:
    text = fields.get("query", "")
    if text is None:
        return InterceptCommand(None)
    if not isinstance(text, str):
        raise CommandError("hold: query must be a string or null")
    try:
        return InterceptCommand(parse(text, allow_unsafe=allow_unsafe))
    except QueryError as error:
        raise CommandError(f"hold: {error} (column {error.start + 1})") from None
    except McpspyError as error:  # The settings, which may allow the regular expression, are invalid.
        raise CommandError(f"hold: {error}") from None


def _release(fields: Fields, _allow_unsafe: AllowUnsafe) -> ReleaseCommand:
    if "tickets" in fields:
        tickets = fields["tickets"]
        if "ticket" in fields or "message" in fields or "text" in fields:
            raise CommandError("release: message and text need a single ticket, not tickets")
        if tickets == "all":
            return ReleaseCommand(None)
        if not isinstance(tickets, list) or not all(map(_is_number, tickets)):
            raise CommandError('release: tickets must be a list of numbers or "all"')
        return ReleaseCommand(tickets)
    ticket = _ticket(fields)
    if "message" in fields and "text" in fields:
        raise CommandError("release: message and text exclude each other")
    if "message" in fields:
        if not isinstance(fields["message"], dict | list):
            raise CommandError("release: message must be an object or an array of objects")
        return ReleaseCommand([ticket], to_json(fields["message"]))
    if "text" in fields:
        return ReleaseCommand([ticket], _line("release", fields["text"]))
    return ReleaseCommand([ticket])


def _line(name: str, text: object) -> bytes:
    """Return a message as one line; JSON may have several lines."""
    if not isinstance(text, str) or not text.strip():
        hint = " (use drop to discard the message)" if name == "release" else ""
        raise CommandError(f"{name}: text must be a non-empty string{hint}")
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise CommandError(f"{name}: text contains a lone surrogate") from None
    if b"\n" not in data and b"\r" not in data:
        return data
    try:
        json_parts(data)
    except ValueError as error:
        raise CommandError(f"{name}: text has several lines but is not JSON: {error}") from None
    return one_line(data).strip()


def _answer(fields: Fields, _allow_unsafe: AllowUnsafe) -> AnswerCommand:
    ticket = _ticket(fields)
    if ("result" in fields) == ("error" in fields):
        raise CommandError("answer: exactly one of result and error is required")
    if "result" in fields:
        if not isinstance(fields["result"], dict):
            raise CommandError("answer: result must be an object")
        return AnswerCommand(ticket, b"result", fields["result"])
    error = fields["error"]
    if (
        not isinstance(error, dict)
        or not _is_number(error.get("code"))
        or not isinstance(error.get("message"), str)
    ):
        raise CommandError("answer: error must be an object with an integer code and a string message")
    return AnswerCommand(ticket, b"error", error)


def _send(fields: Fields, _allow_unsafe: AllowUnsafe, *, is_request: bool) -> SendCommand:
    name, method, params = fields["order"], fields.get("method"), fields.get("params")
    to, stream = fields.get("to", SERVER), fields.get("stream")
    if to not in (CLIENT, SERVER):
        raise CommandError(f"{name}: to must be client or server")
    if stream is not None and not isinstance(stream, str):
        raise CommandError(f"{name}: stream must be a string")
    if "text" in fields:
        if "method" in fields or "params" in fields:
            raise CommandError(f"{name}: text excludes method and params")
        data = _line(name, fields["text"])
        return SendCommand(
            other(to), _method(name, data, is_request=is_request), None, stream, is_request, data
        )
    if not isinstance(method, str) or not method:
        raise CommandError(f"{name}: method must be a non-empty string")
    if params is not None and not isinstance(params, dict):
        raise CommandError(f"{name}: params must be an object")
    return SendCommand(other(to), method, params, stream, is_request)


def _scripts(fields: Fields, _allow_unsafe: AllowUnsafe) -> ScriptsCommand:
    token, hooks, timeout = fields.get("token"), fields.get("hooks"), fields.get("timeout", 0.0)
    if not isinstance(token, str) or not isinstance(timeout, int | float):
        raise CommandError("scripts: token must be a string, and timeout a number")
    if hooks is not None and not (isinstance(hooks, list) and all(hook in HOOKS for hook in hooks)):
        raise CommandError(f"scripts: hooks must be a list of {', '.join(HOOKS)}")
    known = None if hooks is None else frozenset(hooks)
    failed = " ".join(str(fields.get("failed", "")).split())
    script = str(fields.get("script", ""))
    return ScriptsCommand(token, known, timeout, failed, script, fields.get("final") is True)


def _decide(fields: Fields, _allow_unsafe: AllowUnsafe) -> DecideCommand:
    ticket, decisions = _ticket(fields), fields.get("decisions", [])
    if not isinstance(decisions, list) or not all(isinstance(each, dict) for each in decisions):
        raise CommandError("decide: decisions must be a list of objects")
    return DecideCommand(ticket, [_decision(each) for each in decisions])


def _decision(fields: Fields) -> ScriptDecision:
    member, value = b"", None
    if "result" in fields or "error" in fields:
        name = "result" if "result" in fields else "error"
        _, member, value = _answer({"order": "decide", "ticket": 0, name: fields[name]}, refuse)
    delay = fields.get("delay", 0.0)
    if not isinstance(delay, int | float) or not 0 <= delay < float("inf"):
        raise CommandError("decide: delay must be a number of seconds")
    return ScriptDecision(
        script=str(fields.get("script", "")),
        data=_line("decide", fields["text"]) if "text" in fields else None,
        member=member,
        value=value,
        is_dropped=fields.get("drop") is True,
        delay=delay,
        is_held=fields.get("hold") is True,
        tags=_texts(fields, "tags"),
        notes=_texts(fields, "notes"),
        failures=_failures(fields.get("failures", [])),
        headers=_headers(fields["headers"]) if "headers" in fields else None,
    )


def _texts(fields: Fields, key: str) -> tuple[str, ...]:
    found = fields.get(key, [])
    if not isinstance(found, list):
        raise CommandError(f"decide: {key} must be a list of texts")
    return tuple(map(str, found))


def _failures(found: object) -> tuple[Fields, ...]:
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise CommandError("decide: failures must be a list of objects")
    return tuple({key: str(each.get(key, "")) for key in ("script", "failed")} for each in found)


def _headers(pairs: object) -> Headers:
    if not isinstance(pairs, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise CommandError("decide: headers must be a list of pairs of name and value")
    headers = [(str(name), str(value)) for name, value in pairs]
    for pair in headers:
        if why := header_flaw(*pair):
            raise CommandError(f"decide: {why}")
    return headers


def _note(fields: Fields, _allow_unsafe: AllowUnsafe) -> NoteCommand:
    return NoteCommand(str(fields.get("script", "")), str(fields.get("text", "")))


def _method(name: str, data: bytes, *, is_request: bool) -> str:
    """Return the method of a request or notification in raw JSON."""
    try:
        parts = json_parts(data).parts
    except ValueError as error:
        raise CommandError(f"{name}: text is not JSON: {error}") from None
    members = {loads(key): value for key, value in parts if key}
    method = loads(members.get("method", b""))
    if not isinstance(method, str) or not method:
        raise CommandError(f"{name}: text must be an object with a method")
    if "id" in members and not is_request:
        raise CommandError("notify: text has an id (a notification has none)")
    return method


def _ticket(fields: Fields) -> int:
    ticket = fields.get("ticket")
    if not _is_number(ticket):
        raise CommandError(f"{fields['order']}: ticket must be the number of a held message")
    assert isinstance(ticket, int)
    return ticket


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _quoted(value: object) -> str:
    return canonical_bytes(value).decode("utf-8", "replace")[:80]


_SEND_KEYS = ("to", "method", "params", "text", "stream")

_PARSERS: dict[str, tuple[tuple[str, ...], Callable[[Fields, AllowUnsafe], Command]]] = {
    "list": ((), lambda *_: ListCommand()),
    "hold": (("query",), _hold),
    "release": (("ticket", "tickets", "message", "text"), _release),
    "drop": (("ticket",), lambda fields, _: DropCommand(_ticket(fields))),
    "answer": (("ticket", "result", "error"), _answer),
    "request": (_SEND_KEYS, partial(_send, is_request=True)),
    "notify": (_SEND_KEYS, partial(_send, is_request=False)),
    "scripts": (("token", "hooks", "timeout", "failed", "script", "final"), _scripts),
    "decide": (("ticket", "decisions"), _decide),
    "note": (("script", "text"), _note),
}
