"""The tools that look into sessions: `list_sessions`, `find` and `read`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import orjson
from msgspec import Meta, Struct

from mcpspy.analysis.context import count_tokens
from mcpspy.analysis.export.base import CARRIERS
from mcpspy.analysis.rows import BAD, duration
from mcpspy.analysis.rows import row as row_of
from mcpspy.core.counted import counted
from mcpspy.core.jsontools import ABSENT, Pointer, pointer, pointer_text, value_at
from mcpspy.core.protocol.message import Failure, Message, Request, Result
from mcpspy.core.query.lexer import QueryError
from mcpspy.core.query.parser import Query, parse
from mcpspy.core.recording.decode import Note
from mcpspy.core.recording.origin import HOST
from mcpspy.core.redact.display import redacted_command
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.session import Change
from mcpspy.errors import UsageError
from mcpspy.io.recording.catalog import Catalog, sessions_of
from mcpspy.io.recording.listed_session import ListedSession
from mcpspy.io.recording.listed_session import matching as matching_sessions
from mcpspy.ui.agent.answer import (
    BUDGET,
    DENSEST,
    LARGEST,
    SMALLEST,
    AgentAnswer,
    AnswerBlock,
    ShownPart,
    block_text,
)
from mcpspy.ui.agent.sessions import LoadedSession, SessionStore, age, not_a_line, session_id
from mcpspy.ui.model.filter_items import exchange_filter

Name = Annotated[str, Meta(description="`last`, a session name, an id or its beginning, or a file")]
Filter = Annotated[
    str,
    Meta(
        description="filter, e.g. `tool:forecast status:error or >1s`; terms: WORD, tool:NAME, method:tools/*, "
        "status:error|tool-error|pending|unanswered, is:issue, kind:stderr, from:server, >200ms, since:-5m, "
        "text:WORDS, params.name:VALUE; combined by and (a space), or, -TERM, ( )"
    ),
]
Line = Annotated[int, Meta(ge=1, description="line of the recording, as in #12")]
Offset = Annotated[int, Meta(ge=0, description="characters to skip, to continue a text that was cut")]
Budget = Annotated[int, Meta(ge=SMALLEST, le=LARGEST, description="most tokens of the answer")]

MOST_LINES = 200
"""Maximum lines of one `read`."""

LEVELS = ((4000, 200), (1000, 50), (300, 20), (100, 8), (40, 4), (16, 2))
"""Maximum characters of a string and items of a list or an object, from generous to strict."""


class ListArguments(Struct, forbid_unknown_fields=True):
    filter: Annotated[
        str,
        Meta(
            description="filter of sessions, e.g. `weather errors>0 since:1d`; terms: WORD, name: server: client: "
            "revision: id:, state:live|ended|died|failed, origin:host|replay|mock|demo|…, verdict:fine|failures|crashed"
            "|refused|never-started|never-answered, errors>0, issues>0, unanswered>0, pending>0, messages>9, "
            "size>1mb, is:problem, since:2h, until:2026-11-20; combined by and (a space), or, -TERM, ( )"
        ),
    ] = ""
    offset: Annotated[int, Meta(ge=0, description="sessions to skip")] = 0
    max_tokens: Budget = BUDGET


class ListFacts(Struct):
    total: int
    ids: Annotated[list[str], Meta(description="ids of the newest sessions, at most 10")]


class FindArguments(Struct, forbid_unknown_fields=True):
    filter: Filter = ""
    sessions: Annotated[
        list[str], Meta(description="names, ids or files; `all`: newest first; default: last")
    ] = []
    after: Annotated[int, Meta(ge=0, description="only lines after this one, in one session")] = 0
    max_tokens: Budget = BUDGET


class FindFacts(Struct):
    matches: int
    searched: Annotated[int, Meta(description="sessions searched")]


class ReadArguments(Struct, forbid_unknown_fields=True):
    line: Line
    session: Name = "last"
    count: Annotated[int, Meta(ge=1, le=MOST_LINES, description="lines to read, from `line` on")] = 1
    exchange: Annotated[bool, Meta(description="also read the other message of its exchange")] = False
    pointer: Annotated[str, Meta(description="JSON pointer of a part, e.g. /result/content/0/text")] = ""
    offset: Offset = 0
    max_tokens: Budget = BUDGET


class ReadFacts(Struct):
    session: str
    lines: list[int]
    bytes: Annotated[int, Meta(description="size of the messages")]


def list_sessions(store: SessionStore, arguments: ListArguments) -> AgentAnswer:
    """List the recorded sessions, the newest first, with verdict, length, errors, peers and command."""
    catalog = Catalog(store.folder)
    listed = [ListedSession(summary, catalog) for summary in sessions_of(catalog)]
    with _filter_errors("weather errors>0 since:1d"):
        found, hint = matching_sessions(arguments.filter, listed)
    ids = [session_id(each.summary.header, each.summary.path) for each in found]

    def blocks() -> Iterator[AnswerBlock]:
        for number, listed in enumerate(found[arguments.offset :], arguments.offset + 1):
            summary, errors, unanswered = listed.summary, listed.count("errors"), listed.unanswered
            command = (
                " ".join(redacted_command(summary.header.command or ())) or summary.header.upstream or ""
            )
            parts = (
                session_id(summary.header, summary.path),
                summary.header.name,
                "" if summary.header.origin == HOST else f"origin {summary.header.origin}",
                str(listed.verdict or listed.state).replace("-", " "),
                age(summary.header.started),
                f"{duration(summary.last)}, {summary.entries} lines",
                counted(errors, "error") if errors else "",
                f"{unanswered} unanswered" if unanswered else "",
                f"{summary.client or '?'} → {summary.server or '?'}",
                summary.revision or "",
                command[:120],
            )
            yield AnswerBlock(sanitize(" · ".join(filter(None, parts))), number)
        if hint:  # It has names that peers chose.
            yield AnswerBlock(sanitize(hint), 0)

    return AgentAnswer(
        f"{len(found)} sessions, the newest first: id · name · verdict · started · length · errors · peers · command",
        ListFacts(len(found), ids[arguments.offset : arguments.offset + 10]),
        blocks(),
        max(len(found) - arguments.offset, 1 if hint else 0),
        lambda part: f"list_sessions with offset={part.last or 0}, or a filter",
        ids[:10],
    )


def find(store: SessionStore, arguments: FindArguments) -> AgentAnswer:
    """Find messages in one, several or all sessions by a filter; without one, all messages.

    One row per exchange: #request→#response, time, direction, method, target, latency, outcome.
    """
    names = arguments.sessions or ["last"]
    if arguments.after and len(names) > 1:
        raise UsageError("after: only possible with one session", "name one session")
    query = read_filter(arguments.filter)
    is_all = "all" in names
    paths = [s.path for s in sessions_of(Catalog(store.folder))] if is_all else map(store.path, names)
    blocks: list[AnswerBlock] = []
    ids, searched, room = [], 0, arguments.max_tokens
    waiting = list(paths)
    while waiting and room > 0:  # Sessions that cannot be shown are not searched.
        session = store.load(waiting.pop(0))
        searched += 1
        found = [
            change
            for change in matching(session, query, arguments.filter)
            if session.line(change.number) > arguments.after
        ]
        if found:
            ids.append(session.id)
        if len(names) > 1 or is_all:
            heading = f"session {session.id} {session.header.name}: {len(found)} matches"
            blocks += [AnswerBlock(sanitize(heading), (session.id, 0))] if found else []
        rows = [
            AnswerBlock(session.row(change), (session.id, session.line(change.number))) for change in found
        ]
        room -= sum(count_tokens(row.text) for row in rows[: LARGEST // 8])
        blocks += rows

    def more(part: ShownPart) -> str:
        session, line = part.last or (ids[0], 0)
        return f'find with sessions=["{session}"] and after={line}, or a narrower filter'

    matches = sum(block.at[1] > 0 for block in blocks)
    unsearched = (
        f"; {len(waiting)} older sessions not searched: name them, or use a narrower filter"
        if waiting
        else ""
    )
    where = f"session {ids[0]}" if len(ids) == 1 else f"{searched} sessions"
    return AgentAnswer(
        f"{matches} matches in {where}{unsearched}",
        FindFacts(matches, searched),
        tuple(blocks),
        None,
        more,
        ids,
    )


def matching(session: LoadedSession, query: Query | None, text: str) -> Iterator[Change]:
    """Yield the requests of matching exchanges, and other matching changes.

    Notes about the transport are left out, unless they report a failure or the filter names them; so are the polls
    of a task, because the row of its call has the outcome, and requests that were sent again after a redirect.
    """
    keep = kept(session, query)
    names_notes = any(word in text for word in ("http", "note", "sse"))
    names_polls = "tasks/" in text
    for change in session.session.changes:
        what, exchange = change.what, change.exchange
        if exchange is not None and isinstance(what, Request | Result | Failure):
            is_shown_by_request = isinstance(what, Request) and what is not exchange.request
            if is_shown_by_request or what is exchange.answer:
                continue
            if exchange.poll_of is not None and not names_polls:
                continue
        if (
            isinstance(what, Note)
            and what.kind in CARRIERS
            and not names_notes
            and row_of(change).tone != BAD
        ):
            continue
        if keep(change):
            yield change


def kept(session: LoadedSession, query: Query | None) -> Callable[[Change], bool]:
    """Return a test of a session's changes; a filter that counts back does so from its end."""
    if query is not None and query.is_relative_to_end:
        query.end = session.session.last_at
    return exchange_filter(query, session.session.changes)


