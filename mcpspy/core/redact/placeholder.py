"""Placeholders of secrets: writing, comparing, and restoring live values.

A secret has the same tag throughout a recording. The tag is a hash under a key that is generated for
the recording and not stored, so secrets cannot be guessed from it. It has 32 bits: two of n secrets share
a tag with a chance of n² / 2³³ (one in 860,000 for a hundred, one in 8,600 for a thousand); they then
merely look equal. To restore a value, the user names its tag, `3f9c01ab`, or its key, `api_key`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from mcpspy.core.jsontools import is_number

TAG = 4
"""Bytes of a tag: eight hex digits."""

MARK = b"[redacted:"
"""Start of every placeholder."""

TEXT_PLACEHOLDER = re.compile(r"\[redacted:([0-9a-f]{8})\]")
PLACEHOLDER = re.compile(rb"\[redacted:([0-9a-f]{8})\]")

DEEPEST = 4
"""Nested JSON strings whose keys are read; below, only tags count."""

_STRING = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"\s*+(:)?|"', re.DOTALL)


def placeholder(secret: bytes, key: bytes) -> bytes:
    """Return the placeholder of a secret under the recording's key; it needs no escapes in JSON."""
    return b"[redacted:%b]" % blake2b(secret, digest_size=TAG, key=key).hexdigest().encode()


def is_placeholder(text: str) -> bool:
    return TEXT_PLACEHOLDER.fullmatch(text) is not None


def untagged(text: str) -> str:
    """Return a text with tags removed: two recordings tag the same secret differently."""
    return TEXT_PLACEHOLDER.sub("[redacted]", text) if "[redacted:" in text else text


def fits(recorded: Any, live: Any) -> bool:
    """Return True if a live value may be the recorded one: a placeholder matches any text or number.

    Otherwise both must be equal as JSON: `1.0` equals `1`, `true` does not. Raises RecursionError if they are
    nested too deeply.
    """
    if isinstance(recorded, str):
        if isinstance(live, str):
            return recorded == live or _fits_text(recorded, live)
        return is_number(live) and is_placeholder(recorded)
    if isinstance(recorded, dict):
        return (
            isinstance(live, dict)
            and recorded.keys() == live.keys()
            and all(fits(item, live[key]) for key, item in recorded.items())
        )
    if isinstance(recorded, list):
        return isinstance(live, list) and len(recorded) == len(live) and all(map(fits, recorded, live))
    if isinstance(recorded, bool) or isinstance(live, bool) or recorded is None:
        return recorded is live
    return bool(recorded == live) and is_number(live)


def _fits_text(recorded: str, live: str) -> bool:
    """Return True if the live text has the text around the placeholders, in order."""
    first, *rest = TEXT_PLACEHOLDER.split(recorded)[::2]
    if not rest or not live.startswith(first):
        return False
    *between, last = rest
    at = len(first)
    for part in between:
        found = live.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(live) - len(last) >= at and live.endswith(last)


def restored(data: bytes, secrets: Mapping[str, str]) -> tuple[bytes, set[str]]:
    """Return a message with live values for placeholders, and the tags that have no value.

    `secrets` maps tags or keys to values. A redacted number is restored as a string.
    """
    missing: set[str] = set()
    if MARK not in data:
        return data, missing
    return _restored(data, secrets, missing, 0), missing


def _restored(data: bytes, secrets: Mapping[str, str], missing: set[str], depth: int) -> bytes:
    from mcpspy.core.redact.text import UnescapedText  # Most importers only recognise placeholders.

    pieces: list[bytes] = []
    key, done = "", 0
    for found in _STRING.finditer(data):
        if found[1] is None:  # Not JSON from here on.
            break
        if found[2]:
            key = UnescapedText(found[1]).text.decode("utf-8", "replace")
        elif MARK in found[1]:
            pieces += (data[done : found.start(1)], _string(found[1], key, secrets, missing, depth))
            done = found.end(1)
    return b"".join([*pieces, data[done:]])


def _string(raw: bytes, key: str, secrets: Mapping[str, str], missing: set[str], depth: int) -> bytes:
    """Return the inside of a JSON string with live values in it."""
    from mcpspy.core.redact.text import UnescapedText

    text = UnescapedText(raw).text
    if depth < DEEPEST and text.lstrip()[:1] in (b"{", b"["):
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            pass
        else:
            inner = _restored(text, secrets, missing, depth + 1)
            quoted = json.dumps(inner.decode("utf-8", "surrogateescape"))[1:-1].encode()
            return raw if inner == text else quoted

    def live(found: re.Match[bytes]) -> bytes:
        tag = found[1].decode()
        value = secrets.get(tag, secrets.get(key))
        if value is None:
            missing.add(tag)
            return found[0]
        return json.dumps(value)[1:-1].encode()

    return PLACEHOLDER.sub(live, raw)
