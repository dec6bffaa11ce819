"""The page of `mcpspy web`: one document with its style and its script, the same for every session.

It contains no data. Its parts are shared with the exported page (`analysis/export/html`), and so is its content
security policy, except that its script may connect to this server.
"""

from __future__ import annotations

from string import Template

from mcpspy.analysis.export.html.page import SHARED, bundle, part, policy_for

SCRIPTS = (
    *("server.js", "reports.js", "place.js", "sessions.js", "tracks.js"),
    *("control.js", "web.js", "keys.js", "start.js"),
)
"""Scripts of this page alone, in the order of their dependencies."""


def document() -> tuple[str, str]:
    """Return the page, and its content security policy."""
    style = part("page.css") + part("web.css", __package__)
    script = bundle([*map(part, SHARED), *(part(name, __package__) for name in SCRIPTS)])
    page = Template(part("web.html", __package__)).substitute(style=style, script=script)
    return page, f"{policy_for(style, script)}; connect-src 'self'; frame-ancestors 'none'"
