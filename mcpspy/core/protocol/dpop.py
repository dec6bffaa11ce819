"""DPoP (RFC 9449; MCP's SEP-1932): the facts of a proof, without what makes it usable.

A proof is a JWT that the client signs for one request. mcpspy records neither its signature nor its key, but the claims
that bind it to the request: with them, lint can check the proof, and no one can send it again.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from hashlib import sha256

HEADER, NONCE, SCHEME = "dpop", "dpop-nonce", "DPoP"

REDACTED = "[redacted]"
UNREADABLE = "unreadable"

_LONGEST = 8192
"""Characters of a proof that is read."""


def recorded_proof(value: str) -> str:
    """Return a proof as it is recorded: `[redacted] typ=dpop+jwt alg=ES256 htm=POST htu=… jti=4e0e2e73 nonce ath`.

    `jti` is a hash, by which a second use shows; `nonce` and `ath` are named if they are there.
    """
    parts = value.split(".")
    try:
        if len(parts) != 3 or len(value) > _LONGEST:
            raise ValueError
        head, claims = (json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4))) for part in parts[:2])
        if not isinstance(head, dict) or not isinstance(claims, dict):
            raise ValueError
    except (ValueError, RecursionError):
        return f"{REDACTED} {UNREADABLE}"
    facts = [f"{name}={_word(head.get(name))}" for name in ("typ", "alg") if name in head]
    url = claims.get("htu")
    claims["htu"] = url.partition("?")[0].partition("#")[0] if isinstance(url, str) else url
    facts += [
        f"{name}={_word(claims[name])}" for name in ("htm", "htu", "iat") if claims.get(name) is not None
    ]
    if isinstance(jti := claims.get("jti"), str) and jti:
        facts.append(f"jti={sha256(jti.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}")
    facts += [name for name in ("nonce", "ath") if claims.get(name)]
    return " ".join([REDACTED, *facts])


def recorded_scheme(value: str) -> str:
    """Return an Authorization header as it is recorded: the value is redacted, the scheme DPoP stays."""
    scheme, blank, _ = value.partition(" ")
    return f"{SCHEME} {REDACTED}" if blank and scheme.lower() == "dpop" else REDACTED


def facts_of(recorded: str) -> dict[str, str]:
    """Return the facts of a recorded proof by name; those without a value are empty."""
    words = recorded.removeprefix(REDACTED).split()
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def _word(value: object) -> str:
    return "".join(char for char in str(value)[:300] if char.isprintable() and char != " ")
