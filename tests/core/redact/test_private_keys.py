"""Private keys that arrive line by line, on stderr or on stdout."""

from __future__ import annotations

import base64
import json
import random
from binascii import a2b_base64, b2a_base64
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core.recording.encode import FrameEncoder, TextEncoder
from mcpspy.core.redact.private_keys import MAX_LINES
from mcpspy.core.redact.redactor import Redactor
from tests.core.redact import corpus

RANDOM = random.Random(21)


def body(lines: int, width: int = 64) -> list[str]:
    text = base64.b64encode(RANDOM.randbytes(lines * width)).decode()
    return [text[at : at + width] for at in range(0, lines * width, width)]


def pem(inside: list[str], label: str = "RSA PRIVATE KEY") -> list[str]:
    return [f"-----BEGIN {label}-----", *inside, f"-----END {label}-----"]


def written(stream: str, lines: list[str], redactor: Redactor | None, cut: int = 1 << 30) -> bytes:
    """Return the recording of lines that arrive in chunks of N bytes."""
    encoder: Any = TextEncoder("stderr") if stream == "stderr" else FrameEncoder(stream)
    data = "".join(line + "\n" for line in lines).encode()
    found = b""
    for at in range(0, len(data), cut):
        made = encoder.feed(0.5, data[at : at + cut])
        if redactor is None:
            found += made if isinstance(made, bytes) else b"".join(made)
        else:
            found += redactor.lines(made) if isinstance(made, bytes) else b"".join(redactor.buffers(made))
    return found


def texts(file: bytes) -> list[str]:
    entries = [json.loads(line) for line in file.splitlines()]
    return [entry.get("text", entry.get("raw")) for entry in entries]


KEYS = {
    "RSA": pem(body(25)),
    "encrypted": pem(["Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-256-CBC,00FF", "", *body(8)]),
    "EC": pem([*body(2), "abc="], "EC PRIVATE KEY"),
    "PKCS 8": pem(body(1), "PRIVATE KEY"),
    "OpenSSH": pem(body(30, 70), "OPENSSH PRIVATE KEY"),
    "PGP": pem(["Version: GnuPG v2", "", *body(40), "Ab1=", "=aB3d"], "PGP PRIVATE KEY BLOCK"),
    "narrow": pem(body(60, 8)),
    "with a prefix": [f"2026-11-22 10:00:00 INFO {line}" for line in pem(body(25))],
    "with line ends of Windows": [f"{line}\r" for line in pem(body(4))],
}


@pytest.mark.parametrize("cut", [1 << 30, 100, 7])
@pytest.mark.parametrize("stream", ["stderr", "server", "client"])
@pytest.mark.parametrize("name", KEYS)
def test_a_key_that_comes_line_by_line_is_redacted_whole(name: str, stream: str, cut: int) -> None:
    lines = [
        "before",
        *KEYS[name],
        "after",
        "-----BEGIN CERTIFICATE-----",
        *body(2),
        "-----END CERTIFICATE-----",
    ]
    file = written(stream, lines, Redactor(corpus.KEY), cut)
    seen = texts(file)
    assert len(seen) == len(lines)
    assert [seen[0], seen[1]] == [each.rstrip("\r") for each in lines[:2]]
    for original, line in zip(KEYS[name][1:-1], seen[2:], strict=False):
        assert line.startswith("[redacted:") or not original.strip()
    assert seen[-5:] == lines[-5:]
    assert file == written(stream, lines, Redactor(corpus.KEY), 1 << 30)


def test_a_line_of_a_key_that_is_not_utf_8_is_redacted_too() -> None:
    redactor = Redactor(corpus.KEY)
    redactor.lines(written("stderr", KEYS["RSA"][:1], None))
    data = KEYS["RSA"][1].encode()
    head = b'{"t":0.2,"note":"stderr","why":"not UTF-8","b64":"'
    kept = redactor.lines(head + b2a_base64(b"\xff " + data, newline=False) + b'"}\n')
    assert kept.startswith(head)
    shown = a2b_base64(kept.removeprefix(head).removesuffix(b'"}\n'))
    assert shown.startswith(b"[redacted:")
    assert data not in shown


def test_the_streams_are_independent_and_messages_between_the_lines_are_unchanged() -> None:
    key = KEYS["RSA"]
    redactor = Redactor(corpus.KEY)
    message = b'{"t":0.5,"from":"server","msg":{"a":"MIIEowIBAAKCAQEA7bq0aaaaaaaaaaaa"}}\n'
    for line in key[1:-1]:
        redactor.lines(written("stderr", key[:1], None))
        assert redactor.lines(message) is not None
        assert redactor.lines(message) == message
        other = written("server", ["MIIEowIBAAKCAQEA7bq0aaaaaaaaaaaa"], None)
        assert redactor.lines(other) == other
        (seen,) = texts(redactor.lines(written("stderr", [line], None)))
        assert seen.startswith("[redacted:")
        redactor.lines(written("stderr", key[-1:], None))


