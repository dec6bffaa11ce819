"""Interactions stored as rows of numbers."""

from __future__ import annotations

from mcpspy.core.mock.store import FIRSTS, KEPT, LOST, OPENING, InteractionIndex, InteractionStore
from mcpspy.core.protocol.message import Failure, Notification, Result
from tests.core.mock.talking import interactions_of

FILE = b'{"id":1,"method":"m"}{"id":1,"result":{}}{"id":1,"error":{}}{"method":"n"}'
CAUSE, ANSWER, ERROR, NOTICE = (0, 21), (21, 20), (41, 19), (60, 14)


def store(file: bytes = FILE) -> InteractionStore:
    return InteractionStore("r", (), lambda place, length: file[place : place + length])


def test_a_request_and_its_answer_are_an_interaction_of_one_step() -> None:
    its = store()
    row = its.begin(CAUSE, 1.0, 7, 0)
    assert not its.is_answered(row)
    assert its.answer(row, ANSWER, 0.5, Result)
    (step,) = its.interaction(row).steps
    assert (step.kind, step.data, step.after, step.gates) == (Result, b'{"id":1,"result":{}}', 0.5, ())
    assert its.interaction(row).number == 7
    assert its.steps == {}


def test_an_interaction_with_more_messages_gets_steps_and_keeps_its_response() -> None:
    its = store()
    row = its.begin(CAUSE, 1.0, 0, 0)
    its.answer(row, ERROR, 0.5, Failure)
    assert not its.answer(row, ANSWER, 0.5, Result), "it has one"
    its.add(row, Notification, NOTICE, 0.7, gates=(0, -2), listens=5, cancels=0)
    last = its.interaction(row).steps[-1]
    assert (last.gates, last.listens, last.cancels) == ((0, -2), 5, 0)
    assert its.is_answered(row)
    assert [(step.kind, step.after) for step in its.interaction(row).steps] == [
        (Failure, 0.5),
        (Notification, 0.7),
    ]
    assert its.count(row) == 2
    its.add(OPENING, Notification, NOTICE, 0.7)
    assert [interaction.order for interaction in interactions_of(its)] == [OPENING, row]


def test_a_message_that_is_not_in_a_file_is_kept_in_memory() -> None:
    its = store()
    its.keep(b"[]")
    place, length = its.keep(b"{}")
    assert place == KEPT + 2
    assert its.read(place, length) == b"{}"


def test_a_message_that_was_removed_from_the_file_is_an_error() -> None:
    for changed in (b"", FILE[:30], b"x" * 100):
        its = store(changed)
        its.answer(its.begin(CAUSE, 0.0, 0, 0), ANSWER, 0.0, Result)
        (step,) = its.interaction(0).steps
        assert step.data == LOST


def test_a_message_may_end_in_white_space() -> None:
    its = InteractionStore("r", (), lambda place, length: b'{"id":1,"result":{}} \r'[place : place + length])
    assert its.read(0, 22).endswith(b"} \r")


def test_rows_are_found_by_request() -> None:
    its = InteractionIndex()
    for row in range(FIRSTS + 3):
        digest = b"same" if row < 3 else b"%16d" % row
        its.add_request(row, digest, "tools/call", "a" if row < 3 else "b", answers=False)
    assert list(its.rows(b"same")) == [0, 1, 2]
    assert list(its.rows(b"%16d" % 5)) == [5]
    assert list(its.rows(b"none")) == []
    assert len(its.methods["tools/call", False]) == FIRSTS + 3
    assert len(its.firsts["tools/call"]) == FIRSTS
    assert sorted(its.subjects.values()) == [~3, 0], "the only one of a, the first of b"
