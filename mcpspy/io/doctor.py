"""The steps of a host that connects to a server, tried in order: which hold, and at which it breaks.

A command is found, started, and speaks; a URL resolves, accepts a connection, and has a valid certificate; then the
handshake, the lists, and a call if the user asks for one. The session is recorded with the origin `doctor`, so that
`explain` names the cause.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from yarl import URL

from mcpspy.core.counted import counted
from mcpspy.core.protocol.message import Failure, Malformed, Result
from mcpspy.core.protocol.spec import METHOD_NOT_FOUND, SERVER
from mcpspy.core.recording.origin import DOCTOR
from mcpspy.core.session.session import Session
from mcpspy.errors import CannotStart, McpspyError
from mcpspy.io.client.base import ServerAddress, ServerCommand, ServerTarget
from mcpspy.io.client.conversation import Conversation, offered_lists
from mcpspy.io.network.outgoing import environment_proxy, reason, trust
from mcpspy.io.recording.recorder import RecordingTarget
from mcpspy.io.replay import RecordingObserver, header_fields

CONNECT = 10.0
"""Seconds for an address to accept a connection."""

TOOLS = "tools/list"

SKIPPED = "the official SDKs and Claude Code skip it"
"""The fate of a separate line of stdout that is not a message. Measured, like the next (docs/doctor.md)."""

AS_EMPTY = "Claude Code works without"
"""The effect of the error `method not found` for a list that was declared, except that of the tools."""

SOON = 14
"""Days before its end at which a certificate is mentioned."""


class Step(NamedTuple):
    """A step, and its outcome."""

    name: str
    holds: bool | None
    """None if it was not tried."""
    text: str
    is_warned: bool = False
    """True if it holds, but the server violates the protocol there, and other hosts may refuse it."""


class Examination:
    """The steps with one server. `path` is the recording, for `explain`."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.path: str | None = None

    @property
    def broken(self) -> Step | None:
        """The step that breaks."""
        return next((step for step in self.steps if step.holds is False), None)

    def add(self, name: str, text: str, *, holds: bool = True, is_warned: bool = False) -> bool:
        self.steps.append(Step(name, holds, text, is_warned))
        return holds

    def fail(self, name: str, text: str) -> None:
        """Let a step break that seemed to hold."""
        self.steps = [Step(name, False, text) if step.name == name else step for step in self.steps]

    def skip(self, *names: str) -> None:
        """Add steps that were not tried because an earlier one breaks."""
        why = self.broken
        self.steps += [
            Step(name, None, f"not tried: {why.name} fails" if why else "not tried") for name in names
        ]


STARTING = ("command", "start", "output", "messages")
CONNECTING = ("address", "connection", "certificate", "response")
TALKING = ("handshake", "lists")


async def examine(
    found: Examination,
    target: ServerTarget,
    name: str,
    where: RecordingTarget,
    *,
    seconds: float,
    call: tuple[str, dict[str, Any]] | None = None,
) -> None:
    """Try the steps. `call` is the name of a tool and its arguments. Raises nothing because of the server."""
    where.origin = DOCTOR
    last = (*TALKING, "call") if call is not None else TALKING
    if isinstance(target, ServerCommand):
        if not _has_command(found, target):
            found.skip(*STARTING[1:], *last)
    elif not await _is_reachable(found, URL(target.url), target):
        found.skip(CONNECTING[-1], *last)
    observer = RecordingObserver(where, header_fields(target, name))
    found.path = observer.path
    talk = Conversation(target, observer, seconds, is_examined=True)
    try:
        if found.path is not None and (broken := found.broken) is not None and broken.name != "configuration":
            await _record_failure(talk)
            return
        async with talk:
            await _talk(found, talk, observer.session, target, call)
    except McpspyError as error:  # It does not start.
        observer.note("error", text=str(error))
        if any(step.holds is False and step.name != "configuration" for step in found.steps):
            return
        found.add(
            STARTING[1] if isinstance(target, ServerCommand) else CONNECTING[-1], str(error), holds=False
        )
        found.skip(*(STARTING[2:] if isinstance(target, ServerCommand) else ()), *last)
    finally:
        ended = getattr(talk, "ended", None)
        observer.finish(ended.code if ended else None, ended.signal if ended else None)


async def _record_failure(talk: Conversation) -> None:
    """Try the connection that fails, so that the recording has its error. Raise CannotStart if a command does not start."""
    with suppress(TimeoutError):
        async with asyncio.timeout(CONNECT), talk:
            with suppress(McpspyError):  # It is in the recording.
                await talk.begin()