def test_a_body_of_http_does_not_belong_to_a_key_on_stdout() -> None:
    redactor = Redactor(corpus.KEY)
    redactor.lines(written("server", KEYS["RSA"][:1], None))
    line = b'{"t":0.5,"from":"server","stream":"1","http":1,"why":"x","raw":"MIIEowIBAAKCAQEA7bq0aaaa"}\n'
    assert redactor.lines(line) == line


def test_a_key_without_an_end_is_closed_after_200_lines() -> None:
    lines = ["-----BEGIN PRIVATE KEY-----", *body(MAX_LINES + 50)]
    seen = texts(written("stderr", lines, Redactor(corpus.KEY)))
    assert MAX_LINES == 200
    assert all(line.startswith("[redacted:") for line in seen[1 : MAX_LINES + 1])
    assert seen[MAX_LINES + 1 :] == lines[MAX_LINES + 1 :]


@pytest.mark.parametrize(
    "lines",
    [
        [
            "ValueError: expected -----BEGIN PRIVATE KEY-----",
            "  at load_key (server.py:12)",
            "MIIEowIBAAKCAQEA7bq0",
        ],
        ["-----BEGIN CERTIFICATE-----", "MIIEowIBAAKCAQEA7bq0", "-----END CERTIFICATE-----"],
        ["-----BEGIN PUBLIC KEY-----", "MIIEowIBAAKCAQEA7bq0", "-----END PUBLIC KEY-----"],
    ],
)
def test_a_text_that_only_mentions_a_key_is_unchanged(lines: list[str]) -> None:
    assert texts(written("stderr", lines, Redactor(corpus.KEY))) == lines


def test_a_key_that_is_mentioned_inside_a_line_does_not_begin_there() -> None:
    lines = ['a key starts with "-----BEGIN PRIVATE KEY-----" here', "MIIEowIBAAKCAQEA7bq0"]
    assert texts(written("stderr", lines, Redactor(corpus.KEY)))[1] == lines[1]


def test_a_log_line_between_the_lines_of_a_key_is_kept() -> None:
    key = KEYS["RSA"]
    seen = texts(written("stderr", [*key[:5], "3 stations in cache", *key[5:]], Redactor(corpus.KEY)))
    assert seen[5] == "3 stations in cache"
    assert all(line.startswith("[redacted:") for line in (*seen[1:5], *seen[6:-1]))


PIECES = st.sampled_from(
    [
        *(line for key in KEYS.values() for line in (key[0], key[1], key[-1])),
        "",
        "3 stations in cache",
        "-----BEGIN PRIVATE KEY-----\\nMIIEowIBAAKCAQEA7bq0\\n-----END PRIVATE KEY-----",
        "password=swordfish1 https://u:p4ssw0rd@example.com/",
        "Authorization: Bearer abcdefgh12345678",
        "Cookie: a=b; c=d",
        '{"password":"swordfish","x":1',
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "--token abcd1234efgh",
    ]
)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["stderr", "server"]), PIECES | st.text(max_size=40)), max_size=30))
def test_redacting_twice_changes_nothing(lines: list[tuple[str, str]]) -> None:
    first, second = Redactor(b"1" * 32), Redactor(b"2" * 32)
    once = b"".join(written(stream, [line.replace("\n", " ")], first) for stream, line in lines)
    assert second.lines(once) == once


def test_a_placeholder_without_quotes_is_not_redacted_again() -> None:
    redactor = Redactor(b"key")
    redacted = redactor.message(b'{""{"password":SSECRET4""}}')

    assert redacted == b'{""{"password":[redacted:5a74e2cc]""}}'
    assert redactor.message(redacted) == redacted


@pytest.mark.parametrize("line", corpus.lines("places.jsonl"), ids=lambda line: line.what)
def test_a_redacted_position_is_not_redacted_again(line: corpus.Line) -> None:
    once = corpus.recorded(line.kind, line.data, Redactor(b"1" * 32))
    if line.kind != "argv":
        assert Redactor(b"2" * 32).lines(once) == once


@pytest.mark.parametrize(("rule", "token"), corpus.tokens())
def test_a_redacted_token_is_not_redacted_again(rule: str, token: str) -> None:
    for kind, text in (("stderr", "with %s"), ("message", '{"a":["%s"],"b":"x %s y"}')):
        once = corpus.recorded(kind, text.replace("%s", token).encode(), Redactor(b"1" * 32))
        assert Redactor(b"2" * 32).lines(once) == once, rule


@pytest.mark.parametrize(
    "line", [line for line in corpus.lines("places.jsonl") if line.kind == "argv"], ids=lambda line: line.what
)
def test_a_redacted_command_line_is_not_redacted_again(line: corpus.Line) -> None:
    once = json.loads(corpus.recorded(line.kind, line.data, Redactor(b"1" * 32)))
    assert Redactor(b"2" * 32).header(once) == once
