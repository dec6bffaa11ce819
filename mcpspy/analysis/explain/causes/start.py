"""The command that starts the server: it is not found, or may not be executed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.troubles import trouble_of
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import BUG, PrintedLine, clause, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ServerEnd, Symptom
from mcpspy.core.protocol.spec import SERVER
from mcpspy.errors import NOT_EXECUTABLE, NOT_FOUND

_NOT_FOUND = re.compile(
    r"(?i)command not found|not recognized as an internal|: not found$"
    r"|No such file or directory: '?(?:npx|uvx|uv|node|python|docker|bunx|deno)\b"
    r"|^'?\"{1,2}(?:node|npm|npx|uv|uvx|python|py|docker|bun|deno)\"{1,2}'? (?:\\x|[^\x00-\x7f]|n'est pas|no se reconoce)"
    r"|spawn \S+ ENOENT|env: .{1,60}: No such file|executable file not found in"
)
"""A missing command in the words of POSIX shells, cmd.exe (also in other languages), Python, Node.js, env and Go."""

_MISSING = re.compile(r"not found|(?i:no such file)")

_RUNNERS = frozenset("bunx deno docker dotnet java node npx pnpx podman python uv uvx".split())
ENGINES = frozenset(("docker", "nerdctl", "podman"))
_MANAGERS_OF_NODE = frozenset(("npm", "npx", "pnpm", "pnpx", "yarn"))

_NO_COMMAND = ex.session("@ bare", ex.note("error", text="cannot start uvxx: not found"), ex.exited(127))
_NO_PERMISSION = ex.session(
    "@ bare", ex.note("error", text="cannot start x: permission denied"), ex.exited(126)
)


def before_answer(facts: Facts) -> Iterator[tuple[ServerEnd, list[Symptom]]]:
    """Yield the end of a server that had answered nothing, and the symptoms that it explains."""
    for end in facts.of(ServerEnd):
        if not end.has_answered:
            yield end, [end, *end.during]


_CLOSED = re.compile(
    r"(?i)connection ?(?:was )?closed|\b(?:parse|syntax|decod\w+|json) error\b|\bunexpected token\b"
)


def ended_at_stray_line(facts: Facts, end: ServerEnd) -> bool:
    """Return whether a server ended at a line of the client that is not a message: it names no other error."""
    is_quiet = end.code == 0 or (end.named is not None and _CLOSED.search(end.named.text) is not None)
    return bool(facts.client.odd) and is_quiet


def is_runner_alone(facts: Facts) -> bool:
    """Return whether the command is one that starts others, and its arguments name none."""
    return facts.program_name in _RUNNERS and all(
        word.startswith("-") and " " not in word for word in facts.command[1:]
    )


@cause(
    "command-not-found",
    "the server's command was not found",
    Level.EXACT,
    positive=(
        _NO_COMMAND,
        ex.not_started("sh: 1: weather-mcp: not found", 127, '@ bare command=["npx","-y","weather-mcp"]'),
        ex.session('@ bare command=["sh","start.sh"]', ex.initialize(), ex.exited(127)),
        ex.not_started(
            "'C:\\\\Program' is not recognized as an internal or external command,",
            1,
            '@ bare command=["cmd.exe","/s","/c","C:\\\\Program\\u0020Files\\\\npx.cmd"]',
        ),
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
    lines = [
        line for line in facts.stderr if _NOT_FOUND.search(line.text) and not _OF_ENGINE.search(line.text)
    ]
    for end, symptoms in before_answer(facts):
        if not end.error and _has_other_reason(end):
            continue  # It continued without this command, or is a container whose program is missing.
        is_missing = _MISSING.search(end.error) is not None and "working directory" not in end.error
        is_said = not end.error and not is_runner_alone(facts) and (lines or end.code == NOT_FOUND)
        if not is_missing and not is_said:
            continue
        command = facts.program or "the command"
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
        elif lines and not is_missing:
            title, next_step, side = _from_shell(facts, lines)
        elif not end.error and (whole := _whole_line(facts)) is not None:
            title = f"a shell took a whole line for the name of one program: {quote(whole.text)}"
            next_step = "write the line as the one argument after -c, without quotation marks inside it: the host starts no shell that would remove them"
            lines = [whole]
        elif not end.error:
            title = f"{quote(command)} ended with exit code 127, by which a shell reports that it did not find a command"
            next_step = "run it in a terminal, and look which command it starts; a host that is started from the desktop has another PATH"
        elif (other := _OTHER_PATH.search(end.error)) and other[1] not in (command, facts.program_name):
            side = ""
            title = f"the server could not be started: {quote(end.error)}"
            next_step = (
                f"look where the host's configuration has {quote(other[1], 60)!r}, such as its working directory (cwd): an empty field that "
                f"was saved as a word, or a folder that does not exist"
            )
        else:
            side = ""  # It may not be installed.
            title = f"the command {quote(command)} was not found"
            next_step = (
                f"give the absolute path of {quote(command)} in the host's configuration (`which "
                f"{quote(command)}` prints it): {_DESKTOP}"
            )
        yield Claim(title, next_step, symptoms, evidence=[line.evidence for line in lines[-2:]], side=side)


def _from_shell(facts: Facts, lines: list[PrintedLine]) -> tuple[str, str, str]:
    """Return what a shell did not find, the next step, and the side that has to take it."""
    last = quote(lines[-1].text)
    if any(_MESSAGE.search(line.text) for line in lines):
        return (
            f"a shell runs in place of the server, and takes the client's messages for commands: {last}",
            (
                "correct the arguments in the host's configuration: what follows -c of a shell must be one argument, and a "
                "command such as npx without a package starts a shell"
            ),
            "configuration",
        )
    if _TEXT_OF_PROGRAM.search(lines[0].text):
        return (
            f"a shell runs the text of the program: {quote(lines[0].text)}",
            (
                "let the program's first line name its interpreter (#!/usr/bin/env node, python3): an installer that makes it "
                "executable does not add that; until then start it with the interpreter and its path"
            ),
            SERVER if facts.program_name in _MANAGERS_OF_NODE else "",
        )
    if facts.program_name in _MANAGERS_OF_NODE and _IN_SHELL_OF_NPM.search(lines[-1].text):
        return (
            f"npm found the package, and not the program of it: {last}",
            (
                "in a folder whose package.json has this name npx takes that folder: set cwd to another one; else empty its "
                "cache (rm -rf ~/.npm/_npx) and try again; if the program is still missing, this version was published without "
                "it, or needs a tool to build: use another version, and tell its author"
            ),
            "",
        )
    if _OF_BATCH_FILE.search(last) and any("-4058" in line.text for line in facts.stderr):
        return (
            f"a program starts npm without a shell, and on Windows it is a batch file: {last}",
            (
                "let the program that starts it name npm.cmd through a shell (Node.js: shell: true), or start node with the script itself; "
                "until then install what it wants to install by hand"
            ),
            SERVER,
        )
    if (whole := _split_path(facts, lines[-1].text)) is not None:
        return (
            f"a shell divided the path '{quote(whole, 100)}' at its blank: {last}",
            (
                "start the program without a shell, or keep the quotation marks around the path (cmd.exe /s removes the outer ones: put "
                "the whole line into one more pair); a path without blanks (C:\\PROGRA~1) works too"
            ),
            "",
        )
    if facts.program_name in ENGINES:
        return (
            f"a command was not found in the container: {last}",
            (
                "correct the arguments after the name of the image, if they name this command; else the image lacks it, or its PATH "
                "does not have it: correct the Dockerfile, or use another version of the image"
            ),
            "",
        )
    return (
        f"a command was not found: {last}",
        f"give its absolute path, or add its folder to PATH by env in the host's configuration: {_DESKTOP}",
        "",
    )


_OTHER_PATH = re.compile(r"(?:No such file or directory|ENOENT|cannot find)[^'\"]{0,40}['\"]([^'\"]+)['\"]")
"""A path that the system did not find, in the words of Python and Node.js."""

_NAMED_BY_SHELL = re.compile(
    r"^'([^']+)' is not recognized as|^(?:\S+: )?(?:\d+: |line \d+: )?(/\S+): (?:command )?not found$"
)


_OF_BATCH_FILE = re.compile(r"\bspawn (?:npm|npx|yarn|pnpm|tsx) ENOENT")
"""Node.js, about programs that are .cmd files on Windows; -4058 is its number for ENOENT there."""


def _split_path(facts: Facts, text: str) -> str | None:
    """Return the path in the command whose first word is what a shell did not find; None if there is none."""
    found = _NAMED_BY_SHELL.search(text.strip())
    name = "" if found is None else found[1] or found[2]
    is_path = "/" in name or "\\" in name
    return next((word for word in facts.command if is_path and word.startswith(f"{name} ")), None)


_WHOLE_LINE = re.compile(
    r"^(?:/\S+/)?(?:ba|z|da)?sh: (?:(?:line )?\d+: )?\S+ .{1,300}: (?:No such file or directory|(?:command )?not found)$"
)


def _whole_line(facts: Facts) -> PrintedLine | None:
    """Return the line of a shell that did not find a program whose name has blanks in it; None if there is none."""
    return next((line for line in facts.first_stderr if _WHOLE_LINE.search(line.text.strip())), None)


_OF_ENGINE = re.compile(r"OCI runtime|Error response from daemon|^(?:pyenv|rbenv|nodenv|jenv|goenv): ")
"""The words of a container engine about a command in an image, and of a version manager about a program that it has."""

_IN_SHELL_OF_NPM = re.compile(
    r"^sh: (?:(?:line )?\d+: )?[\w.@-]+: (?:command )?not found$|^'[\w.@-]+' is not recognized as an internal"
)


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

_DESKTOP = "a host that is started from the desktop has another PATH than a shell"

_TEXT_OF_PROGRAM = re.compile(
    r"\b(?:import|export|const|let|var|require|from|async|def|use strict): (?:command )?not found$"
)
"""The first words of JavaScript and Python, in the words of a shell that takes them for commands."""

_FORBIDDEN = re.compile(r"ermission|not executable|[Ee]xec format|is a directory|: a directory")


@cause(
    "command-not-executable",
    "the server's command may not be executed",
    Level.EXACT,
    positive=(
        _NO_PERMISSION,
        ex.not_started("run.sh: line 4: bin/notes: cannot execute binary file: Exec format error", 126),
    ),
    negative=_NO_COMMAND,
)
def command_not_executable(facts: Facts) -> Iterator[Claim]:
    """The file has no permission to execute, is a folder, or is built for another system."""
    command = quote(facts.program or "the command")
    for end, symptoms in before_answer(facts):
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
            # The file may have come without its permission, be the wrong one, or not be a program at all.
            yield Claim(title, next_step, symptoms)
        elif (
            end.code == NOT_EXECUTABLE
            and end.named is not None
            and _DENIED.search(end.named.text)
            and not _OF_ENGINE.search(end.named.text)
        ):
            title = f"a program may not be executed: {quote(end.named.text)}"
            next_step = "make the file executable where it runs (chmod +x), or start it with its interpreter"
            yield Claim(title, next_step, symptoms, evidence=[end.named.evidence])
        elif not end.error and end.named is not None and _OTHER_FORMAT.search(end.named.text):
            title = f"a program was built for another processor or system: {quote(end.named.text)}"
            next_step = "use a build of it for this one (uname -m prints the processor; of an image: docker run --platform)"
            yield Claim(title, next_step, symptoms, evidence=[end.named.evidence])


_DENIED = re.compile(r"(?i)^(?!.*\.bin[/\\]).*: permission denied$")
_OTHER_FORMAT = re.compile(r"(?i)cannot execute binary file|exec format error|bad cpu type")
