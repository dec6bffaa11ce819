"""The server's process does not start, or ends before its first message."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.framing import text_of
from mcpspy.analysis.explain.causes.requests import SHORT_WAIT
from mcpspy.analysis.explain.causes.troubles import trouble_of
from mcpspy.analysis.explain.causes.waiting import QUIET_SECONDS, had_read_nothing
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import BUG, NamedError, PrintedLine, clause, evidence, is_error, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ServerEnd, Symptom
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.errors import NOT_EXECUTABLE, NOT_FOUND

_NOT_FOUND = re.compile(
    r"(?i)command not found|not recognized as an internal|: not found$"
    r"|No such file or directory: '?(?:npx|uvx|uv|node|python|docker|bunx|deno)\b"
    r"|^'?\"{1,2}(?:node|npm|npx|uv|uvx|python|py|docker|bun|deno)\"{1,2}'? (?:\\x|[^\x00-\x7f]|n'est pas|no se reconoce)"
    r"|spawn \S+ ENOENT|env: .{1,60}: No such file|executable file not found in"
)
"""A missing command in the words of POSIX shells, cmd.exe (also in other languages), Python, Node.js, env and Go."""


_MISSING = re.compile(r"not found|(?i:no such file)")

_RUNNERS = re.compile(
    r"(?:^|[/\\])(?:uvx|npx|bunx|pnpx|uv|docker|podman|deno|java|dotnet|node|python[\d.]*)(?:\.exe|\.cmd)?$"
)
_INTERPRETERS = re.compile(
    r"(?i)(?:^|[/\\])(?:bun|deno|java|dotnet|node|perl|php|python[\d.]*|ruby|(?:ba|z)?sh)(?:\.exe)?$"
)
"""They name a program that they do not find."""

_ENGINE = re.compile(r"(?:^|[/\\])(?:docker|podman|nerdctl)(?:\.exe)?$")
_KEEPS_STDIN = re.compile(r"-[a-zA-Z]*i[a-zA-Z]*|--interactive(?:=true)?")
_DETACHES = re.compile(r"-[it]*d[it]*|--detach(?:=true)?")
_CONTAINER_ID = re.compile(rb"[0-9a-f]{64}")

_SETTINGS = ("service-refused-key", "setting-missing", "name-not-resolved", "file-missing")
"""Troubles that a placeholder in place of a value brings about."""


_NO_COMMAND = ex.session("@ bare", ex.note("error", text="cannot start uvxx: not found"), ex.exited(127))
_NO_PERMISSION = ex.session(
    "@ bare", ex.note("error", text="cannot start x: permission denied"), ex.exited(126)
)


def _before_answer(facts: Facts) -> Iterator[tuple[ServerEnd, list[Symptom]]]:
    """Yield the end of a server that had answered nothing, and the symptoms that it explains."""
    for end in facts.of(ServerEnd):
        if not end.has_answered:
            yield end, [end, *end.during]


def _is_runner_alone(facts: Facts) -> bool:
    """Return whether the command is one that starts others, and its arguments name none."""
    command = facts.header.command or []
    names = [word for word in command[1:] if not word.startswith("-")]
    return bool(command) and _RUNNERS.search(command[0]) is not None and not names


def _is_detached(facts: Facts) -> bool:
    """Return whether the command starts a container in the background (docker run: -d, --detach)."""
    command = facts.header.command or []
    if not command or _ENGINE.search(command[0]) is None or "run" not in command:
        return False
    return any(_DETACHES.fullmatch(word) for word in command[command.index("run") + 1 :])


def _is_container_without_stdin(facts: Facts) -> bool:
    """Return whether the command runs a container whose stdin is not kept open (docker run: -i, --interactive)."""
    command = facts.header.command or []
    is_run = bool(command) and _ENGINE.search(command[0]) is not None and "run" in command
    return is_run and not any(_KEEPS_STDIN.fullmatch(word) for word in command[1:])


@cause(
    "command-not-found",
    "the server's command was not found",
    Level.EXACT,
    positive=(
        _NO_COMMAND,
        ex.not_started("sh: 1: weather-mcp: not found", 127, '@ bare command=["npx","-y","weather-mcp"]'),
        ex.session('@ bare command=["sh","start.sh"]', ex.initialize(), ex.exited(127)),
        ex.not_started(".bin/mcp-notes: 1: import: not found", 2, '@ bare command=["npx","mcp-notes"]'),
        ex.not_started(
            "bash: line 1: source /home/b/.profile && npx -y notes: No such file or directory",
            127,
            '@ bare command=["wsl.exe","bash","-c","notes"]',
        ),
    ),
    negative=(
        _NO_PERMISSION,
        ex.session(
            *("@ bare", ex.initialize(), ex.stderr("sh: 1: git: not found")),
            *(ex.stderr("KeyError: 'WEATHER_API_KEY'"), ex.exited(1)),
        ),
        ex.not_started(
            'docker: Error response from daemon: OCI runtime create failed: exec: "weather": executable file not found in $PATH',
            127,
        ),
    ),
)
def command_not_found(facts: Facts) -> Iterator[Claim]:
    """A desktop has another PATH than a shell, and some configurations hold the command and its
    arguments in one string.
    """
    desktop = "a host that is started from the desktop has another PATH than a shell"
    lines = [
        line for line in facts.stderr if _NOT_FOUND.search(line.text) and not _OF_ENGINE.search(line.text)
    ]
    for end, symptoms in _before_answer(facts):
        if not end.error and _has_other_reason(end):
            continue  # It continued without this command, or is a container whose program is missing.
        is_missing = _MISSING.search(end.error) is not None and "working directory" not in end.error
        is_said = not end.error and not _is_runner_alone(facts) and (lines or end.code == NOT_FOUND)
        if not is_missing and not is_said:
            continue
        command = (facts.header.command or ["the command"])[0]
        name, _, arguments = command.partition(" ")
        side = "configuration"
        if arguments and is_missing:
            title = f"no command has the name {quote(command)!r}: it holds the arguments too"
            next_step = f'put {quote(name)!r} into "command", and {quote(arguments)!r} into "args"'
        elif "(#!)" in end.error:
            title = f"the server could not be started: {quote(end.error)}"
            next_step = (
                f"correct the first line of {quote(command)}, or install the interpreter that it names"
            )
        elif any(_MESSAGE.search(line.text) for line in lines):
            title = f"a shell runs in place of the server, and takes the client's messages for commands: {quote(lines[-1].text)}"
            next_step = (
                "correct the arguments in the host's configuration: what follows -c of a shell must be one argument, and a "
                "command such as npx without a package starts a shell"
            )
        elif lines and not is_missing and _TEXT_OF_PROGRAM.search(lines[0].text):
            side = SERVER if _is_npm(command) else ""
            title = f"a shell runs the text of the program: {quote(lines[0].text)}"
            next_step = (
                "let the program's first line name its interpreter (#!/usr/bin/env node, python3): an installer that makes it "
                "executable does not add that; until then start it with the interpreter and its path"
            )
        elif lines and not is_missing and _IN_SHELL_OF_NPM.search(lines[-1].text) and _is_npm(command):
            side = ""
            title = f"npm found the package, and not the program of it: {quote(lines[-1].text)}"
            next_step = (
                "in a folder whose package.json has this name npx takes that folder: set cwd to another one; else empty its "
                "cache (rm -rf ~/.npm/_npx) and try again; if the program is still missing, this version was published without "
                "it, or needs a tool to build: use another version, and tell its author"
            )
        elif lines and not is_missing and _ENGINE.search(command):
            side = ""
            title = f"a command was not found in the container: {quote(lines[-1].text)}"
            next_step = (
                "correct the arguments after the name of the image, if they name this command; else the image lacks it, or its PATH "
                "does not have it: correct the Dockerfile, or use another version of the image"
            )
        elif lines and not is_missing:
            title = f"a command was not found: {quote(lines[-1].text)}"
            next_step = (
                f"give its absolute path, or add its folder to PATH by env in the host's configuration: "
                f"{desktop}"
            )
        elif not end.error and (whole := _whole_line(facts)) is not None:
            title = f"a shell took a whole line for the name of one program: {quote(whole.text)}"
            next_step = "write the line as the one argument after -c, without quotation marks inside it: the host starts no shell that would remove them"
            lines = [whole]
        elif not end.error:
            title = f"{quote(command)} ended with exit code 127, by which a shell reports that it did not find a command"
            next_step = "run it in a terminal, and look which command it starts; a host that is started from the desktop has another PATH"
        else:
            title = f"the command {quote(command)} was not found"
            next_step = (
                f"give the absolute path of {quote(command)} in the host's configuration (`which "
                f"{quote(command)}` prints it): {desktop}"
            )
        said = [line.evidence for line in lines[-2:]]
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, evidence=said, side=side)


_WHOLE_LINE = re.compile(
    r"^(?:/\S+/)?(?:ba|z|da)?sh: (?:(?:line )?\d+: )?\S+ .{1,300}: (?:No such file or directory|(?:command )?not found)$"
)


def _whole_line(facts: Facts) -> PrintedLine | None:
    """Return the line of a shell that did not find a program whose name has blanks in it; None if there is none."""
    return next((line for line in facts.first_stderr if _WHOLE_LINE.search(line.text.strip())), None)


_OF_ENGINE = re.compile(r"OCI runtime|Error response from daemon")
"""The words of a container engine about a command in an image."""

_IN_SHELL_OF_NPM = re.compile(
    r"^sh: (?:(?:line )?\d+: )?[\w.@-]+: (?:command )?not found$|^'[\w.@-]+' is not recognized as an internal"
)
_NPM = re.compile(r"(?:^|[/\\])(?:npx|npm|pnpx|pnpm|yarn)(?:\.cmd)?$")


def _is_npm(command: str) -> bool:
    return _NPM.search(command) is not None


def _has_other_reason(end: ServerEnd) -> bool:
    """Return whether the error of a server that ended is about something else than a command that was not found."""
    text = "" if end.named is None else end.named.text
    if not text or (_NOT_FOUND.search(text) and not _OF_ENGINE.search(text)):
        return False
    trouble = trouble_of(text, at_start=True)
    return BUG.search(text) is not None or (trouble is not None and trouble.code not in _OF_COMMANDS)


_OF_COMMANDS = ("file-missing", "permission-denied", "program-not-in-package")
"""Troubles by which a runner reports that it could not start a program."""


_MESSAGE = re.compile(r"\bjsonrpc\b")
"""A message of the client, in the words of a shell."""

_TEXT_OF_PROGRAM = re.compile(
    r"\b(?:import|export|const|let|var|require|from|async|def|use strict): (?:command )?not found$"
)
"""The first words of JavaScript and Python, in the words of a shell that takes them for commands."""

_FORBIDDEN = re.compile(r"ermission|not executable|[Ee]xec format|is a directory|: a directory")
_DOWNLOADS = re.compile(
    r"(?i)\b(?:downloading|installing|installed \d+ packages|resolved \d+ packages|building"
    r"|compiling|npm warn exec|need to install the following|will be installed)\b"
)
"""The progress of pip, uv, npx and compilers."""


@cause(
    "command-not-executable",
    "the server's command may not be executed",
    Level.EXACT,
    positive=_NO_PERMISSION,
    negative=_NO_COMMAND,
)
def command_not_executable(facts: Facts) -> Iterator[Claim]:
    """The file has no permission to execute, is a folder, or is built for another system."""
    command = quote((facts.header.command or ["the command"])[0])
    for end, symptoms in _before_answer(facts):
        is_silent = not end.error and end.named is None
        if _FORBIDDEN.search(end.error) or (is_silent and end.code == NOT_EXECUTABLE):
            title = f"{command} may not be executed{clause(end.error)}"
            next_step = f"make the file executable (chmod +x {command}), or start it with its interpreter"
            if is_silent:
                title = f"{command} ended with exit code 126, by which a shell reports that it may not execute a command"
                next_step = (
                    f"make the program executable that {command} starts (chmod +x), or {command} itself; in a terminal it "
                    f"names it"
                )
            if "directory" in end.error:
                next_step = f"{command} is a folder: name the program in it"
            yield Claim(title=title, next_step=next_step, symptoms=symptoms, side="configuration")


@cause(
    "command-incomplete",
    "the command starts other programs, and its arguments name none",
    Level.EXACT,
    positive=ex.not_started("Usage: uvx [OPTIONS] [COMMAND]", 2, '@ bare command=["uvx"]'),
    negative=ex.not_started("Usage: uvx [OPTIONS] [COMMAND]", 2, '@ bare command=["uvx","mcp-weather"]'),
)
def command_incomplete(facts: Facts) -> Iterator[Claim]:
    """uvx, npx, docker and others print their usage without the name of a package, image or file in
    their arguments.
    """
    for end, symptoms in _before_answer(facts):
        if not end.error and _is_runner_alone(facts):
            title = (
                f"the command is {quote(' '.join(facts.header.command or ()))!r} alone: it names no "
                f"server to start"
            )
            next_step = 'add the name of the package, image or file to "args" in the host\'s configuration'
            lines = [line.evidence for line in facts.first_stderr[:2]]
            side = "configuration"
            yield Claim(title=title, next_step=next_step, symptoms=symptoms, evidence=lines, side=side)


_ABOUT_ARGUMENTS = re.compile(
    r"(?i)no such file|not found|unknown|unrecogni[sz]ed|unexpected|usage:|invalid|ENOENT|cannot (?:open|find|read)"
)
_MODULE = re.compile(r"(?i)\bmodules?\b|\bpackages?\b")
_JOINED = re.compile(r"^--?[A-Za-z][\w-]* +\S")
"""An option with its value in one argument, as a line of a shell has them."""


@cause(
    "arguments-joined",
    "an option and its value are one argument",
    Level.EXACT,
    positive=ex.not_started(
        "Error: No such file or directory", 1, '@ bare command=["notes","-c\\u0020/srv/notes.json"]'
    ),
    negative=ex.not_started(
        "Error: No such file or directory", 1, '@ bare command=["notes","-c","/srv/a.json"]'
    ),
)
def arguments_joined(facts: Facts) -> Iterator[Claim]:
    """Hosts start servers without a shell, so nothing divides an argument at its blanks: the program looks for a file
    whose name begins with a blank, or for an option with this whole name.
    """
    joined = [word for word in (facts.header.command or [])[1:] if _JOINED.search(word)]
    printed = " ".join(line.text for line in facts.first_stderr)
    if not _ABOUT_ARGUMENTS.search(printed) or _MODULE.search(printed):
        return
    # Commands and code as text are one argument: sh -c, python -c, docker run … sh -c.
    for end, symptoms in _before_answer(facts) if joined and "-c" not in (facts.header.command or []) else ():
        option, _, value = joined[0].partition(" ")
        title = f"the argument {quote(joined[0], 80)!r} holds an option and its value, and a host divides no arguments"
        title += clause(end.named.text if end.named else "")
        next_step = f'write two items into "args": {quote(option, 40)!r} and {quote(value.strip(), 60)!r}'
        lines = [line.evidence for line in [*facts.first_stderr][-1:]]
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, evidence=lines, side="configuration")


_BAD_KEY = ex.not_started("Error: Invalid API key provided")


@cause(
    "placeholder-not-replaced",
    "a setting is a placeholder, and not a value",
    Level.EXACT,
    positive=_BAD_KEY.replace(
        "@ bare", ex.session("@ bare", ex.note("placeholders", variables=["WEATHER_API_KEY"]))
    ),
    negative=(_BAD_KEY,),
)
def placeholder_not_replaced(facts: Facts) -> Iterator[Claim]:
    """Not every host expands ${VARIABLE} in its configuration, and examples are copied with
    YOUR_API_KEY in them.
    """
    for note_, place in facts.notes.get("placeholders", [])[:1]:
        names = [str(name) for key in ("variables", "arguments") for name in note_.fields.get(key, [])]
        shown = ", ".join(quote(name, 60) for name in names[:3])
        ends = [
            (end, explained) for end, explained in _before_answer(facts) if not _is_of_program(end, names)
        ]
        symptoms = [each for _, explained in ends for each in explained]
        for failed in facts.failed():
            trouble = trouble_of(failed.words[:600], at_start=False) if failed.side == CLIENT else None
            if trouble is not None and trouble.code in _SETTINGS:
                symptoms.append(failed)
        quoted = f"; {quote(symptoms[0].lines[0].text)}" if symptoms and symptoms[0].lines else ""
        title = f"the server got a placeholder in place of a value: {shown}{quoted}"
        next_step = (
            "write the value itself into the host's configuration, or set the variable where the host "
            "starts: this host does not replace the placeholder"
        )
        lines, side = [evidence(place, f"a placeholder: {shown}")], "configuration"
        homes = [word for word in facts.header.command or () if word.startswith("~")]
        if homes and not note_.fields.get("variables"):
            # Some hosts replace it, some do not.
            title = f"the path {quote(homes[0], 80)!r} begins with ~, which neither the host nor the program replaced{quoted}"
            next_step = (
                "write the whole path into the host's configuration: this host starts no shell, which would replace ~; or let "
                "the host replace it"
            )
            side = ""
        claim = Claim(title=title, next_step=next_step, symptoms=symptoms, evidence=lines, side=side)
        claim.is_observation = not symptoms
        yield claim


_OF_PROGRAM = (
    "module-missing",
    "package-broken",
    "runtime-version",
    "system-too-old",
    "program-not-in-package",
    "port-in-use",
)
"""Troubles that no value of a setting brings about."""


def _is_of_program(end: ServerEnd, names: list[str]) -> bool:
    """Return whether a server ended by an error of its program, which names none of the placeholders."""
    text = "" if end.named is None else end.named.text
    if any(name in text for name in names) or "${" in text:
        return False
    trouble = trouble_of(text, at_start=True)
    return BUG.search(text) is not None or (trouble is not None and trouble.code in _OF_PROGRAM)


_PATH = re.compile(r"(?:^|[=,])(?:/(?![A-Za-z]?$)|~|\.{1,2}[/\\]|[A-Za-z]:[/\\]|\\\\|file://)")
"""An argument that is a path, or an option with one (`--root=/srv`); `/c` is an option of cmd.exe."""


def _paths(facts: Facts) -> list[str]:
    """Return the arguments of the command that are paths, without the program that an interpreter runs."""
    command = facts.header.command or []
    words = [word for word in command[1:] if _PATH.search(word)]
    program = next((word for word in command[1:] if not word.startswith("-")), None)
    is_program = bool(command) and _INTERPRETERS.search(command[0]) is not None
    return [word for word in words if not (is_program and word == program)]


_STATE = re.compile(
    r"(?i)\block(?:ed)?\b|already running|another (?:copy|instance|process)|\bEBUSY\b|ENOTEMPTY|\bkilled\b"
)
_SETTING = re.compile(
    r"(?i)\bconfig|\bsettings?\b|licen[cs]e|(?:log|sign) ?in\b|\baccount\b|\bargs?\b|\barguments?\b"
    r"|(?:invalid|malformed|unsupported|bad|unknown|wrong)\b.{0,30}\b(?:url|uri|port|path|director(?:y|ies)|folder|host(?:name)?|value"
    r"|option|mode|transport|region|dsn|name|spec\w*|version|image)\b|no such (?:container|image|service)|missing script"
    r"|host key verification|ERR_SOCKET_BAD_PORT|--allow-\w+|^\W*(?:npm|pnpm|docker|podman|uv|uvx|npx)\b"
)
"""Errors about what else runs on the machine, and about what the host's configuration has: values, names of packages."""


