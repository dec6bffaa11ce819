"""`mcpspy show --mock`: what a mock of a recording can answer."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import NamedTuple

import orjson

from mcpspy.analysis import rows
from mcpspy.core.mock.interaction import Interaction
from mcpspy.core.mock.recordings import Recordings
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.terminal import Output, columns

HEADS = ("method", "about", "requests", "answers")
WIDTHS = (30, 44, -8, -7)


class MockListingEntry(NamedTuple):
    """What was asked of one tool, resource or prompt, or by one method that is about none."""

    method: str
    about: str | None
    requests: int
    """Different ones: of them each is answered by itself."""
    answers: int
    """Recorded answers, to be given one after the other."""


def entries(interactions: Iterable[Interaction]) -> list[MockListingEntry]:
    """Count what can be asked for, in the order of its first request."""
    found: dict[tuple[str, str | None], tuple[set[bytes], int, int]] = {}
    for interaction in interactions:
        key = interaction.key
        if key is not None:
            place = key.method, key.subject
            digests, answers, order = found.get(place, (set(), 0, interaction.order))
            digests.add(key.digest)
            found[place] = digests, answers + interaction.is_answered, min(order, interaction.order)
    ordered = sorted(found.items(), key=lambda item: item[1][2])
    return [
        MockListingEntry(method, about, len(digests), answers)
        for (method, about), (digests, answers, _) in ordered
    ]


def print_repertoire(recordings: Recordings, *, as_json: bool) -> None:
    """Print what a mock of it can answer: a table, or one JSON object a line."""
    found = entries(recordings.interactions)
    if as_json:
        for entry in found:
            sys.stdout.write(orjson.dumps(entry._asdict()).decode() + "\n")
        return
    output = Output()
    output.line(columns(HEADS, WIDTHS), rows.QUIET)
    for entry in found:
        output.line(
            columns(
                (
                    sanitize(entry.method),
                    sanitize(entry.about or ""),
                    str(entry.requests),
                    str(entry.answers),
                ),
                WIDTHS,
            )
        )
    output.line()
    output.line(f"{sum(entry.requests for entry in found)} requests, and the handshake")
