"""The executor of the interception engine's steps, for every transport.

A step is executed in two phases, because no message is sent before it and its notes are in the recording: `plan`
returns what to record and the effects, and the transport records before it calls them. A bug in the engine shows in
`plan`, while nothing has happened yet. Not imported before the first decision of a session.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, assert_never

from mcpspy.core.intercept import actions
from mcpspy.core.recording.encode import note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Lines: TypeAlias = list[bytes | bytearray]
    """Pieces of recording lines."""

    Effect: TypeAlias = Callable[[], None]


class Carrier(Protocol):
    """The transport of a session's messages. It keeps each held message by its ticket until a step decides on it."""

    def forward(self, step: actions.Forward) -> None:
        """Send a held message to the other side, as it arrived."""

    def substitute(self, step: actions.Substitute) -> None:
        """Send this data in place of a held message."""

    def drop(self, step: actions.Dropped) -> None:
        """Forget a held message, whose sender gets no response from its receiver."""

    def disconnect(self, step: actions.Disconnect) -> None:
        """Close the connection to the host or client, once it has what was sent before."""

    def injection(self, at: float, step: actions.Inject) -> tuple[Iterable[bytes | bytearray], Effect] | None:
        """Return the entry of an injected message, and what sends it; None if its receiver has disconnected."""

    def undeliverable(self, at: float, id: str) -> list[actions.Step]:  # noqa: A002
        """Return the steps that report to its viewer that an injected request has no receiver."""

    def notify(self, viewer: str | None, event: dict[str, Any]) -> None:
        """Send an event to a viewer, or to all (None)."""


class Plan(NamedTuple):
    lines: Lines
    effects: list[Effect]
    """To be called in order, once the lines are recorded."""


def plan(carrier: Carrier, at: float, steps: Iterable[actions.Step]) -> Plan:
    """Return what these steps record, and the effects that follow."""
    planned = Plan([], [])
    _add(planned, carrier, at, steps)
    return planned


def _add(planned: Plan, carrier: Carrier, at: float, steps: Iterable[actions.Step]) -> None:
    lines, effects = planned
    for step in steps:
        match step:
            case actions.Forward():
                effects.append(partial(carrier.forward, step))
            case actions.Substitute():
                effects.append(partial(carrier.substitute, step))
            case actions.AddNote(kind, fields, exchange):
                http = {} if exchange is None else {"http": exchange.fields.get("http")}
                lines.append(note(at, kind, http | fields))
            case actions.Notify(viewer, event):
                effects.append(partial(carrier.notify, viewer, event))
            case actions.Dropped():
                effects.append(partial(carrier.drop, step))
            case actions.Inject():
                if (injection := carrier.injection(at, step)) is not None:
                    entry, send = injection
                    lines += entry
                    effects.append(send)
                elif step.id is not None:
                    _add(planned, carrier, at, carrier.undeliverable(at, step.id))
            case actions.Disconnect():
                effects.append(partial(carrier.disconnect, step))
            case actions.AbortUpstream() | actions.HeadDecided():  # Only an HTTP exchange has these.
                effects.append(partial(step.exchange.deliver, step))
            case _:
                assert_never(step)
