"""Key by which a live request is matched with recorded ones.

The key consists of method, revision, and the `params` that do not differ from run to run. `_meta` belongs to the
client and is not compared; of `inputResponses` (2026-07-28) only the names are part of the key, because the selector
compares the answers; `requestState` is sealed by the server and not compared; missing and empty arguments are the same
call. `cursor` and `taskId` are compared, because clients return the recorded values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import orjson
from msgspec import Struct

from mcpspy.core.jsontools import Pointer, canonical, canonical_bytes, canonical_fast, without
from mcpspy.core.protocol.message import Request, loads
from mcpspy.core.protocol.spec import META, METHODS, MODERN

_VERSION = META + "protocolVersion"

_SUBJECTS = {name: method.subject for name, method in METHODS.items()}

_NOT_COMPARED = ("_meta", "requestState", "inputResponses")


class RequestKey(Struct, frozen=True, gc=False):
    """The parts of a request that are needed to match and answer it."""

    method: str
    subject: str | None
    version: str | None
    """Revision in the request; None in revisions with a handshake."""
    question: str | None
    """The names of the `inputResponses`; None if the request answers no question."""
    responses: str | None
    params: bytes
    digest: bytes
    """Hash of method, version, question and params: 16 bytes, because a recording may have a million requests."""
    token: str | None
    meta: dict[str, Any]

    @property
    def request(self) -> tuple[str, str | None, str | None]:
        """All compared parts except the params."""
        return self.method, self.version, self.question

    @property
    def about(self) -> str:
        return f"{self.method} {self.subject}" if self.subject else self.method


def request_key(request: Request, ignored: Iterable[Pointer] = ()) -> RequestKey:
    """Return the key of any request; `ignored` are pointers into the message."""
    version, params = modern_version(request), request.params
    meta, _, given = (params.get(name) if isinstance(params, dict) else None for name in _NOT_COMPARED)
    compared = _comparable(params, ignored)
    question = responses = None
    canonical_params = canonical_bytes(compared)
    if bytes(request.body.input_responses) or bytes(request.body.request_state):
        question = ",".join(sorted(given)) if isinstance(given, dict) else ""
        responses = canonical(given)
    return RequestKey(
        *(request.method, request.subject, version, question, responses, canonical_params),
        _digest(canonical_params, request.method, version, question),
        request.progress_token if meta else None,
        meta if isinstance(meta, dict) else {},
    )


def plain_key(method: str, data: bytes, ignored: Collection[Pointer] = ()) -> RequestKey | None:
    """Return the key of a plain request in a fifth of the time of `request_key`; None if its params are not plain.

    `data` is the message. Answers to questions, and JSON that only a lenient parser accepts, are not plain.
    """
    try:
        params = orjson.loads(data).get("params", {})
    except ValueError:
        return None
    if not isinstance(params, dict) or "requestState" in params or "inputResponses" in params:
        return None
    version = token = subject = None
    meta = params.pop("_meta", None)
    if meta is not None:
        if not isinstance(meta, dict) or not isinstance(number := meta.get("progressToken", ""), (str, int)):
            return None
        if isinstance(revision := meta.get(_VERSION), str) and revision >= MODERN:
            version = revision
        if "progressToken" in meta:
            token = orjson.dumps(number).decode()
    if (name := _SUBJECTS.get(method)) is not None:
        subject = params.get(name)
        if subject is not None and not isinstance(subject, str):
            return None
    if ignored or params.get("arguments") == {}:
        params = _comparable(params, ignored)
    canonical_params = canonical_fast(params)
    if canonical_params is None:  # orjson reads integers beyond 64 bits as floats.
        canonical_params = canonical_bytes(_comparable(loads(data)["params"], ignored))
    digest = blake2b(canonical_params + _context(method, version), digest_size=16).digest()
    return RequestKey(method, subject, version, None, None, canonical_params, digest, token, meta or {})


def modern_version(request: Request) -> str | None:
    """Return the revision in a request (2026-07-28 and later); None if the request has none."""
    revision = request.revision if bytes(request.body.meta) else None
    return revision if revision is not None and revision >= MODERN else None


def compared_request(request: Request, ignored: Iterable[Pointer] = ()) -> dict[str, Any]:
    """Return the compared parts of a request, structured like the message, to report differences."""
    params, body = _comparable(request.params, ignored), request.body
    if isinstance(params, dict):
        if bytes(body.input_responses):
            params["inputResponses"] = loads(body.input_responses)
        if (revision := modern_version(request)) is not None:
            params["_meta"] = {_VERSION: revision}
    return {"method": request.method, "params": params}


def _comparable(params: Any, ignored: Iterable[Pointer]) -> Any:
    """Reduce newly decoded params to the compared parts, in place."""
    if params is None:
        params = {}
    elif isinstance(params, dict):
        for name in _NOT_COMPARED:
            if name in params:
                del params[name]
        if params.get("arguments") == {}:
            del params["arguments"]
    for tokens in ignored:
        params = without(params, tokens[1:]) if tokens[1:] else {}
    return params


def _digest(params: bytes, method: str, version: str | None, question: str | None = None) -> bytes:
    """Return a hash of 16 bytes; canonical JSON has no line ends, so two keys never form the same text."""
    text = params + _context(method, version)
    if question is not None:
        text += b"=" + question.encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=16).digest()


@lru_cache(maxsize=64)
def _context(method: str, version: str | None) -> bytes:
    return f"\n{(method, version)!r}".encode()
