"""The lockfile `mcp.lock` (docs/trust.md): reviewed servers, and a policy for calls.

A definition is compared by its canonical JSON: the order of keys and whitespace between tokens have no effect.
"""

from __future__ import annotations

import tomllib
from hashlib import sha256
from typing import Any, NoReturn

from msgspec import Struct, field

from mcpspy.core.jsontools import canonical_bytes
from mcpspy.core.protocol.listing import LISTINGS, ListMethod
from mcpspy.core.protocol.message import loads
from mcpspy.errors import UsageError

VERSION = 1

HINT = "write it again with mcpspy trust"


class TrustedItem(Struct, frozen=True):
    """A reviewed tool, prompt, resource template or resource."""

    definition: dict[str, Any]
    volatile: frozenset[str] = frozenset()
    """Members that the user allows to change, such as a description that contains the time."""

    def stable(self, definition: dict[str, Any]) -> dict[str, Any]:
        """Return a definition without the volatile members."""
        return {member: value for member, value in definition.items() if member not in self.volatile}


class TrustPolicy(Struct, frozen=True, kw_only=True):
    """Limits that apply with every `--on-change`."""

    allow: tuple[str, ...] = ("*",)
    """Patterns of tools, as in `fnmatch`."""
    deny: tuple[str, ...] = ()
    arguments: dict[str, Any] = {}
    """JSON Schemas of the arguments, by tool."""
    calls_per_minute: int | None = None
    sampling: int | None = None
    """Maximum number of `sampling/createMessage` requests in a session; None for no limit."""
    elicitation: int | None = None
    roots: int | None = None


class TrustedServer(Struct, kw_only=True):
    command: list[str] | None = None
    url: str | None = None
    server: str | None = None
    """Name and version, for the reader, like `package` and `files`: a change of them alone is not a difference."""
    package: str | None = None
    files: dict[str, str] = field(default_factory=dict)
    """Words of the command that are files → their digests."""
    listed: tuple[str, ...] = ()
    """Listings that were reviewed, such as `tools`. Others are not compared."""
    items: dict[str, dict[str, TrustedItem]] = field(default_factory=dict)
    """Member of the listing, such as `tools` → name → item."""
    instructions: str | None = None
    capabilities: dict[str, Any] = field(default_factory=dict)
    revision: str | None = None
    volatile: frozenset[str] = frozenset()
    """`instructions`, `capabilities`, or neither."""
    policy: TrustPolicy = TrustPolicy()


def digest(definition: Any) -> str:
    """Return the SHA-256 of the canonical JSON, as `sha256:…`."""
    return "sha256:" + sha256(canonical_bytes(definition)).hexdigest()


