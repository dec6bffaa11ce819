"""Revisions of the protocol on which client and server do not agree, or agree on an older one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.calls import ERRORS
from mcpspy.analysis.explain.causes.definition import Definition, define
from mcpspy.analysis.explain.claims import Claim, Level
from mcpspy.analysis.explain.evidence import quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ClientLeft
from mcpspy.core.protocol.spec import CLIENT, MODERN, SERVER

_REVISION = re.compile(
    r"(?i)(?:protocol|unsupported|revision|mcp)[ -]?version|version .{0,30}not supported|unsupported protocol"
)
"""The SDKs, which refuse the revision of a request."""


def discover_refused(facts: Facts) -> Iterator[Claim]:
    """A client of 2026-07-28 asks an older server first for its revisions; after any refusal it begins with initialize."""
    went_on = facts.client.methods["initialize"] > 0
    for failed in facts.failed():
        # Some clients begin another process, and so another session, for initialize.
        is_unknown = failed.code == -32601 and not failed.effects and failed.state in ERRORS
        if failed.method == "server/discover" and failed.code != -32020 and (went_on or is_unknown):
            how = (
                "the client continued with initialize, as it should"
                if went_on
                else "the client has to begin with initialize"
            )
            yield Claim(
                title=f"the server refused server/discover ({MODERN}), and {how}: {quote(failed.words or failed.why)}",
                next_step=f"update the server's SDK for features of {MODERN}",
                symptoms=[failed, *facts.violations("MOD106", "MOD108")],
                is_observation=True,
                level=Level.EXACT if went_on else Level.SPECIFIC,
            )


def version_mismatch(facts: Facts) -> Iterator[Claim]:
    """A server should answer initialize with a revision that it knows, and a client that does not know it leaves."""
    for failed in facts.failed():
        is_about = failed.code == -32022 or (failed.code is not None and _REVISION.search(failed.words))
        if failed.effects or failed.succeeded_at is not None or not is_about:
            continue
        if failed.method == "server/discover" and facts.client.methods["initialize"]:
            continue
        if failed.method == "server/discover":
            title = f"the server does not know the revision of server/discover: {quote(failed.words)}, and the client did not fall back to initialize"
            next_step = "the client must send initialize to an older server: update it, or set it to the older revisions"
            symptoms = [failed, *facts.violations("MOD106", "MOD108")]
            yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=CLIENT)
            continue
        asked = facts.listed.asked_revision if failed.method == "initialize" else None
        left = facts.of(ClientLeft) if failed.is_handshake else []
        title = f"the server refused the revision{f' {quote(asked, 20)}' if asked else ''} that the client asked for: {quote(failed.words)}"
        next_step = "let the server answer with a revision that it knows, in place of an error; or update the older side"
        symptoms = [failed, *left, *facts.violations("LIFE104", "MOD106", "HOST303")]
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=SERVER)
    has_worked = facts.answered[CLIENT, "tools/list"] or facts.answered[CLIENT, "tools/call"]
    closed_at = facts.client.closed_at
    has_left_before = closed_at is not None and (facts.server.last_at or 0.0) >= closed_at
    for violation in facts.violations("LIFE114", "HOST303"):
        message = violation.findings[0].message
        if not has_worked and not has_left_before and "revision None" not in message:
            title = quote(message)
            next_step = "update the older side: the revisions are in initialize and its response"
            yield Claim(title=title, next_step=next_step, symptoms=[violation, *facts.of(ClientLeft)])


def revision_not_supported(facts: Facts) -> Iterator[Claim]:
    """Since 2026-07-28, a client asks server/discover for the revisions, and leaves if it knows none of them."""
    went_on = facts.client.methods["tools/list"] + facts.client.methods["initialize"]
    if facts.listed.unsupported is not None and not went_on:
        asked, supported = facts.listed.unsupported
        title = f"the client asked for {quote(asked, 20)}, and the server supports {quote(', '.join(supported), 100)}"
        next_step = "update the older side: they have no revision in common"
        yield Claim(title=title, next_step=next_step, symptoms=[*facts.of(ClientLeft)])


def downgrade(facts: Facts) -> Iterator[Claim]:
    """Both speak the older revision, so all is well; features of the newer one are not available."""
    asked, agreed = facts.listed.asked_revision, facts.session.agreed_revision
    if asked is not None and agreed is not None and agreed < asked:
        title = f"the client asked for {quote(asked, 20)}, and the server chose {quote(agreed, 20)}"
        next_step = "update the server's SDK for features of the newer revision"
        yield Claim(title=title, next_step=next_step, symptoms=[], is_observation=True)


define(__name__,
    Definition(discover_refused, "discover-refused", "the server refused server/discover, and the client continued with initialize", Level.EXACT,
               ex.session("@ http bare", ex.request("server/discover", 9, _meta={"io.modelcontextprotocol/protocolVersion": MODERN}), ex.answered(400, {"mcp-session-id": None}, {"content-type": "text/plain"}), *(ex.initialize(), ex.welcome(), ex.INITIALIZED))),
    Definition(version_mismatch, "version-mismatch", "client and server have no common revision of the protocol", Level.EXACT,
               ex.session("@ bare", ex.initialize(), ex.error("Unsupported protocol version", -32602, 1))),
    Definition(revision_not_supported, "revision-not-supported", "the server supports none of the revisions that the client asked for", Level.EXACT,
               ex.session(f"@ {MODERN} http", ex.request("server/discover"), ex.result(supportedVersions=["2099-01-01"])),
               ex.session(f"@ {MODERN} http", ex.request("server/discover"), ex.result(supportedVersions=[MODERN]))),
    Definition(downgrade, "downgrade", "the server answered with an older revision than the client asked for", Level.GENERAL,
               ex.session("@ bare", ex.initialize(), ex.welcome(1, "2025-06-18"), ex.INITIALIZED, ex.request("ping"), ex.result())),
)  # fmt: skip
