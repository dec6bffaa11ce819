"""The lockfile as written by `mcpspy trust`, and the report of its differences as SARIF 2.1.0."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpspy import __version__
from mcpspy.analysis.diff import SessionDiff
from mcpspy.core.redact.display import redacted_command, redacted_url
from mcpspy.core.trust.lock import LISTINGS, digest
from mcpspy.ui.report.diff_text import change_heading
from mcpspy.ui.report.lint_json import SCHEMA

if TYPE_CHECKING:
    from mcpspy.analysis.trust import Interface
    from mcpspy.core.recording.decode import Header

SUMMARY = 100
"""Maximum number of characters of a summary."""


def updated(text: str, name: str, found: Interface, header: Header | None, *, resources: bool) -> str:
    """Return the lockfile with this interface as trusted. The policy, volatile members and comments remain."""
    import tomlkit

    document = tomlkit.parse(text)
    servers = document.setdefault("servers", tomlkit.table(is_super_table=True))
    old = servers.get(name, {})
    table = tomlkit.table()
    for key, value in _identity(header).items():
        table[key] = value
    optional = {"server": found.server, "revision": found.revision, "instructions": found.instructions}
    for key, value in optional.items():
        if value:
            table[key] = value
    table["capabilities"] = json.dumps(found.capabilities, sort_keys=True)
    members = [each.member for each in LISTINGS.values() if each.member != "resources" or resources]
    table["listed"] = members
    if "volatile" in old:
        table["volatile"] = old["volatile"]
    if "policy" in old:
        table["policy"] = old["policy"]
    for listing in LISTINGS.values():
        items = found.items.get(listing.member, {}) if listing.member in members else {}
        kept = {each.get(listing.key): each.get("volatile") for each in old.get(listing.member, [])}
        if items:
            tables = table[listing.member] = tomlkit.aot()
            for key in sorted(items):
                tables.append(_item(listing.key, key, items[key], kept.get(key)))
    servers[name] = table
    return tomlkit.dumps(document)


def sarif(difference: SessionDiff, file: str) -> str:
    """Return the log, with a line ending: one result per change, at the lockfile."""
    levels = {"breaking": "error", "different": "warning", "note": "note"}
    results = [
        {
            "ruleId": "trust",
            "level": levels[str(change.severity)],
            "message": {"text": f"{case.method}: {change_heading(change)}"},
            "locations": [
                {"physicalLocation": {"artifactLocation": {"uri": file}, "region": {"startLine": 1}}}
            ],
        }
        for case, change in difference.changes
    ]
    rule = {"id": "trust", "shortDescription": {"text": "the server differs from the lockfile"}}
    driver = {"name": "mcpspy", "version": __version__, "rules": [rule]}
    run = {"tool": {"driver": driver}, "results": results}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _item(key: str, name: str, definition: dict[str, Any], volatile: Any) -> Any:
    import tomlkit

    table = tomlkit.table()
    table[key] = name
    table["digest"] = digest(definition)
    description = " ".join(str(definition.get("description", "")).split())
    table["summary"] = description[:SUMMARY]
    schema = definition.get("inputSchema")
    if isinstance(schema, dict) and isinstance(properties := schema.get("properties"), dict):
        table["arguments"] = [*properties]
    if volatile is not None:
        table["volatile"] = volatile
    table["definition"] = json.dumps(definition, sort_keys=True)
    return table


def _identity(header: Header | None) -> dict[str, Any]:
    if header is None:
        return {}
    if not header.command:
        return {"url": redacted_url(header.upstream or "")}
    found: dict[str, Any] = {"command": redacted_command(header.command)}
    files = {
        word: "sha256:" + sha256(path.read_bytes()).hexdigest()
        for word in header.command
        if (path := Path(header.cwd or ".", word)).is_file()
    }
    program = Path(header.command[0]).stem
    if program in ("npx", "uvx", "uv"):
        package = next(
            (word for word in header.command[1:] if not word.startswith("-") and word not in ("run", "exec")),
            "",
        )
        found["package"] = package
    if files:
        found["files"] = files
    return found
