"""Revisions of the protocol and the first request: what one side knows and the other does not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.leaving import REJECTED, SECONDS_TO_LEAVE
from mcpspy.analysis.explain.causes.requests import has_fixed_form
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import (
    ERRORS,
    ClientLeft,
    FailedRequest,
    RefusedExchange,
    Violation,
)
from mcpspy.core.counted import duration
from mcpspy.core.protocol.spec import CLIENT, MODERN, REVISIONS, SERVER, UNSUPPORTED_VERSION
from mcpspy.core.session.exchange import State

_REVISION = re.compile(
    r"(?i)(?:protocol|unsupported|revision|mcp)[ -]?version|version .{0,30}not supported|unsupported protocol"
)
"""The SDKs, which refuse the revision of a request."""

_ABSENT = re.compile(r"(?i)\brequired\b|\bmissing\b|undefined|\bnull\b|\bNone\b")


def _is_of_tool(failed: FailedRequest) -> bool:
    """Return whether an error of a call is about another version: of TLS, a database, an interface."""
    if has_fixed_form(failed.method) or failed.is_refused or failed.code == -32022:
        return False
    return _DATE.search(failed.words) is None and re.search(r"(?i)\bmcp\b", failed.words) is None


_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")

_DISCOVER = ex.request("server/discover", 9, _meta={"io.modelcontextprotocol/protocolVersion": MODERN})
_UPDATE = "update the server's SDK for features of the newer revision"


@cause(
    "initialize-not-tried",
    "the client stopped after server/discover, without initialize",
    Level.EXACT,
    rules="MOD106 MOD108",
    positive=ex.session(
        "@ http bare", _DISCOVER, ex.answered(400, {"mcp-session-id": None}, {"content-type": "text/plain"})
    ),
    negative=ex.session(
        "@ http bare", _DISCOVER, ex.answered(503, {"mcp-session-id": None}, {"content-type": "text/plain"})
    ),
)
def initialize_not_tried(facts: Facts) -> Iterator[Claim]:
    """Any refusal of server/discover but one for the revision means a server of an older revision,
    to which clients send initialize (2026-07-28, versioning: compatibility with earlier revisions).
    """
    if facts.client.methods["initialize"] or facts.is_stdio:
        return  # On stdio, some clients begin another process, and so another session, for initialize.
    for failed in facts.failed(State.REFUSED, State.ERROR):
        status = None if failed.carrier is None else failed.carrier.status
        is_of_server = status in (None, 200, 400, 404, 405) and not _REVISION.search(failed.words)
        if failed.method != "server/discover" or not is_of_server:
            continue
        how = f" (HTTP {status})" if status else ""
        title = (
            f"the client stopped after server/discover was refused{how}, and never sent initialize, "
            f"which a server of an earlier revision needs: {quote(failed.words or failed.why)}"
        )
        side, next_step = CLIENT, "update the client: it must send initialize after this refusal"
        if failed.code not in (None, -32601):
            side = ""
            next_step += "; let the server answer a method that it does not know with the error -32601, before it looks for a session"
        gets = [each for each in facts.of(RefusedExchange) if each.method == "GET"]
        symptoms = [failed, *facts.of(ClientLeft), *gets, *facts.violations("MOD106", "MOD108")]
        yield Claim(title, next_step, symptoms, side=side)


@cause(
    "revision-unknown",
    "the client asked for a revision of the protocol that does not exist",
    Level.GENERAL,
    positive=ex.session("@ bare", ex.initialize(revision="1.0"), ex.welcome(), ex.INITIALIZED, ex.END),
    negative=ex.session("@ bare", ex.initialize(), ex.welcome(), ex.INITIALIZED, ex.END),
)
def revision_unknown(facts: Facts) -> Iterator[Claim]:
    """Revisions are dates. A server answers with one that it has."""
    asked, agreed = facts.listed.asked_revision, facts.session.revision
    if asked and asked not in REVISIONS and agreed:
        title = f"the client asked for the revision {quote(asked, 40)}, which does not exist, and the server "
        title += "agreed to it" if asked == agreed else f"chose {quote(agreed, 40)}"
        next_step = "let the client ask for a revision of the specification (a date such as 2025-11-25)"
        next_step += ", and the server answer with one that it has" if asked == agreed else ""
        yield Claim(title, next_step, [], is_observation=True)


def _none_in_common(facts: Facts) -> Iterator[Claim]:
    """Yield a claim of a client that asked server/discover for the revisions, and knows none of them."""
    went_on = facts.client.methods["tools/list"] + facts.client.methods["initialize"]
    if facts.listed.unsupported is not None and not went_on:
        asked, supported = facts.listed.unsupported
        title = (
            f"the client asked for {quote(asked, 20)}, and the server supports "
            f"{quote(', '.join(supported), 100)}"
        )
        next_step = "update the older side: they have no revision in common"
        yield Claim(title, next_step, [*facts.of(ClientLeft)])


def _discovered(revision: str) -> str:
    return ex.session(
        f"@ {MODERN} http", ex.request("server/discover"), ex.result(supportedVersions=[revision])
    )


@cause(
    "version-mismatch",
    "client and server have no common revision of the protocol",
    Level.EXACT,
    rules="HOST303 LIFE104 LIFE114 MOD106 MOD108",
    positive=(
        ex.session("@ bare", ex.initialize(), ex.error("Unsupported protocol version", -32602, 1)),
        ex.session(
            *(
                "@ bare",
                ex.request("initialize", 1, capabilities={}, clientInfo={"name": "a", "version": "1"}),
            ),
            ex.error("protocolVersion: Required", -32602, 1),
        ),
        _discovered("2099-01-01"),
        ex.session(
            *("@ bare", ex.initialize(), ex.error("Unsupported protocol version: 2025-11-25", -32602, 1)),
            *(
                ex.initialize(2),
                ex.welcome(2, "2024-11-05"),
                ex.INITIALIZED,
                ex.request("ping", 3),
                ex.result(3),
            ),
        ),
    ),
    negative=(
        ex.session(ex.call(), ex.error("ssl: unsupported protocol version")),
        ex.session(ex.call(), ex.error("API version 2.1 is not supported by this cluster", -32000)),
        _discovered(MODERN),
    ),
)
def version_mismatch(facts: Facts) -> Iterator[Claim]:
    """A server should answer initialize with a revision that it knows, and a client that does not know it leaves; so does
    one that knows none of those that server/discover names.
    """
    yield from _refused_revisions(facts)
    yield from _chosen_revisions(facts)
    yield from _none_in_common(facts)


def _is_too_old(asked: str | None, words: str) -> bool:
    """Return whether an error names only later revisions than the client asked for, which may know none of them."""
    named = [each.replace("_", "-") for each in re.findall(r"\d{4}[-_]\d\d[-_]\d\d", words)]
    others = [each for each in named if each != asked]
    return asked is not None and bool(others) and min(others) > asked


_OF_MEMBER = re.compile(
    r"(?i)\b(?:unrecogni[sz]ed|unknown|unexpected) (?:field|key|prop\w*)\b|not marked as ignorable"
)
"""A decoder that refuses a member, and lists those that it knows."""


def _refused_revisions(facts: Facts) -> Iterator[Claim]:
    """Yield a claim for each request that was refused for its revision."""
    for failed in facts.failed():
        is_about = failed.code == UNSUPPORTED_VERSION or (
            failed.code is not None and _REVISION.search(failed.words)
        )
        is_discover = failed.method == "server/discover"
        has_gone_on = failed.succeeded_at is not None or (is_discover and facts.client.methods["initialize"])
        if (
            failed.effects
            or has_gone_on
            or not is_about
            or _is_of_tool(failed)
            or _OF_MEMBER.search(failed.words)
        ):
            continue
        if is_discover:
            title = (
                f"the server does not know the revision of server/discover: {quote(failed.words)}, and "
                f"the client did not fall back to initialize"
            )
            next_step = (
                "the client must send initialize to an older server: update it, or set it to the older "
                "revisions"
            )
            yield Claim(title, next_step, [failed, *facts.violations("MOD106", "MOD108")], side=CLIENT)
            continue
        is_initialize = failed.method == "initialize"
        has_gone_on = (
            is_initialize and facts.answered[CLIENT, "initialize"] > 0
        )  # It asked for an older one then.
        asked = facts.listed.asked_revision if is_initialize and not has_gone_on else None
        if is_initialize and asked is None and _ABSENT.search(failed.words):
            title = f"the client sent initialize without protocolVersion: {quote(failed.words)}"
            next_step = (
                "let the client send the revision that it wants as protocolVersion, such as 2025-11-25"
            )
            symptoms = [failed, *facts.of(ClientLeft), *facts.violations("LIFE104", "MOD106")]
            yield Claim(title, next_step, symptoms, side=CLIENT)
            continue
        left = facts.of(ClientLeft) if failed.is_handshake else []
        title = (
            f"the server refused the revision{f' {quote(asked, 20)}' if asked else ''} that the client "
            f"asked for: {quote(failed.words)}"
        )
        next_step = (
            "let the server answer with a revision that it knows, in place of an error; or update the "
            "older side"
        )
        symptoms = [failed, *left, *facts.violations("LIFE104", "MOD106", "HOST303")]
        # A slow server may answer server/discover after the client has sent initialize, and refuse only that.
        goes_on = (
            failed.is_handshake
            and not is_initialize
            and any(
                facts.answered[CLIENT, method] for method in ("tools/list", "tools/call", "resources/list")
            )
        )
        # A server of 2026-07-28 alone has this code for it, and no older revision to answer with.
        side = "" if failed.code == UNSUPPORTED_VERSION or _is_too_old(asked, failed.words) else SERVER
        if asked is not None and asked not in REVISIONS:
            title += f"; no revision has the name {quote(asked, 20)}"
            next_step = f"let the client ask for a revision that exists, such as {REVISIONS[-2]}; {next_step}"
            side = ""
        yield Claim(title, next_step, symptoms, side=side, is_observation=goes_on)


def _chosen_revisions(facts: Facts) -> Iterator[Claim]:
    """Yield a claim of a result of initialize whose revision the client does not know."""
    closed_at = facts.client.closed_at
    has_left_before = closed_at is not None and (facts.server.last_at or 0.0) >= closed_at
    # A client that cannot read the result leaves for its form, whatever its revision: `client-left`.
    is_unreadable = any(
        each.code in REJECTED and each.code != "LIFE114"
        for left in facts.of(ClientLeft)
        for each in left.findings
    )
    # Text among the messages is reason enough: `stdout-noise`.
    is_unreadable |= facts.is_stdio and facts.server.odd_count > 0
    if facts.has_worked or has_left_before or is_unreadable:
        return
    for violation in facts.violations("LIFE114", "HOST303"):
        message = violation.findings[0].message
        if "revision None" in message:
            continue
        title = quote(message)
        next_step, side = "update the older side: the revisions are in initialize and its response", ""
        answered, asked = _DATE.search(message), facts.listed.asked_revision
        is_older = answered is not None and answered[0] in REVISIONS and answered[0] < (asked or "")
        if is_older and not facts.is_stdio:
            yield from _older_than_transport(facts, violation)
            continue  # Clients that ask for a newer one know it, and over HTTP nothing shows that this one left at once.
        if answered is not None and asked is not None and answered[0] != asked:
            # A server may not have the other revision, so either side may have to change.
            what = (
                "update the server's SDK"
                if answered[0] < asked
                else "let the server answer with the older one, if it has it"
            )
            next_step = (
                f"{what}: the client asked for {quote(asked, 20)}, and does not support {answered[0]}; or use a client "
                f"that does"
            )
        if facts.violations("LIFE104", side=SERVER):  # It does not exist.
            next_step, side = "let the server answer with a revision of MCP that it supports", SERVER
        yield Claim(title, next_step, [violation, *facts.of(ClientLeft)], side=side)


def _older_than_transport(facts: Facts, violation: Violation) -> Iterator[Claim]:
    """Yield the claim for a client that left after a revision that has no Streamable HTTP."""
    left = [each for each in facts.of(ClientLeft) if not each.is_initialized]
    if left and facts.header.transport == "http" and REVISIONS[0] in violation.findings[0].message:
        title = f"the server answered with revision {REVISIONS[0]}, which is older than Streamable HTTP, and the client left"
        next_step = (
            f"let the server answer with {REVISIONS[1]} or later: {REVISIONS[0]} has only stdio and HTTP+SSE, so some clients do "
            f"not accept it over Streamable HTTP; or let the client accept it"
        )
        yield Claim(title, next_step, [violation, *left])


def _discover_refused(facts: Facts) -> Iterator[Claim]:
    """Yield a claim of a client of 2026-07-28 that asked an older server for its revisions first."""
    went_on = facts.client.methods["initialize"] > 0
    for failed in facts.failed():
        # Some clients begin another process, and so another session, for initialize.
        is_unknown = failed.code == -32601 and not failed.effects and failed.state in ERRORS
        if failed.method == "server/discover" and failed.code != -32020 and (went_on or is_unknown):
            how = "continued with initialize, as it should" if went_on else "has to begin with initialize"
            title = (
                f"the server refused server/discover ({MODERN}), and the client {how}: "
                f"{quote(failed.words or failed.why)}"
            )
            symptoms = [failed, *facts.violations("MOD106", "MOD108")]
            claim = Claim(title, _UPDATE, symptoms, is_observation=True)
            claim.level = Level.EXACT if went_on else Level.SPECIFIC
            yield claim


AT_ONCE = 0.05
"""Seconds in which a client leaves that needs nothing more from a server."""


@cause(
    "downgrade",
    "the server has an older revision than the client asked for",
    Level.GENERAL,
    rules="MOD106 MOD108",
    positive=(
        ex.session(
            "@ bare",
            ex.initialize(),
            ex.welcome(1, "2025-06-18"),
            ex.INITIALIZED,
            ex.request("ping"),
            ex.result(),
        ),
        ex.session(
            "@ http bare",
            _DISCOVER,
            ex.answered(400, {"mcp-session-id": None}, {"content-type": "text/plain"}),
            *(ex.initialize(), ex.welcome(), ex.INITIALIZED),
        ),
    ),
)
def downgrade(facts: Facts) -> Iterator[Claim]:
    """Both speak the older revision, so all is well; features of the newer one are not available. A client of 2026-07-28
    asks an older server first for its revisions, and begins with initialize after any refusal.
    """
    yield from _discover_refused(facts)
    asked, agreed = facts.listed.asked_revision, facts.session.agreed_revision
    if asked is not None and agreed is not None and agreed < asked:
        title = f"the client asked for {quote(asked, 20)}, and the server chose {quote(agreed, 20)}"
        next_step = _UPDATE
        left = next(iter(facts.of(ClientLeft)), None)
        has_asked = facts.client.methods.keys() - {"initialize", "notifications/initialized"}
        is_refused = any(each.asked == "notifications/initialized" for each in facts.of(RefusedExchange))
        # One that looks whether a server starts ends the handshake, too, and leaves then.
        patience = AT_ONCE if left is not None and left.is_initialized else SECONDS_TO_LEAVE
        if left is None or has_asked or is_refused or left.after > patience:
            yield Claim(title, next_step, [], is_observation=True)
        else:
            title += f"; the client left {duration(left.after)} later without a request: it does not accept this revision"
            title += ", unless it only looked whether the server starts" if left.is_initialized else ""
            next_step = (
                "update the client, which must accept a revision that it supports also if it asked for a newer one, "
                "or update the server's SDK"
            )
            yield Claim(title, next_step, [left], side=CLIENT, level=Level.SPECIFIC)
