"""A server that runs, and writes nothing: the reasons that its command and its stderr show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.noise import LISTENS
from mcpspy.analysis.explain.causes.requests import without_response
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import EvidenceLine, PrintedLine, evidence, is_rest, named_error, quote
from mcpspy.analysis.explain.facts import PATIENCE, Facts
from mcpspy.analysis.explain.symptoms import FailedRequest, ServerEnd
from mcpspy.analysis.lint.finding import EntryPosition
from mcpspy.core.counted import duration
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import Note

_INSTALL = frozenset("bunx docker npx pipx pnpx podman uv uvx".split())
"""Commands that fetch a package or an image before they start it."""

_FETCHES = re.compile(
    r"(?i)pull|fetch|download|install|resolv|extract|unable to find image|digest: |status: |^[0-9a-f]{12}: |npm (?:warn|http)"
    r"|added \d+ packages|need to install"
)
"""Lines of these commands before they start the program."""

QUIET_SECONDS = 3.0
"""Seconds without a line on stderr after which a server is not just starting any more."""

_STARTS = re.compile(
    r"(?i)\b(?:launch|load|start|initiali[sz]|connect|warm|boot|pull|fetch|download|install|build"
    r"|compil|index|migrat)ing\b"
)
"""A server that is starting."""

_STARTED = re.compile(r"(?i)\bstarted\b|\bready\b|\brunning\b")
"""A server that has started, by its own words."""


@cause(
    "nothing-on-stdout",
    "the server runs, and has not written one byte to stdout",
    Level.SPECIFIC,
    positive=(
        ex.session("@ bare", ex.initialize(), ex.cancelled(1)),
        ex.session('@ bare command=["notes","--transport","sse"]', ex.initialize(), "+ 60", ex.cancelled(1)),
        ex.session(
            *(
                "@ bare",
                ex.initialize(),
                ex.stderr("Error POSTing to endpoint (HTTP 404): Session not found"),
            ),
            *("+ 60", ex.cancelled(1)),
        ),
        ex.session(
            *("@ bare", ex.initialize(), ex.stderr("Please authorize this client by visiting:")),
            *(ex.stderr("https://notes.example/authorize?client_id=1"), "+ 60", ex.cancelled(1)),
        ),
    ),
    negative=ex.session(ex.request("ping"), ex.cancelled()),
)
def nothing_on_stdout(facts: Facts) -> Iterator[Claim]:
    """It hangs before it reads, waits for something else than lines, or listens on a port, which
    its stderr then names.
    """
    if not facts.is_stdio or facts.server.messages or facts.server.odd_count:
        return
    begun = [
        (note, place)
        for note, place in facts.notes.get("unfinished", [])
        if note.fields.get("from") == SERVER
    ]
    if begun:
        yield from _never_ended(facts, *begun[-1])
        return
    failed = [each for each in without_response(facts, CLIENT) if each.is_handshake]
    closed_at = facts.client.closed_at
    if not failed or any(
        not end.has_answered and (end.code or end.signal or (end.code == 0 and closed_at is None))
        for end in facts.of(ServerEnd)
    ):
        return  # It ended by itself.
    if closed_at is not None and closed_at - failed[0].asked_at < PATIENCE and not facts.first_stderr:
        return  # The client did not wait.
    asking, printed, unread = failed[0], facts.stderr, facts.notes.get("unread", [])
    listens = [line for line in printed if LISTENS.search(line.text)]
    starting = [line for line in printed if _STARTS.search(line.text)]
    title = f"no answer to {asking.method} in {asking.waited}, and not one byte on stdout"
    lines, side = [line.evidence for line in [*printed][-1:]], SERVER
    if listens:
        title += f": it listens on a port instead: {quote(listens[0].text, 100)}"
        next_step = "start it with its option for stdio, or connect to its URL (mcpspy http --upstream URL)"
        lines = [listens[0].evidence]
        side = "configuration" if _other_transport(facts) else ""  # It may have no option, or want one.
    elif (other_transport := _other_transport(facts)) and not unread:
        title += f": its arguments choose another transport: {quote(other_transport, 60)}"
        next_step = "start it with its option for stdio, or connect to its URL (mcpspy http --upstream URL)"
        side = "configuration"
    elif unread:
        title, next_step, lines, side = _unread(facts, asking, printed)
    elif asking.method == "server/discover" and printed:
        title += f": it does not know this method, and says so only on stderr: {quote(printed[-1].text, 100)}"
        next_step = (
            "let the server answer unknown methods with the error -32601; then the client continues with "
            "initialize"
        )
    elif asking.method == "server/discover" and not facts.client.methods["initialize"]:
        title += ": a server of a revision before 2026-07-28 may not answer this method"
        next_step = (
            "let the client take a server that does not answer for one of an older revision, and start it again with initialize "
            "(2026-07-28, Lifecycle); let the server answer unknown methods with the error -32601"
        )
        side = ""
    elif error := named_error(printed, certain=True):
        title += f"; on stderr: {quote(error.text)}"
        next_step, lines = error.next_step, [error.evidence]
    elif starting and asking.until - printed[-1].at < QUIET_SECONDS:
        title = (
            f"the {asking.side} gave up {asking.method} after {asking.waited}, while the server was "
            f"still starting: {quote(starting[-1].text, 100)}"
        )
        next_step = "let the server answer initialize before slow work, or raise the host's timeout"
        lines = [starting[-1].evidence]
    else:
        title, next_step, side = _without_a_sign(facts, asking, printed)
    yield Claim(title, next_step, [*failed, *facts.of(ServerEnd)], evidence=lines, side=side)


def _never_ended(facts: Facts, note: Note, place: EntryPosition) -> Iterator[Claim]:
    """Yield a claim of a request whose response may be the line that the server began and never ended."""
    for failed in without_response(facts, CLIENT):
        if failed.asked_at <= note.at <= failed.until:
            size = note.fields.get("size")
            title = f"no answer to {failed.method} in {failed.waited}: the server wrote {size} bytes, and no newline after them"
            yield Claim(
                title=title,
                next_step="let the server end each message with a newline, and flush it: the client reads on until then",
                symptoms=[failed, *facts.of(ServerEnd)],
                evidence=[evidence(place, f"stdout: a line that was begun ({size} bytes)")],
                side=SERVER,
            )
            return


_TRANSPORT = re.compile(r"--?(?:transport|mode)(?:[= ](\S+))?|--(?:sse|http|streamable-?http)")
_OVER_HTTP = re.compile(r"(?i)sse|http|https|streamable[-_]?http|ws|websocket")


def _other_transport(facts: Facts) -> str:
    """Return the arguments of the command that choose a transport over HTTP; empty if there are none."""
    words = facts.command[1:]
    for number, word in enumerate(words):
        found = _TRANSPORT.fullmatch(word)
        if found is None:
            continue
        if _OVER_HTTP.fullmatch(word.strip("-")):
            return word
        value = found[1] or next(iter(words[number + 1 :]), "")
        if _OVER_HTTP.fullmatch(value):
            return word if found[1] else f"{word} {value}"
    return ""


def _unread(
    facts: Facts, asking: FailedRequest, printed: Sequence[PrintedLine]
) -> tuple[str, str, list[EvidenceLine], str]:
    """Return the title, the next step, the evidence and the side of a start that left stdin unread."""
    note, place = facts.notes["unread"][-1]
    count = note.fields.get("size")
    title = f"no answer to {asking.method} in {asking.waited}, and not one byte on stdout"
    lines = [evidence(place, "bytes are unread in the server's stdin")]
    ran = [line for line in printed if not _FETCHES.search(line.text)]
    started = [line for line in printed if _STARTED.search(line.text)]
    runner = facts.program_name if facts.program_name in _INSTALL else ""
    if runner and not ran:
        title += f": {runner} had not started the server yet ({count} bytes of its stdin are unread)"
        next_step = (
            f"run the command once in a terminal: {runner} installs the package at its first "
            f"start (and asks for the newest version at each start with @latest); pin a version, "
            f"install it, or raise the host's timeout of the start"
        )
        return title, next_step, lines, "environment"
    if (at_work := _at_work(asking, printed)) is not None:
        title = (
            f"the {asking.side} gave up {asking.method} after {asking.waited}, while the server was still at work and had not read its "
            f"stdin: {quote(at_work.text, 100)}"
        )
        next_step = "let the server read and answer initialize before slow work, or raise the host's timeout"
        return title, next_step, [*lines, at_work.evidence], SERVER
    title += f": nothing has read its stdin ({count} bytes are unread)"
    next_step = (
        "start the server itself and not a wrapper that keeps its stdin (docker run -i, ssh without -n); if it is the server itself, "
        "look what it does before it reads (py-spy dump, a debugger)"
    )
    if runner:
        title += f", although the server has started: {quote(ran[0].text, 100)}"
        next_step = (
            "look what starts the server in there: a shell script that starts it in the background (&) gives it "
            '/dev/null as stdin (use exec "$@" as its last line)'
        )
        next_step += f"; {runner} run needs -i" if runner in ("docker", "podman") else ""
        lines.append(ran[0].evidence)
    elif started:
        title += f", although it has started: {quote(started[-1].text, 100)}"
        next_step = (
            "switch on its transport for stdio (an option, a profile, a setting): a server that serves HTTP alone does not "
            "read stdin; or start the server itself, and not a wrapper that keeps its stdin"
        )
        lines.append(started[-1].evidence)
    return title, next_step, lines, SERVER


def _at_work(asking: FailedRequest, printed: Sequence[PrintedLine]) -> PrintedLine | None:
    """Return the last line of a server that printed on and on while a request waited; None for one that had become quiet."""
    meanwhile = [line for line in printed if asking.asked_at <= line.at <= asking.until]
    if len(meanwhile) < 3 or asking.until - meanwhile[-1].at > QUIET_SECONDS:
        return None
    return meanwhile[-1] if meanwhile[-1].at - meanwhile[0].at > QUIET_SECONDS else None


LONG_START = 9.0
"""Seconds after which a server that prints nothing does not only start slowly."""

_OF_REMOTE = re.compile(
    r"(?i)\berror from remote server\b|\berror posting to endpoint\b|\bnon-200 status code\b|\b(?:sse|remote|upstream)\b.{0,40}\berror\b.{0,40}\b[45]\d\d\b"
)
"""The words of bridges from stdio to HTTP (mcp-remote, mcp-proxy, supergateway) for what their remote server answered."""

_SIGN_IN = re.compile(
    r"(?i)\bauthori[sz]e this\b|\b(?:visit|open)(?:ing)?\b.{0,60}(?:https?://|browser|url|link)|\bbrowser (?:has been |was )?opened"
    r"|waiting for (?:the |an? )?(?:auth|sign|log[- ]?in|oauth|callback)|enter the code|device code|/(?:oauth2?/)?authorize\?"
)
"""A program that opens a browser, or shows an address and a code, for a sign-in."""

_WARNS = re.compile(r"(?i)warning\b|\bnode -{2}trace-")
"""A runtime about the program that it starts: no sign that this one works."""

_SIGNED_IN = re.compile(
    r"(?i)auth\w* (?:successful|succeeded|completed?)|successfully (?:auth|sign|logg)|(?:signed|logged) in|token (?:saved|received)"
    r"|proxy established"
)


def _without_a_sign(
    facts: Facts, asking: FailedRequest, printed: Sequence[PrintedLine]
) -> tuple[str, str, str]:
    """Return the title, the next step and the side of a start that did not end, for whatever reason."""
    title = f"no answer to {asking.method} in {asking.waited}"
    after = [
        line
        for line in printed
        if line.at >= asking.asked_at and not _WARNS.search(line.text) and not is_rest(line.text)
    ]
    sign_in = [line for line in after if _SIGN_IN.search(line.text)]
    if sign_in and not any(_SIGNED_IN.search(line.text) for line in after):
        title += f": the server waits until its user has signed in: {quote(sign_in[-1].text, 100)}"
        next_step = (
            "start this command once in a terminal and sign in there: most servers keep the token; let the server answer "
            "initialize before the sign-in, or raise the client's timeout of the start"
        )
        return title, next_step, ""
    remote = [line for line in after if _OF_REMOTE.search(line.text)]
    if remote:
        title += f": what the server connects to has refused it: {quote(remote[-1].text, 100)}"
        next_step = (
            "the command is a bridge to another server, and waits for it: check the URL (its path, /mcp or /sse) and the credentials in "
            "its arguments; mcpspy http --upstream URL records that connection"
        )
        return title, next_step, ""
    if after and not _STARTED.search(after[-1].text):
        title += (
            f": the server still works before it answers, or hangs there; its last words on stderr, "
            f"{duration(after[-1].at - asking.asked_at)} after the request: {quote(after[-1].text, 100)}"
        )
        next_step = (
            "let the server answer initialize first, and do slow work (caches, sign-ins, downloads) after it; if the "
            "work is right and only long, raise the client's timeout of the start"
        )
        return title, next_step, ""  # One of the two has to give way.
    if facts.program_name in _INSTALL and not printed:
        title += f", and not one byte on stdout: {facts.program_name} may still install the server, or it still starts, or hangs"
        next_step = (
            f"run the command once in a terminal: {facts.program_name} installs the package at its first start; then look whether it answers "
            f"there, and raise the host's timeout of the start if it only needs longer"
        )
        return title, next_step, ""
    title += ", and not one byte on stdout: the server waits for something else than lines (framing), or hangs at its start"
    title += f"; its last words on stderr: {quote(printed[-1].text, 100)}" if printed else ""
    next_step = (
        "look where the server waits, with a debugger or py-spy dump: it hangs before it reads, or "
        "expects Content-Length headers and not one message per line"
    )
    if asking.took < LONG_START and not any(_STARTED.search(line.text) for line in printed):
        return f"{title}; or it still starts", next_step, ""
    return title, next_step, SERVER
