"""`mcpspy call`: start or connect to a server, call a tool or another method, and print the result.

`ui/cli/saved_calls` keeps calls in files, and compares their results.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING, Any

from mcpspy.analysis import rows
from mcpspy.core.protocol.listing import LISTINGS
from mcpspy.core.protocol.message import Failure, Result
from mcpspy.core.protocol.spec import METHODS, REVISIONS
from mcpspy.core.protocol.tool_arguments import arguments_of, missing_arguments, tool_params, value_of
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import FINDINGS, UsageError
from mcpspy.ui.cli import calling
from mcpspy.ui.cli.arguments import read_parameters
from mcpspy.ui.cli.options import (
    CERTIFICATES,
    COMMAND,
    HEADERS,
    NAME,
    RECORDING,
    REDACTION,
    Argument,
    Option,
    Repeated,
    Switch,
    duration,
    formats,
    only_with,
)
from mcpspy.ui.cli.parser import did_you_mean
from mcpspy.ui.text.terminal import Output, write_json

if TYPE_CHECKING:
    from mcpspy.io.client import ServerTarget
    from mcpspy.io.client.conversation import Conversation, ServerOffer

TAKES_OPTIONS_ANYWHERE = True

EPILOG = """\
examples:
  mcpspy call -- python weather.py                           what the server offers
  mcpspy call forecast city=Oslo days=3 -- python weather.py
  mcpspy call --url http://localhost:3001/mcp
  mcpspy call forecast city=Oslo --from claude-desktop/weather
  mcpspy call tools/list -- python weather.py
  mcpspy call forecast city=Oslo --save oslo -- python weather.py
  mcpspy call @oslo
  mcpspy call --all tests/calls --format junit > calls.xml

The values of NAME=VALUE get the types of the tool's schema: a.b=1 sets a member of an object, and
a repeated name adds an item to an array. A JSON object in single quotes is sent as it is. An
argument that the tool requires is asked for on a terminal.

Questions of the server (elicitation, sampling) are asked on a terminal, or answered by --elicit
and --sample; without either, mcpspy declares that it cannot answer them.

The session is recorded with the origin `call`, so names and `last` do not mean it.

