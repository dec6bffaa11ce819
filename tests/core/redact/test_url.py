"""A URL without the secrets in it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mcpspy.core.redact.config import RedactionRules
from mcpspy.core.redact.patterns import is_harmless
from mcpspy.core.redact.url import url_spans

RULES = RedactionRules()
ALPHABET = st.text("abcXYZ019_.~-", min_size=4, max_size=20)


def redacted(text: str, rules: RedactionRules = RULES, *, hides_segments: bool = False) -> str:
    data = text.encode()
    for start, end, _ in reversed(url_spans(data, rules, hides_segments=hides_segments)):
        data = data[:start] + b"#" + data[end:]
    return data.decode()


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://example.com/mcp", "https://example.com/mcp"),
        ("https://u:hunter2@example.com/mcp", "https://u:#@example.com/mcp"),
        ("https://u:p@ss:w@example.com/", "https://u:#@example.com/"),
        ("postgres://app:${PASSWORD}@db/x", "postgres://app:${PASSWORD}@db/x"),
        ("https://h/?access_token=a&x=1", "https://h/?access_token=#&x=1"),
        ("https://h/?x=1;api%5Fkey=abc;y=2", "https://h/?x=1;api%5Fkey=#;y=2"),
        ("https://h/?X-Amz-Signature=0a1b&X-Amz-Date=2026", "https://h/?X-Amz-Signature=#&X-Amz-Date=2026"),
        ("https://h/?sig=abc&key=abc&code=abc#id_token=abc", "https://h/?sig=#&key=#&code=##id_token=#"),
        ("https://h/?code=404&token=", "https://h/?code=404&token="),
        ("https://h/?key=${KEY}&token=<your-token>", "https://h/?key=${KEY}&token=<your-token>"),
        ("https://h/?key=${KEY:-abc}&z=1", "https://h/?key=${KEY:-#}&z=1"),
        ("https://h/?nextToken=abc&page=2&tokens_used=5", "https://h/?nextToken=abc&page=2&tokens_used=5"),
        ("${BASE:-https://u:pw9@h}/x?sig=abc", "${BASE:-https://u:#@h}/x?sig=#"),
        ("see https://h/?token=abc, and http://u:pw9@h", "see https://h/?token=#, and http://u:#@h"),
        ("https://h/npm/@scope/name@1.2.3", "https://h/npm/@scope/name@1.2.3"),
    ],
)
def test_only_the_secrets_of_a_url_are_redacted(url: str, kept: str) -> None:
    assert redacted(url) == kept


def test_parts_of_a_path_that_look_random_are_redacted_on_request_only() -> None:
    url = "https://h/api/mcp/s/Zm9vYmFyMTIzNDU2Nzg5/mcp/v1-streamable-http"

    assert redacted(url) == url
    assert redacted(url, hides_segments=True) == "https://h/api/mcp/s/#/mcp/v1-streamable-http".replace(
        "v1-streamable-http", "#"
    )


def test_names_of_the_user_are_secret_in_a_url_too() -> None:
    assert (
        redacted("https://h/?pin=abc&spin=abc", RedactionRules(keys=["pin"])) == "https://h/?pin=#&spin=abc"
    )


@given(st.sampled_from(["token", "api_key", "X-Amz-Signature", "password", "client-secret", "sig"]), ALPHABET)
def test_no_value_of_a_secret_parameter_is_left(name: str, value: str) -> None:
    assume(not is_harmless(f"q{value}".encode()))
    shown = redacted(f"https://h/p?a=1&{name}=q{value}&b=2")

    assert shown == f"https://h/p?a=1&{name}=#&b=2"


@given(st.text(max_size=200))
def test_spans_of_any_text_are_in_order_and_inside_it(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    spans = url_spans(data, RULES, hides_segments=True)

    assert all(0 <= start < end <= len(data) for start, end, _ in spans)
    assert all(one.end <= other.start for one, other in pairwise(spans))
