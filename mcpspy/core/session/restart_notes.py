"""Notes of kind `restart`: a server that was started again in its session. Owns their wording.

Written by `core.restart` and `io.watch`, specified in docs/format.md.
"""

from __future__ import annotations

from typing import Any

from mcpspy.core.counted import counted

RESTART = "restart"


def reason(fields: dict[str, Any]) -> str:
    """Return why the server is restarted: `src/weather.py changed`, `ordered by tui`."""
    files, parts = fields.get("files"), []
    if isinstance(files, list) and files:
        more = f" and {counted(len(files) - 1, 'other file')}" if files[1:] else ""
        parts.append(f"{files[0]}{more} changed")
    if fields.get("viewer"):
        parts.append(f"ordered by {fields['viewer']}")
    return "; ".join(parts) or "restarted"


def words(fields: dict[str, Any]) -> str:
    """Return what happened: `server restarted (weather.py changed)`, or what changed in its interface."""
    return "; ".join(lines(fields))


def lines(fields: dict[str, Any]) -> list[str]:
    """Return the same as lines."""
    did = fields.get("did")
    if did == "failed":
        return [f"no server: {fields.get('text', '')}"]
    if did == "stopping":
        return [f"ending the server ({reason(fields)})"]
    if did == "started":
        repeated = _texts(fields, "repeated")
        ids = [f"sent again: id {', '.join(repeated)}"] if repeated else []
        return [f"server restarted ({reason(fields)})", *ids]
    unchanged = "the interface did not change" if "changes" in fields else "its lists are not compared"
    found = _texts(fields, "changes") or [unchanged]
    if notified := _texts(fields, "notified"):
        found.append(f"the client was notified: {', '.join(notified)}")
    if withheld := _texts(fields, "withheld"):
        found.append(f"not notified, as it was not agreed: {', '.join(withheld)}")
    return found + [f"not restored: {each}" for each in _texts(fields, "lost")]


def _texts(fields: dict[str, Any], key: str) -> list[str]:
    found = fields.get(key)
    return [str(each) for each in found] if isinstance(found, list) else []