exit codes: 0 success; 1 error response, tool error, or a saved call with another result; 2 usage
error; 3 the server cannot be started or reached, or does not respond
"""

TIMEOUT = 30.0

OPTIONS = (
    Argument("call", "TOOL", "name of a tool, another method, or @NAME of a saved call", nargs="?"),
    Argument("arguments", "NAME=VALUE", "arguments of the tool, or parameters of the method", nargs="*"),
    Argument("command", COMMAND, "the server to start, and its arguments", nargs="*",
        excludes=("--url", "--from")),
    Option("--url", "URL", "URL of a running server: http:// or https://", excludes=("--from",)),
    Option("--from", "HOST/SERVER", "the server of a host's configuration, with its variables and headers",
        dest="entry"),
    *only_with("--url", HEADERS),
    Switch("--sse", "--url: use HTTP+SSE (default if the path ends in sse)", requires="--url"),
    Switch("--no-oauth", "do not sign in; report that the server requires it"),
    *(option.but(requires="--url") for option in CERTIFICATES),
    Option("--revision", None, "handshake in this revision (default: the newest that the server has)",
        choices=REVISIONS),
    Repeated("--root", "DIR", "offer this folder as a root"),
    Repeated("--elicit", "NAME=VALUE", "answer a form of the server; or decline, or cancel"),
    Option("--sample", "TEXT", "answer each request for sampling with this text"),
    Option("--timeout", "TIME", "time to wait for each response: 30, 500ms, 5min (default: 30)",
        read=duration, default=TIMEOUT),
    Option("--save", "NAME", "save the call and its result in tests/calls/NAME.yaml, or in this file"),
    Option("--all", "DIR", "call all that is saved in this folder, and compare the results", excludes=("--save",)),
    Switch("--update", "save the new results of saved calls in place of the old ones"),
    Switch("-q --quiet", "print only the texts of the result"),
    NAME.but(into=""),
    *RECORDING,
    *REDACTION,
    *formats("json: the whole response on one line; junit: of saved calls", "json", "junit"),
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    if args.all is not None or (args.call or "").startswith("@"):
        from mcpspy.ui.cli.saved_calls import call_saved

        return call_saved(args)
    if args.format == "junit" or args.update:
        raise UsageError(
            f"call: {'--update' if args.update else '--format junit'} is for saved calls",
            "use mcpspy call @NAME, or --all DIR",
        )
    if args.save is not None and args.call is None:
        raise UsageError("call: --save: no call to save", "name a tool")
    name, target = calling.server(args)
    return asyncio.run(_run(args, name, target))


async def _run(args: argparse.Namespace, name: str, target: ServerTarget) -> int:
    async with calling.opened(args, name, target) as conversation:
        offer = await conversation.begin(args.revision)
        if args.call is None:
            return await _print_offer(conversation, offer, as_json=args.format == "json")
        method, params = await read_call(conversation, offer, args.call, args.arguments)
        response = await conversation.request(method, params)
        if isinstance(response, Result) and response.is_task:
            response = await conversation.task_result(response)
        code = _print_response(response, args)
        sys.stdout.flush()  # Not every server ends when its stdin does: the result does not wait for that.
        if args.save is not None:
            from mcpspy.ui.cli.saved_calls import save

            save(args, target, method, params, response)
        return code


async def read_call(
    conversation: Conversation, offer: ServerOffer, call: str, words: list[str]
) -> tuple[str, dict[str, Any]]:
    """Return method and params of a call on the command line. Raise UsageError for what the server does not offer."""
    if call in METHODS or (call.partition("/")[0] == "tools" and "tools" not in offer.capabilities):
        return call, read_parameters(words) or {}
    tools = {
        tool["name"]: tool
        for page in (await conversation.pages("tools/list") if "tools" in offer.capabilities else [])
        for tool in page.get("tools") or ()
        if isinstance(tool, dict) and isinstance(tool.get("name"), str)
    }
    if call not in tools:
        if "/" in call:
            return call, read_parameters(words) or {}
        hint = did_you_mean(call, tools) or f"its tools are {', '.join(tools) or 'none'}"
        raise UsageError(sanitize(f"call: {call}: the server has no such tool"), sanitize(hint))
    schema = tools[call].get("inputSchema")
    try:
        arguments = arguments_of(schema, words)
    except UsageError as error:
        raise UsageError(sanitize(f"call: {call}: {error.args[0]}"), sanitize(error.hint)) from None
    await asyncio.to_thread(_ask_for_missing, call, schema, arguments)
    return "tools/call", tool_params(tools[call], arguments)


def _ask_for_missing(tool: str, schema: Any, arguments: dict[str, Any]) -> None:
    missing = missing_arguments(schema, arguments)
    if missing and not calling.is_interactive():
        names = "; ".join(
            f"{each.name} ({each.type}){': ' + each.about if each.about else ''}" for each in missing
        )
        signature = f"{tool}({', '.join(_signature(schema))})"
        hint = f"use {missing[0].name}=VALUE; the tool is {signature}"
        raise UsageError(sanitize(f"call: {tool}: missing {names}"), sanitize(hint))
    for each in missing:
        if each.about:
            sys.stderr.write(sanitize(f"  {each.about}") + "\n")
        text = calling.typed(sanitize(f"{each.name} ({each.type}): "))
        part = (schema.get("properties") or {}).get(each.name)
        arguments[each.name] = value_of(text, part, schema, each.name)


# Results.


def _print_response(response: Result | Failure, args: argparse.Namespace) -> int:
    failed = isinstance(response, Failure) or response.is_tool_error
    if args.format == "json":
        write_json(response.data)
    elif args.quiet and isinstance(response, Result):
        _print_texts(response)
    else:
        calling.print_blocks(response.data)
    return FINDINGS if failed else 0


def _print_texts(response: Result) -> None:
    from mcpspy.ui.model.body import pretty

    texts = response.text
    for line in texts.split("\n") if texts else pretty(bytes(response.raw_result)):
        sys.stdout.write(sanitize(line) + "\n")


async def _print_offer(conversation: Conversation, offer: ServerOffer, *, as_json: bool) -> int:
    """Print what the server offers."""
    from mcpspy.io.client.conversation import offered_lists

    listed: dict[str, list[Any]] = {}
    for method in offered_lists(offer):
        member = LISTINGS[method].member
        pages = await conversation.pages(method)
        listed[member] = [item for page in pages for item in page.get(member) or () if isinstance(item, dict)]
    if as_json:
        import json

        document = {
            "server": offer.info,
            "revision": offer.revision,
            "capabilities": offer.capabilities,
            **({"instructions": offer.instructions} if offer.instructions else {}),
            **listed,
        }
        write_json(json.dumps(document, ensure_ascii=False).encode())
        return 0
    output = Output()
    name = " ".join(str(offer.info.get(key, "")) for key in ("name", "version")).strip()
    output.line(sanitize(f"{name or conversation.name} · {offer.revision}"))
    if offer.instructions:
        output.line(sanitize(offer.instructions.split("\n")[0]), rows.QUIET)
    for member, items in listed.items():
        output.line()
        output.line(sanitize(member))
        for item in items:
            _print_item(output, member, item)
        if not items:
            output.line("  none", rows.QUIET)
    return 0


def _print_item(output: Output, member: str, item: dict[str, Any]) -> None:
    label = str(item.get("uri") or item.get("uriTemplate") or item.get("name"))
    if member == "tools":
        label += f"({', '.join(_signature(item.get('inputSchema')))})"
    elif member == "prompts":
        arguments = [each for each in item.get("arguments") or () if isinstance(each, dict)]
        names = [f"{each.get('name')}{'' if each.get('required') else '?'}" for each in arguments]
        label += f"({', '.join(names)})"
    about = str(item.get("description") or item.get("title") or "").strip().split("\n")[0]
    output.line(sanitize(f"  {label}"))
    if about:
        output.line(sanitize(f"      {about}"), rows.QUIET)


def _signature(schema: Any) -> list[str]:
    """Return the arguments of a tool: `city: string`, `days?: integer`."""
    from mcpspy.ui.model.interface import fields

    return [
        f"{field.name}{'' if field.required else '?'}: {field.type}"
        for field in fields(schema)
        if "." not in field.name and "[" not in field.name
    ]
