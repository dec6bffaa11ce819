"""HTTP headers, as users write them."""

from __future__ import annotations

import pytest

from mcpspy.errors import UsageError
from mcpspy.ui.cli.arguments import filled, read_header


def test_a_variable_of_the_environment_is_put_in_and_what_only_looks_like_one_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("A", "1")
    assert read_header("--header", "X: $A ${A}: {A}") == ("X", "$A 1: {A}")
    assert filled("--upstream", "http://${A}/") == "http://1/"


def test_a_variable_that_is_not_set_is_named_and_no_value_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    with pytest.raises(UsageError, match=r"^--header X: environment variable NOT_SET is not set") as error:
        read_header("--header", "X: s3cret ${NOT_SET}")
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize("text", ["s3cret", ": value", " : value", "A: b\r\nB: c", "A: b\nB: c", ""])
def test_an_invalid_header_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--header: not a valid header \(use 'Name: value'\)$"):
        read_header("--header", text)
