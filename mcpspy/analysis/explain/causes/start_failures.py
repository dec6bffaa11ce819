"""The server's process ends before its first message, or is not ready in time."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.framing import text_of
from mcpspy.analysis.explain.causes.requests import SHORT_WAIT
from mcpspy.analysis.explain.causes.silent_starts import QUIET_SECONDS
from mcpspy.analysis.explain.causes.start import ENGINES, before_answer, ended_at_stray_line
from mcpspy.analysis.explain.causes.waiting import had_read_nothing
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import (
    BUG,
    EvidenceLine,
    NamedError,
    PrintedLine,
    evidence,
    is_error,
    quote,
)
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.side_facts import OddLine
from mcpspy.analysis.explain.symptoms import ServerEnd
from mcpspy.core.protocol.spec import CLIENT, SERVER

_INTERPRETERS = frozenset("bash bun deno dotnet java node perl php python ruby sh zsh".split())
"""They name a program that they do not find."""
_KEEPS_STDIN = re.compile(r"-[a-zA-Z]*i[a-zA-Z]*|--interactive(?:=true)?")
_DETACHES = re.compile(r"-[it]*d[it]*|--detach(?:=true)?")
_CONTAINER_ID = re.compile(rb"[0-9a-f]{64}")


def _options_of_run(facts: Facts) -> list[str] | None:
    """Return what follows `run` in a command that runs a container; None if it is another command."""
    is_run = facts.program_name in ENGINES and "run" in facts.command
    return facts.command[facts.command.index("run") + 1 :] if is_run else None


def _is_detached(facts: Facts) -> bool:
    """Return whether the command starts a container in the background (docker run: -d, --detach)."""
    return any(_DETACHES.fullmatch(word) for word in _options_of_run(facts) or ())


def _is_container_without_stdin(facts: Facts) -> bool:
    """Return whether the command runs a container whose stdin is not kept open (docker run: -i, --interactive)."""
    options = _options_of_run(facts)
    return options is not None and not any(_KEEPS_STDIN.fullmatch(word) for word in options)


_DOWNLOADS = re.compile(
    r"(?i)\b(?:downloading|installing|installed \d+ packages|resolved \d+ packages|building"
    r"|compiling|npm warn exec|need to install the following|will be installed|pulling from|pull complete|extracting)\b"
)
"""The progress of pip, uv, npx and compilers."""

_PATH = re.compile(r"(?:^|[=,])(?:/(?![A-Za-z]?$)|~|\.{1,2}[/\\]|[A-Za-z]:[/\\]|\\\\|file://)")
"""An argument that is a path, or an option with one (`--root=/srv`); `/c` is an option of cmd.exe."""


def _paths(facts: Facts) -> list[str]:
    """Return the arguments of the command that are paths, without the program that an interpreter runs."""
    words = facts.command[1:]
    script = next((word for word in words if not word.startswith("-")), None)
    is_script = facts.program_name in _INTERPRETERS
    return [word for word in words if _PATH.search(word) and not (is_script and word == script)]


_HELD = re.compile(r"(?i)\block(?:ed)?\b|already running|another (?:copy|instance|process)|\bEBUSY\b")
"""A file or a port that another copy of the server holds."""

_STATE = re.compile(rf"{_HELD.pattern}|ENOTEMPTY|\bkilled\b")
_CONTENT = re.compile(
    r"(?i)\bJSON at position|is not valid JSON|end of JSON input|JSONDecodeError|json: |\byaml\b|TOMLDecodeError|\btoml\b|\btrailing comma\b"
)
"""Parsers of files that hold settings."""

_OF_SYSTEM = re.compile(r"(?i)\bunsupported (?:operating system|platform)\b")
"""A program that is not written for this system, or does not state for which ones it is."""


def _side_of(end: ServerEnd) -> str:
    """Return the side of a server that ended before it answered, by the error that it names."""
    text = "" if end.named is None else end.named.text
    if end.error:
        return "configuration"
    if not text or not is_error(text):
        return SERVER if end.code == 0 and not _STATE.search(text) else ""
    # Of another error, a setting, the machine or the program may be the reason; of a parser's, a file of the user.
    is_open = (
        _OF_SYSTEM.search(text)
        or _CONTENT.search(text)
        or "on an `Err` value" in text
        or not BUG.search(text)
    )
    return "" if is_open else SERVER


def _ended_quietly(facts: Facts, end: ServerEnd, without: str) -> tuple[str, str]:
    """Return the title and the next step of a server that ended before it answered, and named no error."""
    if end.code == 0 and _is_container_without_stdin(facts):
        title = "the container ended by itself with exit code 0: docker run gives it no stdin without -i"
        return title, 'add "-i" after "run" in "args" of the host\'s configuration'
    if ended_at_stray_line(facts, end):
        stray = quote(text_of(facts.client.odd[0]), 80)
        title = f"the server ended by itself ({end.words}) after a line on its stdin that is not a message: {stray}"
        next_step = (
            "let the server answer such a line with the error -32700 and read on; and look where the line comes from: the client, or a "
            "script around the server"
        )
        return title, next_step
    if end.code == 0:
        title = (
            "the server ended by itself with exit code 0 before it answered: it does not wait for "
            "messages on stdin"
        )
        next_step = (
            "check that this command starts the server on stdio, and not another transport or a "
            "command that ends; in the code, wait for the transport to close"
        )
        if any(each.method == "server/discover" for each in end.during):
            title = "the server ended by itself with exit code 0 at server/discover, the first request of 2026-07-28, without an answer"
            next_step = (
                "let the server answer a method that it does not know with the error -32601, so that clients continue with "
                f"initialize; until then set the client to an older revision. If this is not it, {next_step}"
            )
        elif facts.client.carriage_returns:
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

_MODULE_SYNTAX = re.compile(r"Cannot use import statement outside a module|Unexpected token 'export'")
"""Node.js, about the syntax of ES modules in a file that it reads as CommonJS."""

_OLD_NODE = re.compile(r"\((?:internal/modules/|module\.js:|internal/module\.js)")
"""A frame of Node.js before version 15, which has no `node:` before its own files."""

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
    names = [word.strip("./\\") for word in facts.command[1:] if len(word) > 2]
    return found is not None and any(name in found[1] for name in names)


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
        ex.session("@ bare", ex.request("server/discover"), ex.exited(0)),
        ex.not_started("Another instance is already running (pid 42)", 0),
        ex.session("@ bare", ex.initialize(), "<< Usage:", "<<   notes start [options]", "<< ", ex.exited(1)),
    ),
)
def start_failed(facts: Facts) -> Iterator[Claim]:
    """The process ended before its first message; what it printed names the error."""
    for end, symptoms in before_answer(facts):
        lines, side = [], _side_of(end)
        last = end.named if end.named is not None and not is_error(end.named.text) else None
        if end.named is not None and last is None and not ended_at_stray_line(facts, end):
            title, lines = (
                f"the server ended before it answered ({end.words}): {quote(end.named.framed)}",
                [end.named.evidence],
            )
            side, next_step = _of_named(facts, end.named, side)
        elif (
            (odd := facts.server.odd)
            and _CONTAINER_ID.fullmatch(odd[-1].data.strip())
            and _is_detached(facts)
        ):
            title = "the container was started in the background (-d): the command printed its id and ended, and no one reads its messages"
            next_step = 'replace "-d" by "-i" in "args" of the host\'s configuration'
            lines, side = [evidence(odd[-1].place, f"stdout: {text_of(odd[-1])}")], "configuration"
        elif odd:
            title, next_step, lines = _printed_on_stdout(odd, end)
        elif end.error:
            title = f"the server could not be started: {quote(end.error)}"
            next_step = "correct the command in the host's configuration"
            if "working directory" in end.error:
                next_step = "correct the working directory (cwd) in the host's configuration"
        else:
            title, next_step = _ended_quietly(facts, end, "a word" if last is None else "an error")
            side = "configuration" if end.code == 0 and _is_container_without_stdin(facts) else side
            side = "" if ended_at_stray_line(facts, end) else side
        if last is not None and _STATE.search(last.text):
            title = f"the server ended before it answered ({end.words}): {quote(last.text)}"
            next_step = _OTHER_COPY
        elif last is not None and not facts.server.odd:
            title += f"; its last line: {quote(last.text, 100)}"
            lines = [last.evidence]
        yield Claim(title, next_step, symptoms, evidence=lines, side=side)


_OF_FOLDER = re.compile(
    r"(?i)\b(?:working )?director(?:y|ies)\b|\bfolder\b|\bworkspace\b|\bin a(?:n \w+)? project\b"
)


def _of_named(facts: Facts, named: NamedError, side: str) -> tuple[str, str]:
    """Return the side and the next step for a named error that no trouble is."""
    next_step = _advice(named)
    if _is_named_by_command(facts, _NO_SCRIPT_OF_NODE.search(named.text)):
        side = "configuration"
    if "SyntaxError" in named.text and (found := _of_syntax(facts, named.text)) is not None:
        return "", found
    if facts.header.cwd and _OF_FOLDER.search(named.text):
        next_step += f"; this server was started in {quote(facts.header.cwd, 80)} (cwd in the host's configuration, if the host has it)"
    if not side and _HELD.search(named.text):
        next_step = _OTHER_COPY
    if _CONTENT.search(named.text):
        next_step += ": a file of settings that the server reads, in most cases; look which one, and for a comma or a quote in it"
    return side, next_step


def _of_syntax(facts: Facts, text: str) -> str | None:
    """Return the next step for a SyntaxError that need not be a mistake of the server's author; None for any other."""
    printed = [line.text for line in facts.first_stderr]
    if any(_OLD_NODE.search(line) for line in printed):
        return "an old Node.js runs the server, and does not know this syntax: give the absolute path of a newer one in the host's configuration"
    if _MODULE_SYNTAX.search(text):
        return (
            'Node.js reads the file as CommonJS, and it is an ES module: name it .mjs, or give its package.json "type": "module"; if another '
            "program starts it, start what the project's build makes"
        )
    if any(re.search(r"[/\\](?:node_modules|site-packages)[/\\]", line) for line in printed[:3]):
        return "the file is of an installed package: remove it from the cache and install it again (npx: rm -rf ~/.npm/_npx), or use another version"
    return None