_CONTENT = re.compile(
    r"(?i)\bJSON at position|is not valid JSON|end of JSON input|JSONDecodeError|json: |\byaml\b|TOMLDecodeError|\btoml\b"
)
"""Parsers of files that hold settings."""


def _side_of(end: ServerEnd) -> str:
    """Return the side of a server that ended before it answered, by the error that it names."""
    text = "" if end.named is None else end.named.text
    if end.error:
        return "configuration"
    if not text or not is_error(text):
        return SERVER if end.code == 0 and not _STATE.search(text) else ""
    if _CONTENT.search(text):
        return ""  # A file of the user, or what the server has itself.
    if BUG.search(text):
        return SERVER
    if _STATE.search(text):
        return ""
    return "configuration" if _SETTING.search(text) else SERVER


def _ended_quietly(facts: Facts, end: ServerEnd, without: str) -> tuple[str, str]:
    """Return the title and the next step of a server that ended before it answered, and named no error."""
    if end.code == 0 and _is_container_without_stdin(facts):
        title = "the container ended by itself with exit code 0: docker run gives it no stdin without -i"
        return title, 'add "-i" after "run" in "args" of the host\'s configuration'
    if end.code == 0:
        title = (
            "the server ended by itself with exit code 0 before it answered: it does not wait for "
            "messages on stdin"
        )
        next_step = (
            "check that this command starts the server on stdio, and not another transport or a "
            "command that ends; in the code, wait for the transport to close"
        )
        if facts.client.carriage_returns:
            title = (
                "the server ended by itself with exit code 0 before it answered a line that ends with CR LF, which the client "
                "writes and not every server reads"
            )
            next_step = (
                "let the server take the CR at the end of a line for a blank, as JSON does; and let the client end its lines "
                f"with LF alone. If this is not it, {next_step}"
            )
        return title, next_step
    how = end.words if end.signal else f"with {end.words}"
    title = f"the server ended before it answered, {how} and without {without}"
    next_step = "run its command in a terminal: an MCP server waits for input, and does not end"
    if end.signal in ("SIGKILL", "SIGTERM"):
        next_step = (
            "something killed it while it started: a limit of memory (dmesg, docker inspect), a supervisor, or macOS for "
            "a program whose signature is not valid"
        )
    elif paths := _paths(facts):
        next_step = (
            f"check first that the paths in its arguments exist, and that its user may read them: "
            f"{', '.join(quote(path, 80) for path in paths[:4])}; then {next_step}"
        )
    return title, next_step


