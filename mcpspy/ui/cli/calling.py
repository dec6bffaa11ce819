"""The parts of all calls of `mcpspy call`: server, conversation, answers, printed result."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpspy.analysis import rows
from mcpspy.core.protocol.message import Notification
from mcpspy.core.protocol.tool_arguments import arguments_of, type_text, value_of
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import UsageError
from mcpspy.io.recording.recorder import RecordingTarget
from mcpspy.ui.cli.arguments import read_endpoint, read_headers_of
from mcpspy.ui.cli.options import RECORDING, REDACTION
from mcpspy.ui.cli.parser import recorded
from mcpspy.ui.text.terminal import Output

if TYPE_CHECKING:
    from mcpspy.io.client import ServerTarget
    from mcpspy.io.client.conversation import Answer
    from mcpspy.io.client.oauth import OAuthClient
    from mcpspy.ui.model.recorded_conversation import RecordedConversation


def server(args: argparse.Namespace) -> tuple[str, ServerTarget]:
    """Return name and address of the server on the command line. Raise UsageError."""
    from mcpspy.io.client import ServerAddress, ServerCommand

    if args.command:
        return args.name or "", ServerCommand(args.command)
    if args.entry is not None:
        from mcpspy.io.client.host_entry import server_of

        name, target = server_of(args.entry)
        return args.name or name, target
    if args.url is None:
        raise UsageError("call: missing the server", "use -- COMMAND, --url URL, or --from HOST/SERVER")
    upstream = read_endpoint("--url", args.url)
    sent = read_headers_of(args.header, args.header_env)
    return args.name or upstream.host, ServerAddress(
        args.url, sent, args.cacert, args.insecure, True if args.sse else None
    )


def opened(args: argparse.Namespace, name: str, target: ServerTarget) -> RecordedConversation:
    """Return a conversation that is recorded with the origin `call`; an async context manager."""
    from mcpspy.ui.model.recorded_conversation import RecordedConversation

    return RecordedConversation(
        recorded(RecordingTarget(), args, (*RECORDING, *REDACTION)),
        name,
        target,
        args.timeout,
        answers=_answers(args),
        notified=None if args.quiet or not sys.stderr.isatty() else _print_notification,
        oauth=_oauth(args, target),
    )


def _oauth(args: argparse.Namespace, target: ServerTarget) -> OAuthClient | None:
    from mcpspy.io.client import ServerAddress
    from mcpspy.io.client.oauth import OAuthClient, is_installed

    if not isinstance(target, ServerAddress) or target.has_authorization or args.no_oauth:
        return None
    return OAuthClient(target) if is_installed() else None


def _answers(args: argparse.Namespace) -> Mapping[str, Answer]:
    """Return what can be answered: by options, or on a terminal."""
    found: dict[str, Answer] = {}
    interactive = is_interactive() and not args.quiet
    if args.elicit or interactive:
        found["elicitation/create"] = partial(_elicited, args.elicit)
    if args.sample is not None or interactive:
        found["sampling/createMessage"] = partial(_sampled, args.sample)
    if args.root:
        found["roots/list"] = partial(_roots, [Path(folder).resolve() for folder in args.root])
    return found


async def _elicited(words: list[str], params: dict[str, Any]) -> dict[str, Any]:
    if words in (["decline"], ["cancel"]):
        return {"action": words[0]}
    schema = params.get("requestedSchema")
    if not words:
        return await asyncio.to_thread(_filled_form, params, schema)
    if params.get("mode") == "url":
        return {"action": "decline"}
    return {"action": "accept", "content": arguments_of(schema, words)}


def _filled_form(params: dict[str, Any], schema: Any) -> dict[str, Any]:
    """Ask for each field of a form on the terminal. An empty line leaves out a field; Ctrl-D cancels."""
    sys.stderr.write(sanitize(f"the server asks: {params.get('message', '')}") + "\n")
    if params.get("mode") == "url":
        sys.stderr.write(sanitize(f"  open {params.get('url', '')}") + "\n")
        return {"action": "accept" if typed("done? [y/n] ").lower().startswith("y") else "decline"}
    properties = schema.get("properties") if isinstance(schema, dict) else None
    required = schema.get("required") or () if isinstance(schema, dict) else ()
    content: dict[str, Any] = {}
    try:
        for name, part in (properties or {}).items():
            while True:
                needed = "" if name in required else ", or an empty line"
                text = typed(sanitize(f"  {name} ({type_text(part, schema)}{needed}): "))
                if not text and not needed:
                    continue
                try:
                    if text:
                        content[name] = value_of(text, part, schema, name)
                    break
                except UsageError as error:
                    sys.stderr.write(sanitize(f"  {error}") + "\n")
    except UsageError:
        return {"action": "cancel"}
    return {"action": "accept", "content": content}


async def _sampled(text: str | None, params: dict[str, Any]) -> dict[str, Any]:
    if text is None:
        for message in params.get("messages") or ():
            content = message.get("content") if isinstance(message, dict) else None
            shown = content.get("text") if isinstance(content, dict) else content
            sys.stderr.write(sanitize(f"the server asks the model: {shown}") + "\n")
        text = await asyncio.to_thread(typed, "your answer in its place: ")
    return {
        "role": "assistant",
        "content": {"type": "text", "text": text},
        "model": "mcpspy",
        "stopReason": "endTurn",
    }


async def _roots(folders: list[Path], params: dict[str, Any]) -> dict[str, Any]:
    return {"roots": [{"uri": folder.as_uri(), "name": folder.name} for folder in folders]}


def _print_notification(message: Notification) -> None:
    """Print progress and log messages on stderr."""
    params = message.params
    if not isinstance(params, dict):
        return
    if message.method == "notifications/progress":
        text = rows.progress(message)
    elif message.method == "notifications/message":
        text = f"{params.get('level')}: {params.get('data')}"
    else:
        return
    say(text)


def is_interactive() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def typed(prompt: str) -> str:
    """Return a line that the user types. The prompt goes to stderr, as stdout is for results."""
    sys.stderr.write(prompt)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise UsageError("call: stdin ended", "type the value, or give it on the command line")
    return line.rstrip("\r\n")


def say(text: str) -> None:
    sys.stderr.write(sanitize(f"mcpspy: {text}") + "\n")


_UNSEEN = ("/result/_meta", "/result/resultType")
"""Members of a result for programs. `--format json` has them."""


def print_blocks(data: bytes) -> None:
    """Print the content of a response: labels, texts, JSON, and images as `show` draws them."""
    from mcpspy.ui.model.body import pretty
    from mcpspy.ui.views.blocks import JSON, blocks
    from mcpspy.ui.views.content import image

    output = Output()
    for block in blocks(data):
        if block.pointer in _UNSEEN:
            continue
        if any(text for text, _ in block.label):
            output.line("".join(text for text, _ in block.label), rows.QUIET)
        picture = image(block.content) if block.content is not None and output.colour else None
        if picture is not None:
            for line in picture:
                output.pieces(line)
        elif block.kind == JSON:
            output.lines((line, None) for line in pretty(block.text))
        elif block.text:
            output.lines((sanitize(line), None) for line in block.text.decode("utf-8", "replace").split("\n"))
