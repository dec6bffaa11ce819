"""Live values replace placeholders, with the quoting of their place."""

from __future__ import annotations

import json

from mcpspy.core.redact.placeholder import restored
from mcpspy.core.redact.redactor import Redactor

ONE, OTHER = "[redacted:00c0ffee]", "[redacted:deadbeef]"


def test_a_value_is_put_back_by_its_tag_or_by_its_key() -> None:
    data = b'{"a":"%b","b" : {"pin":["x %b y"]}, "n":1.0}' % (ONE.encode(), OTHER.encode())
    assert restored(data, {"00c0ffee": "one", "pin": "two"}) == (
        b'{"a":"one","b" : {"pin":["x two y"]}, "n":1.0}',
        set(),
    )
    assert restored(data, {"00c0ffee": "one"}) == (data.replace(ONE.encode(), b"one"), {"deadbeef"})
    assert restored(b'{"a":1}', {"a": "x"}) == (b'{"a":1}', set())


def test_the_tag_takes_precedence_over_the_key() -> None:
    assert restored(b'{"pin":"%b"}' % ONE.encode(), {"pin": "key", "00c0ffee": "tag"})[0] == b'{"pin":"tag"}'


def test_the_redacted_value_is_restored() -> None:
    secret = 'sw"ord\\fi\nsh é'
    inner = json.dumps({"password": secret, "rest": [1, "x"]})
    original = {
        "arguments": {"password": secret, "text": json.dumps({"again": inner}), "env": f"PASSWORD={'x' * 9}1"}
    }
    kept = Redactor(b"k" * 32).message(json.dumps(original).encode())
    assert secret not in str(json.loads(kept))
    tag = json.loads(kept)["arguments"]["env"].rpartition(":")[2].rstrip("]")
    live, missing = restored(kept, {"password": secret, tag: f"{'x' * 9}1"})
    assert json.loads(live)["arguments"] | {"text": None} == original["arguments"] | {"text": None}
    text = json.loads(json.loads(live)["arguments"]["text"])
    assert json.loads(text["again"]) == json.loads(inner)
    assert missing == set()


def test_invalid_json_is_unchanged() -> None:
    assert restored(b'{oops "a": "%b', {"a": "x"}) == (b'{oops "a": "%b', set())


def test_the_strings_before_the_damage_of_a_message_are_restored() -> None:
    data = b'{"a":"%b","b":"%b' % (ONE.encode(), ONE.encode())
    assert restored(data, {"00c0ffee": "one"}) == (b'{"a":"one","b":"%b' % ONE.encode(), set())
