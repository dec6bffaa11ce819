"""Rules of a user's own file, in the form of docs/token_formats.toml and in that of gitleaks."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from mcpspy.core.redact import gitleaks
from mcpspy.core.redact.config import RedactionRules, compile_user_pattern
from mcpspy.core.redact.redactor import Redactor
from mcpspy.core.redact.text import spans
from mcpspy.core.redact.user_rules import UserRules, read_file
from tests.core.redact import corpus

OWN = """
[[format]]
id = "acme-token"
vendor = "Acme"
literals = ["acme_"]
pattern = 'acme_[0-9a-f]{32}'

[[format]]
id = "ticket"
pattern = 'ticket (\\d{6})'
check = "none"
"""

ACME = "acme_0123456789abcdef0123456789abcdef"

GITLEAKS = """
title = "mine"
[extend]
useDefault = true
[[allowlists]]
regexes = ['''^example''']
[[rules]]
id = "shop"
description = "a shop's key"
regex = '''(?i)shop[_-]?key\\s*[:=]\\s*['"]?([a-z0-9]{16,40})(?:['"\\s]|$)'''
keywords = ["SHOP"]
entropy = 3
[[rules]]
id = "pair"
regex = '''(user)=(?P<value>[[:alnum:]]{8})\\z'''
secretGroup = 2
keywords = ["user="]
[[rules.allowlists]]
regexTarget = "line"
regexes = ["^#"]
stopwords = ["CHANGE"]
[[rules]]
id = "file"
path = '''\\.p12$'''
[[rules]]
id = "in-yaml"
regex = "x"
path = "yaml"
"""


def rules(text: str) -> RedactionRules:
    return RedactionRules(files=read_file(text, "f.toml", compile_user_pattern)[0])


def found(text: str, of: RedactionRules) -> list[tuple[str, str]]:
    data = text.encode()
    return [(rule, data[start:end].decode()) for start, end, rule in spans(data, of)]


def test_formats_of_a_user_are_found_like_the_built_in_ones() -> None:
    of = rules(OWN)
    assert found(f"é {ACME}, ticket 123456", of) == [("rule:acme-token", ACME), ("rule:ticket", "123456")]
    assert found("acme_" + "0" * 32, of) == []


def test_a_file_with_literals_does_not_make_each_message_be_read() -> None:
    only = OWN.partition('\n[[format]]\nid = "ticket"')[0]
    assert not rules(only).is_thorough
    assert rules(OWN).is_thorough
    file = corpus.recorded("message", f'{{"a":"{ACME}"}}'.encode(), Redactor(corpus.KEY, rules(only)))
    assert ACME.encode() not in file


def test_a_configuration_of_gitleaks_is_read_as_it_is() -> None:
    read, ignored = read_file(GITLEAKS, "f.toml", compile_user_pattern)
    assert [rule.id for rule in read] == ["shop", "pair"]
    assert ignored == (
        "f.toml: not honoured: [extend]; 2 of 4 rules: file (no regex), in-yaml (it needs a path)"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('Shop_Key = "a1b2c3d4e5f6g7h8"', [("rule:shop", "a1b2c3d4e5f6g7h8")]),
        ("SHOPKEY: a1b2c3d4e5f6g7h8", [("rule:shop", "a1b2c3d4e5f6g7h8")]),
        ("shop_key=aaaaaaaaaaaaaaaaaaaa", []),  # Its entropy is too low.
        ("shop_key=exampleb2c3d4e5f6g7h8", []),  # The allowlist of the file.
        ("user=Abcd1234", [("rule:pair", "Abcd1234")]),
        ("user=Abcd1234 and more", []),
        ("user=change12", []),  # A stopword.
        ("# user=Abcd1234", []),  # The allowlist's regex is searched in the line.
        ("first\nuser=Abcd1234", [("rule:pair", "Abcd1234")]),
    ],
)
def test_regex_keywords_group_entropy_and_allowlists_are_honoured(
    text: str, expected: list[tuple[str, str]]
) -> None:
    assert [each for each in found(text, rules(GITLEAKS)) if each[0].startswith("rule:")] == expected


def test_an_allowlist_of_the_file_may_name_its_rules_and_one_about_paths_allows_nothing() -> None:
    lists = """