def read_lock(text: str, file: str) -> dict[str, TrustedServer]:
    """Return the servers by name. Raise UsageError with the place of an error."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{file}: not TOML: {error}", HINT) from None
    if document.get("version") != VERSION:
        raise UsageError(
            f"{file}: version {document.get('version')}: not a lockfile of version {VERSION}", HINT
        )
    servers = document.get("servers", {})
    if not isinstance(servers, dict) or not all(isinstance(each, dict) for each in servers.values()):
        raise UsageError(f"{file}: servers: not a table of tables", HINT)
    return {name: _server(table, f"{file}: servers.{name}") for name, table in servers.items()}


def find(servers: dict[str, TrustedServer], names: list[str]) -> TrustedServer | None:
    """Return the server with one of these commands, URLs or names."""
    for name in names:
        for key, server in servers.items():
            if name in (key, server.url, " ".join(server.command or ())):
                return server
    return None


def select(servers: dict[str, TrustedServer], names: list[str], file: str) -> TrustedServer:
    """Return the server with one of these commands, URLs or names. Raise UsageError if there is none."""
    if (server := find(servers, names)) is not None:
        return server
    known = ", ".join(servers) or "none"
    raise UsageError(f"{file}: no entry for {names[0]}", f"servers: {known}; add this one with mcpspy trust")


def _server(table: dict[str, Any], place: str) -> TrustedServer:
    listed = _strings(table, "listed", place)
    known = {listing.member for listing in LISTINGS.values()}
    if unknown := set(listed) - known:
        raise UsageError(
            f"{place}.listed: {', '.join(sorted(unknown))}: not one of {', '.join(sorted(known))}"
        )
    items = {}
    for listing in LISTINGS.values():
        tables = table.get(listing.member, [])
        if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
            raise UsageError(f"{place}.{listing.member}: not an array of tables", HINT)
        items[listing.member] = dict(_item(each, listing, f"{place}.{listing.member}") for each in tables)
    command = _strings(table, "command", place)
    return TrustedServer(
        command=list(command) or None,
        url=_optional(table, "url", str, place),
        server=_optional(table, "server", str, place),
        package=_optional(table, "package", str, place),
        files=_optional(table, "files", dict, place) or {},
        listed=listed,
        items=items,
        instructions=_optional(table, "instructions", str, place),
        capabilities=_json(table.get("capabilities", "{}"), f"{place}.capabilities"),
        revision=_optional(table, "revision", str, place),
        volatile=frozenset(_strings(table, "volatile", place)),
        policy=_policy(table.get("policy", {}), f"{place}.policy"),
    )


def _item(table: dict[str, Any], listing: ListMethod, place: str) -> tuple[str, TrustedItem]:
    definition = _json(table.get("definition"), f"{place}.definition")
    name = definition.get(listing.key)
    if not isinstance(name, str):
        raise UsageError(f"{place}.definition: {listing.key} is missing", HINT)
    if table.get("digest") != digest(definition):
        raise UsageError(f"{place}: {name}: the digest does not belong to the definition", HINT)
    return name, TrustedItem(definition, frozenset(_strings(table, "volatile", place)))


def _policy(table: Any, place: str) -> TrustPolicy:
    if not isinstance(table, dict):
        raise UsageError(f"{place}: not a table", "see docs/trust.md")
    if unknown := table.keys() - set(TrustPolicy.__struct_fields__):
        raise UsageError(
            f"{place}: unknown key {min(unknown)}", f"use {', '.join(TrustPolicy.__struct_fields__)}"
        )
    numbers = {}
    for name in ("calls_per_minute", "sampling", "elicitation", "roots"):
        number = numbers[name] = _optional(table, name, int, place)
        if number is not None and number < 0:
            raise UsageError(f"{place}.{name}: {number}: not a number from 0", "see docs/trust.md")
    arguments = table.get("arguments", {})
    if not isinstance(arguments, dict):
        raise UsageError(f"{place}.arguments: not a table of JSON Schemas", "see docs/trust.md")
    for tool, schema in arguments.items():
        try:
            validator(schema)
        except (ValueError, TypeError) as error:
            reason = str(error).partition("\n")[0]
            raise UsageError(
                f"{place}.arguments.{tool}: not a JSON Schema: {reason}", "see docs/trust.md"
            ) from None
    allow = _strings(table, "allow", place) if "allow" in table else ("*",)
    return TrustPolicy(allow=allow, deny=_strings(table, "deny", place), arguments=arguments, **numbers)


def validator(schema: Any) -> Any:
    """Return the validator of a schema in a policy. Raise ValueError; no document to which it refers is fetched."""
    from jsonschema_rs import validator_for

    return validator_for(schema, retriever=_refuse)


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is not fetched")


def _strings(table: dict[str, Any], name: str, place: str) -> tuple[str, ...]:
    value = table.get(name, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise UsageError(f"{place}.{name}: not an array of strings", "see docs/trust.md")
    return tuple(value)


def _optional(table: dict[str, Any], name: str, kind: type, place: str) -> Any:
    value = table.get(name)
    if value is not None and type(value) is not kind:
        noun = {int: "an integer", str: "a string"}.get(kind, "a table")
        raise UsageError(f"{place}.{name}: not {noun}", "see docs/trust.md")
    return value


def _json(value: Any, place: str) -> dict[str, Any]:
    found = loads(value.encode()) if isinstance(value, str) else None
    if not isinstance(found, dict):
        raise UsageError(f"{place}: not a JSON object in a string", HINT)
    return found
