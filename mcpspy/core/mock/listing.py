"""The listing and the fixtures of a mock without a recording, read and checked.

`answer_rules` makes the answers of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct, field

from mcpspy.core.jsontools import canonical
from mcpspy.core.mock.values import validator_of
from mcpspy.core.protocol.listing import LISTINGS
from mcpspy.core.protocol.uri_template import uri_pattern
from mcpspy.errors import UsageError

CALL, READ, GET = "tools/call", "resources/read", "prompts/get"

SUBJECTS = {"tool": CALL, "resource": READ, "prompt": GET}
"""Member of a fixture that names its subject → the method."""

_KNOWN = ("arguments", "schema", "result", "error")

Answer = tuple[str, dict[str, Any]]
"""`result` or `error`, and its value."""


class ServerListing(Struct):
    """The lists of a server, and its name."""

    items: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Member of the result (`tools` …) → its items; absent if the server has no such list."""
    name: str = "mcpspy mock"
    version: str = "0"
    instructions: str | None = None

    def named(self, member: str, key: str) -> dict[str, dict[str, Any]]:
        """Return the items of a list by name."""
        return {item[key]: item for item in self.items.get(member, ())}


class Fixture(NamedTuple):
    """A response written by hand."""

    place: str
    """The file and the number of the fixture, for errors."""
    method: str
    subject: str
    accepts: Callable[[Any], bool]
    """Function that returns whether the arguments of a request match."""
    shown: dict[str, Any]
    """Arguments of the example request that reports show."""
    answer: Answer


def read_listing(value: Any, source: str) -> ServerListing:
    """Return the listing in a JSON document: an array of tools, a result of `tools/list`, or several in one object.

    Raise UsageError with the place of what is not understood.
    """
    if isinstance(value, dict) and isinstance(value.get("result"), dict):
        value = value["result"]  # A whole response.
    if isinstance(value, list):
        value = {"tools": value}
    members = {listing.member: listing for listing in LISTINGS.values()}
    if not isinstance(value, dict) or not value.keys() & members.keys():
        raise UsageError(
            f"{source}: not a listing",
            'use a recording, an array of tools, or an object such as {"tools": […], "prompts": […]}',
        )
    listing = ServerListing()
    for member, known in members.items():
        items = value.get(member)
        if items is None:
            continue
        if not isinstance(items, list):
            raise UsageError(f"{source}: {member}: not an array")
        for number, item in enumerate(items):
            if not isinstance(item, dict) or not isinstance(item.get(known.key), str):
                raise UsageError(f"{source}: {member}[{number}]: not an object with a {known.key}")
        listing.items[member] = items
    info = value.get("serverInfo")
    if isinstance(info, dict):
        listing.name, listing.version = str(info.get("name", listing.name)), str(info.get("version", "0"))
    listing.instructions = value.get("instructions") if isinstance(value.get("instructions"), str) else None
    return listing


def read_fixtures(value: Any, source: str, listing: ServerListing | None) -> list[Fixture]:
    """Return the fixtures of a document, an array or `{"fixtures": […]}`. Raise UsageError for the first wrong one.

    With a listing, their subjects have to be in it, and results have to be valid by its output schemas.
    """
    if isinstance(value, dict) and value.keys() == {"fixtures"}:
        value = value["fixtures"]
    if not isinstance(value, list):
        raise UsageError(f"{source}: not a list of fixtures", "see docs/mock.md, Fixtures")
    return [_fixture(each, f"{source}: fixture {number}", listing) for number, each in enumerate(value, 1)]


def _fixture(value: Any, place: str, listing: ServerListing | None) -> Fixture:
    if not isinstance(value, dict):
        raise UsageError(f"{place}: not an object", "see docs/mock.md, Fixtures")
    nouns = [noun for noun in SUBJECTS if noun in value]
    if unknown := [name for name in value if name not in (*SUBJECTS, *_KNOWN)]:
        raise UsageError(f"{place}: {unknown[0]!r}: unknown member", f"use {', '.join([*SUBJECTS, *_KNOWN])}")
    if len(nouns) != 1 or not isinstance(value[nouns[0]], str):
        raise UsageError(f"{place}: needs one of tool, resource and prompt, with a name")
    (noun,) = nouns
    subject, method = value[noun], SUBJECTS[noun]
    place = f"{place} ({noun} {subject})"
    if ("result" in value) == ("error" in value):
        raise UsageError(f"{place}: needs either a result or an error")
    accepts, shown = _matcher(value, noun, place)
    if listing is not None:
        _check_listed(listing, noun, subject, place)
    answer = _given(value, noun, subject, place)
    if noun == "tool" and listing is not None:
        _check_output(listing, subject, answer, place)
    return Fixture(place, method, subject, accepts, shown, answer)