[[allowlists]]
targetRules = ["one"]
regexes = ["allowed"]
[[allowlists]]
paths = ["test"]
[[allowlists]]
condition = "AND"
regexes = ["secret"]
paths = ["test"]
[[rules]]
id = "one"
regex = "one=[a-z]+"
[[rules]]
id = "other"
regex = "other=[a-z]+"
[[rules]]
id = "skipped"
regex = "skipped=[a-z]+"
skipReport = true
"""
    text = "one=allowed one=secret other=allowed other=secret skipped=secret"
    assert [value for _, value in found(text, rules(lists))] == [
        "one=secret",
        "other=allowed",
        "other=secret",
    ]
    assert read_file(lists, "f.toml", compile_user_pattern)[1] == (
        "f.toml: not honoured: 1 of 3 rules: skipped (skipReport)"
    )


def test_only_rules_whose_keyword_is_in_a_text_are_matched() -> None:
    class Forbidden:
        def spans(self, text: bytes) -> Iterator[tuple[int, int]]:
            raise AssertionError(text)

        group_spans = spans

    read, _ = read_file(GITLEAKS, "f.toml", compile_user_pattern)
    assert (
        list(UserRules([rule._replace(pattern=Forbidden()) for rule in read]).matches(b"no such word")) == []
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[[format]", "f.toml: .*line 1"),
        ("title = 'x'", r"f.toml: no rules: write \[\[format\]\]"),
        ("[[format]]\nid='a'", "f.toml: format 'a': missing key pattern"),
        ("[[format]]\nid='a'\npattern='('", r"f.toml: format 'a': pattern: '\(' is not a regular expression"),
        ("[[format]]\nid='a'\npattern='x'\n[other]", "f.toml: unknown key other"),
        ("rules = 1", r"f.toml: rules: write \[\[rules\]\]"),
        ("[[rules]]\nid='a'\nregex='('", "f.toml: rule 'a': '\\(' is not a regular expression"),
        ("[[rules]]\nid='a'\nregex='(x)'\nsecretGroup=2", "f.toml: rule 'a': secretGroup 2: the regex has 1"),
        (
            "[[rules]]\nid='a'\nregex='x'\nkeywords='y'",
            "f.toml: rule 'a': keywords must be a list of strings",
        ),
        ("[[rules]]\nregex=1", "f.toml: rule '1': regex must be a string"),
        ("rules = [1]", r"f.toml: rule '1': write \[\[rules\]\] above its keys"),
        ("format = [1]", r"f.toml: format 1: write \[\[format\]\] above its keys"),
        (
            "[[rules]]\nid='a'\nregex='x'\nsecretGroup=-1",
            "rule 'a': secretGroup must be the number of a group",
        ),
        (
            "[[rules]]\nid='a'\nregex='x'\n[[rules.allowlists]]\nregexes=['y']\nregexTarget='file'",
            "rule 'a': regexTarget 'file': use secret, match or line",
        ),
        ("[[rules]]\nid='a'\nregex='x'\nentropy='y'", "rule 'a': entropy must be a number"),
        (
            "[[rules]]\nid='a'\nregex='x'\n[[rules.allowlists]]\nregex=['y']",
            "rule 'a': unknown key regex in an",
        ),
        ("[[rules]]\nid='a'\nregex='[[:tall:]]'", r"rule 'a': \[:tall:\] is not supported"),
    ],
)
def test_an_error_is_one_line_with_file_rule_and_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as caught:
        read_file(text, "f.toml", compile_user_pattern)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("regex", "matching", "other"),
    [
        ("a(?i)b", "aB", "AB"),
        ("(x(?i)y)z", "xYz", "xYZ"),
        ("k(?i)a|b", "B", "C"),
        ("[[:alpha:]_]+\\z", "a_b", "1"),
        ("[]a]+", "]a", "b"),
        ("[^]a]+", "b", "]"),
        ("\\Qa.b\\E", "a.b", "axb"),
        ("\\x{41}", "A", "B"),
        ("(?i:a)b", "Ab", "AB"),
        ("[(]x[)]", "(x)", "x"),
    ],
)
def test_the_syntax_of_go_is_translated(regex: str, matching: str, other: str) -> None:
    pattern = re.compile(gitleaks.portable(regex, None))
    assert pattern.fullmatch(matching)
    assert not pattern.fullmatch(other)


def test_only_the_group_of_the_secret_captures() -> None:
    assert re.compile(gitleaks.portable("(a)(?P<x>b)(c)", 2)).groups == 1
    assert re.compile(gitleaks.portable("(a)(b)", None)).groups == 2
