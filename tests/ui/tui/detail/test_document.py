"""The input of the detail pane."""

from __future__ import annotations

from mcpspy.ui.tui.detail.document import Document, DocumentPart, Section
from mcpspy.ui.tui.detail.views import json_section, text_section


def test_a_document_on_stdio_has_no_http_headers() -> None:
    part = DocumentPart("message", [("a title", "title"), ("", None)], b"{}")
    document = Document([part])

    assert (document.parts, document.headers) == ([part], ())


def test_a_section_has_no_path_by_default() -> None:
    section = Section([("a title", None)], text_section([], b"a line\nand another").source)

    assert (section.folds, section.pointer, section.is_nested) == (None, "", False)
    assert [section.source[line] for line in range(len(section.source))] == ["a line", "and another"]
    assert section.source.line_at(section.source.start(1)) == 1


def test_json_can_be_folded() -> None:
    section = json_section([("a title", None)], b'{"a":[1,2]}', "/params")

    assert section.folds is not None
    assert section.pointer == "/params"
