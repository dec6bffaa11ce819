"""Members that HAR 1.2 requires. An unknown time or size is -1 where HAR allows that, otherwise 0."""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

UNKNOWN = -1

_CODES = {
    200: "OK",
    202: "Accepted",
    204: "No Content",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    415: "Unsupported Media Type",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
}
"""RFC 9110 reason phrases; a recording has none."""


def asked(method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> dict[str, Any]:
    """Return the request of an entry; None is a missing body, not an empty one."""
    query = url.partition("#")[0].partition("?")[2]
    request: dict[str, Any] = {
        "method": method,
        "url": url,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _pairs(headers),
        "queryString": [
            {"name": name, "value": value} for name, value in parse_qsl(query, keep_blank_values=True)
        ],
        "headersSize": UNKNOWN,
        "bodySize": len(body or b""),
    }
    if body is not None:
        text, encoding = _text(body)
        request["postData"] = {"mimeType": headers.get("content-type", ""), "text": text}
        if encoding:
            request["postData"]["comment"] = f"not UTF-8: in {encoding}"
    return request


def answered(
    status: int, phrase: str | None, headers: Mapping[str, str], body: bytes, *, size: int | None = None
) -> dict[str, Any]:
    """Return the response of an entry. A `phrase` of None is looked up; `size` replaces the body's size."""
    text, encoding = _text(body)
    content: dict[str, Any] = {"size": len(body), "mimeType": headers.get("content-type", "")}
    if body:
        content |= {"text": text, **({"encoding": encoding} if encoding else {})}
    return {
        "status": status,
        "statusText": _CODES.get(status, "") if phrase is None else phrase,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _pairs(headers),
        "content": content,
        "redirectURL": headers.get("location", ""),
        "headersSize": UNKNOWN,
        "bodySize": len(body) if size is None else size,
    }


def timed(wait: float, receive: float) -> dict[str, Any]:
    """Return the times of an entry, given in seconds: until the response headers, then until the end."""
    waited, received = (round(max(seconds, 0.0) * 1000, 3) for seconds in (wait, receive))
    return {
        "time": round(waited + received, 3),
        "cache": {},
        "timings": {
            "blocked": UNKNOWN,
            "dns": UNKNOWN,
            "connect": UNKNOWN,
            "ssl": UNKNOWN,
            "send": 0,
            "wait": waited,
            "receive": received,
        },
    }


def _pairs(headers: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in headers.items()]


def _text(body: bytes) -> tuple[str, str]:
    """Return bytes as text, and the encoding if it is not UTF-8."""
    try:
        return body.decode(), ""
    except UnicodeDecodeError:
        return b2a_base64(body, newline=False).decode(), "base64"
