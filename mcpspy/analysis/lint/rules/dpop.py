"""DPoP (RFC 9449): tokens that are bound to a key of the client, which it proves with each request.

A recording has the facts of a proof (`core.protocol.dpop`), and neither its signature nor its key: whether a proof is
signed with the key of the token only the server can tell.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import RULES, Report, RuleGroup
from mcpspy.core.protocol.dpop import HEADER, NONCE, SCHEME, UNREADABLE, facts_of

RFC = "https://www.rfc-editor.org/rfc/rfc9449#section-"

_PING = '> {"id":%d,"method":"ping"}\n= %d {"authorization":"DPoP [redacted]"%s} {%s}\n'
_OK = '< {"id":%d,"result":{}}\n'
_PROOF = ',"dpop":"[redacted] typ=dpop+jwt alg=ES256 htm=POST htu=https://a.example/mcp iat=1 jti=%s%s ath"'


_TWO = (_PROOF % ("4e0e2e73", ""))[:-1] + ", " + (_PROOF % ("5f0e2e73", ""))[9:]


def _sent(number: int, proof: str, status: int = 200, response: str = "") -> str:
    """Return the entries of a request with a DPoP token."""
    return _PING % (number, status, proof, response) + (_OK % number if status == 200 else "")


_FIRST = "@ http\n" + _sent(2, _PROOF % ("4e0e2e73", ""))
_ASKED = '"www-authenticate":"DPoP error=\\"use_dpop_nonce\\""'
_CHALLENGED = "@ http\n" + _sent(2, _PROOF % ("4e0e2e73", ""), 401, _ASKED + ',"dpop-nonce":"[redacted]"')

post = RuleGroup(RULES, on=EventKind.POST)


def _proofs(event: LintEvent) -> list[str] | None:
    """Return the recorded proofs of an HTTP request; None if its token is not one of DPoP."""
    request = event.post.request
    if not str(request.get("authorization", "")).startswith(SCHEME):
        return None
    return [proof for proof in str(request.get(HEADER, "")).split(", ") if proof]


def _asks_for_nonce(event: LintEvent) -> bool:
    return "use_dpop_nonce" in str(event.post.response.get("www-authenticate", ""))


@post.error(
    "AUTH301",
    "DPoP token without one proof",
    page=RFC + "7.1",
    valid=(_FIRST, '@ http\n> {"id":2,"method":"ping"}\n= 200 {"authorization":"[redacted]"} {}\n' + _OK % 2),
    invalid=(
        "@ http\n" + _sent(2, ""),
        "@ http\n" + _sent(2, _TWO),
    ),
)
def without_proof(event: LintEvent) -> Iterator[Report]:
    """A request with a DPoP token has exactly one `DPoP` header. A server must reject another one, because the token
    alone is what a thief has.
    """
    proofs = _proofs(event)
    if proofs is not None and len(proofs) != 1:
        yield Report(f"{len(proofs) or 'no'} DPoP headers with a DPoP token", event.post.request)


@post.error(
    "AUTH302",
    "invalid DPoP proof",
    page=RFC + "4.3",
    valid=_FIRST,
    invalid=(
        _FIRST.replace("htm=POST", "htm=GET"),
        _FIRST.replace("typ=dpop+jwt", "typ=JWT"),
        _FIRST.replace("ES256", "HS256"),
        _FIRST.replace(" ath", ""),
        _FIRST.replace(" jti=4e0e2e73", ""),
        "@ http\n" + _sent(2, ',"dpop":"[redacted] unreadable"'),
    ),
)
def invalid_proof(event: LintEvent) -> Iterator[Report]:
    """A proof is a JWT of type `dpop+jwt`, signed with an asymmetric algorithm, for the method and the URL of this
    request, with a `jti`, a time, and with `ath`, the hash of the token. A server rejects another one.
    """
    for proof in _proofs(event) or ():
        facts = facts_of(proof)
        if UNREADABLE in facts:
            yield Report("the DPoP proof is not a JWT", proof)
            continue
        wrong = [f"{name} is missing" for name in ("htu", "iat", "jti", "ath") if name not in facts]
        if facts.get("typ") != "dpop+jwt":
            wrong.append(f"typ is {facts.get('typ') or 'missing'}, not dpop+jwt")
        if (algorithm := facts.get("alg", "none")).lower() == "none" or algorithm.startswith("HS"):
            wrong.append(f"alg is {algorithm}, which is not asymmetric")
        if facts.get("htm") != "POST":
            wrong.append(f"htm is {facts.get('htm') or 'missing'}, the request is a POST")
        if wrong:
            yield Report(f"DPoP proof: {'; '.join(wrong)}"[:200], proof)


class _Proofs:
    """The proofs of a session."""

    def __init__(self) -> None:
        self.used: set[str] = set()
        self.awaits_nonce = False
        """True if the server has asked for a nonce, and supplied one, and no request followed."""


@post.error(
    "AUTH303",
    "DPoP proof used twice",
    page=RFC + "11.1",
    valid=_FIRST + _sent(3, _PROOF % ("5f0e2e73", "")),
    invalid=_FIRST + _sent(3, _PROOF % ("4e0e2e73", "")),
)
def used_twice(event: LintEvent) -> Iterator[Report]:
    """A client makes a proof for each request, with another `jti`. A server may refuse a proof that it has seen: that is
    how it recognises a stolen one.
    """
    used = event.state.memory[_Proofs].used
    for proof in _proofs(event) or ():
        jti = facts_of(proof).get("jti")
        if jti is not None and jti in used:
            yield Report(f"the jti of the proof was used before (hash {jti})", proof)
        elif jti is not None:
            used.add(jti)


@post.error(
    "AUTH304",
    "nonce asked for and not supplied",
    page=RFC + "9",
    valid=_CHALLENGED,
    invalid="@ http\n" + _sent(2, _PROOF % ("4e0e2e73", ""), 401, _ASKED),
)
def no_nonce(event: LintEvent) -> Iterator[Report]:
    """A server that answers `use_dpop_nonce` supplies the nonce in the header `DPoP-Nonce`: without it, the client can
    only fail again.
    """
    if _asks_for_nonce(event) and NONCE not in event.post.response:
        yield Report("use_dpop_nonce without a DPoP-Nonce header", event.post.response)


@post.error(
    "AUTH305",
    "proof without the nonce that the server supplied",
    page=RFC + "9",
    valid=_CHALLENGED + _sent(3, _PROOF % ("5f0e2e73", " nonce")),
    invalid=_CHALLENGED + _sent(3, _PROOF % ("5f0e2e73", "")),
)
def without_nonce(event: LintEvent) -> Iterator[Report]:
    """After `use_dpop_nonce`, the client sends the request again with a proof that contains the nonce."""
    state = event.state.memory[_Proofs]
    for proof in _proofs(event) or ():
        if state.awaits_nonce and "nonce" not in facts_of(proof):
            yield Report("the proof has no nonce, and the server asked for one", proof)
    if _proofs(event):
        state.awaits_nonce = False
    if _asks_for_nonce(event) and NONCE in event.post.response:
        state.awaits_nonce = True
