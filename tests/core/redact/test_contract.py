"""The contract of docs/redact.md: every documented name, in every spelling, in every place."""

from __future__ import annotations

import itertools
import json
import random
from typing import TYPE_CHECKING

import pytest

from mcpspy.core.recording import encode
from mcpspy.core.redact import names
from mcpspy.core.redact.config import RedactionRules
from mcpspy.core.redact.redactor import Redactor
from tests.core.redact import corpus

if TYPE_CHECKING:
    from collections.abc import Iterator

RULES = RedactionRules()
REDACTOR = Redactor(corpus.KEY, RULES)
NAMES = [*names.STRONG, *names.WEAK]
LETTERS = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"


def spelled(name: str) -> dict[str, str]:
    """Return a name of the table in each spelling."""
    words = name.split("-")
    titles = [word.title() for word in words]
    return {
        "flat": "".join(words),
        "camel": words[0] + "".join(titles[1:]),
        "Pascal": "".join(titles),
        "snake": "_".join(words),
        "kebab": "-".join(words),
        "UPPER_SNAKE": "_".join(words).upper(),
        "UPPER-KEBAB": "-".join(words).upper(),
        "Title-Kebab": "-".join(titles),
        "Title words": " ".join(titles),
        "UPPER": "".join(words).upper(),
        "header": "X-" + "-".join(titles),
        "prefixed camel": "github" + "".join(titles),
        "prefixed upper": "MY_APP_" + "_".join(words).upper(),
        "numbered": "_".join(words) + "2",
    }


IN_JSON = {
    "a JSON key": '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"%n":"%v"}}}',
    "a JSON key with blanks": '{ "params" : { "%n"  :  "%v" } }',
    "a pair of name and value": '{"params":{"env":[{"name":"%n","value":"%v"}]}}',
    "a pair of value and name": '{"params":{"env":[{"value":"%v","name":"%n"}]}}',
    "JSON that breaks off": '{"params":{"%n":"%v"',
    "a pair of label and value": '{"result":{"structuredContent":{"fields":[{"id":"x1","label":"%n","value":"%v"}]}}}',
    "an item of an array": '{"params":{"arguments":{"args":["-y","%o","%v","--verbose"]}}}',
    "an object that looks like a schema": '{"result":{"structuredContent":{"properties":{"%n":"%v"}}}}',
}
"""Whole messages."""

IN_TEXT = {
    "JSON in a text": 'the file: {"user": "ada", "%n": "%v"} was read',
    "a Python value": "{'user': 'ada', '%n': '%v'}",
    "a header line": "GET / HTTP/1.1\nHost: x\n%n: %v\nAccept: */*",
    "an option": "server %o %v --verbose",
    "an option with =": "server %o=%v --verbose",
    "an option after an escaped line break": "server \\\n  %o %v \\\n  --verbose",
    "an option before an escaped line break": "server %o \\\n  %v",
    "a header of curl": 'curl -H "%n: %v" https://example.com',
    "a header of curl in single quotes": "curl -H '%n: %v' https://example.com",
    "a setting": "DEBUG=1\n%n=%v\nPORT=80",
    "a setting in quotes": 'export %n="%v"',
    "YAML": "db:\n  %n: %v\n  port: 1",
    "YAML in quotes": "db:\n  %n: '%v'\n",
    "a YAML block": "db:\n  %n: |\n    %v\n",
    "TOML": '%n = "%v"',
    "aligned": "%n       = %v",
    "Go": 'x.%n := "%v"',
    "Ruby": ":%n => '%v'",
    "make": "%n ?= %v",
    "a query": "GET https://example.com/a?x=1&%n=%v&y=2",
    "the first parameter": "https://example.com/a?%n=%v",
    "a Markdown link": "see [the docs](https://example.com/a?%n=%v).",
    "a fragment": "https://example.com/#%n=%v",
    "a bold label": "**%n**: %v",
    "a bold label with its colon": "- **%n:** `%v`",
    "a Markdown table of names": "| Name | Value |\n|---|---|\n| `%n` | `%v` |\n| user | ada |",
    "a column of a Markdown table": "| User | %n |\n|---|:--|\n| ada | %v |\n| bob | |",
    "colours": "\x1b[32m%n\x1b[0m: \x1b[1m%v\x1b[0m",
    "colours and a sign": "\x1b[32m%n\x1b[0m=\x1b[33m%v\x1b[0m",
    "an indexer": 'config["%n"] = "%v"',
    "a bytes literal": '%n = b"%v"',
    "a format string": "%n = f'%v'",
    "a C# string": 'var %n = @"%v";',
    "a typed variable": 'const %n: string = "%v";',
    "a typed attribute": '%n: str | None = "%v"',
    "PHP": "define('%n', '%v');",
    "a setter": 'request.setHeader("%n", "%v")',
    "an XML attribute": '<db user="sa" %n="%v"/>',
    "a pair of XML": '<add key="%n" value="%v" />',
    "an XML property": '<property name="%n">%v</property>',
    "a pair of Kubernetes": "env:\n  - name: %n\n    value: %v\n",
    "a pair of Kubernetes in quotes": 'env:\n  - name: "%n"\n    value: "%v"\n',
    "a connection string": "Server=db;User Id=sa;%n=%v;Timeout=3",
    "an argument": 'connect(host="x", %n="%v")',
    "an item of an array in code": 'run(["server", "%o", "%v"])',
}
"""Texts of a tool's result and of stderr. %o is the name as an option."""

