# ruff: noqa: RUF001, RUF002, UP031 - The marks of the corpus are quotation marks, and its messages have braces.
"""Secrets and look-alikes as they occur in MCP, generated with a seed: written before the rules were read.

The templates are in `unseen_secrets.txt` and `unseen_lookalikes.txt`. In a template, `«p»` is a secret and `‹w›` a text
that is not one; the letter names how it is made up (`MAKERS`). No value is a constant, so no rule can be fitted to one.
"""

from __future__ import annotations

import json
import random
import re
import string
import uuid
from base64 import b64encode, urlsafe_b64encode
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from tests.core.redact.made_up import LETTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parent

SEED = 20261128
PER_TEMPLATE = 5
PER_LOOKALIKE = 8


class Case(NamedTuple):
    """One message with secrets, or without any."""

    what: str
    """The kind, its template and its place."""
    promised: bool
    """True if docs/redact.md names the kind."""
    kind: str
    """The kind of entry, as `corpus.recorded` takes it."""
    text: str
    secrets: tuple[str, ...]
    """Texts that must not be in the recording: each word of a secret, and how it was written."""


def _letters(letters: str, low: int, high: int) -> Callable[[random.Random], str]:
    return lambda choose: "".join(choose.choices(letters, k=choose.randrange(low, high + 1)))


def _password(choose: random.Random) -> str:
    """Return what a password manager makes: letters of both cases, digits, and a sign in the middle."""
    made = _letters(LETTERS["a"], 9, 15)(choose)
    return f"{choose.choice('QRTZ')}{made[:5]}{choose.choice('!#.-_^~*')}{made[5:]}{choose.randrange(10)}"


def _phrase(choose: random.Random) -> str:
    """Return words that are in no dictionary, so that each can be searched for."""
    syllables = ["".join(choose.choices("bdfgklmnprstvz", k=1)) + choose.choice("aeiou") for _ in range(40)]
    return " ".join("".join(syllables[at * 4 : at * 4 + 4]) for at in range(choose.randrange(2, 6)))


def _wordy(choose: random.Random) -> str:
    return "".join(choose.choices(string.ascii_lowercase, k=choose.randrange(9, 14)))


WORDS = """amber basin cedar delta ember fjord grove harbor island jetty kestrel lagoon meadow nectar orchard pebble
quarry ridge saddle timber upland valley willow yonder zephyr""".split()


def _jwt(choose: random.Random) -> str:
    parts = [urlsafe_b64encode(text.encode()).decode().rstrip("=") for text in ('{"alg":"HS256","typ":"JWT"}', json.dumps({"sub": choose.randrange(10**9)}))]  # fmt: skip
    return ".".join([*parts, _letters(LETTERS["w"], 43, 43)(choose)])


MAKERS: dict[str, Callable[[random.Random], str]] = {
    "p": _password,
    "P": lambda choose: f"{_letters(LETTERS['a'], 4, 7)(choose)}7 {_letters(LETTERS['a'], 4, 7)(choose)}Q",
    "f": _phrase,
    "y": _wordy,
    "t": lambda choose: "k7" + _letters(LETTERS["a"], 20, 38)(choose),
    "l": lambda choose: "q4" + _letters(LETTERS["w"], 30, 60)(choose) + "a",
    "h": lambda choose: "".join(choose.choices("0123456789abcdef", k=choose.choice((32, 40, 64)))),
    "n": lambda choose: str(choose.randrange(10**7, 10**11)),
    "u": lambda choose: str(uuid.UUID(int=choose.getrandbits(128), version=4)),
    "b": lambda choose: b64encode(choose.randbytes(32)).decode(),
    "c": lambda choose: "-".join("".join(choose.choices("BCDFGHJKLMNPQRSTVWXZ", k=4)) for _ in range(2)),
    "o": lambda choose: str(choose.randrange(10**5, 10**6)),
    "w": lambda choose: choose.choice(WORDS),
    "W": lambda choose: choose.choice(WORDS).title(),
    "U": lambda choose: choose.choice(WORDS).upper(),
    "m": lambda choose: f"{choose.randrange(1, 2000)}.{choose.randrange(10, 100)}",
    "d": lambda choose: str(choose.randrange(2, 4096)),
    "i": lambda choose: b64encode(b"\x89PNG\r\n\x1a\n" + choose.randbytes(120)).decode(),
    "s": lambda choose: b64encode(choose.randbytes(64)).decode(),
    "j": _jwt,
    "V": lambda choose: b64encode(f"{choose.choice(WORDS)}:{_password(choose)}".encode()).decode(),
    "e": lambda choose: b64encode(" ".join(choose.choices(WORDS, k=12)).encode()).decode(),
}

_MARK = re.compile(r"«([^»]*)»|‹([^›]*)›")
_CLASS = re.compile(r"<([a-zA-Z])([0-9]+)>|<i>")


def _made(mark: str, choose: random.Random) -> str:
    """Return the text for a mark: that of its maker, or of a pattern such as `ghp_<a36>`."""
    if mark in MAKERS:
        return MAKERS[mark](choose)

    def part(found: re.Match[str]) -> str:
        if found[1] is None:
            return MAKERS["u"](choose)
        return "".join(choose.choices(LETTERS[found[1]], k=int(found[2])))

    return _CLASS.sub(part, mark)


def filled(template: str, choose: random.Random) -> tuple[str, list[str]]:
    """Return a text with the secrets in it."""
    secrets: list[str] = []

    def one(found: re.Match[str]) -> str:
        made = _made(found[1] if found[1] is not None else found[2], choose)
        if found[1] is not None:
            secrets.append(made)
        return made

    return _MARK.sub(one, template), secrets