_OTHER_SDK = re.compile(
    r"'(?:Server|FastMCP|ServerSession)' object has no attribute|\b(?:FastMCP|Server)(?:\.\w+)?\(\) got an unexpected keyword argument"
)
"""The Python SDK 2 has no decorators of the low-level server, and other names and parameters, than the SDK 1."""

_NO_SCRIPT_OF_NODE = re.compile(r"Unknown file extension \"\.(?:tsx?|jsx|mts|cts)\" for (\S+)")
"""Node.js, about a source file that it does not run."""

_ADVICE = (
    (
        _OTHER_SDK,
        (
            "the server was installed with another version of its SDK than it was written for: let its dependencies "
            "name that version (mcp<2), or update it; until then start it with that version (uvx --with 'mcp<2')"
        ),
    ),
    (
        _NO_SCRIPT_OF_NODE,
        (
            "Node.js does not run this kind of source file: build the project and name the file that its build makes (dist/index.js), "
            "or start it with a runner that does (npx tsx, bun)"
        ),
    ),
    (
        re.compile(r"ExpectedInitializeRequest|(?i:expect\w* initialize request)"),
        (
            "the server ends at a first request other than initialize: let it answer what it does not know with the error -32601 and wait "
            "for the next message (rmcp: update it); until then let the client begin with initialize"
        ),
    ),
    (
        re.compile(r"spawn EINVAL"),
        (
            "since 2024 Node.js starts .cmd and .bat files (npx.cmd) on Windows only through a shell: let the program that starts "
            "another one pass shell: true, or start node with the script in place of the .cmd file"
        ),
    ),
)
"""Words of errors that do not say what to do → the next step."""


