"""HTTP exchanges that were not ordinary: which they are, who refused them, and in which words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.evidence import quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import FailedRequest, RefusedExchange, Symptom
from mcpspy.core.protocol.http_headers import EVENTS, JSON
from mcpspy.core.protocol.spec import SERVER

_PROXIES = re.compile(
    r"(?i)nginx|cloudflare|haproxy|envoy|traefik|caddy|awselb|akamai|varnish|apache|gws|vercel"
    r"|istio|openresty|microsoft-azure-application-gateway|cloudfront"
)
"""Proxies by the beginning of the header Server."""

NO_ROUTE = re.compile(
    r"(?i)page not found|cannot (?:post|get) /|no (?:such )?route|requested route|default backend|no service|no static resource"
)
"""The words of Go's net/http (Traefik), Express, Spring, ingress-nginx and gateways for a path that they do not have."""

_INTERNAL = re.compile(r"(?i)^\W*(?:500|error)?\W*(?:internal )?(?:server )?error\W*$")

LOGIN = re.compile(r"(?i)\b(?:log ?in|sign ?in|sso|single sign|authenticate)\b")

ERROR_PAGE = re.compile(r"(?i)\bHTTP (?:status|error) 40[13]\b|authentication credentials|could not verify")
"""The pages of Tomcat, Jetty, Apache and Flask for 401 and 403, which have no form for signing in."""


def exchanges(facts: Facts, *statuses: int) -> Iterator[tuple[RefusedExchange, Symptom]]:
    """Yield each HTTP exchange that was not ordinary, with its symptom: itself, or the request that it carried.

    With statuses, only those that the server or a proxy answered so, and not mcpspy itself.
    """
    for symptom in facts.symptoms:
        exchange = symptom if isinstance(symptom, RefusedExchange) else None
        if isinstance(symptom, FailedRequest) and not symptom.effects:
            exchange = symptom.carrier
        if exchange is not None and (not statuses or (exchange.status in statuses and not exchange.error)):
            yield exchange, symptom


def alike(facts: Facts, first: RefusedExchange) -> list[Symptom]:
    """Return all symptoms of refusals with the same status."""
    return [
        symptom
        for exchange, symptom in exchanges(facts)
        if exchange.status == first.status and not exchange.error
    ]


def is_overcome(symptoms: list[Symptom]) -> bool:
    """Return whether the same requests succeeded later, so that nothing is wrong any more."""
    later = [symptom for symptom in symptoms if isinstance(symptom, FailedRequest | RefusedExchange)]
    return bool(later) and all(symptom.succeeded_at is not None for symptom in later)


def said(exchange: RefusedExchange, symptom: Symptom) -> str:
    """Return the words of a refusal: of the JSON-RPC error in it, else of its body or challenge."""
    return (symptom.words if isinstance(symptom, FailedRequest) else "") or exchange.words


def with_words(facts: Facts, *statuses: int) -> Iterator[tuple[RefusedExchange, str]]:
    """Yield each of these exchanges with the words of its refusal."""
    for exchange, symptom in exchanges(facts, *statuses):
        yield exchange, said(exchange, symptom)


def says_nothing(words: str) -> bool:
    """Return whether the words of an error, such as "Internal server error", have no reason in them."""
    return _INTERNAL.search(words) is not None


def who_refused(exchange: RefusedExchange) -> str:
    """Return who refused: a proxy that names itself, or the server.

    Proxies put their name on what they pass on, too. Their own refusals are pages or text, and not JSON.
    """
    server = "" if exchange.media_type == JSON else exchange.response.get("server", "")
    return f"the proxy {quote(server, 40)}" if _PROXIES.match(server) else "the server"


def side_of(exchange: RefusedExchange) -> str:
    """Return the side that refused: a proxy that names itself, or the server."""
    return SERVER if who_refused(exchange) == "the server" else "proxy"


def about(exchange: RefusedExchange) -> str:
    """Return the posted message in words, or the method of HTTP."""
    return exchange.asked or exchange.method


def accepts_messages(exchange: RefusedExchange) -> bool:
    """Return whether a request accepts what a server may answer (2025-11-25, Transports): events, and JSON to a POST."""
    accepted = exchange.request.get("accept", "").lower()
    return EVENTS in accepted and (exchange.method == "GET" or JSON in accepted)


def is_stream(exchange: RefusedExchange) -> bool:
    """Return whether a client asked for events by it."""
    return exchange.method == "GET" and EVENTS in exchange.request.get("accept", "")


def is_round(seconds: float) -> bool:
    """Return whether a time is near a multiple of ten seconds, as the limits of proxies and platforms are."""
    return abs(seconds - 10 * round(seconds / 10)) < 1.0
