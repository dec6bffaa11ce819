"""The unrecorded requests of the code under test, and the recorded ones that it did not send.

Each is described with the nearest recorded request and the values that differ. The mock reports the same to its
client, which may ignore it. All text is sanitized.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from mcpspy.core.jsontools import ABSENT, Pointer, differences, pointer, value_at
from mcpspy.core.mock.matching import compared_request
from mcpspy.core.mock.recordings import DIFFERENCES, Recordings
from mcpspy.core.mock.selector import MatchMode, Selector, about, never_sent
from mcpspy.core.mock.session import MockSession
from mcpspy.core.mock.steering import MockOptions
from mcpspy.core.protocol.message import Failure, Message, Request
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.redact.placeholder import fits
from mcpspy.core.session.session import Session
from mcpspy.ui.report.diff import one_line, short

PREFIX: Final = "mcpspy mock: "
"""The prefix of every error of the mock."""


def unrecorded(
    played: Iterable[Session], recorded: Sequence[Session], ignored: Sequence[Pointer] = ()
) -> list[str]:
    """Return a few lines for each request of the played sessions without a response in the recorded sessions."""
    requests = [request for session in recorded for request in _requests(session)]
    return [
        "\n".join(_described(exchange.request, exchange.answer, requests, ignored))
        for session in played
        for exchange in session.exchanges
        if exchange.request.side == CLIENT
        and isinstance(exchange.answer, Failure)
        and exchange.answer.text.startswith(PREFIX)
    ]


def unsent(played: Iterable[Session], recordings: Recordings, mode: MatchMode) -> list[str]:
    """Return a line for each recorded request that none of the played sessions sent, as `mcpspy mock --strict` does.

    Another mock gets the messages of each client again, because the answers of the user decide what is played.
    """
    clients: dict[tuple[int, str | None], MockSession] = {}
    for number, session in enumerate(played):
        for change in session.changes:
            if isinstance(change.what, Message) and change.what.side == CLIENT:
                name = number, change.what.frame.stream
                if (client := clients.get(name)) is None:
                    client = clients[name] = MockSession(recordings, MockOptions(match=mode), 0.0)
                client.receive(change.what.data, 0.0)
                list(client.take(0.0))
    selectors = [client.selector for client in clients.values()]
    found = never_sent(selectors or [Selector(recordings, mode)])
    return [short(about(interaction)) for interaction in found]


def _described(
    request: Request, answer: Failure, recorded: Sequence[Request], ignored: Sequence[Pointer]
) -> Iterator[str]:
    text, mark, first = answer.text.removeprefix(PREFIX).partition("; nearest: ")
    nearest = _nearest(answer)
    same = [near for near in nearest if near["method"] == request.method]
    if same:
        mark = first = ""  # All differences follow.
    yield short(f"{text}{mark}{first}")
    live = compared_request(request, ignored)
    yield f"  sent: {short(one_line(live['params']))}"
    # A request of another method has nothing in common: it is listed only if there is no better one.
    nearest = same or ([] if first else nearest)
    yield from dict.fromkeys("\n".join(_compared(live, near, recorded, ignored)) for near in nearest)


def _compared(
    live: dict[str, Any], near: dict[str, Any], recorded: Sequence[Request], ignored: Sequence[Pointer]
) -> Iterator[str]:
    about = short(f"{near['method']} {near.get('about') or ''}".rstrip())
    found = _found(live, near, recorded, ignored)
    if found is None:
        yield f"  nearest: {about}, differs at {', '.join(map(short, near['differs']))}"
        return
    yield f"  nearest: {about}"
    for at in near["differs"]:
        old, new = value_at(found, pointer(at)), value_at(live, pointer(at))
        if not fits(old, new):  # The original of a redacted secret may have been the same.
            yield f"    {short(at)}: recorded {_text(old)}, sent {_text(new)}"


def _nearest(answer: Failure) -> list[dict[str, Any]]:
    """Return the nearest requests in an error of the mock; empty for an error of another origin."""
    error = answer.error
    data = error.get("data") if isinstance(error, dict) else None
    nearest = data.get("nearest") if isinstance(data, dict) else None
    return [
        near
        for near in (nearest if isinstance(nearest, list) else [])
        if isinstance(near, dict)
        and isinstance(near.get("method"), str)
        and isinstance(near.get("differs"), list)
        and all(isinstance(at, str) and at.startswith("/") for at in near["differs"])
    ]


def _found(
    live: dict[str, Any], near: dict[str, Any], recorded: Sequence[Request], ignored: Sequence[Pointer]
) -> dict[str, Any] | None:
    """Return the recorded request that the mock refers to: the first that differs at the same pointers."""
    for request in recorded:
        if request.method == near["method"] == live["method"] and request.subject == near.get("about"):
            known = compared_request(request, ignored)
            if list(islice(differences(live, known), DIFFERENCES)) == near["differs"]:
                return known
    return None


def _requests(session: Session) -> Iterator[Request]:
    return (exchange.request for exchange in session.exchanges if exchange.request.side == CLIENT)


def _text(value: Any) -> str:
    return "nothing" if value is ABSENT else short(one_line(value))
