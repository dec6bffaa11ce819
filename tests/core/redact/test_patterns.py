"""Token patterns: each matches a whole token, and nothing that only begins like one."""

from __future__ import annotations

import pytest

from mcpspy.core.redact.patterns import SHAPES, jwt, pem, tail


@pytest.mark.parametrize("literal", sorted(SHAPES))
def test_a_literal_alone_is_not_a_token(literal: bytes) -> None:
    for text in (literal, literal + b"x", literal + b"x" * 200, b"a" * 200 + literal):
        assert SHAPES[literal].at(text, text.index(literal)) is None


@pytest.mark.parametrize(
    ("text", "literal", "secret"),
    [
        (b"a ghp_Ab3dEf6hIj9kLm2nOp5qRs8t, b", b"ghp_", b"ghp_Ab3dEf6hIj9kLm2nOp5qRs8t"),
        (b"a bearer abc.def-123~x== b", b"earer ", b"abc.def-123~x=="),
        (b"Basic YWRhOng=", b"asic ", b"YWRhOng="),
        (b"rk_live_0123456789abcdef", b"k_live_", b"rk_live_0123456789abcdef"),
    ],
)
def test_the_token_is_found_and_nothing_around_it(text: bytes, literal: bytes, secret: bytes) -> None:
    found = SHAPES[literal].at(text, text.index(literal))
    assert found is not None
    assert text[slice(*found)] == secret


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        (b"xghp_Ab3dEf6hIj9kLm2nOp5qRs8t", b"ghp_"),
        (b"Basic information", b"asic "),
        (b"Basic !!!!!!!!", b"asic "),
        (b"bearer-token authentication", b"earer-"[:6]),
        (b"bearer certificates-and-more", b"earer "),
        (b"forbearer abcdef123456", b"earer "),
        (b"pk_live_0123456789abcdef", b"k_live_"),
        (b"AKIAIOSFODNN7EXAMPLEX", b"AKIA"),
        (b"sk-learn-in-production-2026", b"sk-"),
    ],
)
def test_a_part_of_a_longer_word_is_not_a_token(text: bytes, literal: bytes) -> None:
    shape = SHAPES.get(literal, SHAPES[b"earer "])
    assert shape.at(text, text.index(literal)) is None


def test_a_web_token_is_found_by_its_second_part() -> None:
    text = b"x=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2ln y"
    found = jwt(text, text.index(b".eyJ"))
    assert found is not None
    assert text[slice(*found)] == b"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2ln"
    for other in (b"abc.eyJzdWIiOiIxMjM0In0.c2ln", b"eyJh.eyJzdWIiOiIxMjM0In0", b"eyJhbGciOiJIUzI1NiJ9.eyJz"):
        assert jwt(other, other.index(b".eyJ")) is None


@pytest.mark.parametrize("kind", [b"RSA ", b"", b"EC ", b"ENCRYPTED ", b"OPENSSH "])
def test_a_private_key_is_the_text_between_its_lines(kind: bytes) -> None:
    begin, end = b"-----BEGIN %bPRIVATE KEY-----" % kind, b"-----END %bPRIVATE KEY-----" % kind
    for text, rest in ((begin + b"\nMII\n" + end, b"\nMII\n"), (begin + b"\\nMII", b"\\nMII")):
        found = pem(text, 0)
        assert found is not None
        assert text[slice(*found)] == rest


@pytest.mark.parametrize("text", [b"-----BEGIN PUBLIC KEY-----\nMII", b"-----BEGIN CERTIFICATE-----\nMII"])
def test_a_public_value_is_not_a_secret(text: bytes) -> None:
    assert pem(text, 0) is None


def test_a_tail_is_counted_up_to_a_bound() -> None:
    assert tail(b"..abc", 5, 80, b"abc") == 3
    assert tail(b"abcabc", 6, 2, b"abc") == 2
    assert tail(b"abc", 0, 80, b"abc") == 0
