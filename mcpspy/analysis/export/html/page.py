"""The HTML page: data, style and script in one file.

Its content security policy allows only this style and this script. `<` is escaped wherever JSON is embedded,
so no text of a peer can end its element.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from html import escape
from pkgutil import get_data
from string import Template
from typing import Any

import orjson

from mcpspy import __version__
from mcpspy.analysis.export.base import RecordedSession
from mcpspy.analysis.export.html.rows import HtmlRows, target
from mcpspy.core.sanitize import sanitize

SCRIPTS = (
    *("marks.js", "units.js", "session.js", "search.js", "json.js", "text.js"),
    *("message.js", "listing.js", "timeline.js", "theme.js", "page.js"),
)
"""In the order of their dependencies; one closure contains them all."""

POLICY = (
    "default-src 'none'",
    "script-src '{script}'",
    "style-src '{style}'",
    "img-src data:",  # Images in responses, and the empty icon: without it a browser requests one.
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",  # No text becomes markup, not even by mistake.
)


def export(session: RecordedSession) -> Iterator[str]:
    """Yield the page in pieces: summary, bodies, rows, script."""
    style, script = _part("page.css"), _script()
    before, after = _part("page.html").split("<!-- data -->\n")
    policy = "; ".join(POLICY).format(style=_digest(style), script=_digest(script))
    yield Template(before).substitute(
        policy=escape(policy),
        title=escape(f"{sanitize(session.name) or 'session'} - {sanitize(session.header.started)}"),
        about=escape(target(session.header)),
        style=style,
    )
    entries = HtmlRows(session)
    for bodies in entries.blocks():
        yield _block("bodies", bodies)
    facts = {"version": __version__, "facts": entries.facts()}
    yield _block("session", {**facts, "starts": entries.starts, "rows": entries.rows})
    yield Template(after).substitute(script=script)


def _block(name: str, value: Any) -> str:
    """Return a value as JSON element; no text in it can end the element."""
    text = orjson.dumps(value).decode().replace("<", "\\u003c")
    return f'<script type="application/json" class="{name}">{text}</script>\n'


def _script() -> str:
    return '"use strict";\n(() => {\n' + "\n".join(map(_part, SCRIPTS)) + "})();\n"


def _part(name: str) -> str:
    data = get_data(__package__, name)
    assert data is not None  # It is next to this module unless the installation is broken.
    return data.decode().replace("\r\n", "\n")  # As a browser does before it takes the digest.


def _digest(text: str) -> str:
    """Return the digest for the policy: a browser hashes the text between the tags."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
