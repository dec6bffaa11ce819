"""Importer of HTTP Archives (HAR 1.2 specification, J. Odvarko) of browsers, mitmproxy and mcpspy.

In an archive exported by mcpspy, a page is a session, and `stdio://` URLs mean the stdio transport.
"""

from __future__ import annotations

from binascii import Error, a2b_base64
from typing import Any

from msgspec import Struct, field

from mcpspy.core.importers.base import ImportedSession, RecordingLines, read, timestamp
from mcpspy.core.importers.http import LACKS, ImportedExchange, mcp_sessions
from mcpspy.core.protocol.http_headers import Headers
from mcpspy.core.recording.encode import CLIENT, SERVER
from mcpspy.errors import UsageError

NAME = "HAR"

FORMAT = "har"

VERSIONS = ("1.1", "1.2")

STDIO_SCHEME = "stdio://"

UNFINISHED = "no end was recorded"
"""Error that mcpspy exports for an exchange that was in progress at the end of the recording."""

LACKS_STDIO = [
    "the server's command, stderr and exit status",
    "unsolicited responses and lines that are not messages",
]


class _Pair(Struct):
    name: str = ""
    value: str = ""


class _PostData(Struct):
    text: str | None = None
    encoding: str | None = None


class _Request(Struct):
    method: str
    url: str
    headers: list[_Pair] = []
    post_data: _PostData | None = field(name="postData", default=None)


class _Content(Struct):
    text: str | None = None
    encoding: str | None = None
    size: float | None = None


class _Response(Struct):
    status: int | None = None
    headers: list[_Pair] = []
    content: _Content = field(default_factory=_Content)
    error: Any = field(name="_error", default=None)


class _Entry(Struct):
    started: str = field(name="startedDateTime")
    request: _Request
    response: _Response = field(default_factory=_Response)
    time: float | None = None
    timings: dict[str, Any] | None = None
    page: str = field(name="pageref", default="")
    side: Any = field(name="_from", default=CLIENT)
    error: Any = field(name="_error", default=None)


class _Page(Struct):
    id: str = ""
    title: str = ""


class _Creator(Struct):
    name: str = ""


class _Log(Struct):
    version: str
    entries: list[_Entry]
    creator: _Creator = field(default_factory=_Creator)
    pages: list[_Page] = []


class _Archive(Struct):
    log: _Log


class _VersionLog(Struct):
    version: str


class _Version(Struct):
    log: _VersionLog


def sessions(data: bytes) -> list[ImportedSession]:
    """Return one session per MCP server; raise UsageError if there is none."""
    version = read(data, _Version, NAME).log.version
    if version not in VERSIONS:
        raise UsageError(f"unsupported {NAME} {version[:20]!r}", f"mcpspy reads {' and '.join(VERSIONS)}")
    log = read(data, _Archive, f"{NAME} {version}").log
    is_mcpspy = log.creator.name == "mcpspy"
    pages: dict[str, list[_Entry]] = {}
    for entry in log.entries:
        pages.setdefault(entry.page if is_mcpspy else "", []).append(entry)
    titles = {page.id: page.title for page in log.pages}
    found = [each for page, entries in pages.items() for each in _page(page, titles.get(page, ""), entries)]
    if not found:
        raise UsageError(
            f"{NAME} {version}: none of the {len(log.entries)} entries posts JSON-RPC",
            "check that the archive was saved with bodies",
        )
    return found


def _page(page: str, title: str, entries: list[_Entry]) -> list[ImportedSession]:
    """Return the sessions of one page of an mcpspy archive, or of another tool's whole archive."""
    stdio = [entry for entry in entries if page and entry.request.url.startswith(STDIO_SCHEME)]
    if stdio:
        return [_stdio_session(page, title, stdio)]
    found = mcp_sessions(
        [_exchange(entry) for entry in entries], whole=bool(page), format=FORMAT, lacks=LACKS
    )
    for session in found if page else ():
        session.key, session.name = page, title or session.name
    return found


def _stdio_session(page: str, title: str, entries: list[_Entry]) -> ImportedSession:
    lines = RecordingLines(by_time=True)
    for entry in entries:
        exchange = _exchange(entry)
        side = SERVER if entry.side == SERVER else CLIENT
        lines.message(exchange.at, side, exchange.request_body or b"")
        lines.message(exchange.end_at, CLIENT if side == SERVER else SERVER, exchange.response_body or b"")
    return lines.session(format=FORMAT, key=page, name=title, lacks=LACKS_STDIO)


def _exchange(entry: _Entry) -> ImportedExchange:
    at = timestamp(entry.started, NAME)
    took = max(0.0, entry.time or 0.0) / 1000
    receiving = (entry.timings or {}).get("receive")
    rest = receiving / 1000 if isinstance(receiving, int | float) and 0 < receiving / 1000 <= took else 0.0
    request, response = entry.request, entry.response
    content = response.content
    wrong = response.error or entry.error
    wrong = wrong if isinstance(wrong, str) and wrong != UNFINISHED else ""
    disconnected_side, left, _ = wrong.partition(" hung up")
    return ImportedExchange(
        at=at,
        head_at=at + took - rest,
        end_at=at + took,
        method=request.method.upper(),
        url=request.url,
        request=_headers(request.headers),
        request_body=_body(request.post_data.text, request.post_data.encoding) if request.post_data else None,
        status=response.status or None,
        response=_headers(response.headers),
        # Without a text, a size of 0 means an empty body, and any other size a body that was not saved.
        response_body=_body(content.text, content.encoding)
        if content.text is not None or content.size
        else b"",
        error=None if left else disconnected_side or None,
        hung_up=disconnected_side if left else None,
        is_open=entry.error == UNFINISHED,
    )


def _headers(pairs: list[_Pair]) -> Headers:
    return [(pair.name, pair.value) for pair in pairs]


def _body(text: str | None, encoding: str | None) -> bytes | None:
    if text is None:
        return None
    if encoding == "base64":
        try:
            return a2b_base64(text)
        except (Error, ValueError):
            return None
    return text.encode("utf-8", "replace")
