"""What stands where a secret stood, and how it is compared.

Owns the tag: the same secret has the same one throughout a recording, and none
elsewhere. It is a hash under a key that is made for the recording and not kept,
so nobody can try out what it might stand for. 32 bits: that any two of n
secrets share a tag has a chance of n² / 2³³, one in 860,000 for a hundred
secrets, one in 8,600 for a thousand; then they merely look alike.

Live values in the places of secrets, for a recording that is played again.

Owns which placeholder a person means: by its tag, `3f9c01ab`, or by the key it
stands under, `api_key`; and how deep the value is quoted there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from mcpspy.core.jsontools import is_number
from mcpspy.core.redact.text import UnescapedText

TAG = 4
"""Bytes of a tag: eight hex digits."""

TEXT_PLACEHOLDER = re.compile(r"\[redacted:([0-9a-f]{8})\]")


MARK = b"[redacted:"
"""How a placeholder begins, wherever it stands."""


def placeholder(secret: bytes, key: bytes) -> bytes:
    """Return what stands for a secret in the recording that `key` is of; nothing in it needs an escape in JSON."""
    return b"[redacted:%b]" % blake2b(secret, digest_size=TAG, key=key).hexdigest().encode()


def is_placeholder(text: str) -> bool:
    """Whether a text is a placeholder and nothing else."""
    return TEXT_PLACEHOLDER.fullmatch(text) is not None


def untagged(text: str) -> str:
    """Return a text in which all placeholders are the same: two recordings tag one secret otherwise."""
    return TEXT_PLACEHOLDER.sub("[redacted]", text) if "[redacted:" in text else text


def fits(recorded: Any, live: Any) -> bool:
    """Whether a live value may be what was recorded: a placeholder stands for any text or number.

    Elsewhere both have to be the same as JSON has it: `1.0` is `1`, `true` is
    not. Raises RecursionError if they are nested too deep.
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
    """Whether the text around the placeholders is there, in its order."""
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


PLACEHOLDER = re.compile(rb"\[redacted:([0-9a-f]{8})\]")

DEEPEST = 4
"""Strings in strings whose keys are read; below, tags alone count."""

_STRING = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"\s*+(:)?|"', re.DOTALL)


def restored(data: bytes, secrets: Mapping[str, str]) -> tuple[bytes, set[str]]:
    """Return a message with live values in it, and the tags of the placeholders that no value is known for.

    `secrets` is value by tag or key. A number that was redacted comes back as a string.
    """
    missing: set[str] = set()
    if b"[redacted:" not in data:
        return data, missing
    return _restored(data, secrets, missing, 0), missing


def _restored(data: bytes, secrets: Mapping[str, str], missing: set[str], depth: int) -> bytes:
    pieces: list[bytes] = []
    key, done = "", 0
    for found in _STRING.finditer(data):
        if found[1] is None:  # No JSON from here on.
            break
        if found[2]:
            key = UnescapedText(found[1]).text.decode("utf-8", "replace")
        elif b"[redacted:" in found[1]:
            pieces += (data[done : found.start(1)], _string(found[1], key, secrets, missing, depth))
            done = found.end(1)
    return b"".join([*pieces, data[done:]])


def _string(raw: bytes, key: str, secrets: Mapping[str, str], missing: set[str], depth: int) -> bytes:
    """Return the inside of a string with live values in it."""
    text = UnescapedText(raw).text
    if depth < DEEPEST and text.lstrip()[:1] in (b"{", b"["):
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            pass
        else:
            inner = _restored(text, secrets, missing, depth + 1)
            return (
                raw if inner == text else json.dumps(inner.decode("utf-8", "surrogateescape"))[1:-1].encode()
            )

    def live(found: re.Match[bytes]) -> bytes:
        tag = found[1].decode()
        value = secrets.get(tag, secrets.get(key))
        if value is None:
            missing.add(tag)
            return found[0]
        return json.dumps(value)[1:-1].encode()

    return PLACEHOLDER.sub(live, raw)