def _call(arguments: str) -> str:
    return '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"run_tool","arguments":%s}}' % arguments  # fmt: skip


def _text(text: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": "text", "text": text}]}})


IN_JSON: dict[str, Callable[[str], tuple[str, str]]] = {
    "arguments": lambda json_: ("message", _call(json_)),
    "nested arguments": lambda json_: ("message", _call('{"op":"write","items":[{"n":1,"of":%s}]}' % json_)),
    "structured content": lambda json_: ("message", '{"jsonrpc":"2.0","id":7,"result":{"structuredContent":%s,"content":[]}}' % json_),
    "JSON in a text": lambda json_: ("message", _text(json.dumps(json.loads(json_), indent=2))),
    "JSON in a text after words": lambda json_: ("message", _text("Here is the record:\n" + json_ + "\nDone.")),
    "JSON in an argument": lambda json_: ("message", _call(json.dumps({"path": "/srv/a.json", "content": json_}))),
    "a log message": lambda json_: ("message", '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%s}}' % json_),
    "an answer to an elicitation": lambda json_: ("body", '{"jsonrpc":"2.0","id":3,"result":{"action":"accept","content":%s}}' % json_),
    "an error's data": lambda json_: ("body", '{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"failed","data":%s}}' % json_),
    "_meta": lambda json_: ("event", '{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"_meta":{"com.example/x":%s}}}' % json_),
    "stderr": lambda json_: ("stderr", "2026-11-28T10:00:00Z DEBUG sent " + json_),
}  # fmt: skip

IN_TEXT: dict[str, Callable[[str], tuple[str, str]]] = {
    "a text": lambda text: ("message", _text(text)),
    "an argument": lambda text: ("message", _call(json.dumps({"command": text}))),
    "a resource": lambda text: ("event", json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"contents": [{"uri": "file:///srv/a", "text": "# notes\n" + text + "\n"}]}})),
    "a prompt": lambda text: ("body", json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}})),
    "a sampling request": lambda text: ("event", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {"maxTokens": 9, "messages": [{"role": "user", "content": {"type": "text", "text": "Please look:\n" + text}}]}})),
    "an error": lambda text: ("message", json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "request failed: " + text}})),
    "a log message": lambda text: ("message", json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": text}})),
    "stdout": lambda text: ("message", text.replace("\n", " ")),
    "stderr": lambda text: ("stderr", "[info] " + text),
}  # fmt: skip

ONE_LINE = {"stdout", "stderr"}
"""Places that are recorded line by line, so a template with several lines is not tried in them."""

WHOLE = {"A": "argv", "Q": "path", "M": "message"}
"""Templates that are a whole command line, the target of a request, or a message."""


def sections(name: str) -> Iterator[tuple[str, bool, str, list[str]]]:
    """Yield the kinds of a file: the kind, whether it is promised, the places of its templates, and these."""
    for block in (HERE / name).read_text(encoding="utf-8").split("\n## ")[1:]:
        title, *lines = block.strip().split("\n")
        what, promised, places = (part.strip() for part in title.split("|"))
        yield what, promised == "promised", places, [line.replace("␤", "\n") for line in lines if line]


def _forms(secret: str) -> list[str]:
    """Return each word of a secret that is long enough not to be found by chance."""
    return [word for word in secret.split() if len(word) >= 4] if " " in secret else [secret]


def _placed(places: str, text: str, choose: random.Random) -> tuple[str, str, str]:
    """Return a place, how it is recorded, and the text in it."""
    if places in WHOLE:
        return places, WHOLE[places], text
    into = IN_JSON if places == "J" else IN_TEXT
    name = choose.choice([each for each in into if "\n" not in text or each not in ONE_LINE])
    return name, *into[name](text)


def _encoded(places: str, text: str, choose: random.Random) -> tuple[str, list[str]]:
    """Return a text that contains another one in Base64 or percent-encoding, and the encoded text."""
    if places == "B":
        coded = choose.choice((b64encode, urlsafe_b64encode))(text.encode()).decode()
        return json.dumps({"encoding": "base64", "content": coded}), [coded]
    if places == "2":
        return json.dumps({"payload": json.dumps({"body": json.dumps({"inner": json.loads(text)})})}), []
    coded = quote(text, safe="")
    return json.dumps({"next": "https://app.example/login?redirect=" + coded}), []


def cases(name: str = "unseen_secrets.txt", count: int = PER_TEMPLATE, seed: int = SEED) -> Iterator[Case]:
    """Yield the corpus of a file."""
    for what, promised, places, templates in sections(name):
        for template in templates:
            choose = random.Random(f"{seed} {what} {template}")
            for _ in range(count):
                text, secrets = filled(template, choose)
                forms = [form for secret in secrets for form in _forms(secret)]
                if places in "B2%":
                    text, more = _encoded(places, text, choose)
                    place, kind, text = _placed("J", text, choose)
                    forms += [*more, *(quote(form, safe="") for form in forms)]
                else:
                    place, kind, text = _placed(places, text, choose)
                yield Case(f"{what}: {template} ({place})", promised, kind, text, tuple(forms))


def calls(count: int = 40) -> list[Case]:
    """Return requests of tools with secrets that docs/redact.md promises to find: for the exits of other packages."""
    corpora = [*cases(), *cases("unseen_third.txt")]
    found = [case for case in corpora if case.promised and case.text.startswith(_call("")[:60])]
    return found[:: max(1, len(found) // count)][:count]