def _matcher(value: Mapping[str, Any], noun: str, place: str) -> tuple[Callable[[Any], bool], dict[str, Any]]:
    if noun == "resource" and ("arguments" in value or "schema" in value):
        raise UsageError(f"{place}: a resource has no arguments")
    if "arguments" in value and "schema" in value:
        raise UsageError(f"{place}: arguments and schema exclude each other")
    if "schema" in value:
        try:
            validator = validator_of(value["schema"])
        except ValueError as error:
            first = str(error).partition("\n")[0]
            raise UsageError(f"{place}: schema: not a JSON Schema: {first}") from None
        return validator.is_valid, {}
    if "arguments" in value:
        arguments = value["arguments"]
        if not isinstance(arguments, dict):
            raise UsageError(f"{place}: arguments: not an object", "use schema: for a JSON Schema")
        wanted = canonical(arguments)
        return (lambda sent: canonical(sent) == wanted), arguments
    return (lambda _: True), {}


def _check_listed(listing: ServerListing, noun: str, subject: str, place: str) -> None:
    member, key = {
        "tool": ("tools", "name"),
        "prompt": ("prompts", "name"),
        "resource": ("resources", "uri"),
    }[noun]
    names = listing.named(member, key)
    templates = listing.items.get("resourceTemplates", ())
    if subject in names or (
        noun == "resource" and any(uri_pattern(each["uriTemplate"]).fullmatch(subject) for each in templates)
    ):
        return
    shown = ", ".join(list(names)[:8]) + (" …" if len(names) > 8 else "")
    raise UsageError(f"{place}: not in the listing", f"it has {shown}" if names else f"it has no {member}")


def _given(value: Mapping[str, Any], noun: str, subject: str, place: str) -> Answer:
    """Return the response of a fixture; text alone is the short form of one text content."""
    if "error" in value:
        error = value["error"]
        if isinstance(error, str) and noun == "tool":
            return "result", {"content": [text_content(error)], "isError": True}
        if isinstance(error, str):
            return "error", {"code": -32603, "message": error}
        if (
            isinstance(error, dict)
            and type(error.get("code")) is int
            and isinstance(error.get("message"), str)
        ):
            return "error", error
        raise UsageError(
            f"{place}: error: not a JSON-RPC error", 'use text, or {"code": -32603, "message": "…"}'
        )
    result = value["result"]
    if noun == "tool":
        if isinstance(result, dict) and "structuredContent" in result and "content" not in result:
            result = {"content": [text_content(json_text(result["structuredContent"]))], **result}
        return "result", _checked(
            {"content": [text_content(result)]} if isinstance(result, str) else result, "content", place
        )
    if noun == "resource":
        if isinstance(result, str):
            result = {"contents": [{"uri": subject, "text": result}]}
        return "result", _checked(result, "contents", place)
    if isinstance(result, str):
        result = {"messages": [{"role": "user", "content": text_content(result)}]}
    return "result", _checked(result, "messages", place)


def _checked(result: Any, member: str, place: str) -> dict[str, Any]:
    if not isinstance(result, dict) or not isinstance(result.get(member), list):
        raise UsageError(f"{place}: result: not an object with an array `{member}`", "or use text")
    return result


def _check_output(listing: ServerListing, tool: str, answer: Answer, place: str) -> None:
    """Raise UsageError if clients would reject a result: they validate it by the output schema of its tool."""
    schema = listing.named("tools", "name")[tool].get("outputSchema")
    kind, result = answer
    if schema is None or kind == "error" or result.get("isError"):
        return
    if "structuredContent" not in result:
        raise UsageError(f"{place}: result: needs structuredContent, because the tool has an outputSchema")
    try:
        validator = validator_of(schema)
    except ValueError:
        return  # Without a fixture, the tool would be refused; with one, no value is generated.
    for error in validator.iter_errors(result["structuredContent"]):
        where = "".join(f"/{step}" for step in error.instance_path)
        raise UsageError(f"{place}: structuredContent{where}: {error.message}")


def listing_of_fixtures(fixtures: Sequence[Fixture]) -> ServerListing:
    """Return a listing of what fixtures are about, for a mock that has only these."""
    listing = ServerListing()
    for member, method in ("tools", CALL), ("prompts", GET), ("resources", READ):
        names = dict.fromkeys(each.subject for each in fixtures if each.method == method)
        more: dict[str, Any] = {"inputSchema": {"type": "object"}} if method == CALL else {}
        if names:
            listing.items[member] = [
                {"name": name, **({"uri": name} if method == READ else more)} for name in names
            ]
    return listing


def text_content(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def json_text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