def read_filter(text: str) -> Query | None:
    """Return the parsed filter; None if it is empty. Raise UsageError with the position of the error."""
    with _filter_errors("tool:forecast status:error"):
        return parse(text) if text.strip() else None


@contextmanager
def _filter_errors(example: str) -> Iterator[None]:
    try:
        yield
    except QueryError as error:
        raise error.located("filter", f"e.g. {example}") from None


def read(store: SessionStore, arguments: ReadArguments) -> AgentAnswer:
    """Read a message, its exchange, or several lines.

    Long values are shortened, with the JSON pointer to read them by.
    """
    session = store.load(arguments.session)
    changes = list(session.changes_at(arguments.line, arguments.line + arguments.count - 1))
    if not changes:
        raise not_a_line(session, arguments.line)
    if arguments.exchange:
        numbers = {change.number for change in changes}
        for change in changes:
            if (exchange := change.exchange) is not None:
                numbers |= {
                    other.number
                    for other in session.session.changes
                    if other.what is exchange.request or other.what is exchange.answer
                }
        changes = [session.session.changes[number] for number in sorted(numbers)]
    tokens = _pointer(arguments.pointer)
    room = max((arguments.max_tokens - 200) // min(len(changes), 8), 60)
    blocks = tuple(
        AnswerBlock(f"{session.row(change)}\n{body}", session.line(change.number))
        for change in changes
        for body in [_body(change, tokens, arguments.offset, room)]
    )

    def more(part: ShownPart) -> str:
        if part.characters is not None:
            return "the last part is cut: read it with its pointer, an offset, or a larger max_tokens"
        return f"read from line {part.last + 1 if part.last else arguments.line} on"

    lines = list(dict.fromkeys(session.line(change.number) for change in changes))
    size = sum(len(change.what.data) for change in changes if isinstance(change.what, Message))
    where = f"line {lines[0]}" if len(lines) == 1 else f"{len(lines)} lines, {lines[0]} to {lines[-1]}"
    return AgentAnswer(
        f"{where} of session {session.id}, {size:,} bytes",
        ReadFacts(session.id, lines[:20], size),
        blocks,
        None,
        more,
        [session.id],
    )


def _pointer(text: str) -> Pointer:
    try:
        return pointer(text) if text else ()
    except ValueError as error:
        raise UsageError(f"pointer {text}: {error}", "use /result/content/0/text") from None


def _body(change: Change, tokens: Pointer, offset: int, room: int) -> str:
    """Return a message, or a part of it, in about N tokens."""
    what = change.what
    if isinstance(what, Note):
        value: Any = what.fields
    else:
        try:
            value = orjson.loads(what.data)
        except ValueError:
            text = what.data.decode("utf-8", "backslashreplace")
            return _cut(text, offset, room)
    if tokens:
        value = value_at(value, tokens)
        if value is ABSENT:
            return f"(no value at {sanitize(pointer_text(tokens))})"
    if isinstance(value, str):
        return _cut(value, offset, room)
    if offset:
        return _cut(_dumps(value), offset, room)
    return sanitize(outline(value, room, pointer_text(tokens)))


def _cut(text: str, offset: int, room: int) -> str:
    """Return a text from an offset on, in about N tokens, and how to continue it."""
    text = block_text(text)
    part = text[offset : offset + room * DENSEST]
    while (cost := count_tokens(part)) > room and len(part) > 1:
        part = part[: int(len(part) * min(room / cost, 0.95))]
    rest = len(text) - offset - len(part)
    more = f"\n({rest:,} more characters: offset={offset + len(part)})" if rest > 0 else ""
    return part + more


def outline(value: Any, room: int, at: str = "") -> str:
    """Return a value as JSON in about N tokens: long strings and lists are shortened, with their pointers."""
    text = ""
    for longest, most in ((sys.maxsize, sys.maxsize), *LEVELS):
        text = _dumps(_shortened(value, longest, most, at))
        if len(text) <= room * DENSEST and count_tokens(text) <= room:
            return text
    return _cut(text, 0, room)


def _shortened(value: Any, longest: int, most: int, at: str) -> Any:
    if isinstance(value, str) and len(value) > longest:
        return f"{value[:longest]}… ({len(value):,} characters: pointer={at})"
    if isinstance(value, dict):
        members = list(value.items())
        found = {
            key: _shortened(item, longest, most, f"{at}{pointer_text((key,))}")
            for key, item in members[:most]
        }
        return found | (
            {"…": f"{len(members) - most:,} more members: pointer={at}"} if len(members) > most else {}
        )
    if isinstance(value, list):
        items = [
            _shortened(item, longest, most, f"{at}/{number}") for number, item in enumerate(value[:most])
        ]
        return items + (
            [f"… {len(value) - most:,} more items: pointer={at}/{most} …"] if len(value) > most else []
        )
    return value


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
