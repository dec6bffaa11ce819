"""The tools that wait for live sessions, and those that act: `wait_for`, `replay` and `send`.

`replay` and `send` run the command of the same name in a process: it ends with its servers and sockets at a time
limit. Each needs the permission of the user, for a server or a session that the user named.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, Struct

from mcpspy.core.query.parser import Query
from mcpspy.core.recording.decode import read_entry
from mcpspy.core.session.session import Session
from mcpspy.errors import FINDINGS, McpspyError, UsageError
from mcpspy.io.hosts.configuration import command_line
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.io.recording.tail import POLL, follow_lines
from mcpspy.ui.agent.answer import BUDGET, AgentAnswer, AnswerBlock, block_text
from mcpspy.ui.agent.queries import Budget, Filter, Name, outline, read_filter
from mcpspy.ui.agent.sessions import SessionStore, new_redactor
from mcpspy.ui.model.filter_items import ChangeItem

LAST_ROWS = 5
"""Rows that are shown if no message matches."""

ALL = "all"
"""Permission for every session of the folder."""

ENDING = 5.0
"""Seconds for a command to end after its time limit."""

_RECORDED = re.compile(r"recorded to (.+\.jsonl)$", re.MULTILINE)

Seconds = Annotated[float, Meta(gt=0, le=600, description="time limit in seconds")]


class AgentPermissions(NamedTuple):
    """Commands and URLs of servers for `replay`, and sessions for `send`."""

    replay: Sequence[str] = ()
    send: Sequence[str] = ()


class WaitArguments(Struct, forbid_unknown_fields=True):
    filter: Filter
    session: Name = "last"
    after: Annotated[
        int | None,
        Meta(description="lines to skip; default: the present ones of a session that is already live"),
    ] = None
    timeout: Seconds = 30
    max_tokens: Budget = BUDGET


class WaitFacts(Struct):
    matched: bool
    session: str
    line: Annotated[
        int, Meta(description="line of the match, else the last line; pass it as `after` to continue")
    ]
    live: bool


class ReplayArguments(Struct, forbid_unknown_fields=True):
    session: Name
    server: Annotated[str, Meta(description="one of the allowed servers; default: the only one")] = ""
    filter: Filter = ""
    timeout: Seconds = 60
    max_tokens: Budget = BUDGET


class ReplayFacts(Struct):
    same: bool
    session: Annotated[str, Meta(description="id of the new session")]
    changes: int


class SendArguments(Struct, forbid_unknown_fields=True):
    method: Annotated[str, Meta(description="tools/call, tools/list, ping …")]
    session: Name = "last"
    params: Annotated[dict[str, Any], Meta(description="parameters of the method")] = {}
    notify: Annotated[bool, Meta(description="send a notification, which has no response")] = False
    timeout: Seconds = 30
    max_tokens: Budget = BUDGET


class SendFacts(Struct):
    ok: Annotated[bool, Meta(description="false for an error response and a tool error")]


async def wait_for(store: SessionStore, arguments: WaitArguments) -> AgentAnswer:
    """Wait until a live session has a message that matches a filter. The session may begin meanwhile."""
    query = read_filter(arguments.filter)
    path: Path | None = None
    line, is_matched = 0, False
    try:
        async with asyncio.timeout(arguments.timeout):
            path, began = await _live(store, arguments.session)
            skipped = arguments.after
            if skipped is None:
                skipped = (await asyncio.to_thread(store.load, path)).last_line if began else 1
            line = skipped
            redacting = new_redactor() if store.redactor(path) is not None else None
            session, number = Session(), 1
            async with aclosing(follow_lines(path)) as blocks:
                async for block in blocks:
                    for data in block.lines:
                        text = data if redacting is None else redacting.lines(data + b"\n").rstrip(b"\n")
                        number += 1
                        if _matches(query, session, text) and number > skipped and not is_matched:
                            line, is_matched = number, True
                    if is_matched:
                        break
            line = line if is_matched else number
    except TimeoutError:
        pass
    if path is None:
        raise UsageError(
            f"no live session {arguments.session} within {arguments.timeout:g} s",
            "list_sessions shows the state of each",
        )
    found = await asyncio.to_thread(store.load, path)
    if is_matched:
        changes = list(found.changes_at(line, found.last_line))[:LAST_ROWS]
        summary = f"a match at line {line} of session {found.id}, and the messages after it"
    else:
        changes = list(found.session.changes[-LAST_ROWS:])
        line = found.last_line
        ended = "within the time limit" if found.is_live else "before the session ended"
        summary = f"no match {ended}; the last messages of session {found.id}"
    return AgentAnswer(
        summary,
        WaitFacts(is_matched, found.id, line, found.is_live),
        tuple(AnswerBlock(found.row(change)) for change in changes),
        more=lambda _: "find with after",
        sessions=[found.id],
    )


def _matches(query: Query | None, session: Session, line: bytes) -> bool:
    added = session.add(read_entry(line))
    return any(
        query is None or query.matches(ChangeItem(change, changes=session.changes)) for change in added
    )


async def _live(store: SessionStore, name: str) -> tuple[Path, bool]:
    """Return the file of a live session, and whether it was already live; wait until there is one."""
    is_first = True
    while True:
        try:
            path = store.path(name)
            if Recording(path).state is RecordingState.LIVE:
                return path, is_first
        except McpspyError:  # There is no such session yet.
            pass
        is_first = False
        await asyncio.sleep(POLL)


async def replay(
    store: SessionStore, permissions: AgentPermissions, arguments: ReplayArguments
) -> AgentAnswer:
    """Send the recorded requests of a client to a live server, and compare the responses."""
    server = arguments.server or (permissions.replay[0] if len(permissions.replay) == 1 else "")
    if server not in permissions.replay:
        allowed = " or ".join(map(repr, permissions.replay)) or "none"
        raise UsageError(
            f"replay: server {server!r} is not allowed, only {allowed}",
            "the user allows it with --allow-replay SERVER",
        )
    path = store.path(arguments.session)
    options = ["--format", "json", "--volatile", *(["--dir", store.folder] if store.folder else [])]
    options += ["--filter", arguments.filter] if arguments.filter else []
    target = ["--upstream", server] if "://" in server.partition(" ")[0] else ["--", *shlex.split(server)]
    code, out, err = await _run(["replay", str(path), *options, *target], arguments.timeout)
    if code not in (0, FINDINGS) or not out:
        return _failed(store, "replay", err, ReplayFacts(False, "", 0))
    found = json.loads(out)
    recorded = _RECORDED.search(err)
    new = (await asyncio.to_thread(store.load, Path(recorded[1]))).id if recorded else ""
    blocks = []
    for each in found["changes"]:
        old, new_value = (outline((each[side] or {}).get("value"), 200) for side in ("old", "new"))
        text = f"{each['severity']} {each['method']} {each['about'] or ''} {each['pointer']} {each['why']}: "
        blocks.append(AnswerBlock(block_text(store.gated(f"{text}{old} → {new_value}"))))
    return AgentAnswer(
        f"{'same' if found['same'] else 'changed'}: {found['compared']} compared, {len(blocks)} changes"
        + (f"; the new session is {new}" if new else ""),
        ReplayFacts(found["same"], new, len(blocks)),
        tuple(blocks),
        more=lambda _: "diff of both sessions",
        sessions=[new],
    )


async def send(store: SessionStore, permissions: AgentPermissions, arguments: SendArguments) -> AgentAnswer:
    """Send a request to the server of a live session, and return the response; or send a notification."""
    header = Recording(store.path(arguments.session)).header
    if not {ALL, header.name, header.id} & {*permissions.send}:
        raise UsageError(
            f"send: session {arguments.session} is not allowed", "the user allows it with --allow-send NAME"
        )
    options = ["--format", "json", "--timeout", f"{arguments.timeout:g}"]
    options += ["--dir", store.folder] if store.folder else []
    words = [arguments.method, json.dumps(arguments.params)] if arguments.params else [arguments.method]
    options += ["--notify"] if arguments.notify else []
    code, out, err = await _run(["send", header.id, *words, *options], arguments.timeout + 5)
    if arguments.notify and code == 0:
        return AgentAnswer(
            f"notification sent in session {header.id}", SendFacts(True), (), sessions=[header.id]
        )
    if code not in (0, FINDINGS) or not out:
        return _failed(store, "send", err, SendFacts(False))
    response = outline(json.loads(store.gated(out)), arguments.max_tokens - 150)
    return AgentAnswer(
        f"response of session {header.id}: {'ok' if code == 0 else 'an error'}",
        SendFacts(code == 0),
        (AnswerBlock(block_text(response)),),
        more=lambda _: f'find with sessions=["{header.id}"] shows its line, and read has parts by pointer',
        sessions=[header.id],
    )


def _failed(store: SessionStore, command: str, err: str, facts: Struct) -> AgentAnswer:
    text = block_text(store.gated(err.strip() or "no output within the time limit"))
    return AgentAnswer(f"{command} failed", facts, (AnswerBlock(text),), is_error=True)


async def _run(arguments: list[str], seconds: float) -> tuple[int, str, str]:
    """Run mcpspy; return exit code, stdout and stderr. At the time limit it is ended, as by the user."""
    process = await asyncio.create_subprocess_exec(
        *command_line(),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output = asyncio.ensure_future(process.communicate())
    try:
        done, _ = await asyncio.wait({output}, timeout=seconds)
        if not done:
            process.terminate()  # It ends its server, and reports the completed requests.
            await asyncio.wait({output}, timeout=ENDING)
    finally:
        if process.returncode is None:
            process.kill()
    out, err = await output
    return process.returncode or 0, out.decode("utf-8", "replace"), err.decode("utf-8", "backslashreplace")
