"""The words of responses that carry no message."""

from __future__ import annotations

import gzip

import pytest

from mcpspy.core.protocol.refusal import (
    MAX_REFUSAL,
    MAX_WORDS,
    RefusalBody,
    is_refusal,
    oauth_error,
    refusal_words,
)


def take(body: RefusalBody, piece: bytes) -> None:
    for _ in body.feed(piece):
        pass


@pytest.mark.parametrize(
    ("method", "status", "content_type", "expected"),
    [
        ("POST", 200, "application/json", False),
        ("POST", 200, "text/event-stream", False),
        ("POST", 200, "text/html", True),
        ("POST", 200, "", True),
        ("POST", 202, "text/plain", False),
        ("POST", 204, "", False),
        ("GET", 200, "text/html", True),
        ("GET", 405, "application/json", True),
        ("POST", 307, "", True),
        ("POST", 401, "application/json", True),
        ("POST", 502, "text/html", True),
        ("DELETE", 200, "text/plain", False),
        ("DELETE", 405, "text/plain", True),
        ("OPTIONS", 200, "text/plain", False),
    ],
)
def test_a_refusal_is_a_status_or_a_type_that_no_message_has(
    method: str, status: int, content_type: str, expected: bool
) -> None:
    assert is_refusal(method, status, content_type) is expected


def test_a_short_body_is_kept_whole() -> None:
    body = RefusalBody(None)
    take(body, b"Not ")
    take(body, "gefunden: ü".encode()[:-1])
    take(body, "ü".encode()[1:])
    assert body.fields() == {"body": "Not gefunden: ü", "size": 16}


def test_an_empty_body_has_no_fields() -> None:
    assert RefusalBody(None).fields() == {}


def test_a_body_without_utf8_is_kept_readable() -> None:
    body = RefusalBody(None)
    take(body, b"caf\xe9")
    assert body.fields() == {"body": "caf�", "size": 4}


def test_a_long_body_is_cut_before_a_word_so_that_no_secret_loses_a_part() -> None:
    body, token = RefusalBody(None), b"ghp_" + b"x" * 36
    text = b"a " * ((MAX_REFUSAL - 20) // 2) + token
    take(body, text + b" and more" * 1000)
    fields = body.fields()
    assert fields == {"body": "a " * ((MAX_REFUSAL - 20) // 2), "size": len(text) + 9000, "cut": True}


def test_a_string_of_json_that_is_cut_off_is_left_out() -> None:
    body = RefusalBody(None)
    take(body, b'{"a":"b\\"c","client_secret":"' + b"correct horse " * 200 + b'"}')
    assert body.fields()["body"] == '{"a":"b\\"c","client_secret":'


def test_a_character_that_is_cut_off_is_left_out() -> None:
    body = RefusalBody(None)
    take(body, b"(" * (MAX_REFUSAL - 1) + "üü".encode())
    assert body.fields()["body"] == "(" * (MAX_REFUSAL - 1)


def test_a_compressed_body_is_decoded_as_far_as_it_is_kept() -> None:
    packed = gzip.compress(b"no " * 1_000_000, mtime=0)
    body = RefusalBody("gzip")
    take(body, packed)
    assert body.fields() == {"body": "no " * (MAX_REFUSAL // 3), "size": len(packed), "cut": True}


def test_brotli_is_decoded_in_a_thread_until_enough_is_kept() -> None:
    brotli = pytest.importorskip("brotlicffi")
    packed = brotli.compress(b"no " * 1_000_000)
    body = RefusalBody("br")
    assert body.feed(packed).are_long
    take(body, packed)
    assert body.fields()["cut"]
    assert not body.feed(b"more").are_long


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"error":"invalid_grant","error_description":"Token expired","access_token":"s3cret"}',
         {"error": "invalid_grant", "error_description": "Token expired"}),
        (b'{"error":{"code":7},"error_description":"x"}', {"error_description": "x"}),
        (b'["error"]', {}),
        (b"<html>", {}),
        (b"", {}),
    ],
)  # fmt: skip
def test_of_a_refused_step_of_oauth_only_the_error_is_kept(body: bytes, expected: dict[str, str]) -> None:
    assert oauth_error(body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("Not Found", "Not Found"),
        (" no\n  session ", "no session"),
        ('{"error":"invalid_token","error_description":"The token has expired"}',
         "invalid_token: The token has expired"),
        ('{"error":{"code":"x","message":"Unsupported media type"}}', "Unsupported media type"),
        ('{"detail":"Not Found"}', "Not Found"),
        ('{"detail":[{"loc":["body"],"msg":"Field required"}]}', "Field required"),
        ('{"type":"about:blank","title":"Forbidden","status":403,"detail":"Your IP is blocked"}',
         "Forbidden: Your IP is blocked"),
        ('{"message":"Invalid API key","request_id":"r1"}', "Invalid API key"),
        ('{"ok":false}', '{"ok":false}'),
        ('{"error": "cut', '{"error": "cut'),
        ("<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1><hr>nginx</body></html>",
         "502 Bad Gateway nginx"),
        ("<!DOCTYPE html><html><head><title>Error</title></head><body><pre>Cannot POST /mcp</pre></body></html>",
         "Error: Cannot POST /mcp"),
        ("<html><style>a { b: c", ""),
        ("<title>Just a moment...</title><script>x<y</script><p>Enable&nbsp;JavaScript</p>",
         "Just a moment...: Enable JavaScript"),
    ],
)  # fmt: skip
def test_the_words_of_a_body_are_its_error_or_its_text(body: str, expected: str) -> None:
    assert refusal_words(body) == refusal_words(body.encode()) == expected


def test_long_words_are_cut() -> None:
    assert refusal_words("no" * 1000) == ("no" * 1000)[: MAX_WORDS - 1] + "…"
