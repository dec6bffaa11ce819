"""The text of a response that carries no message, from a server or a proxy in front of it.

`RefusalBody` takes the beginning of its body for the recording, `refusal_words` reads it for people. Sources: RFC 9110,
15; RFC 6749, 5.2 (errors of OAuth); RFC 9457 (problem details).
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import orjson

from mcpspy.core.compression import BodyDecoder, Steps
from mcpspy.core.protocol.http_headers import EVENTS, JSON

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_REFUSAL = 2048
"""Maximum bytes of a body that are recorded."""

MAX_WORDS = 200
"""Maximum characters of the line for people."""

MAX_OAUTH_ERROR = 500
"""Maximum characters of each member of an error of OAuth."""

ACCEPTED = frozenset((202, 204))
"""Statuses by which a server accepts what needs no response (Streamable HTTP, Sending Messages to the Server)."""

_CHALLENGE = re.compile(r'\b(error|error_description)="([^"]*)"')

_LAST_WORD = re.compile(r"""[^\s"'<>,;&{}\[\]()]*\Z""")

_STRING = re.compile(r'"(?:[^"\\]|\\.)*+("?)', re.DOTALL)
"""A string of JSON, and its last quote if it has one."""

_INVISIBLE = re.compile(r"(?is)<(script|style|svg)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)")
_TITLE = re.compile(r"(?is)<title[^>]*>(.*?)(?:</title\s*>|\Z)")
_TAG = re.compile(r"(?s)<[^>]*(?:>|\Z)")


def is_refusal(method: str, status: int, content_type: str) -> bool:
    """Return whether a response of the endpoint is an error, a redirect, or of a type that no message has.

    `content_type` is in lower case, without parameters. A 200 to a DELETE or an OPTIONS carries no message by design.
    """
    if status >= 300:
        return True
    return method in ("GET", "POST") and status not in ACCEPTED and content_type not in (JSON, EVENTS)


class RefusalBody:
    """The beginning of a body that is not a message."""

    def __init__(self, encoding: str | None) -> None:
        self._decoder = BodyDecoder(encoding)
        self._kept = b""
        self._is_cut = False
        self._size = 0

    def feed(self, piece: bytes) -> Steps[None]:
        """Return the steps that take a piece of the body as it was sent."""
        return Steps(self._feed(piece), are_long=self._decoder.has_long_steps and not self._is_cut)

    def _feed(self, piece: bytes) -> Iterator[None]:
        self._size += len(piece)
        if self._is_cut:
            return
        for data in self._decoder.steps(piece):
            self._kept += data[: MAX_REFUSAL + 1 - len(self._kept)]
            if len(self._kept) > MAX_REFUSAL:
                self._is_cut = True
                return
            yield

    def fields(self) -> dict[str, Any]:
        """Return the fields of the note `http-end`; none if the body was empty."""
        if not self._size:
            return {}
        # A character that is cut off is left out; other bytes that are not UTF-8 are replaced.
        text = getincrementaldecoder("utf-8")("replace").decode(self._kept[:MAX_REFUSAL], not self._is_cut)
        if self._is_cut:  # A secret of which a part is missing cannot be recognised.
            text = _without_open_string(_LAST_WORD.sub("", text))
        return {"body": text, "size": self._size, **({"cut": True} if self._is_cut else {})}


def _without_open_string(text: str) -> str:
    """Return the beginning of a text of JSON without a string that is cut off; any other text unchanged."""
    if text.lstrip()[:1] not in ("{", "["):
        return text
    return next((text[: found.start()] for found in _STRING.finditer(text) if not found[1]), text)


def oauth_error(body: bytes, location: str | None = None) -> dict[str, str]:
    """Return `error` and `error_description` of a refused step of OAuth; no other member, which may be a secret.

    They are in the body, or in the query or fragment to which a refused sign-in redirects (RFC 6749, 4.1.2.1, 4.2.2.1).
    """
    members = _json(body)
    if location is not None:
        members = dict(parse_qsl(location.partition("?")[2].replace("#", "&") or location.partition("#")[2]))
    if not isinstance(members, dict):
        return {}
    found = {name: members.get(name) for name in ("error", "error_description")}
    return {name: text[:MAX_OAUTH_ERROR] for name, text in found.items() if isinstance(text, str)}


def challenge_words(challenge: str) -> str:
    """Return the error of a `WWW-Authenticate` header in words; empty if it has none (RFC 6750, 3)."""
    found = dict(_CHALLENGE.findall(challenge))
    return ": ".join(found[name] for name in ("error", "error_description") if found.get(name))[:MAX_WORDS]


def refusal_words(body: str | bytes) -> str:
    """Return one line for people from a body: its error, its title and text, or its beginning. Not sanitized."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    text = text[: 2 * MAX_REFUSAL].strip()
    if text in ("{}", "[]"):
        return ""
    if text[:1] in ("{", "["):
        text = _error_in(_json(text.encode("utf-8", "replace"))) or text
    elif text[:1] == "<":
        text = _html_text(text)
    text = " ".join(text.split())
    return text if len(text) <= MAX_WORDS else text[: MAX_WORDS - 1] + "…"


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except ValueError:
        return None


def _error_in(document: Any) -> str:
    """Return the text of an error in JSON, in one of the usual shapes; empty if it has none of them."""
    if isinstance(document, list):
        return "; ".join(filter(None, map(_error_in, document[:3])))
    if isinstance(document, str):
        return document
    if not isinstance(document, dict):
        return ""
    # OAuth: `error` and `error_description`; RFC 9457: `title` and `detail`; FastAPI: `detail`, with `msg`.
    names = ("error", "title", "message", "msg", "error_description", "detail", "reason")
    parts = [_error_in(document.get(name)) for name in names]
    return ": ".join(dict.fromkeys(filter(None, parts)))


def _html_text(page: str) -> str:
    """Return the title and the text of a page, without markup."""
    from html import unescape  # Its table of names takes long to import, and few refusals are pages.

    page = _INVISIBLE.sub(" ", page)
    found = _TITLE.search(page)
    title, text = ("" if found is None else found[1]), _TITLE.sub(" ", page)
    title, text = (" ".join(unescape(_TAG.sub(" ", part)).split()) for part in (title, text))
    return text if text.startswith(title) else f"{title}: {text}" if text else title
