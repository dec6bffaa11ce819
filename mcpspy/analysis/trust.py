"""The interface of a server as a session shows it, and its differences from a lockfile."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, field

from mcpspy.analysis.diff import ChangeKind, ChangeSeverity, ComparedCase, DiffChange, SessionDiff
from mcpspy.analysis.diff.listings import compare_listed
from mcpspy.analysis.diff.volatile import Tolerance
from mcpspy.analysis.lint import RULES, Finding, Linter
from mcpspy.core.jsontools import canonical_bytes, pointer_text
from mcpspy.core.protocol.extensions import declared
from mcpspy.core.protocol.listing import LISTINGS, ListingPages, joined
from mcpspy.core.protocol.message import Result
from mcpspy.core.protocol.peers import HANDSHAKE_METHODS
from mcpspy.core.session.session import Session
from mcpspy.core.trust.lock import TrustedItem, TrustedServer

Definitions = dict[str, dict[str, Any]]


class Interface(Struct):
    """The last handshake and the last listings of a session."""

    items: dict[str, Definitions] = field(default_factory=dict)
    """Listing → name → definition; only listings whose last page is known."""
    instructions: str | None = None
    capabilities: dict[str, Any] = field(default_factory=dict)
    revision: str | None = None
    server: str = ""
    """Name and version."""


def interface_of(session: Session) -> Interface:
    found = Interface()
    pages = ListingPages[list[Any]]()
    for exchange in session.exchanges:
        request, answer = exchange.request, exchange.answer
        result = answer.result if isinstance(answer, Result) else None
        if not isinstance(result, dict) or request.frame.by is not None:
            continue
        if request.method in HANDSHAKE_METHODS:
            _add_handshake(found, result, request.revision)
        if (listing := LISTINGS.get(request.method)) is None:
            continue
        items = result.get(listing.member)
        if isinstance(items, list) and (listed := pages.add_result(request, result, items)).is_whole:
            found.items[listing.member] = {
                name: item
                for item in joined(listed)
                if isinstance(item, dict) and isinstance(name := item.get(listing.key), str)
            }
    return found


def compare(trusted: TrustedServer, now: Interface) -> SessionDiff:
    """Return the changes since the review, with the verdicts of `mcpspy diff`; volatile members are left out."""
    cases = [_case("handshake", tuple(_handshake(trusted, now)))]
    for method, listing in LISTINGS.items():
        if listing.member not in trusted.listed or listing.member not in now.items:
            continue
        known = trusted.items[listing.member]
        old = {name: item.stable(item.definition) for name, item in known.items()}
        new = {
            name: known[name].stable(item) if name in known else item
            for name, item in now.items[listing.member].items()
        }
        changes = tuple(
            DiffChange(
                kind=ChangeKind.INTERFACE,
                severity=change.severity,
                why=change.why,
                pointer=pointer_text(("result", listing.member, *change.tokens)),
                old=change.old,
                new=change.new,
            )
            for change in compare_listed(listing, old, new, tolerance=Tolerance.NONE)
        )
        cases.append(_case(method, changes))
    return SessionDiff(tuple(cases))


def noted(fields: dict[str, Any]) -> SessionDiff:
    """Return the changes that a note of kind `trust` describes; none for a call."""
    sides = [fields.get("trusted"), fields.get("listed")]
    listing = LISTINGS.get(str(fields.get("method")))
    if listing is None:
        old, new = (side if isinstance(side, dict) else {} for side in sides)
        server = TrustedServer(
            instructions=old.get("instructions"), capabilities=old.get("capabilities") or {}
        )
        found = Interface(instructions=new.get("instructions"), capabilities=new.get("capabilities") or {})
        return compare(server, found)
    was, now = (
        {str(item.get(listing.key)): item for item in side if isinstance(item, dict)}
        for side in (each if isinstance(each, list) else [] for each in sides)
    )
    member = listing.member
    items = {name: TrustedItem(definition) for name, definition in was.items()}
    return compare(TrustedServer(listed=(member,), items={member: items}), Interface(items={member: now}))


def security_findings(session: Session) -> list[Finding]:
    """Return the findings of the security rules of `mcpspy lint` on a session."""
    linter = Linter(session.header, [rule for rule in RULES if rule.code.startswith("SEC")])
    return [found for change in session.changes for found in linter.add(change)] + linter.end()


def _add_handshake(found: Interface, result: dict[str, Any], revision: str | None) -> None:
    instructions, capabilities = result.get("instructions"), result.get("capabilities")
    found.instructions = instructions if isinstance(instructions, str) and instructions else None
    found.capabilities = capabilities if isinstance(capabilities, dict) else {}
    found.revision = str(result.get("protocolVersion") or revision or "") or None
    server = result.get("serverInfo")
    if isinstance(server, dict):
        found.server = f"{server.get('name', '')} {server.get('version', '')}".strip()


def _handshake(trusted: TrustedServer, now: Interface) -> list[DiffChange]:
    changes = []
    for name, severity in ("instructions", ChangeSeverity.NOTE), ("capabilities", ChangeSeverity.DIFFERENT):
        old, new = getattr(trusted, name) or None, getattr(now, name) or None
        if name not in trusted.volatile and canonical_bytes(old) != canonical_bytes(new):
            changes.append(
                DiffChange(
                    kind=ChangeKind.HANDSHAKE,
                    severity=severity,
                    why=f"gained {name}"
                    if old is None
                    else f"lost its {name}"
                    if new is None
                    else _extensions(old, new),
                    pointer=f"/result/{name}",
                    old=UNSET if old is None else old,
                    new=UNSET if new is None else new,
                )
            )
    return changes


def _extensions(old: Any, new: Any) -> str:
    """Return the extensions that one of two capabilities declares; empty if both declare the same ones."""
    was, now = (declared(each) if isinstance(each, dict) else {} for each in (old, new))
    parts = [f"declares {name} now" for name in sorted(now.keys() - was.keys())]
    parts += [f"no longer declares {name}" for name in sorted(was.keys() - now.keys())]
    return ", ".join(parts)


def _case(method: str, changes: tuple[DiffChange, ...]) -> ComparedCase:
    return ComparedCase(method=method, changes=changes)
