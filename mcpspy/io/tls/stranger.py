"""Requests that are not a proxy's to answer.

A page that a browser shows can send requests to loopback, and give it a name
of its own (DNS rebinding). They name a path, where a proxy's name a server: RFC 9112, 3.2.
"""

from __future__ import annotations

from mitmproxy.proxy import commands, events, layer

BODY = b"This is mcpspy, a forward proxy: start programs with HTTPS_PROXY set to this address, or by mcpspy exec.\n"

ANSWER = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
)


def is_proxys(data: bytes) -> bool:
    """Whether what a client sent first can be meant for a proxy."""
    words = data.split(b"\r\n", 1)[0].split(b" ")
    return len(words) < 2 or not words[1].startswith((b"/", b"*"))


class Stranger(layer.Layer):
    """Answers once, and hangs up."""

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        if isinstance(event, events.Start):
            yield commands.SendData(self.context.client, ANSWER)
            yield commands.CloseConnection(self.context.client)
