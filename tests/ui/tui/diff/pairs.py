"""Sessions that differ, for tests of the diff screen."""

from __future__ import annotations

import json
from typing import Any

from tests.ui.conftest import CONVERSATION, Said

CALL = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":%s}}'
RESULT = '{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":%s}]}}'
ERROR = '{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"timed out"}}'


def call(number: int, name: str, text: str | None, **arguments: Any) -> list[Said]:
    """Return a call and its response; an error response if `text` is None."""
    request = CALL % (number, name, json.dumps(arguments))
    response = ERROR % number if text is None else RESULT % (number, json.dumps(text))
    return [("client", request.encode()), ("server", response.encode())]


def conversation(wind: int, *, alerts: bool = True, words: str = "a\nb") -> list[Said]:
    """Return a session with a forecast, a text of two lines, and alerts, which may fail."""
    return [
        *CONVERSATION[:2],
        *call(10, "forecast", json.dumps({"wind": wind}), city="Oslo"),
        *call(11, "words", words),
        *call(12, "alerts", "none" if alerts else None),
    ]


OLD, NEW = conversation(12), conversation(15, alerts=False, words="a\nB")
"""Sessions with three changes: the wind, a line of the words, and failing alerts."""
