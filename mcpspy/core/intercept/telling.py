"""What viewers are told and the recording notes of what is held, and of requests of ours.

Owns the fields of the events in docs/control.md, and of the notes `hold` and
`release` in docs/format.md. Decides nothing.
"""

from __future__ import annotations

from mcpspy.core.intercept.letter import Letter
from mcpspy.core.intercept.ours import Injected
from mcpspy.core.intercept.remarks import about, remark, said
from mcpspy.core.intercept.steps import Fields, Remark, Step, Tell


def full(action: str, letter: Letter) -> Remark:
    """Return the note of a letter that there was no room to hold or delay."""
    return remark(action, {**_about(letter), "why": "full"}, letter.lane)


def held(letter: Letter, seconds: float) -> list[Step]:
    """Return the note and the event of a letter that is held from now on, for so long at most."""
    assert letter.holder is not None
    kind, name = letter.holder
    return [
        remark("hold", {kind: name, **_about(letter), "ticket": letter.ticket}, letter.lane),
        Tell(None, {"event": "held", **shown(letter, seconds)}),
    ]


def shown(letter: Letter, seconds: float) -> Fields:
    """Return a held letter as viewers see it; `seconds` is how long it is held at most."""
    assert letter.holder is not None
    kind, name = letter.holder
    fields = {"ticket": letter.ticket, "at": letter.at, **_about(letter), kind: name}
    fields["deadline"] = letter.held_at + seconds
    return {**fields, **said("text", letter.outgoing() or letter.data, "b64")}


def released(letter: Letter, at: float, why: str, viewer: str | None = None) -> list[Step]:
    """Return the note and the event of a letter that is held no more."""
    fields: Fields = {**_about(letter), "ticket": letter.ticket, "why": why, "viewer": viewer}
    fields["seconds"] = round(at - letter.held_at, 6)
    if letter.edited is not None:
        fields |= said("sent", letter.edited)
    elif letter.first.verdict.answer is not None:
        fields |= said("sent", letter.first.verdict.answer)
    return [
        remark("release", fields, letter.lane),
        Tell(None, {"event": "released", "ticket": letter.ticket, "why": why, "viewer": viewer}),
    ]


def answered(injected: Injected, at: float, fields: Fields) -> Tell:
    """Return the event for whoever asked: `message`, or why there is none."""
    return told("answer", injected, {**fields, "seconds": round(at - injected.at, 6)})


def told(event: str, injected: Injected, fields: Fields) -> Tell:
    """Return an event about a request of ours."""
    return Tell(injected.viewer, {"event": event, "n": injected.n, "id": injected.id, **fields})


def _about(letter: Letter) -> Fields:
    first = letter.first
    return {key: value for key, value in about(first.message, first.asked).items() if value}
