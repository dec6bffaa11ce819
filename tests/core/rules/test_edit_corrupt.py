"""Corrupted messages, as faulty peers send them."""

from __future__ import annotations

import json

import pytest

from mcpspy.core.rules.edit import CORRUPTIONS, WRONG_ID_OFFSET, corrupted

ANSWER = b'{"jsonrpc":"2.0","id":7,"result":{"n":1.0}}'


def test_bad_json_is_almost_json() -> None:
    wrong = corrupted(ANSWER + b"\n", "bad-json", "7", 0)

    assert wrong.data == ANSWER[:-1] + b",}"
    with pytest.raises(ValueError, match=r"property name|trailing comma"):
        json.loads(wrong.data)
    assert not wrong.is_cut


def test_half_a_line_has_no_end() -> None:
    wrong = corrupted(ANSWER, "half-line", "7", 0)

    assert ANSWER.startswith(wrong.data)
    assert 0 < len(wrong.data) < len(ANSWER)
    assert wrong.is_cut


@pytest.mark.parametrize(
    ("id_text", "wrong"), [("7", 7 + WRONG_ID_OFFSET), ('"a"', "a-wrong"), ("1.5", "1.5-wrong")]
)
def test_a_wrong_id_is_unknown_and_the_rest_is_unchanged(id_text: str, wrong: object) -> None:
    data = ANSWER.replace(b'"id":7', b'"id":' + id_text.encode())

    assert corrupted(data, "wrong-id", id_text, 0).data == data.replace(
        b'"id":' + id_text.encode(), b'"id":' + json.dumps(wrong).encode()
    )


def test_an_oversized_message_has_the_same_value() -> None:
    wrong = corrupted(ANSWER, "oversize", "7", 1 << 20)

    assert len(wrong.data) == 1 << 20
    assert json.loads(wrong.data) == json.loads(ANSWER)
    assert len(ANSWER) + wrong.padding == 1 << 20
    assert corrupted(ANSWER, "oversize", "7", 3).data == ANSWER


def test_no_corruption_adds_a_line_end_to_the_message() -> None:
    assert all(b"\n" not in corrupted(ANSWER, way, "7", 100).data for way in CORRUPTIONS)
