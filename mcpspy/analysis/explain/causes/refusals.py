"""HTTP requests that a server or proxy refused, and whose text or headers name the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import SplitResult, urlsplit

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.connection import REFUSED_BY_MCPSPY
from mcpspy.analysis.explain.causes.definition import FailureRow, define
from mcpspy.analysis.explain.causes.exchanges import (
    ERROR_PAGE,
    LOGIN,
    about,
    alike,
    exchanges,
    said,
    who_refused,
)
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ClientLeft, RefusedExchange
from mcpspy.core.protocol.http_headers import JSON
from mcpspy.core.protocol.spec import CLIENT, REVISIONS, SERVER
from mcpspy.core.session.exchange import State

_HOST = re.compile(
    r"(?i)\b(?:invalid|disallowed|forbidden|unknown|bad|unexpected|untrusted)\b.{0,20}\bhost\b"
    r"|\bhost\b.{0,30}\b(?:not (?:allowed|trusted|permitted)|is not|invalid|mismatch|blocked)"
    r"|misdirected|DNS rebinding|allowed[_ ]?hosts"
)
_ORIGIN = re.compile(
    r"(?i)\b(?:invalid|disallowed|forbidden|bad)\b.{0,20}\borigin\b"
    r"|\borigin\b.{0,30}\b(?:not (?:allowed|trusted|permitted)|invalid|blocked)"
)
"""The checks against DNS rebinding of the SDKs, and of Starlette, Django, Rails and Vite."""
_OF_HEADER = re.compile(
    r"(?i)\bheader|\ballow|\borigin|rebinding|^\W*(?:\d+\W*)?(?:forbidden|misdirected.*)?\W*$"
)
_OTHER_REASON = re.compile(
    r"(?i)\b(?:token|api|key|scopes?|permissions?|permitted|roles?|plan|user|account|organi[sz]ation|license|subscription"
    r"|credentials?|csrf|ip|country|region|disabled|quota|limit|tools?)\b|auth"
)
"""Words of a refusal that is not about the page from which a request came."""


@cause(
    "host-refused",
    "the server refuses the Host or Origin that it receives",
    Level.EXACT,
    positive=(
        ex.first_answer(421, "Invalid Host header"),
        ex.first_answer(403, "mcpspy: Host mcp.example.com is not this machine"),
        ex.first_answer(403, {"origin": "https://a.example"}, "Forbidden"),
    ),
    negative=(
        ex.first_answer(421, {":error": "cannot reach it"}),
        ex.first_answer(403, {"origin": "https://a.example"}, "Invalid API key"),
        ex.session("@ http", ex.listed("a"), ex.call(3), ex.answered(400, "Unknown host: db.internal")),
        ex.session(
            "@ http", ex.listed("a"), ex.call(3), ex.answered(403, {"origin": "https://a.example"}, "Denied")
        ),
    ),
)
def host_refused(facts: Facts) -> Iterator[Claim]:
    """SDKs, frameworks and mcpspy accept only known names, against DNS rebinding; a proxy in front
    may change Host.
    """
    for exchange, symptom in exchanges(facts):
        for text in (exchange.error, exchange.words):
            if found := REFUSED_BY_MCPSPY.search(text):
                name = re.sub(r"^\w+://", "", found[2]).partition(":")[0]
                title = f"mcpspy refused the client: {quote(text)}"
                next_step = (
                    f"start mcpspy http with --allow-host {quote(name)}, if clients shall reach it under "
                    f"this name"
                )
                yield Claim(title=title, next_step=next_step, symptoms=[symptom], side="configuration")
                return
    for exchange, symptom in exchanges(facts, 400, 403, 421):
        words = said(exchange, symptom)
        if exchange.asked.startswith("tools/call") and facts.answered and not _OF_HEADER.search(words):
            continue  # A host that the call names.
        is_host, is_origin = bool(_HOST.search(words)), bool(_ORIGIN.search(words))
        if exchange.status == 403 and "origin" in exchange.request and not is_host:
            # A short 403 with an Origin, and no word of signing in: the check of the origin, which gives no reason.
            is_short = len(words) < 40 and exchange.media_type != "text/html"
            # A session that worked came from the same page.
            is_short = (
                is_short and exchange.request.get("mcp-session-id", "") not in facts.http.accepted_count
            )
            is_short = is_short and not _OTHER_REASON.search(words)
            is_origin = is_origin or (is_short and "www-authenticate" not in exchange.response)
        if exchange.status != 421 and not is_origin and not is_host:
            continue
        name, value = "Host", urlsplit(facts.header.upstream or "").netloc
        proxy = (
            ", or let the proxy in front of it keep the Host of the client (nginx: proxy_set_header Host "
            "$http_host)"
        )
        if is_origin:
            name, value, proxy = "Origin", exchange.request.get("origin", ""), ""
        title = (
            f"{who_refused(exchange)} refuses the {name} {quote(value, 80)} (HTTP {exchange.status}): "
            f"{quote(words)}"
        )
        next_step = f"add the name to the server's allowed {name.lower()}s{proxy}"
        yield Claim(title=title, next_step=next_step, symptoms=alike(facts, exchange), side=SERVER)
        break


define(
    __name__,
    FailureRow(
        "valid-message-unreadable",
        "the server calls a valid message unreadable",
        Level.EXACT,
        why="Something before the MCP handler (a body parser, an adapter of a platform) has read the "
        "body of the request, so nothing is"
        " left for the transport: mcpspy could read the same message.",
        title="the server cannot read {about}, although it is valid JSON: HTTP {status}, {words}",
        next_step="something before the MCP handler has read the body: pass the parsed body on to the "
        "transport (handleRequest(req, res, req.body)), or do not parse it there",
        statuses=(400, 500),
        # A message of another form than that of JSON-RPC was read.
        words=r"^(?!.*\b(?:json-?rpc|message|schema)\b).*parse error|stream is not readable|body (?:already|has been)|unexpected end of (?:json"
        r"|input)|invalid json(?!-?rpc)",
        if_refused=lambda facts, exchange: (
            # Where requests were read, the message is not what cannot be read.
            bool(exchange.asked) and not facts.answered and not facts.violations("ENV107", side=CLIENT)
        ),
        is_together=True,
        negative=(
            ex.session(
                "@ http bare",
                *(ex.initialize(), ex.answered(400)),
                ex.error("Parse error: Invalid JSON-RPC message", -32700, None),
            ),
            ex.session("@ http", ex.listed("a"), ex.call(3), ex.answered(400, "Invalid JSON: no object")),
        ),
        positive=ex.session(
            "@ http bare", ex.initialize(), ex.answered(400), ex.error("Parse error", -32700, None)
        ),
    ),
)


define(
    __name__,
    FailureRow(
        "response-refused",
        "the server refused the client's response to its own request",
        Level.SPECIFIC,
        why="A client posts its response to a request of the server (ping, roots, sampling, elicitation). The server "
        "answers 202; a gateway that expects a method in each message refuses it.",
        title="the server asked the client, and then refused {about} with HTTP {status}{quoted}",
        next_step="let the server, or the gateway in front of it, accept a response (a message with result or error and "
        "no method) with 202, and pass it on to what asked",
        statuses=(400, 405, 406, 409, 415, 422, *range(500, 600)),
        if_refused=lambda facts, exchange: exchange.is_response,
        is_together=True,
        positive=ex.session("@ http", ex.ping_answered(400, "Invalid MCP request")),
        negative=ex.session("@ http", ex.ping_answered(202)),
    ),
)


_PAGE = {"origin": "http://localhost:6274", "access-control-request-headers": "mcp-protocol-version"}


def _unknown_revision(facts: Facts) -> str:
    """Return the revision that the client asked for, if there is none of this name; else nothing."""
    asked = facts.listed.asked_revision or ""
    return "" if asked in REVISIONS else asked


def _preflight_flaw(preflight: RefusedExchange) -> str | None:
    """Return what is wrong with the answer to a preflight; None if the browser goes ahead."""
    if preflight.status is None or preflight.status >= 300:
        return f"HTTP {preflight.status}"
    names = preflight.request.get("access-control-request-headers", "").replace(",", " ").split()
    allowed = preflight.response.get("access-control-allow-headers", "").lower()
    missing = [name for name in names if allowed.strip() != "*" and name.lower() not in allowed]
    origin, page = preflight.response.get("access-control-allow-origin"), preflight.request.get("origin")
    if origin is None:
        missing = missing or ["Access-Control-Allow-Origin"]
    elif page and "," not in origin and origin.strip() not in ("*", page):
        return f"with Access-Control-Allow-Origin: {quote(origin, 60)}, which is not this page"
    return f"without {', '.join(missing)}" if missing else None


@cause(
    "preflight-refused",
    "a browser's preflight request was refused (CORS)",
    Level.EXACT,
    positive=(
        ex.session("@ http bare", ex.http("OPTIONS", 405, head=_PAGE)),
        ex.session(
            "@ http bare",
            ex.http(
                "OPTIONS",
                204,
                head=_PAGE,
                access_control_allow_origin="https://a.example",
                access_control_allow_headers="*",
            ),
        ),
        # An observation: the program continues.
        ex.session("@ http", ex.http("OPTIONS", 405, head=_PAGE), ex.listed("a"), ex.call(3), ex.done(3)),
    ),
    negative=ex.session(
        "@ http bare",
        ex.http(
            "OPTIONS", 204, head=_PAGE, access_control_allow_origin="*", access_control_allow_headers="*"
        ),
    ),
)
def preflight_refused(facts: Facts) -> Iterator[Claim]:
    """Before a request with headers of MCP, a browser asks with OPTIONS whether the page may send them."""
    refused = [each for each in facts.of(RefusedExchange) if each.method == "OPTIONS"]
    symptoms = [*refused, *facts.of(ClientLeft)]
    for preflight in facts.http.preflights:
        if (why := _preflight_flaw(preflight)) is None or (not symptoms and facts.client.messages):
            continue
        headers = preflight.request
        asked = headers.get("access-control-request-headers", "")
        asked_for = quote(asked, 120) or headers.get("access-control-request-method", "")
        title = (
            f"the preflight of the page at {quote(headers.get('origin', ''), 60)} (OPTIONS "
            f"{preflight.path}) was answered {why}; it asked for {asked_for}"
        )
        next_step = (
            f"let the server answer OPTIONS with 204 and Access-Control-Allow-Origin, -Allow-Methods and "
            f"-Allow-Headers: {quote(asked, 120)}"
        )
        symptoms = [*symptoms] or [preflight]
        lines = [evidence(preflight.place, f"{preflight.line}, asked for {asked}")]
        claim = Claim(title=title, next_step=next_step, symptoms=symptoms, evidence=lines, side=SERVER)
        if (
            facts.http.oauth and facts.http.oauth[-1].at < preflight.at
        ):  # The last step of a sign-in in the browser.
            claim.symptoms += [each for _, each in exchanges(facts, 401) if each not in claim.symptoms]
        claim.is_observation = _has_gone_on(facts, preflight)
        yield claim
        break


def _has_gone_on(facts: Facts, preflight: RefusedExchange) -> bool:
    """Return whether calls of the program that asked succeeded after its preflight was refused, as none of a browser does."""
    calls = facts.answered[CLIENT, "tools/call"]
    is_later = (facts.client.last_at or 0.0) > preflight.at < (facts.server.last_at or 0.0)
    return bool(calls) and is_later and preflight.agent in facts.http.agents and not facts.failed()


_VERSION = re.compile(
    r"(?i)(?:protocol|unsupported|mcp)[ -]?version"
    r"|(?<!api )(?<!client )(?<!app )(?<!plugin )(?<!extension )(?<!server )\bversion .{0,30}(?:not supported|unsupported)"
    r"|unsupported protocol(?! scheme)"
)
"""The SDKs, which check MCP-Protocol-Version."""


@cause(
    "version-header",
    "the server refuses the revision in a header or in initialize",
    Level.EXACT,
    positive=ex.notification_answer(400, "Unsupported protocol version"),
    negative=(
        ex.notification_answer(400),
        ex.list_answer(400, 'Get "": unsupported protocol scheme'),
        ex.session(
            "@ http", ex.listed("a"), ex.call(3), ex.answered(400, "Unsupported protocol version: SNMPv1")
        ),
        ex.first_answer(400, "Client version 1.2 is not supported, please upgrade"),
    ),
)
def version_header(facts: Facts) -> Iterator[Claim]:
    """Some servers refuse a revision that they do not know, in place of answering initialize with
    one that they do.
    """
    for exchange, symptom in exchanges(facts, 400, 403, 406, 426):
        words = said(exchange, symptom)
        if not _VERSION.search(words) or exchange.asked == "server/discover":
            continue
        version, agreed = exchange.request.get("mcp-protocol-version"), facts.session.agreed_revision
        is_call = exchange.asked.startswith("tools/call")
        if is_call and version is not None and version == agreed and facts.answered[CLIENT, "tools/list"]:
            continue  # The same header was accepted: it is a version that the call is about.
        where = f"in the header of {about(exchange)} ({quote(version)})" if version else "in initialize"
        title = f"the server refuses the revision {where}: {quote(words)}"
        next_step = (
            "let the client send the revision that the server answered to initialize, or update the "
            "server's SDK"
        )
        side = ""
        if exchange.asked == "initialize":
            side = SERVER
            next_step = (
                "let the server answer initialize with a revision that it supports, in place of an error (2025-11-25, "
                "Lifecycle): update its SDK"
            )
        if exchange.asked == "initialize" and (unknown := _unknown_revision(facts)):
            title = f"the client asks for the revision {quote(unknown, 40)}, which does not exist, and the server refuses it: {quote(words)}"
            next_step = (
                f"let the client ask for a revision that exists, such as {REVISIONS[-2]}; the server should answer any other "
                f"with the latest one that it supports (2025-11-25, Lifecycle)"
            )
            side = ""
        if version is None and exchange.asked != "initialize":
            title = f"{about(exchange)} has no MCP-Protocol-Version, and the server wants it: {quote(words)}"
            next_step = (
                "let the client send the revision that initialize was answered with in each request after it; look "
                "whether a proxy between client and mcpspy drops the header"
            )
            side = CLIENT
        if version and agreed is not None and version != agreed:
            title = (
                f"the client sends the revision {quote(version)} in the header of {about(exchange)}, "
                f"although the server had answered initialize with {quote(agreed)}: {quote(words)}"
            )
            side = CLIENT
        same = exchanges(facts, exchange.status or 0)
        symptoms = [each for other, each in same if other.request.get("mcp-protocol-version") == version]
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=side)
        break


_SIGN_IN = re.compile(
    r"(?i)(?:^|[/._-])(?:log[-_]?in|sign[-_]?in|log[-_]?on|sso|saml2?|oidc|oauth2?|authn?|authenticate|authori[sz]e|accounts?"
    r"|idp|adfs|sessions/new)(?=$|[/._?-])"
)
"""A host or path of a page for signing in: accounts.google.com, /users/sign_in, /oauth2/start, /cdn-cgi/access/login."""


def _sign_in_page(facts: Facts, redirects: str) -> str:
    """Return the first of these redirects (`307 → /login`) that leads to a page for signing in; else nothing."""
    old = urlsplit(facts.header.upstream or "").path.rstrip("/")
    for redirect in redirects.split(", "):
        new = urlsplit(redirect.partition(" → ")[2])
        path = new.path.rstrip("/")
        # An endpoint below /auth/ that only moves is not a page for signing in.
        is_moved = bool(old) and (path.endswith(old) or path.startswith(f"{old}/"))
        if not is_moved and (_SIGN_IN.search(new.path) or _SIGN_IN.search(new.hostname or "")):
            return redirect
    return ""


_GATEWAY = re.compile(
    r"(?i)cloudflareaccess\.com|/cdn-cgi/access/|/oauth2/(?:start|sign_in)|/\.auth/login|/outpost\.goauthentik|authelia|vercel\.com/sso"
)
"""Pages for signing in of what stands in front of a site, and not of the site itself."""

_TO_LOGIN = ex.answered(307, {}, {"location": "http://127.0.0.1:3001/login/visitor"})


@cause(
    "redirected-to-sign-in",
    "a request was redirected to a page for signing in, in place of 401",
    Level.EXACT,
    rules="HTTP307",
    positive=(
        ex.session("@ http", ex.call(), ex.answered(200, ex.WITH_TOKEN), ex.done(), ex.call(3), _TO_LOGIN),
        ex.session("@ http bare", ex.initialize(), ex.answered(302, ex.WITH_TOKEN, {"location": "/sso"})),
    ),
    negative=ex.session(
        "@ http", ex.call(), ex.answered(307, {}, {"location": "http://127.0.0.1:3001/mcp/"})
    ),
)
def redirected_to_sign_in(facts: Facts) -> Iterator[Claim]:
    """A gateway or the site itself treats a POST without a valid token as a visit by a browser. Clients
    refresh a token, or begin to sign in, only after a 401.
    """
    found = [
        (failed, page)
        for failed in facts.failed()
        if failed.side == CLIENT
        and (page := _sign_in_page(facts, ", ".join(filter(None, (failed.redirect, failed.why)))))
    ]
    if not found:
        return
    failed, page = found[0]
    has_worked, has_token = facts.server.messages > 0 and not failed.is_first, facts.http.has_token
    is_followed = failed.state != State.REDIRECTED
    if not (has_worked or has_token or is_followed):
        return  # A client that never had a token, and is refused at once: that the redirect ends there is the failure.
    title = f"{failed.about} was redirected to a page for signing in ({quote(page, 100)})"
    next_step = (
        "let the server answer a token that it does not accept with 401 and WWW-Authenticate, so that the client "
        "refreshes it or signs in; until then sign in again, or give the client a new token"
    )
    if has_worked:
        lack = "no longer accepted" if has_token else "missing"
        title += f", although requests before had succeeded: the token is {lack}, and the server does not answer 401"
    elif has_token:
        title += ": the token of the request is not accepted, and the server does not answer 401"
    else:
        title += ": the endpoint is behind a web sign-in, and the request had no token"
        next_step = (
            "let the server, or the gateway in front of it, answer a request without a token with 401 and "
            "WWW-Authenticate; until then give the client a token (Authorization), if it takes one"
        )
    symptoms = [*(each for each, _ in found), *facts.violations("HTTP307")]
    side = "proxy" if _GATEWAY.search(page) else SERVER
    yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=side)


def _is_behind(old: SplitResult, new: SplitResult) -> bool:
    """Return whether a redirect for a slash leads to the address of a server behind a proxy.

    nginx writes its own port into redirects, and servers the name by which the proxy calls them.
    """
    if not new.netloc or new.scheme != old.scheme:
        return False
    has_other_port = new.hostname == old.hostname and new.port != old.port
    return has_other_port or ("." not in (new.hostname or "") and "." in (old.hostname or ""))


@cause(
    "redirect-not-followed",
    "a redirect was not followed",
    Level.EXACT,
    rules="HTTP307",
    positive=(
        ex.list_answer(307, {}, {"location": "http://127.0.0.1:3001/mcp/"}),
        ex.list_answer(301, {}, {"location": "http://127.0.0.1:8080/mcp/"}),
    ),
)
def redirect_not_followed(facts: Facts) -> Iterator[Claim]:
    """Frameworks redirect for a slash, proxies to https, gateways to a sign-in; not every client
    repeats its POST there.
    """
    redirects = [note.fields for note, _ in facts.notes.get("redirect", [])]
    noted = {fields.get("http"): fields.get("location") for fields in redirects}
    old = urlsplit(facts.header.upstream or "")
    for failed in facts.failed(State.REDIRECTED):
        location, status, path = "", "3xx", old.path
        if (exchange := failed.refusal) is not None:
            location = str(noted.get(exchange.number) or exchange.response.get("location", ""))
            status, path = str(exchange.status), exchange.path
        new = urlsplit(location)
        title = (
            f"{failed.about} was redirected ({status} → {quote(location or failed.why, 100)}), and the "
            f"client did not follow"
        )
        next_step, side = f"use the URL {quote(location, 100)} in the client's configuration", "configuration"
        if LOGIN.search(new.path) or _sign_in_page(facts, f"{status} → {location}"):
            title += ": it is a page for signing in"
            next_step = (
                "the gateway wants a browser's sign-in: give the client a token (Authorization), or let "
                "the gateway answer 401"
            )
        elif old.scheme == "https" and new.scheme == "http":
            title += ": the server behind the proxy does not know that it is reached by https"
            next_step = (
                "let the server trust the proxy's X-Forwarded-Proto (uvicorn --proxy-headers "
                "--forwarded-allow-ips), or use the URL with the slash at once"
            )
        elif new.path in ("", "/") and len(path) > 1:
            title += ": it leads to the first page of a site, and not to an endpoint"
            next_step = (
                "correct the URL in the client's configuration: the site has no MCP endpoint at this path"
            )
        elif new.path.rstrip("/") == path.rstrip("/") and new.path != old.path:
            next_step += " (with the slash as the server wants it)"
            if _is_behind(old, new):
                title += f": it wanted only a slash, and leads to another address than that of the request ({quote(new.netloc, 60)})"
                next_step = (
                    f"let the server, or the proxy that wrote this redirect, keep the address of the request (nginx: "
                    f"absolute_redirect off; else X-Forwarded-Host and X-Forwarded-Port); until then use the path "
                    f"{quote(new.path, 100)} with the address of now"
                )
                side = "proxy"
        symptoms = [failed, *facts.violations("HTTP307")]
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=side)


_BOT = re.compile(
    r"(?i)just a moment|attention required|captcha|are you (?:a )?human|checking your browser|security checkpoint|verifying your browser"
    r"|bot (?:detection|protection)|access denied.{0,40}(?:akamai|reference)"
    r"|enable javascript and cookies|cloudflare"
)
"""The pages of Cloudflare, Akamai and Vercel for browsers."""


_HTML = {"content-type": "text/html; charset=utf-8"}
_BLOCKED = {"server": "cloudflare", "content-type": "text/html"}


_OF_EDGE = re.compile(
    r"(?i)\bblock(?:ed|s)?\b|error code: \d{4}|^\W*(?:403\W*)?(?:forbidden|access denied)\W*$|firewall|\bwaf\b"
)
"""Words of a proxy that refuses by itself; it names itself in what it passes on, too."""

_BRAND = re.compile(r"(?i)cloudflare")


def is_bot_wall(exchange: RefusedExchange) -> bool:
    """Return whether a page for browsers answered, or a proxy with 403 and no word of signing in.

    A proxy's page of 502, 504 or 520 has its name too: it could not reach the server. Challenges come with 503 as well.
    """
    is_block, words = (exchange.status or 0) < 500 or exchange.status == 503, exchange.words
    # On another page, such as that of a limit or of an unknown address, the name of the proxy is not a sign.
    named = words if exchange.status in (403, 503) else _BRAND.sub("", words)
    is_page = is_block and exchange.media_type.startswith("text/html") and _BOT.search(named)
    is_edge = exchange.status == 403 and who_refused(exchange) != "the server"
    is_edge = is_edge and "www-authenticate" not in exchange.response
    is_edge = is_edge and (not words or exchange.media_type == "text/html" or bool(_OF_EDGE.search(words)))
    return bool(is_page or is_edge or "cf-mitigated" in exchange.response)


def _looks_at_agents(exchange: RefusedExchange) -> bool:
    """Return whether what refused is known to refuse programs without a name."""
    named = re.match(
        r"(?i)cloudflare|akamai|vercel|varnish|gws|awselb|cloudfront", exchange.response.get("server", "")
    )
    return named is not None or "cf-mitigated" in exchange.response or _BOT.search(exchange.words) is not None


define(
    __name__,
    FailureRow(
        "content-blocked",
        "a firewall in front of the server blocked a request for its content",
        Level.EXACT,
        why="Web application firewalls take SQL, HTML or shell commands in arguments for attacks.",
        title="{who} blocked {about} before it reached the server (HTTP {status}), and other calls passed: its rules "
        "look at the content of the request{quoted}",
        next_step="look in the log of this firewall for the rule that matched, and exclude the endpoint from it: "
        "arguments of tools are text, also if they look like SQL, HTML or commands",
        side="proxy",
        if_refused=lambda facts, exchange: bool(
            exchange.status == 403 and facts.answered[CLIENT, "tools/call"] and is_bot_wall(exchange)
        ),
        is_together=True,
        positive=ex.session(
            "@ http",
            *(ex.call(), ex.answered(200), ex.done()),
            *(
                ex.call(3),
                ex.answered(403, {}, _BLOCKED, "blocked"),
            ),
        ),
        negative=(
            ex.session("@ http", *(ex.call(), ex.answered(200), ex.done())),
            ex.session(
                "@ http",
                *(ex.call(), ex.answered(200), ex.done(), ex.call(3)),
                ex.answered(403, {}, {**_BLOCKED, "content-type": "text/plain"}, "No access to project X"),
            ),
        ),
    ),
)

_SIGN_IN_PAGE = re.compile(
    r"(?i)\b(?:log(?:ging)?[ -]?(?:in|on)|sign(?:ing)?[ -]?in|sso|single sign|authenticat\w+|vercel)\b"
)


def _is_sign_in_page(exchange: RefusedExchange) -> bool:
    """Return whether a page for people answered, and not a check of tokens, which names a scheme (RFC 9110, 15.5.2)."""
    is_page = exchange.media_type == "text/html" and "www-authenticate" not in exchange.response
    is_page = is_page and not ERROR_PAGE.search(exchange.words)
    return is_page and _SIGN_IN_PAGE.search(exchange.words) is not None


define(
    __name__,
    FailureRow(
        "web-sign-in",
        "a page for signing in with a browser stands in front of the server",
        Level.EXACT,
        why="Platforms protect deployments (Vercel, Cloudflare Access, Azure App Service, Google IAP), and proxies do "
        "(oauth2-proxy, Authelia): to a program they answer 401 or 403 with a page, whatever token it has.",
        title="{who} answered {about} with a page for people to sign in with a browser (HTTP {status}, text/html), so "
        "the request did not reach the MCP server{quoted}",
        next_step="exempt the path of the endpoint from this protection, or let the client send what lets programs pass "
        "(Vercel: x-vercel-protection-bypass; Cloudflare Access: a service token); another token for the MCP server "
        "does not help",
        side="proxy",
        statuses=(401, 403),
        if_refused=lambda _, exchange: _is_sign_in_page(exchange),
        is_together=True,
        positive=(
            ex.first_answer(401, ex.WITH_TOKEN, _HTML, "Authentication Required: Redirecting to the login"),
            ex.first_answer(403, {}, _HTML, "Sign in to continue"),
        ),
        negative=(
            ex.first_answer(401, ex.WITH_TOKEN, {"www-authenticate": "Bearer"}, "Log in first"),
            ex.first_answer(
                401,
                ex.WITH_TOKEN,
                _HTML,
                "HTTP Status 401: it lacks valid authentication credentials for the resource",
            ),
        ),
    ),
)

_OF_PLATFORM = re.compile(
    r"(?i)client does not have permission to (?:get|the requested) URL|invalid IAP credentials"
)
"""The words of Google Cloud Run and of its Identity-Aware Proxy."""


def _is_of_platform(exchange: RefusedExchange) -> bool:
    """Return whether the platform that runs a server refused a request, which so did not reach the server."""
    is_iap = "x-goog-iap-generated-response" in exchange.response
    is_aws = "accessdenied" in exchange.response.get("x-amzn-errortype", "").lower().replace("-", "")
    return is_iap or is_aws or _OF_PLATFORM.search(exchange.words) is not None


define(
    __name__,
    FailureRow(
        "platform-access",
        "the platform that runs the server lets in only its own accounts",
        Level.EXACT,
        why="Google Cloud Run, its Identity-Aware Proxy and function URLs of AWS check each request by accounts of the platform "
        "(IAM), before the server and its own sign-in.",
        title="the platform in front of the server refused {about}, for which it wants one of its accounts (HTTP {status}), so "
        "the request did not reach the MCP server{quoted}",
        next_step="let the platform pass requests without such an account, if the server checks tokens itself (Google Cloud Run: "
        "the role roles/run.invoker for allUsers; AWS: the authorization type NONE); or let the client send what the platform wants "
        "(Google: an identity token; AWS: a signature)",
        side="proxy",
        statuses=(401, 403),
        if_refused=lambda facts, exchange: (
            _is_of_platform(exchange) and not any(step.step == "token" for step in facts.http.oauth)
        ),  # `new-token-refused`
        is_together=True,
        positive=(
            ex.first_answer(
                403, {}, _HTML, "Your client does not have permission to get URL / from this server."
            ),
            ex.first_answer(401, ex.WITH_TOKEN, _HTML, "Invalid IAP credentials: empty token"),
            ex.first_answer(403, {}, {"x-amzn-errortype": "AccessDeniedException"}, "Forbidden"),
        ),
        negative=(
            ex.first_answer(403, {}, {"x-amzn-errortype": "ForbiddenException"}, "Forbidden"),
            ex.first_answer(401, ex.WITH_TOKEN, "You do not have permission to get the document"),
        ),
    ),
)

define(
    __name__,
    FailureRow(
        "tunnel-page",
        "the tunnel in front of the server answered in its place",
        Level.EXACT,
        why="Tunnels (ngrok, localtunnel, dev tunnels) show browsers a page first, and answer themselves if they do not "
        "reach the server.",
        title="the tunnel answered {about} in place of the server (HTTP {status}){quoted}",
        next_step=(
            (
                r"about to visit|reminder|ERR_NGROK_6024",
                (
                    "its page is for browsers: let the client send the header that skips it (ngrok-skip-browser-warning, "
                    "bypass-tunnel-reminder, X-Tunnel-Skip-AntiPhishing-Page) or a User-Agent that is not a browser's, or "
                    "use another tunnel"
                ),
            ),
            (
                r"offline|not found|ERR_NGROK_32\d\d",
                "start the tunnel, and correct its address in the host's configuration: free addresses change",
            ),
            (
                "",
                "look whether the server runs, and listens on the address that the tunnel forwards to",
            ),
        ),
        side="proxy",
        words=r"ERR_NGROK_\d|\bngrok\b|loca\.lt\b|localtunnel|devtunnels\.ms|tunnel[ -]website|tunnel password",
        if_refused=lambda facts, exchange: exchange.media_type != JSON and not exchange.error,
        is_together=True,
        rules="HTTP303",
        positive=ex.first_answer(
            200, {}, {"content-type": "text/html"}, "You are about to visit a.ngrok-free.app (ERR_NGROK_6024)"
        ),
        negative=ex.first_answer(200, {}, {"content-type": "text/html"}, "Welcome to nginx"),
    ),
)

define(
    __name__,
    FailureRow(
        "bot-wall",
        "a protection against bots answered in place of the server",
        Level.EXACT,
        why="Cloudflare, Akamai and others answer programs with a page for browsers.",
        title="{who} blocked {about} before it reached the server (HTTP {status}){quoted}",
        next_step="look which of its rules refuses the request (a protection against bots, a list of addresses, a firewall), "
        "and allow this client (User-Agent) and the path of the endpoint there; it is not about signing in",
        side="proxy",
        if_refused=lambda facts, exchange: (
            is_bot_wall(exchange) and (bool(exchange.agent) or not _looks_at_agents(exchange))
        ),
        is_together=True,
        positive=ex.first_answer(
            403,
            {"user-agent": "node"},
            {"cf-mitigated": "challenge", "content-type": "text/html"},
            "Just a moment...",
        ),
        negative=(
            ex.first_answer(403, "Forbidden"),
            ex.first_answer(502, {"user-agent": "node"}, _BLOCKED, "502 Bad Gateway cloudflare"),
            ex.first_answer(429, {"user-agent": "node"}, _BLOCKED, "You are being rate limited | Cloudflare"),
            ex.first_answer(404, {"user-agent": "node"}, _BLOCKED, "Nothing is here yet | Cloudflare Pages"),
            ex.first_answer(
                403, {"user-agent": "node"}, {"server": "nginx", "content-type": "text/plain"}, "Unknown key"
            ),
        ),
    ),
)

define(
    __name__,
    FailureRow(
        "no-user-agent",
        "a protection against bots refuses a client that does not name itself",
        Level.EXACT,
        why="Programs without User-Agent are refused by rules that most sites behind Cloudflare and Akamai have.",
        title="{who} blocked {about} before it reached the server (HTTP {status}), and the request has no User-Agent"
        "{quoted}",
        next_step="let the client send a User-Agent that names it; or allow requests without one to the path of the "
        "endpoint in the rules of this protection; it is not about signing in",
        side=CLIENT,
        if_refused=lambda facts, exchange: (
            is_bot_wall(exchange) and not exchange.agent and _looks_at_agents(exchange)
        ),
        is_together=True,
        positive=ex.first_answer(403, {"user-agent": None}, _BLOCKED, "Sorry, you have been blocked"),
        negative=(
            ex.first_answer(403, {"user-agent": "node"}, _BLOCKED, "Sorry, you have been blocked"),
            ex.first_answer(
                403, {"user-agent": None}, {"server": "nginx", "content-type": "text/html"}, "403 Forbidden"
            ),
        ),
    ),
)
