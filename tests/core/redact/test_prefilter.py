"""The prefilter: a hit for every possible secret, and no hit in ordinary traffic."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core.redact import names, patterns
from mcpspy.core.redact.config import RedactionRules
from mcpspy.core.redact.patterns import SHAPES
from mcpspy.core.redact.places import BY_LITERAL
from mcpspy.core.redact.prefilter import AT, CUSTOM, EARLY, INSENSITIVE, LITERALS, LONG, OVERLAP, Prefilter
from mcpspy.core.redact.text import _at, is_suspect, spans
from mcpspy.core.redact.walker import JsonWalker
from tests.core.redact import corpus

GATE = Prefilter()
RULES = RedactionRules()


SEARCHED = settings(max_examples=300, deadline=None)


def test_every_literal_is_searched_once() -> None:
    assert len(set(LITERALS)) == len(LITERALS)
    assert all(literal == literal.lower() for literal in LITERALS[:INSENSITIVE])
    assert max(map(len, LITERALS)) <= OVERLAP


@SEARCHED
@given(
    st.from_regex(rf"\A(?:[A-Za-z]{{0,6}}[_-]?)(?i:{patterns.STRONG_NAME})\Z", fullmatch=True).map(str.encode)
)
def test_every_name_that_a_rule_calls_secret_is_a_hit(name: bytes) -> None:
    assert patterns.verdict(name) == patterns.NameVerdict.STRONG
    assert GATE.hits(name)


@SEARCHED
@given(
    st.from_regex(rf"\A(?:[A-Za-z]{{0,6}}[_-]?)(?i:{patterns.WEAK_NAME})\Z", fullmatch=True).map(str.encode),
)
def test_every_name_that_may_be_secret_is_a_hit(name: bytes) -> None:
    assert GATE.hits(name)


@pytest.mark.parametrize("name", [*names.STRONG, *names.WEAK, *names.SHORT])
def test_every_spelling_of_a_name_is_a_hit(name: str) -> None:
    for spelled in names.spellings(name):
        for written in (spelled, spelled.upper(), spelled.title(), spelled.swapcase()):
            for end in names.ENDS:
                assert GATE.hits((written + end).encode()), written


def secret_in(text: bytes) -> bool:
    """Return True if a rule finds a secret at any position, without the prefilter."""
    for place in range(len(text)):
        for literal in SHORT_LITERALS.get(text[place : place + 1].lower(), ()):
            # Names outside ASCII are found by their bytes, so the rule does not look at them again.
            if not literal.isascii() and text[place : place + len(literal)].lower() != literal.lower():
                continue
            if _at(text, place, literal, RULES, is_uri=False):
                return True
    return False


SHORT_LITERALS: dict[bytes, list[bytes]] = {}
for each in LITERALS[:INSENSITIVE]:
    SHORT_LITERALS.setdefault(each[:1], []).append(each)

PIECES = st.sampled_from(
    [
        *(
            "password",
            "Token",
            "api_key",
            "X-Api-Key",
            "PWD",
            "auth",
            "dbPass",
            "secret",
            "sig",
            "code",
            "kty",
            "k",
            "d",
        ),
        *(
            "=",
            ": ",
            " := ",
            "=>",
            '"',
            "'",
            "\n",
            " ",
            "?",
            "&",
            "--",
            "|",
            "**",
            "<",
            ">",
            "</",
            "]",
            "[",
            ",",
            "{",
            "}",
        ),
        *(
            "curl",
            " -u ",
            "sshpass -p ",
            "identified by ",
            "value",
            "name: ",
            "\x1b[0m",
            "host:5432:db:u:",
            "login ada ",
        ),
        *("a1b2c3d4e5f6g7h8", "swordfish", "Sw0rdf1sh", "dXNlcjpwYXNzd29yZA==", "x", "1"),
    ]
)


NAME = st.sampled_from(
    [
        spelled
        for name in [*names.STRONG, "token", "pwd", "pass", "auth", "sig", "X-Amz-Signature"]
        for spelled in (*names.spellings(name)[:5], name.upper(), name.title(), name.title().replace("-", ""))
    ]
)
VALUE = st.sampled_from(
    ["a1b2c3d4e5f6g7h8", "'swordfish'", '"sw0rdfish x"', "dXNlcjpwYXNzd29yZA==", 'b"x1"', "x1y2z3</a>"]
)
TEXTS = st.lists(PIECES, max_size=14) | st.tuples(
    st.lists(PIECES, max_size=2).map("".join),
    NAME,
    st.lists(PIECES, min_size=1, max_size=3).map("".join),
    VALUE,
)


@SEARCHED
@given(TEXTS.map("".join))
def test_a_text_that_a_rule_would_redact_is_a_hit_and_suspect_in_a_message(text: str) -> None:
    data = text.encode()
    if secret_in(data):
        assert any(literal in LITERALS for _, literal in GATE.hits(data)), text
    if spans(data, RULES):
        for depth in range(3):
            message = json.dumps({"a": text}).encode()
            assert any(is_suspect(message, hit, RULES) for hit in GATE.hits(message)), (depth, message)
            text = json.dumps([text])


@SEARCHED
@given(st.dictionaries(PIECES, PIECES, max_size=5))
def test_a_message_in_which_a_secret_is_found_is_suspect(value: dict[str, str]) -> None:
    for message in (
        json.dumps(value).encode(),
        json.dumps({"params": {"arguments": value}}, indent=1).encode(),
    ):
        if JsonWalker(RULES, lambda _: b"#").edits(message):
            assert any(is_suspect(message, hit, RULES) for hit in GATE.hits(message)), message


@pytest.mark.parametrize(
    ("rule", "token"), corpus.tokens(), ids=[f"{n}" for n, _ in enumerate(corpus.tokens())]
)
def test_every_token_is_a_hit(rule: str, token: str) -> None:
    assert GATE.hits(token.encode()), rule


def test_every_shape_and_every_context_has_its_literal() -> None:
    assert {*SHAPES, *BY_LITERAL} <= {*LITERALS}


def test_hits_are_in_order_each_with_its_literal() -> None:
    data = b"sk- ghp_ password //a:b@c"
    assert GATE.hits(data) == [(0, b"sk-"), (4, b"ghp_"), (9, b"password"), (23, AT)]


@pytest.mark.parametrize("url", [b"//ada@h", b"//ada:x@h", rb":\/\/ada:x@h", b"a://" + b"x" * 200 + b"@h"])
def test_an_at_sign_behind_the_user_of_a_url_is_a_hit(url: bytes) -> None:
    assert GATE.hits(url) == [(url.index(b"@"), AT)]


@pytest.mark.parametrize(
    "text", [b"ada@example.com", b"https://x.example/@scope", b"@", b"/@x", b"https://cdn/react@18"]
)
def test_another_at_sign_is_not_a_hit(text: bytes) -> None:
    assert GATE.hits(text) == []


@SEARCHED
@given(
    st.lists(st.sampled_from([*LITERALS, b"x" * 9, b"x" * 300, b"pass", b"KEY", b"-"]), max_size=9).map(
        b"".join
    )
)
def test_the_search_around_fragments_finds_what_a_search_of_all_bytes_finds(data: bytes) -> None:
    padded = data + b"\0" * max(LONG, 20_000)  # No literal has this byte: a letter may be the end of one.
    exact = GATE.exact(padded.lower(), overlapping=True)
    assert GATE.hits(padded) == GATE.ordered(padded, exact) == GATE.hits(data)


def test_custom_literals_are_hits_too() -> None:
    assert Prefilter([b"my own"]).hits(b"that is my own") == [(8, CUSTOM)]


def test_a_hit_is_found_wherever_buffers_meet() -> None:
    data = b"x" * 300 + b"secret" + b"y" * 300
    for cut in range(295, 310):
        assert GATE.is_hit([data[:cut], data[cut:]])
    for size in (1, 2, 100):
        assert GATE.is_hit([data[at : at + size] for at in range(0, len(data), size)])
    assert not GATE.is_hit([b"sec", b"ular", bytearray(b"r"), b"et"])


@pytest.mark.parametrize(
    ("data", "is_hit"),
    [
        (b'{"name":"read_file","arguments":{"path":"/srv/data/a.txt"}}', False),
        (b'{"path":"/srv/data/a.txt","rate":"50%"}', False),
        (b'{"path":"/s/%73k-ant-api03-a"}', True),
        (b'{"location":"https://example.com/?%6bey=a"}', True),
        (b'{"path":"/srv/data/a', True),
    ],
)
def test_a_path_is_a_hit_only_if_percent_encoding_may_hide_a_secret(data: bytes, is_hit: bool) -> None:
    assert bool(Prefilter().hits(data)) is is_hit


def test_the_search_of_the_first_bytes_and_the_one_after_them_find_the_same() -> None:
    gate = Prefilter()
    data = b'{"a":"ghp_ x"}'
    first = gate.hits(data)
    early = gate.exact
    for _ in range(EARLY // len(data) + 2):
        assert gate.hits(data) == first == [(6, b"ghp_")]
    assert gate.exact is not early


@pytest.mark.parametrize("name", names.FOREIGN)
def test_a_name_beyond_ascii_is_a_hit_also_in_a_long_text(name: str) -> None:
    for padding in ("", "x" * LONG):
        assert GATE.hits(f"{padding}{name}: a".encode())
