"""Server cards and AI catalogs: their members, and what a card states that the server does not do.

They are recorded when a client gets them through `mcpspy http` (note `document`, docs/format.md). A catalog may also
contain whole cards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mcpspy.analysis.lint.event import LintEvent, objects
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import RULES, Report, RuleGroup
from mcpspy.analysis.lint.rules.metadata import invalid_keys
from mcpspy.core.protocol.extensions import DOCUMENTS
from mcpspy.core.protocol.extensions.server_card import CARD, CATALOG, SOURCE
from mcpspy.core.protocol.spec import META
from mcpspy.core.recording.decode import Note

SCHEMA = "https://github.com/modelcontextprotocol/experimental-ext-server-card/blob/main/schema.ts"

_MEDIA = {document.name: document.media for document in DOCUMENTS}
_SCHEMA = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
_NAME = re.compile(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+")
_URL = re.compile(r"https?://\S+|\{[a-zA-Z_][a-zA-Z0-9_]*\}\S*")
_RANGE = re.compile(r"[\^~<>=*]|\.x\b")

_NOTE = '@ http\n* document {"http":1,"stream":"1","document":"%s","path":"%s","status":200,"type":"%s","allow_origin":%s,"body":%s}\n'
_BODY = '{"$schema":"' + _SCHEMA + '","name":"com.example/server","version":"1.0","description":"Weather."%s}'
_CARD = _NOTE % (CARD, "/mcp/server-card", _MEDIA[CARD], '"*"', _BODY)
_CATALOG = _NOTE % (
    *(CATALOG, "/.well-known/ai-catalog.json", _MEDIA[CATALOG], '"*"'),
    '{"specVersion":"1.0","entries":[{"identifier":"urn:air:example.com:mcp:a","type":"%s",%s}]}',
)
_IN_CATALOG = _CATALOG % (_MEDIA[CARD], '"data":' + _BODY)
_LINKED = _CATALOG % (_MEDIA[CARD], '"url":"https://example.com/mcp/server-card"')
_REMOTE = ',"remotes":[{"type":"streamable-http","url":"https://a.example/mcp"%s}]'
_MODERN = (
    "@ 2026-07-28 http\n"
    + (_CARD % "").partition("\n")[2]
    + (
        '> {"id":1,"method":"server/discover"}\n'
        '< {"id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"%s","version":"1.0"}}}}\n'
    )
)
_OTHER = _CARD.replace("@ http", "@ http bare") % "" + (
    '> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}\n'
    '= 200 {"mcp-protocol-version":null} {}\n'
    '< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"%s","version":"%s"}}}\n'
)

document = RuleGroup(RULES, on=EventKind.NOTE, about="document", page=SCHEMA)


def cards_of(note: Note) -> Iterator[dict[str, Any]]:
    """Yield the server cards in a document: the document itself, or the cards that a catalog contains."""
    body = note.fields.get("body")
    if note.fields.get("status") != 200 or not isinstance(body, dict):
        return
    if note.fields.get("document") == CARD:
        yield body
    for entry in objects(body.get("entries")):
        if entry.get("type") == _MEDIA[CARD] and isinstance(card := entry.get("data"), dict):
            yield card


@document.error(
    "EXT401",
    "invalid server card",
    valid=(_CARD % "", _CARD % (_REMOTE % ""), _IN_CATALOG % ""),
    invalid=(
        (_CARD % "").replace("/v1/", "/2026-07-28/"),
        (_CARD % "").replace("com.example/server", "server"),
        (_CARD % "").replace('"version":"1.0",', ""),
        (_CARD % "").replace('"version":"1.0"', '"version":"^1.0"'),
        (_CARD % "").replace('"description":"Weather."', '"description":""'),
        _CARD % (_REMOTE % "").replace("streamable-http", "stdio"),
        _CARD % ',"remotes":{}',
        _CARD % ',"_meta":{"com_example/a":1}',
        (_IN_CATALOG % "").replace("com.example/server", "server"),
        _NOTE % (CARD, "/mcp/server-card", _MEDIA[CARD], '"*"', '"{"'),
    ),
)
def invalid_card(event: LintEvent) -> Iterator[Report]:
    """A server card has `$schema` (version 1), a `name` in reverse-DNS form with one slash, an exact `version` and a
    `description` of up to 100 characters; each of its `remotes` has a `type` and a `url`. Clients ignore other cards.
    """
    fields = event.note.fields
    if fields.get("document") == CARD and fields.get("status") == 200 and not fields.get("cut"):
        body = fields.get("body")
        if not isinstance(body, dict):
            yield Report("the server card is not a JSON object", body)
    for card in cards_of(event.note):
        for why in _flaws(card):
            yield Report(f"server card: {why}", card)


def _flaws(card: dict[str, Any]) -> Iterator[str]:
    name, version, about = (card.get(key) for key in ("name", "version", "description"))
    if card.get("$schema") != _SCHEMA:
        yield f"$schema is {str(card.get('$schema'))[:80]}, not {_SCHEMA}"
    if not isinstance(name, str) or not 3 <= len(name) <= 200 or not _NAME.fullmatch(name):
        yield f"the name {str(name)[:80]} is not NAMESPACE/NAME"
    if not isinstance(version, str) or len(version) > 255 or _RANGE.search(version):
        yield f"the version {str(version)[:80]} is not an exact version"
    if not isinstance(about, str) or not 1 <= len(about) <= 100:
        yield "the description is not a text of 1 to 100 characters"
    meta = card.get("_meta")
    for key in invalid_keys(tuple(meta)) if isinstance(meta, dict) else ():
        yield f"invalid key in _meta: {key[:80]!r}"
    remotes = card.get("remotes", [])
    if not isinstance(remotes, list):
        yield "remotes is not a list"
    for remote in objects(remotes):
        if remote.get("type") not in ("streamable-http", "sse"):
            yield f"a remote of type {str(remote.get('type'))[:40]}, not streamable-http or sse"
        if not isinstance(url := remote.get("url"), str) or not _URL.fullmatch(url):
            yield f"the URL {str(url)[:80]} of a remote is not one of HTTP"


@document.error(
    "EXT402",
    "invalid AI catalog",
    page=SOURCE + "#server-card-entries",
    valid=(_LINKED, _IN_CATALOG % ""),
    invalid=(
        _LINKED.replace('"specVersion":"1.0",', ""),
        _LINKED.replace('"identifier":"urn:air:example.com:mcp:a",', ""),
        (_IN_CATALOG % "").replace('"data":', '"url":"https://example.com/mcp/server-card","data":'),
        _LINKED.replace('"url":', '"href":'),
        _NOTE % (CATALOG, "/.well-known/ai-catalog.json", _MEDIA[CATALOG], '"*"', '{"specVersion":"1.0"}'),
    ),
)
def invalid_catalog(event: LintEvent) -> Iterator[Report]:
    """A catalog has `specVersion` and `entries`; an entry has an `identifier`, a `type`, and either the `url` of its
    document or the document as `data`.
    """
    fields = event.note.fields
    if fields.get("document") != CATALOG or fields.get("status") != 200 or fields.get("cut"):
        return
    body = fields.get("body")
    entries = body.get("entries") if isinstance(body, dict) else None
    if (
        not isinstance(body, dict)
        or not isinstance(body.get("specVersion"), str)
        or not isinstance(entries, list)
    ):
        yield Report("the catalog has no specVersion, or no list of entries", body)
        return
    for entry in objects(entries):
        wrong = [name for name in ("identifier", "type") if not isinstance(entry.get(name), str)]
        if wrong:
            yield Report(f"an entry of the catalog has no {' and no '.join(wrong)}", entry)
        elif ("url" in entry) == ("data" in entry):
            has = "both" if "url" in entry else "neither"
            yield Report(f"the entry {str(entry['identifier'])[:80]} has {has} of url and data", entry)


@document.warning(
    "EXT403",
    "server card or catalog that other clients cannot read",
    page=SOURCE + "#cors-requirements",
    valid=(_CARD % "", _LINKED),
    invalid=(
        (_CARD % "").replace('"allow_origin":"*"', '"allow_origin":null'),
        (_CARD % "").replace(f'"type":"{_MEDIA[CARD]}"', '"type":"application/json"'),
    ),
)
def unreadable(event: LintEvent) -> Iterator[Report]:
    """A card is served with its media type, and with `Access-Control-Allow-Origin: *`, without which clients in browsers
    cannot read it.
    """
    fields = event.note.fields
    if fields.get("status") != 200:
        return
    kind = str(fields.get("document"))
    if (media := fields.get("type")) != _MEDIA.get(kind):
        yield Report(f"{kind} of type {str(media)[:60] or '(none)'}, not {_MEDIA.get(kind)}")
    if kind == CARD and fields.get("allow_origin") is None:
        yield Report("server card without Access-Control-Allow-Origin")


@document.error(
    "EXT404",
    "secret in a server card",
    page=SOURCE + "#information-disclosure",
    valid=_CARD % (_REMOTE % ',"headers":[{"name":"X","isSecret":true,"value":"Bearer {token}"}]'),
    invalid=(
        _CARD % (_REMOTE % ',"headers":[{"name":"X","isSecret":true,"value":"abc"}]'),
        _CARD % (_REMOTE % ',"variables":{"k":{"isSecret":true,"default":"abc"}}'),
    ),
)
def secret(event: LintEvent) -> Iterator[Report]:
    """A card is public. An input with `isSecret` has neither a `value` nor a `default`, except of placeholders, such as
    `Bearer {token}`.
    """
    for card in cards_of(event.note):
        for remote in objects(card.get("remotes")):
            variables = remote.get("variables")
            named = [
                *((str(each.get("name")), each) for each in objects(remote.get("headers"))),
                *(variables.items() if isinstance(variables, dict) else ()),
            ]
            for name, each in named:
                if not isinstance(each, dict) or each.get("isSecret") is not True:
                    continue
                texts = [text for key in ("value", "default") if isinstance(text := each.get(key), str)]
                if any("{" not in text for text in texts):
                    yield Report(f"server card with the value of the secret {name[:60]}", each)


class _Known:
    """The cards of a session, and the description that its server gave of itself."""

    def __init__(self) -> None:
        self.cards: dict[str, dict[str, Any]] = {}
        """By name."""
        self.server: dict[str, Any] = {}
        """`name` and `version` of the server, and the `revisions` that it supports."""


@document.warning(
    "EXT405",
    "the card states what the server does not do",
    on=(EventKind.NOTE, EventKind.RESULT),
    about=("document", "initialize", "server/discover"),
    page=SOURCE + "#consistency-with-runtime-behavior",
    valid=(
        _CARD % (_REMOTE % ',"supportedProtocolVersions":["2025-11-25","2026-07-28"]'),
        _OTHER % ("com.example/server", "1.0"),
        _MODERN % "server",
    ),
    invalid=(
        _OTHER % ("server", "1.1"),
        _OTHER % ("climate", "1.0"),
        _MODERN % "climate",
        (_CARD % "").replace('"version":"1.0"', '"version":"1.1"'),
        _CARD % (_REMOTE % ',"supportedProtocolVersions":["2026-07-28"]'),
    ),
)
def contradicted(event: LintEvent) -> Iterator[Report]:
    """A client reads the card before it connects, and chooses by it. The server then has this name (alone, or after the
    namespace), this version, and the protocol versions of its remote. If they differ, clients follow the server.
    """
    known = event.state.memory[_Known]
    if isinstance(event.what, Note):
        cards = {str(card.get("name")): card for card in cards_of(event.note)}
        known.cards |= cards
    else:
        known.server = _described(event.result) or known.server
        cards = known.cards
    for card in cards.values() if known.server and len(known.cards) == 1 else ():
        for why in _contradictions(card, known.server):
            yield Report(f"the card states {why}", card if isinstance(event.what, Note) else None)


def _described(result: dict[str, Any]) -> dict[str, Any]:
    meta = result.get("_meta")
    info = result.get("serverInfo", meta.get(META + "serverInfo") if isinstance(meta, dict) else None)
    found = {key: info.get(key) for key in ("name", "version")} if isinstance(info, dict) else {}
    revisions = result.get("supportedVersions", [result.get("protocolVersion")])
    return found | {"revisions": revisions, "is_complete": "supportedVersions" in result}


def _contradictions(card: dict[str, Any], server: dict[str, Any]) -> Iterator[str]:
    name, version = server.get("name"), server.get("version")
    stated = str(card.get("name"))
    if isinstance(name, str) and name not in (stated, stated.rpartition("/")[2], card.get("title")):
        yield f"that the server is {stated[:80]}, and its name is {name[:80]}"
    own = card.get("version")
    if (
        isinstance(version, str)
        and version
        and isinstance(own, str)
        and not _RANGE.search(own)
        and own != version
    ):
        yield f"version {own[:40]}, and the server {version[:40]}"
    revisions = server.get("revisions")
    for remote in objects(card.get("remotes")):
        supported = remote.get("supportedProtocolVersions")
        if not isinstance(supported, list) or not isinstance(revisions, list):
            continue
        more = [str(each) for each in supported if each not in revisions] if server.get("is_complete") else []
        if more:
            yield f"protocol {', '.join(more)[:80]}, which the server does not support"
        elif missing := [str(each) for each in revisions if each not in supported]:
            yield f"nothing of protocol {', '.join(missing)[:80]}, which the server speaks"