def _printed_on_stdout(odd: list[OddLine], end: ServerEnd) -> tuple[str, str, list[EvidenceLine]]:
    """Return the title, the next step and the evidence of a server that wrote text to stdout and ended."""
    printed = [each for each in odd if text_of(each).strip()] or odd
    lines = [evidence(each.place, f"stdout: {text_of(each)}") for each in printed[:3]]
    usage = next((number for number, each in enumerate(printed) if _USAGE.match(text_of(each))), None)
    if usage is not None:
        shown = " ".join(text_of(each).strip() for each in printed[usage : usage + 2])
        return (
            f"the server printed its help and ended ({end.words}), in place of starting: {quote(shown, 100)}",
            (
                "compare the arguments in the host's configuration with this help: one is missing, too much or wrong; the entry point of "
                "an image may have some of them already"
            ),
            lines,
        )
    return (
        f"the server printed {quote(text_of(printed[-1]))!r} on stdout and ended ({end.words})",
        "this is the server's own message: correct the argument or the setting that it names",
        lines,
    )


_USAGE = re.compile(r"(?i)\s*usage:")

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
            *("@ bare", ex.initialize(), ex.stderr("Installed 42 packages in 110ms"), "+ 60", ex.cancelled(1))
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
    is_pulled = bool(lines) and any("context canceled" in line.text for line in facts.stderr)
    if any(end.code and not end.is_forced for end in facts.of(ServerEnd)) and not is_pulled:
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
        yield Claim(title, next_step, [], evidence=said, side=side)
    for failed in facts.failed():
        is_late = failed.answer_at is not None and failed.gave_up_at is not None
        is_begin = failed.is_handshake and failed.side == CLIENT and not failed.is_refused
        is_installing = (
            bool(lines) and failed.until - lines[-1].at < QUIET_SECONDS and not _has_begun(facts, lines[-1])
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
                symptoms=[failed, *(end for end, _ in before_answer(facts))],
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
        symptoms = [failed, *(end for end, _ in before_answer(facts))]
        said = [line.evidence for line in lines[-2:]]
        # A start of a few seconds is as right as a limit above it, and a download is not the server's work.
        is_short = failed.answer_at is not None and failed.answer_at - failed.asked_at < SHORT_WAIT
        is_late = failed.answer_at is not None  # The limit may be too short, or the start too long.
        side = "" if is_short or is_late or lines else SERVER
        yield Claim(title, next_step, symptoms, evidence=said, side=side)
