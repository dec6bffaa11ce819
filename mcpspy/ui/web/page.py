"""The page of `mcpspy web`: one document with its style and its script, the same for every session.

It contains no data. Its parts are shared with the exported page (`analysis/export/html`), and so is its content
security policy, except that its script may connect to this server. The exported page has its rows in the file, this one
asks the server for them.
"""

from __future__ import annotations

import re

from mcpspy.analysis.export.html.page import PAGE, PARTS, bundle, document, part, policy_for

SCRIPTS = (
    "sessions.js",
    "reports.js",
    "control.js",
    "play.js",
    "call.js",
    "server.js",
    "completion.js",
    "live.js",
)
"""Scripts of this page alone: the source of its rows, and what only a server has."""


def page(*, frames: bool = False) -> tuple[str, str]:
    """Return the page, and its content security policy; with `frames`, it may show pages of this server in frames."""
    style = part("page.css") + part("web.css", __package__)
    script = live_script()
    parts = re.findall(r"<!-- (\w+) -->\n([^!]*)(?=<!|\Z)", part("web.html", __package__))
    text = "".join(document(style, script, "mcpspy", **dict(parts)))
    more = "; frame-src 'self'" if frames else ""
    return text, f"{policy_for(style, script)}; connect-src 'self'; frame-ancestors 'none'{more}"


def live_script() -> str:
    own = (part(name, __package__) for name in SCRIPTS)
    return bundle([*map(part, PARTS), *own, *map(part, PAGE)])