async def _talk(
    found: Examination,
    talk: Conversation,
    session: Session,
    target: ServerTarget,
    call: tuple[str, dict[str, Any]] | None,
) -> None:
    """Handshake, list and call; add each step by what the session shows."""
    names: tuple[str, ...] = (*TALKING, "call") if call is not None else TALKING
    try:
        offer = await talk.begin()
    except McpspyError as error:
        if isinstance(target, ServerCommand):
            _add_output(found, session, str(error))
        else:
            await _add_response(found, session, target, str(error))
        if found.broken is None:
            found.add(names[0], str(error), holds=False)
            names = names[1:]
        found.skip(*names)
        return
    if isinstance(target, ServerCommand):
        _add_output(found, session, "")
    else:
        found.add(CONNECTING[-1], "the endpoint answers with messages")
    about = " ".join(str(offer.info.get(key, "")) for key in ("name", "version")).strip()
    found.add(names[0], f"{about or 'a server without a name'}, revision {offer.revision}")
    try:
        texts, unknown = [], []
        for method in offered_lists(offer):
            response = await talk.request(method)
            if isinstance(response, Failure) and response.code == METHOD_NOT_FOUND and method != TOOLS:
                unknown.append(method)
                continue
            if isinstance(response, Failure):
                found.add(names[1], f"{method}: {response.description}", holds=False)
                found.skip(*names[2:])
                return
            texts.append(_count(method, response))
        if unknown:
            texts.append(f"but the server declares and does not know {', '.join(unknown)}: {AS_EMPTY}")
        found.add(names[1], ", ".join(texts) or "the server offers no lists", is_warned=bool(unknown))
        if call is not None:
            tool, arguments = call
            response = await talk.request("tools/call", {"name": tool, "arguments": arguments})
            failed = isinstance(response, Failure) or response.is_tool_error
            first = (response.description if isinstance(response, Failure) else response.text).split("\n")[0]
            found.add("call", f"{tool}: {first[:200]}", holds=not failed)
    except McpspyError as error:
        missing = names[len([step for step in found.steps if step.name in names]) :]
        found.add(missing[0], str(error), holds=False)
        found.skip(*missing[1:])


def _count(method: str, response: Result) -> str:
    from mcpspy.core.protocol.listing import LISTINGS

    member = LISTINGS[method].member
    result = response.result
    items = result.get(member) if isinstance(result, dict) else None
    return f"{len(items) if isinstance(items, list) else 0} {member}"


# A command.


def _has_command(found: Examination, target: ServerCommand) -> bool:
    program, *_ = target.arguments
    variables = os.environ if target.variables is None else target.variables
    folder = target.cwd or os.getcwd()
    if target.cwd is not None and not os.path.isdir(target.cwd):
        return found.add("command", f"its working directory does not exist: {target.cwd}", holds=False)
    place = os.path.join(folder, program) if os.path.dirname(program) else program
    path = shutil.which(place, path=variables.get("PATH"))
    if path is not None:
        return found.add("command", path)
    elsewhere = shutil.which(program)
    if elsewhere is not None and target.is_bare:
        why = f"{program} is not on the PATH that a host has, but at {elsewhere}: write that path"
    elif os.path.isdir(place) and os.path.dirname(program):
        why = f"{place} is a folder: name a program in it"
    elif os.path.isfile(place):
        why = f"{place} is not executable"
    elif os.path.dirname(program):
        why = f"{place} does not exist"
    else:
        why = f"{program} is not on PATH: {variables.get('PATH', '')}"
    return found.add("command", why, holds=False)


def _add_output(found: Examination, session: Session, problem: str) -> None:
    """Add the steps from the start to the first message."""
    sent = [change.what for change in session.changes if getattr(change.what, "side", None) == SERVER]
    words = [each for each in sent if isinstance(each, Malformed)]
    messages = len(sent) - len(words)
    found.add("start", "the process starts")
    if not found.add("output", "it writes to stdout" if sent else problem, holds=bool(sent)):
        found.skip("messages")
    elif words:
        line = words[0].data.decode("utf-8", "replace").strip()[:100]
        text = f"stdout has a line that is not a message: {line}"
        if problem:
            found.add("messages", text, holds=False)
        elif any(b'"jsonrpc"' in each.data for each in words):
            # The probe for 2026-07-28 lost its response here; other hosts lose the response to `initialize`.
            found.add("messages", f"{text}; it has a message in it, which hosts lose", holds=False)
        else:  # The handshake succeeded in spite of it.
            found.add("messages", f"{text} ({SKIPPED})", is_warned=True)
    else:
        found.add("messages", "each line of stdout is a message", holds=messages > 0)


