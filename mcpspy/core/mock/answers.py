"""Answers of the user during a request: to elicitation, sampling and roots.

Until 2025-11-25, the server sends requests while it handles one of the client, and the client responds to each. From
2026-07-28 on, a result has `inputRequests`, and the client sends its request again with `inputResponses`. Both are
read as rounds. Values that a server generates in each run, such as `requestState`, are not compared.
Sources: client/elicitation, client/sampling, client/roots; 2026-07-28 basic/patterns/mrtr.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from mcpspy.core.protocol.message import Failure, Request, Result, loads
from mcpspy.core.redact.placeholder import fits

GENERATED = ("_meta", "elicitationId", "url", "task")
"""Params of a server request that differ in each run."""

NO_CONTENT = ("decline", "cancel")
"""Actions of an elicitation without content; clients differ in what they send as content."""


class InputRound(NamedTuple):
    """A question of the server and the answer; 2026-07-28 has several in one round, by name."""

    question: Any
    """Name → method and params; None if it is unknown."""
    answer: Any
    """Name → result, or `{"error": …}`; None if the client did not respond."""


class Similarity(IntEnum):
    """Similarity of recorded rounds and live ones, the best first."""

    SAME = 0
    OTHER_QUESTION = 1
    """The same answers, but another text of a question, which may contain a time or a number."""
    SAME_ACTION = 2
    """The last answer has other content: another form, sampled message or list of roots."""
    DIFFERENT = 3
    """The last answer has another action."""
    UNRELATED = 4
    """Earlier answers differ."""


def server_question(request: Request) -> Any:
    """Return the question of a server request."""
    return {"": _question(request.method, request.params)}


def client_answer(response: Result | Failure) -> Any:
    """Return the answer in a response of the client."""
    value = response.result if isinstance(response, Result) else {"error": response.error}
    return {"": _answer(value)}


def input_questions(result: object) -> Any:
    """Return the questions in a result of 2026-07-28; None if it has none."""
    if not isinstance(result, Result) or not bytes(result.body.input_requests):
        return {} if isinstance(result, Result) else None
    asked = loads(result.body.input_requests)
    if not isinstance(asked, dict):
        return asked
    return {
        name: _question(each.get("method"), each.get("params")) if isinstance(each, dict) else each
        for name, each in asked.items()
    }


def input_answers(request: Request) -> Any:
    """Return the answers in a request of 2026-07-28; empty if it has only a `requestState`."""
    given = loads(request.body.input_responses) if bytes(request.body.input_responses) else {}
    return {name: _answer(each) for name, each in given.items()} if isinstance(given, dict) else given


def similarity_of(live: Mapping[int, InputRound], recorded: Sequence[InputRound]) -> Similarity:
    """Return the similarity of recorded rounds and live ones, by their position; the last live one is new."""
    if not recorded or any(number >= len(recorded) for number in live):
        return Similarity.UNRELATED
    *before, (old, new) = [(recorded[number], each) for number, each in live.items()]
    if not all(fits(old.answer, new.answer) for old, new in before):
        return Similarity.UNRELATED
    if fits(old.answer, new.answer):
        pairs = (*before, (old, new))
        known = (
            (old.question, new.question) for old, new in pairs if None not in (old.question, new.question)
        )
        return Similarity.SAME if all(fits(*pair) for pair in known) else Similarity.OTHER_QUESTION
    return Similarity.SAME_ACTION if _actions(old.answer) == _actions(new.answer) else Similarity.DIFFERENT


def closest(
    live: Mapping[int, InputRound], recorded: Iterable[Sequence[InputRound]]
) -> tuple[Similarity, list[int]]:
    """Return the best similarity of several recorded dialogues, and the positions of those that have it."""
    found = [similarity_of(live, rounds) for rounds in recorded]
    best = min(found, default=Similarity.UNRELATED)
    return best, [number for number, each in enumerate(found) if each is best]


def _question(method: Any, params: Any) -> Any:
    if isinstance(params, dict):
        params = {name: value for name, value in params.items() if name not in GENERATED}
    return {"method": method, "params": params or {}}


def _answer(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value.get("action") in NO_CONTENT:
        return {"action": value["action"]}
    return {name: each for name, each in value.items() if name != "_meta" and each is not None}


def _actions(answer: Any) -> Any:
    """Return the action of each answer; sampling and roots have a result or an error."""
    if not isinstance(answer, dict):
        return None
    return {name: _action(each) for name, each in answer.items()}


def _action(answer: Any) -> Any:
    if not isinstance(answer, dict):
        return None
    return answer.get("action", "error" if "error" in answer else None)
