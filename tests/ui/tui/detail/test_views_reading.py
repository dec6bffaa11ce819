"""The path and the value under the cursor, and opened strings."""

from __future__ import annotations

from mcpspy.ui.tui.detail.views import WHOLE, breadcrumbs, copied, json_section, opened, path, text_section

SECTION = json_section([("said", None)], b'{"a":{"s":"x\\ny\\u001b[2J","j":"{\\"k\\":[1]}"}}')


def test_a_line_has_a_path_and_a_value() -> None:
    assert [path(SECTION, line) for line in (-1, 0, 1, 2)] == ["", "", "/a", "/a/s"]
    assert breadcrumbs(SECTION, 0) == WHOLE
    assert copied(SECTION, 1) == '{"s":"x\\ny\\u001b[2J","j":"{\\"k\\":[1]}"}'


def test_a_string_is_copied_as_sanitized_text() -> None:
    assert copied(SECTION, 2) == "x\ny\\x1b[2J"


def test_a_string_is_opened_as_text() -> None:
    string = opened(SECTION, 2)

    assert string is not None
    assert [string.source[line] for line in range(len(string.source))] == ["x", "y\\x1b[2J"]
    assert opened(SECTION, 1) is None
    assert opened(SECTION, -1) is None
    assert opened(text_section([], b"text"), 0) is None


def test_json_in_a_string_is_formatted_and_has_the_path_of_the_string() -> None:
    string = opened(SECTION, 3)

    assert string is not None
    assert string.source[1] == '  "k": ['
    assert path(string, 2) == "/a/j"
    assert breadcrumbs(string, 2) == "/a/j # /k/0"


def test_an_opened_image_is_described() -> None:
    string = opened(json_section([], b'{"data":"R0lGODlhgALgAQ=="}'), 1)

    assert string is not None
    assert ("base64 image, 10 B, 640x480", "key") in string.head


def test_text_is_copied_whole_and_a_header_by_its_lines() -> None:
    assert copied(text_section([("text", None)], b"a\n\x1bb", "/x"), 0) == "a\n\\x1bb"
    assert copied(text_section([("image/png, 3 B", None)], b"", "/x"), -1) == "image/png, 3 B"
    assert path(text_section([], b"a", "/x"), 0) == "/x"
