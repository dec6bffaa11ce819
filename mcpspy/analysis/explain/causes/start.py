"""The server's process does not start, or ends before its first message."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes.environment import trouble_of
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ServerEnd, Symptom
from mcpspy.errors import NOT_EXECUTABLE, NOT_FOUND

_NOT_FOUND = re.compile(
    r"(?i)command not found|not recognized as an internal|: not found$|No such file or directory: '?(?:npx|uvx|uv|node|python|docker|bunx|deno)\b"
    r"|spawn \S+ ENOENT|env: .{1,60}: No such file|executable file not found in"
)
_DOWNLOADS = re.compile(
    r"(?i)\b(?:downloading|installing|installed \d+ packages|resolved \d+ packages|building|compiling|npm warn exec|need to install the following|will be installed)\b"
)


@cause(
    "command-not-found",
    "the server's command was not found",
    level=Level.EXACT,
    positive='@ bare\n* error {"text":"cannot start uvxx: not found on PATH"}\n* exit {"code":127,"signal":null}',
    negative='@ bare\n* error {"text":"cannot start ./x: permission denied"}\n* exit {"code":126,"signal":null}',
)
def command_not_found(facts: Facts) -> Iterator[Claim]:
    """A host that is started from the desktop has another PATH than a shell. Some configurations hold the command and its
    arguments in one string.
    """
    for end in _before_answer(facts):
        lines = [line for line in facts.stderr if _NOT_FOUND.search(line.text)]
        if not end.error and _is_runner_alone(facts):
            continue
        is_missing = "not found" in end.error or "No such file" in end.error
        if not (is_missing or (not end.error and (lines or end.code == NOT_FOUND))):
            continue
        command = (facts.header.command or ["the command"])[0]
        title = f"the command {quote(command)} was not found"
        next_step = (
            f"give the absolute path of {quote(command)} in the host's configuration (`which {quote(command)}` prints it):"
            " a host that is started from the desktop has another PATH than a shell"
        )
        if " " in command and is_missing:
            name, _, arguments = command.partition(" ")
            title = f"no command has the name {quote(command)!r}: it holds the arguments too"
            next_step = (
                f'put only {quote(name)!r} into "command", and {quote(arguments)!r} into "args", one by one'
            )
        elif lines and not is_missing:
            title = f"a command was not found: {quote(lines[-1].text)}"
            next_step = (
                "give its absolute path, or add its folder to PATH by env in the host's configuration: a host that is"
                " started from the desktop has another PATH than a shell"
            )
        yield Claim(
            title=title,
            next_step=next_step,
            symptoms=[end, *end.during],
            evidence=[evidence(line.place, f"stderr: {line.text}") for line in lines[-2:]],
            side="configuration",
        )


@cause(
    "command-not-executable",
    "the server's command may not be executed",
    level=Level.EXACT,
    positive='@ bare\n* error {"text":"cannot start ./x: permission denied"}\n* exit {"code":126,"signal":null}',
    negative='@ bare\n* error {"text":"cannot start uvxx: not found on PATH"}\n* exit {"code":127,"signal":null}',
)
def command_not_executable(facts: Facts) -> Iterator[Claim]:
    """The file has no permission to execute, is a folder, or is built for another system."""
    for end in _before_answer(facts):
        is_forbidden = re.search(r"ermission|not executable|[Ee]xec format|is a directory", end.error)
        if is_forbidden or (not end.error and end.code == NOT_EXECUTABLE and end.named is None):
            command = quote((facts.header.command or ["the command"])[0])
            yield Claim(
                title=f"{command} may not be executed" + (f": {quote(end.error)}" if end.error else ""),
                next_step=f"make the file executable (chmod +x {command}), or start it with its interpreter",
                symptoms=[end, *end.during],
                side="configuration",
            )


_RUNNERS = re.compile(
    r"(?:^|[/\\])(?:uvx|npx|bunx|pnpx|uv|docker|podman|deno|java|dotnet|node|python[\d.]*)(?:\.exe|\.cmd)?$"
)


@cause(
    "command-incomplete",
    "the command starts other programs, and its arguments name none",
    level=Level.EXACT,
    positive="""
        @ bare command=["uvx"]
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        * stderr {"text":"Usage: uvx [OPTIONS] [COMMAND]"}
        * exit {"code":2,"signal":null}
    """,
    negative="""
        @ bare command=["uvx","mcp-weather"]
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        * stderr {"text":"Usage: uvx [OPTIONS] [COMMAND]"}
        * exit {"code":2,"signal":null}
    """,
)
def command_incomplete(facts: Facts) -> Iterator[Claim]:
    """uvx, npx, docker and others need the name of the package, image or file in their arguments; without it they print
    their usage.
    """
    command = facts.header.command or []
    if not _is_runner_alone(facts):
        return
    for end in _before_answer(facts):
        if not end.error:
            yield Claim(
                title=f"the command is {quote(' '.join(command))!r} alone: it names no server to start",
                next_step='add the name of the package, image or file to "args" in the host\'s configuration',
                symptoms=[end, *end.during],
                evidence=[evidence(line.place, f"stderr: {line.text}") for line in facts.first_stderr[:2]],
                side="configuration",
            )


@cause(
    "placeholder-not-replaced",
    "a setting is a placeholder, and not a value",
    level=Level.EXACT,
    positive="""
        @ bare
        * placeholders {"variables":["WEATHER_API_KEY"]}
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        * stderr {"text":"Error: Invalid API key provided"}
        * exit {"code":1,"signal":null}
    """,
    negative="""
        @ bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        * stderr {"text":"Error: Invalid API key provided"}
        * exit {"code":1,"signal":null}
    """,
)
def placeholder_not_replaced(facts: Facts) -> Iterator[Claim]:
    """Not every host expands ${VARIABLE} in its configuration, and examples are copied with YOUR_API_KEY in them."""
    for note, place in facts.notes.get("placeholders", [])[:1]:
        names = [str(name) for key in ("variables", "arguments") for name in note.fields.get(key, [])]
        shown = ", ".join(quote(name, 60) for name in names[:3])
        symptoms: list[Symptom] = [
            *_before_answer(facts),
            *(each for end in _before_answer(facts) for each in end.during),
        ]
        for failed in facts.failed():
            trouble = (
                trouble_of(failed.words[:600], at_start=False)
                if failed.words and failed.side == "client"
                else None
            )
            if trouble is not None and trouble.code in (
                "service-refused-key",
                "setting-missing",
                "name-not-resolved",
                "file-missing",
            ):
                symptoms.append(failed)
        yield Claim(
            title=f"the server got a placeholder in place of a value: {shown}"
            + (f"; {quote(symptoms[0].lines[0].text)}" if symptoms and symptoms[0].lines else ""),
            next_step="write the value itself into the host's configuration, or set the variable where the host starts: this host"
            " does not replace the placeholder",
            symptoms=symptoms,
            evidence=[evidence(place, f"a placeholder: {shown}")],
            side="configuration",
            is_observation=not symptoms,
        )


@cause(
    "start-failed",
    "the server ended before it answered",
    level=Level.GENERAL,
    positive='@ bare\n> {"id":1,"method":"initialize","params":{}}\n* stderr {"text":"SyntaxError: invalid syntax"}\n* exit {"code":1,"signal":null}',
    negative='> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}',
)
def start_failed(facts: Facts) -> Iterator[Claim]:
    """The process ended before its first message; what it printed names the error."""
    for end in _before_answer(facts):
        named = end.named
        if named is not None:
            frame = f" ({named.frame})" if named.frame else ""
            title = f"the server ended before it answered ({end.words}): {quote(named.text)}{frame}"
            next_step = "correct what this error names" + (f" at {named.frame}" if named.frame else "")
            lines = [evidence(named.line.place, f"stderr: {named.text}")]
        elif odd := facts.server.odd:
            title = f"the server printed {quote(odd[-1].data.decode('utf-8', 'replace'))!r} on stdout and ended ({end.words})"
            next_step = (
                "this is the server's own message: correct the command line or the setting that it names"
            )
            lines = [
                evidence(each.place, f"stdout: {each.data.decode('utf-8', 'replace')}") for each in odd[:3]
            ]
        elif end.error:
            title, lines = f"the server could not be started: {quote(end.error)}", []
            next_step = "correct the command in the host's configuration"
        else:
            title, lines = f"the server ended before it answered, with {end.words} and without a word", []
            next_step = "run its command in a terminal: an MCP server waits for input, and does not end"
            if end.code == 0:
                title = "the server ended by itself with exit code 0 before it answered: it does not wait for messages on stdin"
                next_step = (
                    "check that this command starts the server on stdio, and not another transport or a command that ends;"
                    " in the code, wait for the transport to close"
                )
        yield Claim(title=title, next_step=next_step, symptoms=[end, *end.during], evidence=lines)


@cause(
    "start-slow",
    "the server was not ready when the client gave up",
    level=Level.SPECIFIC,
    positive='@ bare\n> {"id":1,"method":"initialize","params":{}}\n* stderr {"text":"Downloading numpy (16.1MiB)"}\n> {"method":"notifications/cancelled","params":{"requestId":1,"reason":"Request timed out"}}',
    negative='@ bare\n> {"id":1,"method":"initialize","params":{}}\n* stderr {"text":"ready"}\n> {"method":"notifications/cancelled","params":{"requestId":1,"reason":"Request timed out"}}',
)
def start_slow(facts: Facts) -> Iterator[Claim]:
    """Npx and uvx install a package at its first start, models and containers are loaded; hosts wait 5 to 60 seconds."""
    for failed in facts.failed():
        if not failed.is_handshake or failed.side != "client" or failed.refusal is not None:
            continue
        lines = [line for line in facts.first_stderr if _DOWNLOADS.search(line.text)]
        is_late = failed.answer_at is not None and failed.gave_up_at is not None
        if not lines and not is_late:
            continue
        title = f"the client gave up {failed.method} after {failed.waited}, while the server was starting"
        if failed.answer_at is not None:
            title = (
                f"the server answered {failed.method} after {failed.answer_at - failed.asked_at:.1f} s, but the client had"
                f" given up after {failed.waited}"
            )
        elif lines:
            title += f": {quote(lines[-1].text)}"
        yield Claim(
            title=title,
            next_step="start it once in a terminal so that everything is installed, do slow work after the answer to"
            " initialize, or raise the host's timeout of the start",
            symptoms=[failed, *(end for end in facts.of(ServerEnd) if not end.has_answered)],
            evidence=[evidence(line.place, f"stderr: {line.text}") for line in lines[-2:]],
            side="server",
        )


def _before_answer(facts: Facts) -> list[ServerEnd]:
    return [end for end in facts.of(ServerEnd) if not end.has_answered]


def _is_runner_alone(facts: Facts) -> bool:
    """Return whether the command is one that starts others, and its arguments name none."""
    command = facts.header.command or []
    names = [word for word in command[1:] if not word.startswith("-")]
    return bool(command) and _RUNNERS.search(command[0]) is not None and not names
