"""Secrets in a text, and the quick check for messages without any."""

from __future__ import annotations

import pytest

from mcpspy.core.recording.decode import Frame
from mcpspy.core.redact.config import RedactionRules
from mcpspy.core.redact.redactor import Redactor
from mcpspy.core.redact.text import SecretSpan, UnescapedText, is_suspect, merged_spans, spans
from mcpspy.io.recording.reader import Recording
from tests.core.redact import corpus

RULES = RedactionRules()


def secrets(text: str, rules: RedactionRules = RULES, *, is_uri: bool = False) -> list[str]:
    return [text.encode()[start:end].decode() for start, end, _ in spans(text.encode(), rules, is_uri=is_uri)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("PASSWORD=x1", ["x1"]),
        ("A_SECRET=word B=2", ["word"]),
        ("password=swordfish", ["swordfish"]),
        ("password = 'sword fish'", ["sword fish"]),
        ("token = 'sword fish'", []),
        ("password = 'swordfish'", ["swordfish"]),
        ('"password": "sword fish"', ["sword fish"]),
        (r'"password": "sw\"ord", "a": "b"', [r"sw\"ord"]),
        (r"\"password\": \"swordfish\", \"a\"", ["swordfish"]),
        ("{'password': 'x', 'token': 'f00ba4c1d2'}", ["x", "f00ba4c1d2"]),
        ('"password": 12345,', ["12345"]),
        ("password: sw0rdfish", ["sw0rdfish"]),
        ("password: required", []),
        ("password => 's1'", ["s1"]),
        ("--password sw0rdfish --x", ["sw0rdfish"]),
        ("password sw0rdfish", []),
        ("Authorization: Bearer abc123", ["abc123"]),
        ("Authorization: Token abc123", ["abc123"]),
        ("Cookie: a=b; c=d\nHost: x", ["a=b; c=d"]),
        ("token=abc", []),
        ("token=abcdef12", ["abcdef12"]),
        ("f(password=password)", []),
        ("password=get(x1)", []),
        ("secret=a1b2c3&token=a1b2c3d4", ["a1b2c3", "a1b2c3d4"]),
        ("a://u:p1@h b://u:p2@h", ["p1", "p2"]),
        ("a://u:password@h", []),
        ("a://user@h", []),
        ("PASSWORD=ghp_Ab3dEf6hIj9kLm2nOp5qRs8t", ["ghp_Ab3dEf6hIj9kLm2nOp5qRs8t"]),
    ],
)
def test_exactly_this_part_of_a_text_is_secret(text: str, found: list[str]) -> None:
    assert secrets(text) == found


def test_only_the_password_and_the_query_of_a_uri_may_be_secret() -> None:
    token = "ghp_Ab3dEf6hIj9kLm2nOp5qRs8t"
    assert secrets(f"x://h/{token}/api_key=abc123?a={token}", is_uri=True) == [token]
    assert secrets(f"x://u:p1@h/{token}", is_uri=True) == ["p1"]


def test_a_long_quoted_value_without_an_end_is_secret_up_to_its_first_space() -> None:
    text = "PASSWORD='" + "x1" * 5000
    assert secrets(text) == ["x1" * 5000]


def test_custom_rules_apply_too_and_overlaps_are_merged() -> None:
    rules = RedactionRules(keys=["pin"], patterns=[r"id-(\d+)", "ß+"], values={"X": "fish"})
    assert secrets("pin=a1b2c3 id-42 ßß swordfish", rules) == ["a1b2c3", "42", "ßß", "fish"]
    assert secrets("PASSWORD=swordfish", rules) == ["swordfish"]


def test_a_very_long_text_is_unescaped_around_hits_only(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = b"a line\\n" * 2000
    text = lines + rb'{"\u0070assword":"swordfish"}' + lines + rb"{\"pass\u0077ord\":\"trout\"}" + lines
    whole = spans(text, RULES)
    assert [text[start:end] for start, end, _ in whole] == [b"swordfish", b"trout"]
    unescaped: list[int] = []

    class Counted(UnescapedText):
        def __init__(self, raw: bytes) -> None:
            unescaped.append(len(raw))
            super().__init__(raw)

    monkeypatch.setattr("mcpspy.core.redact.text.WINDOWED", 1 << 12)
    monkeypatch.setattr("mcpspy.core.redact.text.UnescapedText", Counted)
    assert spans(text, RULES) == whole
    assert len(unescaped) == 2
    assert sum(unescaped) < len(text) * 2 / 3


def test_overlapping_spans_are_merged() -> None:
    spanned = [SecretSpan(5, 9, "b"), SecretSpan(0, 6, "a"), SecretSpan(9, 10, "c"), SecretSpan(1, 2, "d")]
    assert merged_spans(spanned) == [SecretSpan(0, 9, "a"), SecretSpan(9, 10, "c")]


@pytest.mark.parametrize(
    "line", [line for line in corpus.lines("places.jsonl") if line.kind == "message"], ids=lambda x: x.what
)
def test_every_message_with_a_secret_is_suspect(line: corpus.Line) -> None:
    assert any(is_suspect(line.data, hit, RULES) for hit in RULES.prefilter.hits(line.data))


def test_no_message_of_the_sample_recordings_is_suspect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("mcpspy.core.redact.walker.JsonWalker.edits")
    paths = sorted((corpus.HERE.parents[2] / "recordings").glob("*.jsonl"))
    assert len(paths) > 10
    for path in paths:
        for entry in Recording(path):
            if isinstance(entry, Frame):
                assert Redactor(corpus.KEY).message(entry.data) == entry.data