# A URL.


async def _is_reachable(found: Examination, url: URL, target: ServerAddress) -> bool:
    if (proxy := environment_proxy(url)) is not None:
        found.add("address", f"through the proxy {proxy.host}:{proxy.port}, which the environment names")
        url = proxy
    elif not await _resolves(found, url):
        found.skip(*CONNECTING[1:3])
        return False
    try:
        async with asyncio.timeout(CONNECT):
            _, writer = await asyncio.open_connection(url.host, url.port)
        peer = writer.get_extra_info("peername")
        writer.close()
    except TimeoutError:
        return _not_connected(
            found, f"{url.host}:{url.port} does not answer within {CONNECT:g} s: a firewall?"
        )
    except OSError as error:
        return _not_connected(found, f"{url.host}:{url.port}: {reason(error)}")
    found.add("connection", f"TCP to {peer[0]}:{peer[1]}")
    return url.scheme != "https" or proxy is not None or await _has_certificate(found, url, target)


def _not_connected(found: Examination, why: str) -> bool:
    found.add("connection", why, holds=False)
    found.skip("certificate")
    return False


async def _resolves(found: Examination, url: URL) -> bool:
    host = url.host or ""
    try:
        entries = await asyncio.get_running_loop().getaddrinfo(host, url.port, type=socket.SOCK_STREAM)
    except OSError as error:
        return found.add(
            "address", f"{host} does not resolve: {error.strerror or reason(error)}", holds=False
        )
    addresses = dict.fromkeys(str(entry[4][0]) for entry in entries)
    return found.add("address", f"{host}: {', '.join(addresses)}" if host not in addresses else host)


async def _has_certificate(found: Examination, url: URL, target: ServerAddress) -> bool:
    """Add the step of TLS: the chain, the name and the end of the certificate."""
    try:
        context = trust(target.cacert, insecure=target.insecure)
        async with asyncio.timeout(CONNECT):
            _, writer = await asyncio.open_connection(url.host, url.port, ssl=context)
    except McpspyError as error:
        return found.add("certificate", str(error), holds=False)
    except TimeoutError:
        return found.add("certificate", f"no TLS handshake within {CONNECT:g} s", holds=False)
    except (OSError, ssl.SSLError) as error:
        return found.add("certificate", reason(error), holds=False)
    certificate: dict[str, Any] = writer.get_extra_info("peercert") or {}
    writer.close()
    return found.add("certificate", "; ".join(_about(certificate)) or "not checked")


def _about(certificate: dict[str, Any]) -> Iterator[str]:
    issuer = {key: value for part in certificate.get("issuer", ()) for key, value in part}
    if issuer:
        yield f"issued by {issuer.get('organizationName') or issuer.get('commonName')}"
    if until := certificate.get("notAfter"):
        ends = datetime.fromtimestamp(ssl.cert_time_to_seconds(until), UTC)
        days = (ends - datetime.now(UTC)).days
        yield f"until {ends:%Y-%m-%d}" + (f", only {counted(days, 'day')} more" if days < SOON else "")


def _is_response(what: object) -> bool:
    """Return whether this is a response of JSON-RPC, and not the error of a gateway in its own form (`{"error": …}`)."""
    return isinstance(what, Result) or (isinstance(what, Failure) and not what.flaws)


async def _add_response(found: Examination, session: Session, target: ServerAddress, problem: str) -> None:
    """Add the step of the first response: its status, and whether a user could sign in."""
    if "HTTP 401" in problem and not target.has_authorization:
        from mcpspy.io.client.oauth import OAuthClient, is_installed

        text = "HTTP 401: the server requires a sign-in"
        if is_installed():
            try:
                text += f", at {await OAuthClient(target).issuer()}"
            except CannotStart as error:
                text += f", and its metadata are not usable: {error}"
        found.add(CONNECTING[-1], text, holds=False)
    elif not any(_is_response(change.what) for change in session.changes):
        found.add(CONNECTING[-1], problem, holds=False)
    else:
        found.add(CONNECTING[-1], "the endpoint answers with messages")
