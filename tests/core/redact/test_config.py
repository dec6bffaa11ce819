"""Custom keys, patterns, pointers and values."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from binascii import a2b_base64, b2a_base64
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.redact.config import RedactionRules
from mcpspy.core.redact.placeholder import is_placeholder, placeholder
from mcpspy.core.redact.redactor import Redactor

KEY = b"k" * 32


def redacted(value: Any, rules: RedactionRules) -> Any:
    line = b'{"t":0.1,"from":"client","msg":%b}\n' % json.dumps(value).encode()
    return json.loads(Redactor(KEY, rules).lines(line))["msg"]


@pytest.mark.parametrize(
    "spelled", ["pin_code", "pinCode", "PinCode", "PIN_CODE", "pin-code", "Pin-Code", "pincode"]
)
def test_a_key_is_recognised_in_every_spelling(spelled: str) -> None:
    rules = RedactionRules(keys=["pin_code"])
    original = {
        spelled: "1234",
        "n": {spelled: 1234},
        "t": f'{spelled}=a1b2c3 {{"{spelled}": "x"}}',
        f"my_{spelled}": "1",
    }
    kept = redacted(original, rules)
    assert is_placeholder(kept[spelled])
    assert is_placeholder(kept["n"][spelled])
    assert "a1b2c3" not in kept["t"]
    assert '"x"' not in kept["t"]
    assert kept[f"my_{spelled}"] == "1"


@pytest.mark.parametrize("spelled", ["пароль", "ПАРОЛЬ", "п_ароль"])
def test_a_key_in_any_script_is_recognised(spelled: str) -> None:
    assert is_placeholder(redacted({spelled: "x"}, RedactionRules(keys=["Пароль"]))[spelled])


def test_a_value_of_the_environment_may_be_any_bytes() -> None:
    rules = RedactionRules(values={"X": "\udcff\udcfe\udcfd\udcfc"})
    line = b'{"t":0.1,"from":"client","why":"not UTF-8","b64":"%b"}\n' % b2a_base64(
        b"a\xff\xfe\xfd\xfcb", newline=False
    )
    kept = a2b_base64(json.loads(Redactor(KEY, rules).lines(line))["b64"])
    assert kept == b"a" + placeholder(b"\xff\xfe\xfd\xfc", KEY) + b"b"


def test_a_pattern_hides_its_first_group_or_all_of_it() -> None:
    kept = redacted({"a": "x é id-42 y", "b": ["PIN 7"]}, RedactionRules(patterns=[r"id-(\d+)", r"^PIN \d$"]))
    assert kept == {
        "a": f"x é id-{placeholder(b'42', KEY).decode()} y",
        "b": [placeholder(b"PIN 7", KEY).decode()],
    }


def test_a_pattern_that_never_ends_in_python_ends() -> None:
    kept = redacted({"a": "a" * 200_000 + "!", "b": "aaa"}, RedactionRules(patterns=["^(a+)+$"]))
    assert kept == {"a": "a" * 200_000 + "!", "b": placeholder(b"aaa", KEY).decode()}


def test_a_pattern_that_re2_cannot_run_is_named_unless_it_is_allowed() -> None:
    with pytest.raises(ValueError, match=r"look-behind \(\?<= is not supported .*--unsafe-regex"):
        RedactionRules(patterns=["(?<=id-)[0-9]+"])
    rules = RedactionRules(patterns=["(?<=id-)[0-9]+"], allow_unsafe=lambda _pattern, _construct: True)
    assert redacted({"a": "é id-42"}, rules) == {"a": f"é id-{placeholder(b'42', KEY).decode()}"}


def test_a_pointer_hides_its_value_and_everything_below() -> None:
    rules = RedactionRules(pointers=["/params/a~1b/0", "/params/n", "/params/o"])
    original = {
        "id": 1,
        "params": {"a/b": ["x", "y"], "n": 5, "o": {"any": "z", "deep": [["w", 1, None]]}, "p": {"n": 5}},
    }
    kept = redacted(original, rules)["params"]
    assert is_placeholder(kept["a/b"][0])
    assert kept["a/b"][1] == "y"
    assert is_placeholder(kept["n"])
    assert is_placeholder(kept["o"]["any"])
    assert [is_placeholder(str(item)) for item in kept["o"]["deep"][0]] == [True, True, False]
    assert kept["p"] == {"n": 5}
    assert is_placeholder(redacted([original], rules)[0]["params"]["n"])


def test_a_pointer_without_a_name_means_every_message() -> None:
    assert RedactionRules(pointers=["/0/1"]).is_thorough
    assert is_placeholder(redacted({"0": ["a", "b"]}, RedactionRules(pointers=["/0/1"]))["0"][1])


@pytest.mark.parametrize("value", ['sw"ord\\fish', "süß-fish", "a/b/c/d", "line\nend", "€€€€"])
def test_a_value_is_hidden_wherever_it_shows_up(value: str) -> None:
    rules = RedactionRules(values={"MINE": value})
    kept = redacted({"a": f"x{value}y", "b": json.dumps({"c": value}), "d": {value: 1}}, rules)
    mask = placeholder(value.encode(), KEY).decode()
    assert kept == {"a": f"x{mask}y", "b": json.dumps({"c": mask}), "d": {mask: 1}}


def test_a_value_is_hidden_where_it_is_a_number() -> None:
    kept = redacted({"id": 20261121, "a": [20261121, 7]}, RedactionRules(values={"PIN": "20261121"}))
    assert kept == {"id": 20261121, "a": [placeholder(b"20261121", KEY).decode(), 7]}


def test_an_unset_value_is_not_searched_for() -> None:
    assert redacted({"a": ""}, RedactionRules(values={"X": ""})) == {"a": ""}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"keys": ["--"]}, "no letter"),
        ({"patterns": ["("]}, "regular expression"),
        ({"pointers": ["params"]}, "JSON pointer"),
        ({"values": {"X": "abc"}}, "fewer than 4"),
    ],
)
def test_a_rule_that_could_never_match_is_rejected(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why) as caught:
        RedactionRules(**options)
    assert "abc" not in str(caught.value)


@pytest.mark.parametrize("value", ["sword/fish+7 ä", "swordfish", "a?bcd=c&d%e"])
@pytest.mark.parametrize("around", ["", "a", "ab", "ada:", "xy:ada:"])
def test_a_value_is_found_encoded_for_a_url_and_in_base64(value: str, around: str) -> None:
    rules = RedactionRules(values={"X": value})
    assert not rules.is_thorough
    raw = (around + value + around).encode()
    for text in (
        quote(raw, safe=""),
        quote_plus(raw),
        b64encode(raw).decode(),
        urlsafe_b64encode(raw).decode(),
    ):
        found = list(rules.custom_matches(text.encode()))
        assert found, text
        # All but the letters that also encode the bytes around the value.
        start, end, rule = found[0]
        assert rule == "env:X"
        assert end - start >= len(value) - 1
        assert rules.prefilter.hits(f'{{"a":"{text}"}}'.encode())


@given(st.binary(max_size=5), st.binary(min_size=8, max_size=20), st.binary(max_size=5))
def test_a_value_is_found_wherever_it_is_in_base64(before: bytes, value: bytes, after: bytes) -> None:
    rules = RedactionRules(values={"X": value.decode("utf-8", "surrogateescape")})
    assert list(rules.custom_matches(b64encode(before + value + after)))
