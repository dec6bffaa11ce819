"""DPoP proofs as they are recorded: their facts, and nothing that could be sent again."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from mcpspy.core.protocol.dpop import facts_of, recorded_proof, recorded_scheme
from mcpspy.core.protocol.http_headers import recorded_headers

HEAD = {"typ": "dpop+jwt", "alg": "ES256", "jwk": {"kty": "EC", "x": "xxxx", "y": "yyyy"}}
CLAIMS = {
    "htm": "POST",
    "htu": "https://a.example/mcp?key=1#x",
    "iat": 7,
    "jti": "j-1",
    "nonce": "n-1",
    "ath": "h",
}


def jwt(head: Any, claims: Any) -> str:
    parts = (urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (head, claims))
    return ".".join([*parts, "c2lnbmF0dXJl"])


def test_a_proof_keeps_its_facts_and_loses_signature_key_nonce_and_query() -> None:
    recorded = recorded_proof(jwt(HEAD, CLAIMS))
    assert facts_of(recorded) == {
        "typ": "dpop+jwt", "alg": "ES256", "htm": "POST", "htu": "https://a.example/mcp", "iat": "7",
        "jti": facts_of(recorded)["jti"], "nonce": "", "ath": "",
    }  # fmt: skip
    for secret in ("c2lnbmF0dXJl", "xxxx", "n-1", "j-1", "key=1"):
        assert secret not in recorded


@pytest.mark.parametrize(
    "proof", ["", "a.b", "a.b.c", jwt([], {}), jwt(HEAD, 7), "x" * 9000 + ".y.z", "é.é.é"]
)
def test_other_text_than_a_proof_is_called_unreadable(proof: str) -> None:
    assert recorded_proof(proof) == "[redacted] unreadable"


def test_words_of_a_claim_cannot_look_like_other_facts() -> None:
    assert facts_of(recorded_proof(jwt(HEAD, {"htm": "GET ath nonce"}))) == {
        "typ": "dpop+jwt", "alg": "ES256", "htm": "GETathnonce",
    }  # fmt: skip


def test_only_the_scheme_of_a_dpop_token_is_recorded() -> None:
    assert [recorded_scheme(value) for value in ("DPoP abc", "dpop abc", "Bearer abc", "DPoP", "")] == [
        "DPoP [redacted]", "DPoP [redacted]", "[redacted]", "[redacted]", "[redacted]",
    ]  # fmt: skip


def test_two_proofs_are_two_and_signatures_of_webhooks_are_redacted() -> None:
    headers = [("DPoP", "a"), ("dpop", "b"), ("DPoP-Nonce", "n"), ("webhook-signature", "v1,abc"), ("x", "y")]
    assert recorded_headers(headers) == {
        "dpop": "[redacted] unreadable, [redacted] unreadable",
        "dpop-nonce": "[redacted]",
        "webhook-signature": "[redacted]",
    }
