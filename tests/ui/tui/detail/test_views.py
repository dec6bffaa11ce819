"""The four views of a message."""

from __future__ import annotations

import pytest

from mcpspy.ui.tui.detail.document import Document, DocumentPart
from mcpspy.ui.tui.detail.views import HEADERS, NO_HTTP, PRETTY, RAW, TEXT, VIEWS, renewed, sections, stacked

REQUEST = DocumentPart("request", [("asks", "title")], b'{"id":1,"method":"ping"}')
RESPONSE = DocumentPart(
    "response", [("answers", "title")], b'{"id":1,"result":{"content":[{"type":"text","text":"a"}]}}'
)


@pytest.mark.parametrize("view", [PRETTY, TEXT, RAW])
def test_each_part_begins_with_its_header(view: str) -> None:
    request, response = sections(Document([REQUEST, RESPONSE]), view)

    assert request[0].head == REQUEST.head
    assert response[0].head == RESPONSE.head
    assert [*stacked([request, response])[len(request)].head] == [("", None), *RESPONSE.head]


def test_headers_are_the_lines_of_the_exchange() -> None:
    assert sections(Document([REQUEST], [("POST /mcp", None)]), HEADERS)[0][0].head == [("POST /mcp", None)]
    assert sections(Document([REQUEST]), HEADERS)[0][0].head == NO_HTTP


def test_raw_is_the_bytes_and_pretty_their_layout() -> None:
    document = Document([REQUEST])

    assert sections(document, RAW)[0][0].source.text == REQUEST.data
    assert sections(document, PRETTY)[0][0].source[1] == '  "id": 1,'


def test_notes_and_invalid_json_are_text() -> None:
    noise = sections(Document([DocumentPart("message", [], b"DEBUG: hi")]), PRETTY)[0][0]
    (note,) = sections(Document([DocumentPart("note", [], b"one\ntwo")]), TEXT)[0]

    assert (noise.folds, noise.source[0]) == (None, "DEBUG: hi")
    assert (note.source[0], note.source[1]) == ("one", "two")


@pytest.mark.parametrize("view", VIEWS)
def test_a_new_response_leaves_the_request_unchanged(view: str) -> None:
    before, answered = Document([REQUEST]), REQUEST._replace(head=[("asked", "title")])
    shown = sections(before, view)
    now = renewed(shown, before, Document([answered, RESPONSE]), view)

    assert [len(part) for part in now] == [
        len(part) for part in sections(Document([answered, RESPONSE]), view)
    ]
    if view != HEADERS:
        assert now[0][0].head == answered.head
        assert now[0][0].source is shown[0][0].source
        assert now[0][0].folds is shown[0][0].folds
