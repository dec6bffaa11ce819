"""The requests that the web server answers: Host, Origin, and a cookie in exchange for the token.

A page of another site can make a browser send requests to loopback, and DNS rebinding can point its host name there.
So a request names an address of this server as Host, its Origin (if any) is that address, browsers mark it as
same-origin, and data needs the cookie. The token is in the fragment of the URL, which no browser sends, and which
appears in no log. The cookie is limited to `/api/`, as cookies do not distinguish the ports of a host.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, Iterable

from aiohttp import web

from mcpspy.core.protocol.http_headers import rejection_reason

API = "/api/"
LOGIN = "/api/login"

HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every response: nothing is cached, framed, or read by another origin."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Access:
    """The secrets of one run of the server, and the check of each request."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        """`names` are the host names of the server, in addition to those of loopback."""
        self.token = secrets.token_urlsafe(32)
        self._cookie = secrets.token_urlsafe(32)
        self._names = tuple(names)

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer 403 to a foreign request, and 401 to one for data without the cookie."""
        if (why := self._foreign(request)) is not None:
            return refusal(403, why)
        if request.path.startswith(API) and request.path != LOGIN and not self._is_known(request):
            return refusal(401, "open the address that mcpspy web printed")
        response = await handler(request)
        if not response.prepared:
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)  # A page of an app is framed by mcpspy's page.
        return response

    async def login(self, request: web.Request) -> web.StreamResponse:
        """Answer the token, which is the whole body, with the cookie."""
        if not hmac.compare_digest(await request.content.read(1000), self.token.encode()):
            return refusal(401, "wrong token: open the address that mcpspy web printed")
        response = web.Response(status=204)
        response.set_cookie(
            _name(request), self._cookie, path=API, httponly=True, secure=request.secure, samesite="Strict"
        )
        return response

    def _foreign(self, request: web.Request) -> str | None:
        """Return the reason to reject a request of another site; None for one of the page or of the user."""
        host, origin = request.headers.get("Host"), request.headers.get("Origin")
        # A numeric address cannot be rebound: it is right if the connection goes there.
        address = request.get_extra_info("sockname")[0]
        if (why := rejection_reason(host, origin, (*self._names, address))) is not None:
            return why
        if origin is not None and origin != f"{request.scheme}://{host}":
            return f"Origin {origin} is not this server"
        site = request.headers.get("Sec-Fetch-Site", "same-origin")
        if request.path.startswith(API) and site not in ("same-origin", "none"):
            return f"the request is {site}"
        return None

    def _is_known(self, request: web.Request) -> bool:
        return hmac.compare_digest(request.cookies.get(_name(request), "").encode(), self._cookie.encode())


def refusal(status: int, why: str) -> web.Response:
    """Return an error as JSON: `{"error": why}`."""
    return web.json_response({"error": why}, status=status, headers=HEADERS)


def _name(request: web.Request) -> str:
    """Return the name of the cookie: several servers on one host have one each."""
    return f"mcpspy-{request.get_extra_info('sockname')[1]}"
