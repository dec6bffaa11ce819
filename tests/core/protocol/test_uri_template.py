"""Templates of URIs: the examples of RFC 6570, and their way back."""

from __future__ import annotations

import pytest

from mcpspy.core.protocol.uri_template import expanded, template_variables, uri_pattern

VALUES = {"var": "value", "hello": "Hello World!", "path": "/foo/bar", "empty": "", "x": "1024", "y": "768"}
"""The values of RFC 6570, section 3.2."""


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("{var}", "value"),
        ("{hello}", "Hello%20World%21"),
        ("{path}/here", "%2Ffoo%2Fbar/here"),
        ("{+hello}", "Hello%20World!"),
        ("{+path}/here", "/foo/bar/here"),
        ("X{#path}", "X#/foo/bar"),
        ("X{#hello}", "X#Hello%20World!"),
        ("map?{x,y}", "map?1024,768"),
        ("X{.x,y}", "X.1024.768"),
        ("{/var,x}/here", "/value/1024/here"),
        ("{;x,y,empty}", ";x=1024;y=768;empty"),
        ("{?x,y,empty}", "?x=1024&y=768&empty="),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ("{var:3}", "val"),
        ("{?x,none}", "?x=1024"),
        ("{none}", ""),
        ("{/var*}", "/value"),
        ("{café}", ""),
        ("no variable", "no variable"),
        ("an { open one", "an { open one"),
    ],
)
def test_a_template_is_expanded(template: str, uri: str) -> None:
    assert expanded(template, VALUES) == uri


def test_text_of_any_kind_is_encoded() -> None:
    assert expanded("a:{x}", {"x": "é\ud800 %"}) == "a:%C3%A9%3F%20%25"


def test_variables_of_the_path_are_needed_and_those_of_a_query_are_not() -> None:
    variables = template_variables("a://{host}/{+path}{/more*}{?q,limit:3}{#part}{}")
    assert variables == {"host": True, "path": True, "more": True, "q": False, "limit": False, "part": False}


@pytest.mark.parametrize(
    ("template", "uri", "matches"),
    [
        ("a://{x}", "a://b", True),
        ("a://{x}", "a://b/c", False),
        ("a://{+x}", "a://b/c", True),
        ("a://b{?x,y}", "a://b?x=1", True),
        ("a://b{?x,y}", "a://b", True),
        ("a.b/{x}", "aXb/c", False),
    ],
)
def test_templates_match_the_uris_that_they_expand_to(template: str, uri: str, matches: bool) -> None:
    assert (uri_pattern(template).fullmatch(uri) is not None) == matches