SEVERAL_LINES = {
    "a YAML block",
    "a column of a Markdown table",
    "an option before an escaped line break",
    "a pair of Kubernetes",
    "a pair of Kubernetes in quotes",
}

ELEMENT = {
    "an XML element": "<config><%n>%v</%n></config>",
    "an XML element with attributes": '<a:%n type="x">%v</a:%n>',
}
"""Only for names without a blank."""

IN_ARGV = {
    "the next word": ["server", "%o", "%v", "--verbose"],
    "an option with =": ["server", "%o=%v"],
    "a setting": ["docker", "run", "-e", "%n=%v", "image"],
    "a header": ["npx", "mcp-remote", "-H", "%n: %v"],
    "a header without a blank": ["npx", "mcp-remote", "--header", "%n:%v"],
    "a query": ["server", "https://example.com/mcp?%n=%v"],
}


WITH_BLANKS = {
    "an assignment": '%n="%v"',
    "an assignment with blanks": "user = 'ada'\n%n = '%v'\n",
    "an option": 'server %o "%v" --verbose',
    "an option with =": "server %o='%v'",
    "YAML": 'db:\n  %n: "%v"\n',
    "JSON in a text": 'sent {"%n": "%v"} to it',
    "an argument": 'connect(host="x", %n="%v")',
    "an attribute": '<db user="sa" %n="%v"/>',
}
"""Places of values in quotes, which may contain blanks."""

WITH_DIGITS = ("%n: %v", "the settings: %n: %v, user: ada", "%n : %v\n", "- **%n:** %v")
"""Places of values of digits."""


def values(seed: str) -> Iterator[str]:
    """Yield made-up secrets, so that no rule is fitted to one."""
    made = random.Random(seed)
    while True:
        value = "".join(made.choices(LETTERS, k=made.randrange(14, 30)))
        if any(c.isdigit() for c in value[:6]) and any(c.isalpha() for c in value[:6]):
            yield value


def filled(text: str, name: str, value: str) -> str:
    option = "--" + name.replace(" ", "-").lower()
    return text.replace("%n", name).replace("%o", option).replace("%v", value)


def leaks(name: str) -> Iterator[str]:
    """Yield the places in which a secret of this name gets into the recording."""
    made = values(name)
    for how, spelling in spelled(name).items():
        texts = IN_TEXT if " " in spelling else {**IN_TEXT, **ELEMENT}
        for place, text in IN_JSON.items():
            value = next(made)
            if value in recorded("message", filled(text, spelling, value)):
                yield f"{spelling} ({how}) as {place}"
        for place, text in texts.items():
            # A value of cookies is a list of pairs.
            value = next(made)
            written = ("sid=" if name == "cookie" else "") + value
            data = filled(text, spelling, written)
            result = json.dumps({"result": {"content": [{"type": "text", "text": data}]}})
            quoted = json.dumps({"result": {"content": [{"type": "text", "text": json.dumps([data])}]}})
            kinds = [("message", result), ("message", quoted)]
            # stderr is recorded line by line: a name and its value must be in one line.
            kinds += [("stderr", data)] if place not in SEVERAL_LINES else []
            for kind, original in kinds:
                if value in recorded(kind, original):
                    yield f"{spelling} ({how}) as {place}, in {original}"
        for place, words in IN_ARGV.items():
            value = next(made)
            command = [filled(word, spelling, value) for word in words]
            if value.encode() in encode.header(REDACTOR.header({"command": command})):
                yield f"{spelling} ({how}) as {place} of {command}"


def recorded(kind: str, text: str) -> str:
    return corpus.recorded(kind, text.encode(), REDACTOR).decode()


@pytest.mark.parametrize("name", NAMES)
def test_no_documented_name_lets_its_value_into_the_recording(name: str) -> None:
    found = list(leaks(name))
    assert not found, f"{len(found)} leaks, the first of them: {list(itertools.islice(found, 5))}"


@pytest.mark.parametrize("name", [name for name in names.STRONG if name != "cookie"])
def test_a_value_in_quotes_may_have_blanks_and_one_after_a_colon_only_digits(name: str) -> None:
    made, choose = values(name), random.Random(name)
    found = []
    for how, spelling in spelled(name).items():
        for place, text in WITH_BLANKS.items():
            words = [next(made), next(made), next(made)]
            data = filled(text, spelling, " ".join(words))
            written = recorded(
                "message", json.dumps({"result": {"content": [{"type": "text", "text": data}]}})
            )
            if any(word in written for word in words):
                found.append(f"{spelling} ({how}) as {place}: {written}")
        for text in WITH_DIGITS:
            digits = str(choose.randrange(10**7, 10**10))
            if digits in recorded("stderr", filled(text, spelling, digits)):
                found.append(f"{spelling} ({how}) as {text}")
    assert not found, f"{len(found)} leaks, the first of them: {found[:5]}"


def test_the_documentation_lists_every_name() -> None:
    page = (corpus.HERE.parents[2] / "docs" / "redact.md").read_text(encoding="utf-8")
    foreign = [name for name in names.FOREIGN if name == name.lower()]
    for name in (*NAMES, *names.SHORT, *names.QUERY, *foreign):
        assert f"`{name.replace('-', '_')}`" in page, name