def _advice(named: NamedError) -> str:
    """Return the next step of the error by which a server ended."""
    return next((step for words, step in _ADVICE if words.search(named.text)), named.next_step)


def _is_named_by_command(facts: Facts, found: re.Match[str] | None) -> bool:
    """Return whether the command names the file of an error."""
    command = facts.header.command or []
    return found is not None and any(word.strip("./\\") in found[1] for word in command[1:] if len(word) > 2)


_HELD = re.compile(r"(?i)\block(?:ed)?\b|already running|another (?:copy|instance|process)|\bEBUSY\b")
"""A file or a port that another copy of the server holds."""

_OTHER_COPY = "look for another copy of the server, and end it; a server must expect that several hosts start it at once"


@cause(
    "start-failed",
    "the server ended before it answered",
    Level.GENERAL,
    positive=(
        ex.not_started("SyntaxError: invalid syntax"),
        ex.session('@ bare command=["notes","--root=/srv/notes"]', ex.initialize(), ex.exited(1)),
        ex.session('@ bare command=["docker","run","mcp/notes"]', ex.initialize(), ex.exited(0)),
        ex.session(
            *('@ bare command=["docker","run","-d","mcp/notes"]', ex.initialize()),
            *(f"<< {'0123456789abcdef' * 4}", ex.exited(0)),
        ),
        ex.not_started(
            'TypeError [ERR_UNKNOWN_FILE_EXTENSION]: Unknown file extension ".ts" for /srv/notes/index.ts',
            1,
            '@ bare command=["node","/srv/notes/index.ts"]',
        ),
        ex.session("@ bare", ex.initialize(), ex.note("exit", code=None, signal="SIGSEGV")),
        ex.not_started("Weather MCP server running on stdio", 0),
        ex.not_started("Another instance is already running (pid 42)", 0),
    ),
)
def start_failed(facts: Facts) -> Iterator[Claim]:
    """The process ended before its first message; what it printed names the error."""
    for end, symptoms in _before_answer(facts):
        lines, side = [], _side_of(end)
        last = end.named if end.named is not None and not is_error(end.named.text) else None
        if end.named is not None and last is None:
            title = f"the server ended before it answered ({end.words}): {quote(end.named.framed)}"
            next_step, lines = _advice(end.named), [end.named.evidence]
            if _is_named_by_command(facts, _NO_SCRIPT_OF_NODE.search(end.named.text)):
                side = "configuration"
            if not side and _HELD.search(end.named.text):
                next_step = _OTHER_COPY
            if _CONTENT.search(end.named.text):
                next_step += ": a file of settings that the server reads, in most cases; look which one, and for a comma or a quote in it"
        elif (
            (odd := facts.server.odd)
            and _CONTAINER_ID.fullmatch(odd[-1].data.strip())
            and _is_detached(facts)
        ):
            title = "the container was started in the background (-d): the command printed its id and ended, and no one reads its messages"
            next_step = 'replace "-d" by "-i" in "args" of the host\'s configuration'
            lines, side = [evidence(odd[-1].place, f"stdout: {text_of(odd[-1])}")], "configuration"
        elif odd:
            title = f"the server printed {quote(text_of(odd[-1]))!r} on stdout and ended ({end.words})"
            next_step = "this is the server's own message: correct the argument or the setting that it names"
            lines = [evidence(each.place, f"stdout: {text_of(each)}") for each in odd[:3]]
        elif end.error:
            title = f"the server could not be started: {quote(end.error)}"
            next_step = "correct the command in the host's configuration"
            if "working directory" in end.error:
                next_step = "correct the working directory (cwd) in the host's configuration"
        else:
            title, next_step = _ended_quietly(facts, end, "a word" if last is None else "an error")
            side = "configuration" if end.code == 0 and _is_container_without_stdin(facts) else side
        if last is not None and _STATE.search(last.text):
            title = f"the server ended before it answered ({end.words}): {quote(last.text)}"
            next_step = _OTHER_COPY
        elif last is not None and not facts.server.odd:
            title += f"; its last line: {quote(last.text, 100)}"
            lines = [last.evidence]
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, evidence=lines, side=side)


