"""The JSON Pointer of a line resolves to its value."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given

from mcpspy.ui.model.body import BodyLines
from mcpspy.ui.tui.detail.document import Outline, pointer, sanitize_lines, value
from tests.ui.tui.detail.test_document_json import VALUES, body_of


def resolved(document: Any, path: str) -> Any:
    """Return the value of a JSON Pointer (RFC 6901)."""
    for part in path.split("/")[1:]:
        name = part.replace("\\n", "\n").replace("~1", "/").replace("~0", "~")
        document = document[int(part)] if isinstance(document, list) else document[name]
    return document


@given(VALUES.filter(lambda value: "\\\\n" not in json.dumps(value)))
def test_the_path_of_every_line_resolves_to_its_value(document: Any) -> None:
    body = body_of(document)
    outline = Outline(body)

    for line in range(len(body)):
        assert json.loads(value(outline, line)) == resolved(document, pointer(outline, line))


def test_a_value_is_unchanged_from_the_wire() -> None:
    outline = Outline(BodyLines(b'{"a": 1E5, "b": [ 1.0,2 ], "s": "\\u00e9"}'))

    assert [value(outline, line) for line in (0, 1, 2, 5, 6)] == [
        b'{"a":1E5,"b":[1.0,2],"s":"\\u00e9"}',
        b"1E5",
        b"[1.0,2]",
        b"[1.0,2]",
        b'"\\u00e9"',
    ]


def test_duplicate_keys_have_their_own_values() -> None:
    outline = Outline(BodyLines(b'{"a":1,"a":2}'))

    assert [(pointer(outline, line), value(outline, line)) for line in (1, 2)] == [("/a", b"1"), ("/a", b"2")]


def test_copied_text_is_sanitized() -> None:
    assert sanitize_lines("a\tb\n\x1b[2J\u202e") == "a\tb\n\\x1b[2J\\u202e"
