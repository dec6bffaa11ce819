"""Saved calls: files with a server, a call and the expected result, which are tests (docs/call.md).

A result is compared as `mcpspy diff` compares it, with the values that the file ignores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, structs, to_builtins

from mcpspy.analysis.diff import (
    ChangeKind,
    ChangeSeverity,
    ComparedCase,
    DiffChange,
    DiffOptions,
    SessionDiff,
    ignored,
)
from mcpspy.analysis.diff.compare import compare_exchanges
from mcpspy.core.protocol.message import Failure, Result
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import Frame
from mcpspy.core.redact.display import redacted_command
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.session import Session
from mcpspy.errors import FINDINGS, CannotStart, UsageError
from mcpspy.ui.cli import calling
from mcpspy.ui.model.saved_call import CALLS, ENDINGS, Expectation, SavedCall, read_saved
from mcpspy.ui.text.terminal import Output, print_report

if TYPE_CHECKING:
    from mcpspy.io.client import ServerTarget


def save(
    args: argparse.Namespace,
    target: ServerTarget,
    method: str,
    params: dict[str, Any],
    response: Result | Failure,
) -> None:
    """Write a call and its response to a file. Raise UsageError if it exists, or would contain a secret."""
    saved = SavedCall(expect=_expected(response))
    if args.entry is not None:
        saved.entry = args.entry
    elif args.command:
        saved.command = args.command
    else:
        saved.url = args.url
    if method == "tools/call":
        saved.tool, saved.arguments = params["name"], params["arguments"]
        saved.task = params.get("task", UNSET)
    else:
        saved.method, saved.arguments = method, params
    path = _file(args.save)
    _write(path, saved, force=False)
    calling.say(f"saved in {path}: mcpspy call @{args.save} calls it again")


def call_saved(args: argparse.Namespace) -> int:
    """Call what is saved under a name, or in a folder, and compare; return the exit code."""
    if args.all is not None and args.call is not None:
        raise UsageError("call: --all takes no call", "name one saved call, or the folder of all")
    if args.arguments:
        raise UsageError("call: a saved call has its arguments in its file", "leave out NAME=VALUE")
    files = _files(args.all) if args.all is not None else [_file(args.call[1:])]
    read = [(path, read_saved(path)) for path in files]
    cases: list[ComparedCase] = []
    for path, saved in read:
        try:
            case, response = asyncio.run(_called(args, path, saved))
        except CannotStart as error:
            if args.all is None:
                raise
            why = DiffChange(kind=ChangeKind.OUTCOME, severity=ChangeSeverity.BREAKING, why=str(error))
            case, response = _case(path, saved, (why,)), None
        if args.update and response is not None and case.changes:
            saved.expect = _expected(response)
            _write(path, saved, force=True)
            case = structs.replace(case, changes=())
            calling.say(f"{path}: has the new result")
        elif args.all is None and args.format == "text" and response is not None and not case.changes:
            calling.print_blocks(response.data)
        cases.append(case)
    return _report(SessionDiff(tuple(cases)), args)


async def _called(
    args: argparse.Namespace, path: Path, saved: SavedCall
) -> tuple[ComparedCase, Result | Failure]:
    given = argparse.Namespace(**vars(args))
    if not (args.command or args.url or args.entry):
        given.command, given.url, given.entry = saved.server
    name, target = calling.server(given)
    async with calling.opened(given, name, target) as conversation:
        await conversation.begin(args.revision)
        method, params = saved.request
        response = await conversation.request(method, params)
        if isinstance(response, Result) and response.is_task:
            response = await conversation.task_result(response)
    changes = [*_changes(saved, response)]
    return _case(path, saved, tuple(changes)), response


def _case(path: Path, saved: SavedCall, changes: tuple[DiffChange, ...]) -> ComparedCase:
    method, _ = saved.request
    return ComparedCase(method=method, subject=f"{saved.tool} @{path.stem}".strip(), changes=changes)


def _changes(saved: SavedCall, response: Result | Failure) -> list[DiffChange]:
    """Return what is other than expected."""
    expect = saved.expect
    found: list[DiffChange] = []
    if expect.result is not UNSET or expect.error is not UNSET:
        expected = {"result": expect.result} if expect.result is not UNSET else {"error": expect.error}
        options = DiffOptions(
            ignored=tuple(ignored(text) for text in saved.ignore),
            dates=saved.compare == "dates",
            volatile=saved.compare == "volatile",
        )
        old = _exchange(saved, json.dumps(expected).encode())
        found += compare_exchanges(old, _exchange(saved, response.data), options).changes
    texts = response.text
    found += [
        DiffChange(
            kind=ChangeKind.RESULT,
            severity=ChangeSeverity.BREAKING,
            why=f"does not contain {text!r}",
            new=texts,
        )
        for text in expect.contains
        if text not in texts
    ]
    failed = isinstance(response, Failure) or response.is_tool_error
    if expect.error is UNSET and failed and not expect.isError and expect.result is UNSET:
        why = f"fails: {texts}"
        found.append(DiffChange(kind=ChangeKind.ERROR, severity=ChangeSeverity.BREAKING, why=why))
    elif expect.isError is True and not failed:
        found.append(
            DiffChange(kind=ChangeKind.RECOVERED, severity=ChangeSeverity.DIFFERENT, why="does not fail")
        )
    return found


def _exchange(saved: SavedCall, response: bytes) -> Exchange:
    """Return the exchange of the call with a response, which gets its id."""
    method, params = saved.request
    session = Session()
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    body = {key: value for key, value in json.loads(response).items() if key in ("result", "error")}
    session.add(Frame(0.0, CLIENT, json.dumps(request).encode()))
    session.add(Frame(0.0, SERVER, json.dumps({"jsonrpc": "2.0", "id": 1, **body}).encode()))
    return session.exchanges[0]


def _expected(response: Result | Failure) -> Expectation:
    if isinstance(response, Failure):
        return Expectation(error=response.error)
    return Expectation(result=response.result)


def _report(difference: SessionDiff, args: argparse.Namespace) -> int:
    titles = "the saved calls", "now"
    if args.format == "junit":
        from mcpspy.ui.report.junit import diff_junit

        print_report(diff_junit(difference, titles))
    elif args.format == "json":
        from mcpspy.ui.report.diff import document

        print_report(document(difference, titles).decode())
    elif difference.changed or args.all is not None:
        from mcpspy.ui.report.diff import terminal

        output = Output()
        output.lines(terminal(difference, width=output.width))
    return 0 if difference.is_same(ChangeSeverity.DIFFERENT) else FINDINGS


# Files.


def _file(name: str) -> Path:
    """Return the file of a name, in the folder of saved calls, or of a path."""
    if os.sep in name or name.endswith(ENDINGS):
        return Path(name)
    if not name:
        raise UsageError("call: @: no name", "use mcpspy call @NAME")
    return Path(CALLS) / f"{name}.yaml"


def _files(folder: str) -> list[Path]:
    try:
        found = sorted(path for path in Path(folder).iterdir() if path.suffix in ENDINGS)
    except OSError as error:
        raise UsageError(sanitize(f"--all {folder}: {error.strerror}"), "name a folder") from None
    if not found:
        raise UsageError(sanitize(f"--all {folder}: no saved calls"), "save one with --save NAME")
    return found


def _write(path: Path, saved: SavedCall, *, force: bool) -> None:
    from ruamel.yaml import YAML

    from mcpspy.io.recording.atomic import save as write

    if redacted_command(saved.command) != saved.command or _has_secret(saved):
        raise UsageError(
            "call: --save: the call contains a secret", "put it into a variable, and ${NAME} into the command"
        )
    text = StringIO()
    yaml = YAML()
    yaml.default_flow_style = False
    yaml.width = 100
    yaml.dump(to_builtins(saved), text)
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, [text.getvalue()], force=force, way_out="use another name, or --update")


def _has_secret(saved: SavedCall) -> bool:
    """Return whether a recording would redact something of the call."""
    from mcpspy.core.recording.encode import FrameEncoder
    from mcpspy.io.recording.redaction import RedactionOptions, redactor

    method, params = saved.request
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params, "url": saved.url}
    written = FrameEncoder(CLIENT).feed(0.0, json.dumps(message).encode() + b"\n")
    lines = written if isinstance(written, bytes) else b"".join(written)
    found = redactor(RedactionOptions(), calling.say)
    return found is not None and found.lines(lines) != lines
