"""The HTML page: data, style and script in one file.

Its content security policy allows only this style and this script. `<` is escaped wherever JSON is embedded,
so no text of a peer can end its element.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from html import escape
from pkgutil import get_data
from string import Template
from typing import Any

import orjson

from mcpspy import __version__
from mcpspy.analysis.export.base import RecordedSession
from mcpspy.analysis.export.html.rows import HtmlRows, PageRow, target
from mcpspy.core.query import fields, lexer, values
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.exchange import SUBSCRIBE

PARTS = (
    *("marks.js", "units.js", "search.js", "json.js", "text.js", "message.js"),
    *("listing.js", "reading.js", "head.js", "theme.js", "timeline.js", "place.js"),
)
"""Scripts of this page and of the live one (`ui/web`), in the order of their dependencies: those before its source."""

PAGE = ("page.js", "keys.js")
"""Those after the source of rows, which is `offline.js` here, and the server in the live page."""

SCRIPTS = (*PARTS, "filter.js", "file.js", "offline.js", *PAGE)

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
    style, script = part("page.css"), exported_script()
    title = f"{sanitize(session.name) or 'session'} - {sanitize(session.header.started)}"
    meta = f'<meta http-equiv="Content-Security-Policy" content="{escape(policy_for(style, script))}">\n'
    before, after = document(style, script, title, about=target(session.header), meta=meta)
    yield before
    entries = HtmlRows(session)
    for bodies in entries.blocks():
        yield _block("bodies", bodies)
    facts = {"version": __version__, "facts": entries.facts(), "tables": _filter_tables()}
    own = {"cells": _by_text(entries.cells), "views": _by_text(entries.views)}
    table = {"members": PageRow._fields, "rows": entries.rows}
    yield _block("session", {**facts, **own, "starts": entries.starts, **table})
    yield after


def document(style: str, script: str, title: str, *, about: str = "", **parts: str) -> tuple[str, str]:
    """Return a page before and after its data; `parts` are the markup of the live page, by its place."""
    names = ("meta", "home", "connection", "held", "lists", "report", "dialogs")
    filled = dict.fromkeys(names, "") | parts | {"title": escape(title), "about": escape(about)}
    before, after = part("page.html").split("<!-- data -->\n")
    return Template(before).substitute(filled, style=style), Template(after).substitute(script=script)


def _filter_tables() -> dict[str, Any]:
    """Return the names of the filter language, for `filter.js`."""
    return {
        "fields": dict(lexer.FIELDS),
        "numbers": list(lexer.NUMBERS),
        "statuses": {name: sorted(states) for name, states in fields.STATUSES.items()},
        "sameStatus": fields.SAME_STATUS,
        "kinds": list(fields.KINDS),
        "notes": list(fields.NOTES),
        "groups": list(fields.KIND_GROUPS),
        "sameKind": {name: list(kinds) for name, kinds in fields.SAME_KIND.items()},
        "sides": {side: list(names) for side, names in fields.SIDES.items()},
        "subjects": {name: sorted(methods) for name, methods in fields.SUBJECTS.items()},
        "times": values.TIMES,
        "sizes": values.SIZES,
        "slow": fields.SLOW,
        "errors": fields.ERRORS,
        "subscription": SUBSCRIBE,
    }


def _by_text(values: Mapping[int, Any]) -> dict[str, Any]:
    return {str(number): value for number, value in values.items()}


def _block(name: str, value: Any) -> str:
    """Return a value as JSON element; no text in it can end the element."""
    text = orjson.dumps(value).decode().replace("<", "\\u003c")
    return f'<script type="application/json" class="{name}">{text}</script>\n'


def exported_script() -> str:
    return bundle(map(part, SCRIPTS))


def bundle(scripts: Iterable[str]) -> str:
    """Return scripts as one, in a closure."""
    return '"use strict";\n(() => {\n' + "\n".join(scripts) + "})();\n"


def policy_for(style: str, script: str) -> str:
    """Return the content security policy of a page with this style and this script."""
    return "; ".join(POLICY).format(style=_digest(style), script=_digest(script))


def part(name: str, package: str = __package__) -> str:
    """Return the text of a file of a package."""
    data = get_data(package, name)
    assert data is not None  # It is next to this module unless the installation is broken.
    return data.decode().replace("\r\n", "\n")  # As a browser does before it takes the digest.


def _digest(text: str) -> str:
    """Return the digest for the policy: a browser hashes the text between the tags."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
