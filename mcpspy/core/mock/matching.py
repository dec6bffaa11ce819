"""What a request asks for, apart from who asks, when, and under which id.

Owns the key that requests are matched by: method, revision, and `params`
without what differs from run to run. `_meta` is the client's own; `requestState`
and `inputResponses` (2026-07-28) say which question is being answered; no
arguments and empty ones are the same call. `cursor` and `taskId` stay: clients
give back what we gave them, and that is the recorded one.

What a plain request asks for, at a glance: what `asked` says of it, for a fifth of the time.

Owns the key of requests of which nothing is odd, recorded or live. Refuses the rest, questions that
are answered and what only a lenient reader takes: of these it says nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

from mcpspy.core.jsontools import Pointer, canonical, canonical_bytes, quickly, without
from mcpspy.core.protocol.message import Request, loads, text
from mcpspy.core.protocol.spec import META, METHODS, MODERN

Key = tuple[str, str | None, str | None, str]
"""Method, revision, question that is answered, canonical params."""

_HANDLED = ("_meta", "requestState", "inputResponses")


class Asked(NamedTuple):
    """A request, as it is matched."""

    method: str
    subject: str | None
    """Which tool, resource, prompt …"""
    version: str | None
    """The revision it says of itself; None in the revisions with a handshake."""
    question: str | None
    """The state it gives back, or the names of the answers it gives; None of a first request."""
    responses: str | None
    """The answers it gives, canonical."""
    params: str

    @property
    def key(self) -> Key:
        """What has to be the same."""
        return self.method, self.version, self.question, self.params

    @property
    def digest(self) -> bytes:
        """The key in sixteen bytes: a recording may have a million."""
        params = self.params.encode("utf-8", "surrogatepass")
        return digest(params, distinction(self.method, self.version, self.question))

    @property
    def about(self) -> str:
        """What a person is told of it."""
        return f"{self.method} {self.subject}" if self.subject else self.method


def distinction(method: str, version: str | None, question: str | None = None) -> bytes:
    """Return what tells keys of the same params apart."""
    return b"\n" + canonical_bytes([method, version or "", "" if question is None else f"={question}"])


def digest(params: bytes, distinction: bytes) -> bytes:
    """Return a key in sixteen bytes; canonical JSON holds no line end, so no two keys make the same text."""
    return blake2b(params + distinction, digest_size=16).digest()


def asked(request: Request, ignored: Iterable[Pointer] = ()) -> Asked:
    """Return what a request asks for; `ignored` are pointers into the message."""
    params = compared(request, ignored)
    try:
        written = canonical(params)
    except RecursionError:
        written = bytes(request.raw_params).decode("utf-8", "replace")
    return Asked(
        request.method,
        request.subject,
        version(request),
        *_question(request),
        written,
    )


def version(request: Request) -> str | None:
    """Return the revision of a request that carries it (from 2026-07-28 on)."""
    revision = request.revision if bytes(request.body.meta) else None
    return revision if revision is not None and revision >= MODERN else None


def compared(request: Request, ignored: Iterable[Pointer] = ()) -> Any:
    """Return the params as they are compared."""
    return comparable(request.params, ignored)


def comparable(params: Any, ignored: Iterable[Pointer]) -> Any:
    """Return decoded params as they are compared."""
    if params is None:
        params = {}
    elif isinstance(params, dict):
        params = {key: value for key, value in params.items() if key not in _HANDLED}
        if params.get("arguments") == {}:
            del params["arguments"]
    for tokens in ignored:
        params = without(params, tokens[1:]) if tokens[1:] else {}
    return params


def whole(request: Request, ignored: Iterable[Pointer] = ()) -> dict[str, Any]:
    """Return all that decides about a match, laid out as in the message, for telling what differs."""
    params = compared(request, ignored)
    body = request.body
    if isinstance(params, dict):
        if bytes(body.request_state):
            params = {**params, "requestState": loads(body.request_state)}
        elif bytes(body.input_responses):
            params = {**params, "inputResponses": loads(body.input_responses)}
        if (revision := version(request)) is not None:
            params = {**params, "_meta": {META + "protocolVersion": revision}}
    return {"method": request.method, "params": params}


def _question(request: Request) -> tuple[str | None, str | None]:
    body = request.body
    state = text(body.request_state)
    if not bytes(body.input_responses):
        return state, None
    responses = loads(body.input_responses)
    if state is None:
        state = ",".join(sorted(responses)) if isinstance(responses, dict) else ""
    try:
        return state, canonical(responses)
    except RecursionError:
        return state, None


_VERSION = META + "protocolVersion"

_SUBJECTS = {name: method.subject for name, method in METHODS.items()}

_apart = lru_cache(maxsize=64)(distinction)


class Wanted(NamedTuple):
    """A plain request, as it is matched."""

    digest: bytes
    """As of `Asked`."""
    subject: str | None
    version: str | None
    token: str | None
    """JSON text of the progress token."""


def is_plain(id: bytes) -> bool:  # noqa: A002
    """Whether the JSON text of an id is the only one of its value."""
    return id.isdigit() or (id[:1] == b'"' and b"\\" not in id)


def glance(method: str, data: bytes, ignored: Collection[Pointer] = ()) -> Wanted | None:
    """Return what a request with these params asks for; None if that takes more than a look."""
    try:
        params = orjson.loads(data) if data else {}
    except ValueError:
        return None
    if not isinstance(params, dict) or "requestState" in params or "inputResponses" in params:
        return None
    version = token = subject = None
    meta = params.pop("_meta", None)
    if meta is not None:
        if not isinstance(meta, dict) or not isinstance(number := meta.get("progressToken", ""), str | int):
            return None
        if isinstance(said := meta.get(_VERSION), str) and said >= MODERN:
            version = said
        if "progressToken" in meta:
            token = orjson.dumps(number).decode()
    if (name := _SUBJECTS.get(method)) is not None:
        subject = params.get(name)
        if subject is not None and not isinstance(subject, str):
            return None
    if not ignored and params.get("arguments") == {}:
        del params["arguments"]
    written = None if ignored else quickly(params)
    if written is None:  # orjson makes floats of integers beyond 64 bits.
        try:
            written = canonical_bytes(comparable(loads(data) if data else {}, ignored))
        except RecursionError:
            return None
    return Wanted(digest(written, _apart(method, version)), subject, version, token)
