"""The preview of an app's page (MCP Apps): HTML of a server in a frame that reaches nothing.

The page is a separate response, which the message shows in an `iframe`. What keeps it apart:

- `sandbox`, as an attribute of the frame and as a directive of the response, without `allow-same-origin`: its origin is
  opaque, so it sees neither mcpspy's page nor its cookie, also if its address is opened directly. Without
  `allow-popups`, `allow-forms` and `allow-top-navigation`, it opens and submits nothing.
- The policy of the response allows no address at all: no image, font, script, request, socket, frame or form. Inline
  styles and `data:` stay.
- The frame cannot leave either: `frame-src` of mcpspy's page also applies to a navigation of the frame.
- Scripts do not run, unless the option names them. WebRTC is not a part of content security policies in all browsers;
  with scripts, `webrtc 'block'` is sent, and the constructors are removed before the page runs.

There is no host in the preview: the page gets no data of its tool, and its calls have no effect.
"""

from __future__ import annotations

import binascii
from base64 import b64decode

from aiohttp import web

from mcpspy.core.protocol.extensions import is_for_model
from mcpspy.core.protocol.message import AnyMessage, Result
from mcpspy.core.recording.decode import Damaged, Note

OFF, STATIC, SCRIPTS = "off", "static", "scripts"

_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; media-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)

_WITHOUT_WEBRTC = (
    "<script>for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'WebTransport', 'open']) "
    "Object.defineProperty(window, name, { value: undefined });</script>"
)


def policy(preview: str) -> str:
    """Return the content security policy of a page."""
    if preview == STATIC:
        return f"{_POLICY}; script-src 'none'; sandbox"
    return f"{_POLICY}; script-src 'unsafe-inline' 'unsafe-eval' data: blob:; webrtc 'block'; sandbox allow-scripts"


def html_of(what: AnyMessage | Note | Damaged) -> str | None:
    """Return the page in a result of `resources/read`; None if it has none."""
    result = what.result if isinstance(what, Result) else None
    contents = result.get("contents") if isinstance(result, dict) else None
    for item in contents if isinstance(contents, list) else ():
        if not isinstance(item, dict) or is_for_model(item):
            continue
        if isinstance(text := item.get("text"), str):
            return text
        try:
            return b64decode(str(item.get("blob", ""))).decode("utf-8", "replace")
        except binascii.Error:
            return None
    return None


def page(html: str, preview: str) -> web.Response:
    """Return the response with a page."""
    text = html if preview == STATIC else f"<!DOCTYPE html>{_WITHOUT_WEBRTC}{html}"
    headers = {
        "Content-Security-Policy": policy(preview),
        "X-Frame-Options": "SAMEORIGIN",
        "X-DNS-Prefetch-Control": "off",
    }
    return web.Response(
        body=text.encode("utf-8", "replace"), content_type="text/html", charset="utf-8", headers=headers
    )
