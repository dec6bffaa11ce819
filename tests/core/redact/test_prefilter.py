"""The prefilter: a hit for every possible secret, and no hit in ordinary traffic."""

from __future__ import annotations

import pytest

from mcpspy.core.redact import patterns
from mcpspy.core.redact.prefilter import AT, CUSTOM, LONG, SHAPES, Prefilter
from tests.core.redact import corpus

GATE = Prefilter()


def test_the_search_stays_vectorized() -> None:
    assert len(LONG) == len(set(LONG)) <= 64
    assert min(map(len, LONG)) >= 4


@pytest.mark.parametrize("name", patterns.STRONG)
def test_every_name_of_a_secret_is_a_hit_in_the_common_spellings(name: str) -> None:
    ends = (
        "passphrase",
        "password",
        "passwd",
        "secret",
        "credential",
        "authorization",
        "cookie",
        "token",
        "key",
    )
    last = next(end for end in ends if name.endswith(end))
    words = [*(name.removesuffix(last).replace("secretaccess", "secret access").split()), last]
    pascal = "".join(word.capitalize() for word in words)
    for spelled in ("_".join(words), "-".join(words), pascal, pascal[0].lower() + pascal[1:]):
        assert GATE.hits(b'{"%b":"x"}' % spelled.encode()), spelled


@pytest.mark.parametrize(
    ("rule", "token"), corpus.tokens(), ids=[f"{n}" for n, _ in enumerate(corpus.tokens())]
)
def test_every_token_is_a_hit(rule: str, token: str) -> None:
    assert GATE.hits(token.encode()), rule


def test_every_shape_has_its_literal() -> None:
    assert {*patterns.SHAPES, b".eyJ", b"-----BEGIN"} == set(SHAPES)


def test_hits_are_in_order_each_with_its_literal() -> None:
    data = b"sk- ghp_ password //a:b@c"
    assert GATE.hits(data) == [(0, b"sk-"), (4, b"ghp_"), (10, b"assw"), (23, AT)]


@pytest.mark.parametrize("url", [b"//ada@h", b"//ada:x@h", rb":\/\/ada:x@h", b"a://" + b"x" * 200 + b"@h"])
def test_an_at_sign_behind_the_user_of_a_url_is_a_hit(url: bytes) -> None:
    assert GATE.hits(url) == [(url.index(b"@"), AT)]


@pytest.mark.parametrize(
    "text", [b"ada@example.com", b"https://x.example/@scope", b"@", b"/@x", b"https://cdn/react@18"]
)
def test_another_at_sign_is_not_a_hit(text: bytes) -> None:
    assert GATE.hits(text) == []


def test_custom_literals_are_hits_too() -> None:
    assert Prefilter([b"my own"]).hits(b"that is my own") == [(8, CUSTOM)]


def test_a_hit_is_found_wherever_buffers_meet() -> None:
    data = b"x" * 300 + b"passw" + b"y" * 300
    for cut in range(295, 310):
        assert GATE.is_hit([data[:cut], data[cut:]])
    for size in (1, 2, 100):
        assert GATE.is_hit([data[at : at + size] for at in range(0, len(data), size)])
    assert not GATE.is_hit([b"pass", b"age", bytearray(b"w"), b"ord"])