_ASKS = re.compile(r"(?i)^\W*ok to proceed\?")

_IS_DONE = re.compile(r"(?i)\binstalled \d+|\bresolved \d+|\bfinished\b|\bcomplete")


def _has_begun(facts: Facts, progress: PrintedLine) -> bool:
    """Return whether the server itself printed something after the last progress of what installs it."""
    after = [line for line in facts.first_stderr if line.at > progress.at and not _IS_DONE.search(line.text)]
    return any(_BEGUN.search(line.text) for line in after)


_BEGUN = re.compile(r"(?i)\b(?:running|started|listening|ready|connected|serving)\b")


@cause(
    "start-slow",
    "the server was not ready when the client gave up",
    Level.SPECIFIC,
    positive=(
        ex.session("@ bare", ex.initialize(), ex.stderr("Downloading numpy (16.1MiB)"), ex.cancelled(1)),
        ex.session(
            *("@ bare", ex.initialize(), "+ 3", ex.CLIENT_CLOSED, ex.note("unread", pipe="stdin", size=180)),
            *("+ 3", ex.welcome(), ex.exited(0)),
        ),
        ex.session(
            *(
                '@ bare command=["npx","weather"]',
                ex.initialize(),
                ex.stderr("Need to install the following packages:"),
            ),
            *(ex.stderr("Ok to proceed? (y)"), "+ 60", ex.cancelled(1)),
        ),
    ),
    negative=(
        ex.session("@ bare", ex.initialize(), ex.stderr("ready"), ex.cancelled(1)),
        ex.session(
            *(
                "@ bare",
                ex.initialize(),
                ex.stderr("Installed 42 packages in 110ms"),
                "+ 60",
                ex.cancelled(1),
            ),
        ),
        ex.session(
            *("@ bare", ex.initialize(), ex.stderr("Installed 42 packages in 110ms")),
            *(ex.stderr("Weather MCP server running on stdio"), ex.cancelled(1)),
        ),
    ),
)
def start_slow(facts: Facts) -> Iterator[Claim]:
    """Npx and uvx install a package at its first start, models and containers are loaded; hosts
    wait 5 to 60 seconds.
    """
    lines = [line for line in facts.first_stderr if _DOWNLOADS.search(line.text)]
    if any(end.code and not end.is_forced for end in facts.of(ServerEnd)):
        return  # It ended by itself, with an error.
    next_step = (
        "start it once in a terminal so that everything is installed, do slow work after the answer "
        "to initialize, or raise the host's timeout of the start"
    )
    if had_read_nothing(facts):
        client, unread = facts.client, facts.notes.get("unread", [])
        waits = [(at or 0.0) - (client.first_at or 0.0) for at in (facts.server.first_at, client.closed_at)]
        title = (
            f"the server's first message came after {waits[0]:.1f} s, but the client had closed stdin after "
            f"{waits[1]:.1f} s: the server {'had read nothing until then, and ' if unread else ''}was still starting"
        )
        said = [evidence(client.closed_place, "the client closed stdin")]
        said += [evidence(place, "its messages are unread") for _, place in unread[-1:]]
        side = SERVER if unread or waits[0] >= SHORT_WAIT else ""
        yield Claim(title=title, next_step=next_step, symptoms=[], evidence=said, side=side)
    for failed in facts.failed():
        is_late = failed.answer_at is not None and failed.gave_up_at is not None
        is_begin = failed.is_handshake and failed.side == CLIENT and failed.refusal is None
        gave_up_at = failed.asked_at + failed.took
        is_installing = (
            bool(lines) and gave_up_at - lines[-1].at < QUIET_SECONDS and not _has_begun(facts, lines[-1])
        )
        is_installing |= (
            bool(lines) and not _IS_DONE.search(lines[-1].text) and not _has_begun(facts, lines[-1])
        )
        if not is_begin or not (is_installing or is_late):
            continue
        title = f"the client gave up {failed.method} after {failed.waited}, while the server was starting"
        asks = [line for line in facts.first_stderr if _ASKS.search(line.text)]
        if asks and failed.answer_at is None:
            yield Claim(
                title=f"no answer to {failed.method} in {failed.waited}: npx asks whether it may install the package, and no user "
                f"can answer it: {quote(asks[0].text)}",
                next_step='add "-y" as the first item of "args" in the host\'s configuration',
                symptoms=[failed, *(end for end, _ in _before_answer(facts))],
                evidence=[line.evidence for line in (*lines[-1:], asks[0])],
                side="configuration",
                level=Level.EXACT,
            )
            continue
        if failed.answer_at is not None:
            took = failed.answer_at - failed.asked_at
            title = (
                f"the server answered {failed.method} after {took:.1f} s, but the client had given up "
                f"after {failed.waited}"
            )
        elif lines:
            title += f": {quote(lines[-1].text)}"
        symptoms = [failed, *(end for end, _ in _before_answer(facts))]
        said = [line.evidence for line in lines[-2:]]
        # A start of a few seconds is as right as a limit above it.
        side = (
            "" if failed.answer_at is not None and failed.answer_at - failed.asked_at < SHORT_WAIT else SERVER
        )
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, evidence=said, side=side)
