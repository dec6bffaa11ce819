"""The metadata of a resource and of its authorization server: what is wrong in them."""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.sign_in import (
    RULES,
    refused_step,
    sign_in_claim,
    steps_of,
    unauthorized,
)
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import evidence, quote, url_parts
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.http_facts import OauthStep
from mcpspy.analysis.explain.symptoms import RefusedExchange
from mcpspy.core.protocol.spec import SERVER


def other_resource(step: OauthStep, endpoint: str) -> str:
    """Return the resource that metadata name, if it is not the endpoint with this path; else nothing."""
    resource = str(step.fields.get("resource") or "")
    is_endpoint = f"{endpoint}/".startswith(f"{url_parts(resource).path.rstrip('/')}/")
    return resource if step.status == 200 and not is_endpoint else ""


METADATA_STEPS = {
    "AUTH101": "let the metadata name the URL of the endpoint as its resource, as clients use it",
    "AUTH102": (
        "let the metadata name the issuer that it is served under, or the resource's metadata name this "
        "issuer"
    ),
    "AUTH103": "let the authorization server declare S256 in code_challenge_methods_supported",
}


@cause(
    "oauth-metadata",
    "the metadata for the sign-in does not fit or cannot be read",
    Level.EXACT,
    rules=RULES,
    positive=ex.unauthorized(ex.oauth("resource metadata", 200, resource="http://127.0.0.1:3001/other")),
    negative=(
        ex.unauthorized(ex.METADATA),
        # The client did not mind, and the sign-in in the browser was not completed.
        ex.unauthorized(
            ex.oauth("resource metadata", 200, resource="http://127.0.0.1:3001/other"),
            *(ex.oauth("registration", 201, 64), ex.oauth("authorize", 200, 65)),
        ),
    ),
)
def oauth_metadata(facts: Facts) -> Iterator[Claim]:
    """The issuer must be the URL that it was asked from, the resource the URL of the endpoint (RFC
    8414, 3.3; RFC 9728, 3.3).
    """
    has_stopped = refused_step(facts, "registration") is not None
    if not (unauthorized(facts) or has_stopped) or steps_of(facts, "token", "retry"):
        return
    for step in [each for each in facts.http.oauth if each.fields.get("unreadable")][:1]:
        title = (
            f"the address of the {step.step} is answered with HTTP {step.status} and no JSON object, "
            f"such as a page of a web application"
        )
        next_step = "let the server answer /.well-known/oauth-* with metadata, or 404 if it wants no token"
        claim = sign_in_claim(facts, title, next_step, step, side=SERVER)
        claim.symptoms += facts.of(RefusedExchange) if has_stopped else []
        yield claim
        return
    went_on = any((each.status or 400) < 400 for each in steps_of(facts, "authorize", "device authorization"))
    for violation in () if went_on else facts.violations(*METADATA_STEPS):
        title = quote(violation.findings[0].message)
        claim = sign_in_claim(facts, title, METADATA_STEPS[violation.code], side=SERVER)
        claim.evidence = violation.lines[:1]
        yield claim
    endpoint = facts.endpoint.path
    for step in () if went_on else steps_of(facts, "resource metadata"):
        if resource := other_resource(step, endpoint):
            title = (
                f"the metadata is that of the resource {quote(resource, 80)}, which is not the URL of "
                f"the endpoint ({quote(endpoint, 60)})"
            )
            claim = sign_in_claim(facts, title, f"{METADATA_STEPS['AUTH101']} (RFC 9728, 3.3)", side=SERVER)
            claim.evidence = [evidence(step.place, f"resource: {resource}")]
            yield claim
            break
