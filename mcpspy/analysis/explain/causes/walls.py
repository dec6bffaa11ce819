"""Redirects, pages for signing in, tunnels and protections in front of a server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import SplitResult

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.definition import FailureRow
from mcpspy.analysis.explain.causes.exchanges import ERROR_PAGE, LOGIN, who_refused
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause, quote, url_parts
from mcpspy.analysis.explain.facts import PATIENCE, Facts
from mcpspy.analysis.explain.symptoms import RefusedExchange
from mcpspy.core.protocol.http_headers import JSON, REDIRECTS
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.session.exchange import State

_SIGN_IN = re.compile(
    r"(?i)(?:^|[/._-])(?:log[-_]?in|sign[-_]?in|log[-_]?on|sso|saml2?|oidc|oauth2?|authn?|authenticate|authori[sz]e|accounts?"
    r"|idp|adfs|sessions/new)(?=$|[/._?-])"
)
"""A host or path of a page for signing in: accounts.google.com, /users/sign_in, /oauth2/start, /cdn-cgi/access/login."""


def _sign_in_page(facts: Facts, redirects: str) -> str:
    """Return the first of these redirects (`307 → /login`) that leads to a page for signing in; else nothing."""
    old = facts.endpoint.path.rstrip("/")
    for redirect in redirects.split(", "):
        new = url_parts(redirect.partition(" → ")[2])
        path = new.path.rstrip("/")
        # An endpoint below /auth/ that only moves is not a page for signing in.
        is_moved = bool(old) and (path.endswith(old) or path.startswith(f"{old}/"))
        if not is_moved and (_SIGN_IN.search(new.path) or _SIGN_IN.search(new.hostname or "")):
            return redirect
    return ""


_GATEWAY = re.compile(
    r"(?i)cloudflareaccess\.com|/cdn-cgi/access/|/oauth2/(?:start|sign_in)|/\.auth/login|/outpost\.goauthentik|authelia|vercel\.com/sso"
)
"""Pages for signing in of gateways and protections before a site, and not of the site itself."""

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
    yield Claim(title, next_step, symptoms, side=side)


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
        ex.session(
            "@ http bare",
            *(ex.http("GET", 307, number, location="http://127.0.0.1:8080/mcp") for number in (1, 2, 3)),
        ),
    ),
)
def redirect_not_followed(facts: Facts) -> Iterator[Claim]:
    """Frameworks redirect for a slash, proxies to https, gateways to a sign-in; not every client
    repeats its POST there.
    """
    for refused in facts.of(RefusedExchange):
        if refused.method == "GET" and refused.status in REDIRECTS:
            location = refused.response.get("location", "")
            title = f"GET {refused.path} is redirected to itself ({refused.status} → {quote(location, 100)}), {refused.count} times"
            next_step = (
                f"use {quote(location, 100)} without or with a slash at its end, as the server has the path; look whether a proxy on the "
                f"way removes or adds the slash that the server redirects for"
            )
            yield Claim(title, next_step, [refused])
    redirects = [note.fields for note, _ in facts.notes.get("redirect", [])]
    noted = {fields.get("http"): fields.get("location") for fields in redirects}
    old = facts.endpoint
    for failed in facts.failed(State.REDIRECTED):
        location, status, path = "", "3xx", old.path
        if (exchange := failed.carrier) is not None:
            location = str(noted.get(exchange.number) or exchange.response.get("location", ""))
            status, path = str(exchange.status), exchange.path
        new = url_parts(location)
        title = (
            f"{failed.about} was redirected ({status} → {quote(location or failed.why, 100)}), and the "
            f"client did not follow"
        )
        lost = [
            each
            for each in facts.of(RefusedExchange)
            if each.method == "GET"
            and each.path == (new.path or "/")
            and 0 <= each.at - failed.asked_at < PATIENCE
        ]
        if lost and status in ("301", "302", "303"):
            title = (
                f"{failed.about} was redirected ({status} → {quote(location or failed.why, 100)}), and the client followed with GET, which "
                f"has no message (HTTP {lost[0].status}{clause(lost[0].words)})"
            )
            next_step = (
                f"use the URL {quote(location, 100)} in the client's configuration, and look whether the host removes its slash; let the "
                f"server redirect with 307 or 308, which keep the method and the body (RFC 9110, 15.4), or answer at both addresses"
            )
            yield Claim(title, next_step, [failed, *lost, *facts.violations("HTTP307")])
            continue
        # The client may follow a 307, the server answer at both addresses, or the user write the other one.
        next_step, side = f"use the URL {quote(location, 100)} in the client's configuration", ""
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
        elif any(new) and new.path in ("", "/") and len(path) > 1:
            title += ": it leads to the first page of a site, and not to an endpoint"
            next_step = (
                "correct the URL in the client's configuration: the site has no MCP endpoint at this path"
            )
            side = "configuration"
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
        yield Claim(title, next_step, [failed, *facts.violations("HTTP307")], side=side)


_BOT = re.compile(
    r"(?i)just a moment|attention required|captcha|are you (?:a )?human|checking your browser|security checkpoint|verifying your browser"
    r"|bot (?:detection|protection)|access denied.{0,40}(?:akamai|reference)"
    r"|enable javascript and cookies|cloudflare|incapsula incident|requested url was rejected|not a bot\b|human verification|mod_?security|sucuri website firewall|perimeterx|datadome"
)
"""The pages of Cloudflare, Akamai, Vercel, Imperva, F5 and others for browsers."""

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
    is_edge = is_edge and not exchange.challenge
    is_edge = is_edge and (not words or exchange.media_type == "text/html" or bool(_OF_EDGE.search(words)))
    is_challenge = "cf-mitigated" in exchange.response or "captcha-delivery.com" in words
    return bool(is_page or is_edge or is_challenge)


def _looks_at_agents(exchange: RefusedExchange) -> bool:
    """Return whether what refused is known to refuse programs without a name."""
    named = re.match(
        r"(?i)cloudflare|akamai|vercel|varnish|gws|awselb|cloudfront", exchange.response.get("server", "")
    )
    return named is not None or "cf-mitigated" in exchange.response or _BOT.search(exchange.words) is not None


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
        exchange.status in (200, 403, 406) and facts.answered[CLIENT, "tools/call"] and is_bot_wall(exchange)
    ),
    is_together=True,
    positive=ex.session(
        "@ http",
        *(ex.call(), ex.answered(200), ex.done()),
        *(ex.call(3), ex.answered(403, {}, _BLOCKED, "blocked")),
    ),
    negative=(
        ex.session("@ http", *(ex.call(), ex.answered(200), ex.done())),
        ex.session(
            "@ http",
            *(ex.call(), ex.answered(200), ex.done(), ex.call(3)),
            ex.answered(403, {}, {**_BLOCKED, "content-type": "text/plain"}, "No access to project X"),
        ),
    ),
).define(__name__)

_SIGN_IN_PAGE = re.compile(
    r"(?i)\b(?:log(?:ging)?[ -]?(?:in|on)|sign(?:ing)?[ -]?in|sso|single sign|authenticat\w+|vercel)\b"
)


def _is_sign_in_page(exchange: RefusedExchange) -> bool:
    """Return whether a page for people answered, and not a check of tokens, which names a scheme (RFC 9110, 15.5.2)."""
    is_page = exchange.media_type == "text/html" and not exchange.challenge
    is_page = is_page and not ERROR_PAGE.search(exchange.words)
    return is_page and _SIGN_IN_PAGE.search(exchange.words) is not None


FailureRow(
    "web-sign-in",
    "a page for signing in with a browser precedes the server",
    Level.EXACT,
    why="Platforms protect deployments (Vercel, Cloudflare Access, Azure App Service, Google IAP), and proxies do "
    "(oauth2-proxy, Authelia): to a program they answer 401 or 403 with a page, whatever token it has.",
    title="{who} answered {about} with a page for people to sign in with a browser (HTTP {status}, text/html), so "
    "the request did not reach the MCP server{quoted}",
    next_step="exempt the path of the endpoint from this protection, or let the client send what lets programs pass "
    "(Vercel: x-vercel-protection-bypass; Cloudflare Access: a service token); another token for the MCP server "
    "does not help",
    side="",
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
).define(__name__)

_OF_PLATFORM = re.compile(
    r"(?i)client does not have permission to (?:get|the requested) URL|invalid IAP credentials"
)
"""The words of Google Cloud Run and of its Identity-Aware Proxy."""


def _is_of_platform(exchange: RefusedExchange) -> bool:
    """Return whether the platform that runs a server refused a request, which so did not reach the server."""
    is_iap = "x-goog-iap-generated-response" in exchange.response
    is_aws = "accessdenied" in exchange.response.get("x-amzn-errortype", "").lower().replace("-", "")
    return is_iap or is_aws or _OF_PLATFORM.search(exchange.words) is not None


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
    side="",
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
).define(__name__)

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
        ("", "look whether the server runs, and listens on the address that the tunnel forwards to"),
    ),
    side="",
    words=r"ERR_NGROK_\d|\bngrok\b|loca\.lt\b|localtunnel|devtunnels\.ms|tunnel[ -]website|tunnel password|tunnel (?:unavailable|not found)",
    if_refused=lambda facts, exchange: exchange.media_type != JSON and not exchange.error,
    is_together=True,
    rules="HTTP303",
    positive=ex.first_answer(
        200, {}, {"content-type": "text/html"}, "You are about to visit a.ngrok-free.app (ERR_NGROK_6024)"
    ),
    negative=ex.first_answer(200, {}, {"content-type": "text/html"}, "Welcome to nginx"),
).define(__name__)

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
        ex.first_answer(
            403, {"user-agent": "node"}, {"server": "nginx", "content-type": "text/plain"}, "Unknown key"
        ),
    ),
).define(__name__)

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
        not exchange.agent
        and (
            (is_bot_wall(exchange) and _looks_at_agents(exchange))
            or "user-agent header" in exchange.words.lower()
        )
    ),
    is_together=True,
    positive=ex.first_answer(403, {"user-agent": None}, _BLOCKED, "Sorry, you have been blocked"),
    negative=(
        ex.first_answer(403, {"user-agent": "node"}, _BLOCKED, "Sorry, you have been blocked"),
        ex.first_answer(
            403, {"user-agent": None}, {"server": "nginx", "content-type": "text/html"}, "403 Forbidden"
        ),
    ),
).define(__name__)
