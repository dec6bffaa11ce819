"""The corpora: no secret is in any byte of a recording, and lookalikes are unchanged."""

from __future__ import annotations

import json
import sys
from binascii import b2a_base64
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.mock.session import MockSession
from mcpspy.core.mock.steering import MockOptions
from mcpspy.core.recording.decode import Frame
from mcpspy.core.recording.encode import FrameEncoder
from mcpspy.core.redact.config import RedactionRules
from mcpspy.core.redact.placeholder import fits, placeholder
from mcpspy.core.redact.prefilter import LONG
from mcpspy.core.redact.redactor import Redactor
from mcpspy.io.mock.loader import RecordingsLoader
from mcpspy.io.recording.reader import Recording
from mcpspy.io.recording.redaction import clean
from tests.core.redact import corpus

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.core.redact.corpus import Line

PLACES = corpus.lines("places.jsonl")
LOOKALIKES = corpus.lines("lookalikes.jsonl")
TOKENS = corpus.tokens()
CUTS = (1, 7, 1 << 30)


def redactor(rules: RedactionRules | None = None) -> Redactor:
    return Redactor(corpus.KEY, rules)


@pytest.mark.parametrize("line", PLACES, ids=lambda line: line.what)
def test_a_secret_in_this_position_is_in_no_byte_of_the_recording(line: Line) -> None:
    files = {corpus.recorded(line.kind, line.data, redactor(), cut) for cut in CUTS}
    assert len(files) == 1
    (file,) = files
    seen = corpus.texts(file)
    for secret in line.secrets:
        assert secret not in seen
        assert secret not in seen.replace("\\", "")
    assert seen.count("[redacted:") >= len(line.secrets) > 0
    assert '"note":"lost"' not in seen


@pytest.mark.parametrize("line", LOOKALIKES, ids=lambda line: line.what)
def test_a_lookalike_is_unchanged(line: Line) -> None:
    assert corpus.recorded(line.kind, line.data, redactor()) == corpus.recorded(line.kind, line.data, None)


WHOLE = [line for line in PLACES if not line.kind.endswith("latin-1") and "\\" not in line.text]
"""Places whose secrets are not redacted."""


@pytest.mark.parametrize("line", WHOLE, ids=lambda line: line.what)
def test_every_byte_that_is_not_secret_is_unchanged(line: Line) -> None:
    before = corpus.recorded(line.kind, line.data, None)
    after = corpus.recorded(line.kind, line.data, redactor())
    for secret in line.secrets:
        tag = placeholder(secret.encode(), corpus.KEY)
        after = after.replace(b'"%b"' % tag if secret.isdigit() else tag, secret.encode())
    assert after == before


AROUND = {
    "an argument": (
        "message",
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"a":[%s]}}}',
        1,
    ),
    "nested structured content": (
        "message",
        '{"result":{"structuredContent":{"a":{"b":[{"c":[[%s]]}]}}}}',
        1,
    ),
    "a text": ("message", '{"result":{"content":[{"type":"text","text":%s}]}}', 1),
    "a line of a text": ("message", '{"result":{"content":[{"type":"text","text":"key:\\n%s\\n"}]}}', 0),
    "a text in backquotes": ("message", '{"result":{"content":[{"type":"text","text":"`%s`, (%s)"}]}}', 0),
    "JSON in a string": ("message", '{"result":{"content":[{"type":"text","text":%s}]}}', 3),
    "the data of an error": ("message", '{"error":{"code":1,"message":"x","data":{"a":%s}}}', 1),
    "a member of _meta": ("message", '{"params":{"_meta":{"example.com/a":%s}}}', 1),
    "a batch": ("message", '[{"id":1},{"id":2,"params":{"a":%s}}]', 1),
    "a key": ("message", '{"result":{"structuredContent":{%s:1}}}', 1),
    "no JSON": ("message", "{oops %s}", 1),
    "no message": ("message", "DEBUG key is %s now", 0),
    "no text": ("latin-1", "\xff %s", 0),
    "stderr": ("stderr", "starting with %s", 0),
    "argv": ("argv", "server --with %s --verbose", 0),
    "a URL": ("path", "/mcp?x=%s", 0),
    "an event": ("event", '{"result":{"a":%s}}', 1),
    "a body": ("body", '{"params":{"a":%s}}', 1),
}
"""Positions of every token: the text around it, and the number of JSON quotings (3: in an array in an object)."""


def keep(found: list[str], rule: str, _: str) -> None:
    found.append(rule)


def quoted(token: str, depth: int, *, escaped: bool) -> str:
    """Return a token as JSON, with every letter escaped if requested."""
    if depth == 0:
        return token
    text = "".join(f"\\u{ord(c):04x}" for c in token) if escaped else token
    original = f'"{text}"'
    return original if depth == 1 else json.dumps('{"a":["-", ' + original + "]}")


@pytest.mark.parametrize(("rule", "token"), TOKENS, ids=[f"{n}-{rule}" for n, (rule, _) in enumerate(TOKENS)])
def test_a_token_is_in_no_byte_of_the_recording_in_any_position(rule: str, token: str) -> None:
    for place, (kind, text, depth) in AROUND.items():
        for escaped in (False, True)[: 1 + bool(depth)]:
            found: list[str] = []
            redacting = Redactor(corpus.KEY, found=partial(keep, found))
            original = text.replace("%s", quoted(token, depth, escaped=escaped))
            seen = corpus.texts(corpus.recorded(kind, original.encode("latin-1"), redacting, cut=11))
            assert token not in seen, place
            assert token[8:] not in seen, place
            assert found == [rule] * text.count("%s"), place


def test_the_corpora_have_the_sizes_that_the_docs_state() -> None:
    page = (corpus.HERE.parents[2] / "docs" / "redact.md").read_text(encoding="utf-8")
    assert (
        f"{len(TOKENS)} tokens in {len(AROUND)} places each, {len(PLACES)} secrets recognised by context, "
        f"{len(LOOKALIKES)} look-alikes"
    ) in " ".join(page.split())


def test_lines_without_a_hit_are_returned_as_the_same_object() -> None:
    lines = corpus.recorded("message", b'{"id":1}', None)
    assert redactor().lines(lines) is lines


def test_only_the_lines_with_a_secret_are_changed() -> None:
    ping = b'{"t":0.100000,"from":"client","msg":{"id":1}}\n'
    bad = b'{"t":0.200000,"from":"client","msg":{"password":"swordfish"}}\n'
    tag = placeholder(b"swordfish", corpus.KEY)
    kept = bad.replace(b"swordfish", tag)
    assert redactor().lines(ping + bad + ping + bad + bad + ping) == ping + kept + ping + kept + kept + ping


def test_a_secret_keeps_its_placeholder_throughout_a_recording_and_has_another_in_the_next() -> None:
    one, other = Redactor(b"1" * 32), Redactor(b"2" * 32)
    line = b'{"t":0.1,"from":"client","msg":{"password":"swordfish","secret":"trout"}}\n'
    env = b'{"t":0.1,"note":"stderr","text":"PASSWORD=swordfish"}\n'
    first = one.lines(line)
    assert first == one.lines(line) != other.lines(line)
    message = json.loads(first)["msg"]
    assert message["password"] != message["secret"]
    assert json.loads(one.lines(env))["text"] == "PASSWORD=" + message["password"]


@pytest.mark.parametrize(
    "line",
    [
        b'{"t":0.250000,"from":"client","msg":{"password":"swordfish"}}\n',
        b'{"t":0.250000,"note":"stderr","text":"PASSWORD=swordfish"}\n',
        b'{"t":0.250000,"from":"client","why":"not UTF-8","b64":"UEFTU1dPUkQ9c3dvcmRmaXNo"}\n',
    ],
    ids=["message", "note", "bytes"],
)
def test_an_entry_that_cannot_be_redacted_is_lost_and_never_written(
    line: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    ping = b'{"t":0.100000,"from":"client","msg":{"id":1}}\n'
    redacting = redactor()

    def fails(*_: object) -> bytes:
        raise ZeroDivisionError("swordfish")

    monkeypatch.setattr("mcpspy.core.redact.placeholder.placeholder", fails)
    lost = b'{"t":0.250000,"note":"lost","entries":1,"why":"could not be redacted: ZeroDivisionError"}\n'
    assert redacting.lines(ping + line + ping) == ping + lost + ping
    assert b"".join(redacting.buffers([line[:20], line[20:40], line[40:]])) == lost
    assert redacting.lost == 2


@pytest.mark.parametrize("cut", [50, 4096])
def test_a_secret_is_found_across_the_buffers_of_a_large_line(cut: int) -> None:
    padding = b"x" * 70_000
    line = b'{"t":0.100000,"from":"server","msg":{"a":"%b","password":"swordfish"}}\n' % padding
    buffers = [line[at : at + cut] for at in range(0, len(line), cut)]
    assert b"".join(redactor().buffers(buffers)) == redactor().lines(line) != line


def test_a_large_line_without_a_hit_is_not_joined() -> None:
    buffers: list[bytes | bytearray] = [
        b'{"t":0.1,"from":"server","msg":{"a":"',
        b"x" * 70_000,
        b'"}}\n',
        b"{}\n",
    ]
    kept = list(redactor().buffers(iter(buffers)))
    assert all(one is other for one, other in zip(kept[:3], buffers[:3], strict=True))
    assert kept[3:] == [b"{}\n"]


def test_a_large_line_of_bytes_is_searched_piece_by_piece() -> None:
    def cut(data: bytes) -> list[bytes | bytearray]:
        encoder = FrameEncoder("server")
        lines = [encoder.feed(0.5, data[at : at + 65_536]) for at in range(0, len(data), 65_536)]
        return [buffer for each in lines if not isinstance(each, bytes) for buffer in each]

    clean = cut(b"\xff" * 200_000 + b"\n")
    kept = list(redactor().buffers(iter(clean)))
    assert all(one is other for one, other in zip(kept, clean, strict=True))
    for at in (65_530, 100_000, 131_068):
        data = b"\xff" * at + b"\xff PASSWORD=sw0rdfish \xff" + b"\xff" * (200_000 - at) + b"\n"
        file = b"".join(redactor().buffers(cut(data)))
        assert "sw0rdfish" not in corpus.texts(file)
        assert corpus.texts(file).count("[redacted:") == 1


def test_a_large_line_is_read_as_a_whole_for_a_pattern_and_for_bytes_that_are_cut_anywhere() -> None:
    padding = b"x" * 70_000
    line = b'{"t":0.1,"from":"server","msg":{"a":"%b","b":"swordfish"}}\n' % padding
    custom = RedactionRules(patterns=["sword[a-z]+"])
    kept = b"".join(redactor(custom).buffers([line[:40_000], line[40_000:]]))
    assert b"swordfish" not in kept
    assert b"".join(redactor().buffers([line[:40_000], line[40_000:]])) == line

    data = b2a_base64(padding + b" PASSWORD=sw0rdfish ", newline=False)
    head, end = b'{"t":0.1,"from":"server","why":"not UTF-8","b64":"', b'"}\n'
    kept = b"".join(redactor().buffers([head, data[:40_001], data[40_001:], end]))
    assert "sw0rdfish" not in corpus.texts(kept)
    assert corpus.texts(kept).count("[redacted:") == 1


def test_a_line_that_only_looks_like_one_of_mcpspy_is_redacted_as_text() -> None:
    line = b'{"t":0.1,"from":"server","raw":"{\\"password\\":\\"swordfish\\"}", oops}\n'
    kept = redactor().lines(line)
    assert b"swordfish" not in kept
    assert kept.startswith(b'{"t":0.1,"from":"server","raw":"{')


def test_a_very_large_message_is_redacted_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpspy.core.redact.redactor.LARGE", 40)
    line = b'{"t":0.1,"from":"client","msg":{"a":"%b","password":"sword\\"fish","n":1}}\n' % (b"x" * 40)
    reported: list[tuple[str, str]] = []
    message = json.loads(Redactor(corpus.KEY, found=lambda *found: reported.append(found)).lines(line))["msg"]
    assert reported == [("assigned", "")]
    assert message["password"] == placeholder(b'sword"fish', corpus.KEY).decode()
    assert message["n"] == 1


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(
        ["swordfish-1", "PASSWORD=abc", '{"secret":"x1y2z3"}', "a@b", "[", "ghp_" + "Ab3dEf6hIj9k" * 3]
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["password", "tokens", "name", "value", "id", "properties", "arguments", "uri"])
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON, st.booleans())
def test_json_stays_json_of_the_same_form(value: Any, ascii_only: bool) -> None:
    original = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    kept = redactor().message(original)
    assert _same_form(value, json.loads(kept))
    assert redactor().message(kept) == kept


def _same_form(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and len(one) == len(other)
            and all(map(_same_form, one.values(), other.values()))
        )
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(_same_form, one, other))
    return one == other or (isinstance(other, str) and "[redacted:" in other)


@given(st.binary(max_size=60), st.integers(0, 60), st.integers(1, 9))
def test_no_bytes_around_a_token_let_it_through(noise: bytes, at: int, cut: int) -> None:
    token = b"ghp_" + b"Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb7d"
    data = noise[:at].replace(b"\n", b"") + b" " + token + b" " + noise[at:].replace(b"\n", b"")
    assert token.decode() not in corpus.texts(corpus.recorded("message", data, redactor(), cut))


RECORDINGS = sorted((corpus.HERE.parents[2] / "recordings").glob("*.jsonl"))
ALL = RedactionRules(
    keys=["text", "description", "title", "blob", "version"],
    patterns=["[a-z]{12,}"],
    pointers=["/result/content/0/text"],
    values={"X": "Echo"},
)


def played(recording: Path, clients: list[bytes]) -> list[Any]:
    """Return the responses of a mock of a recording to the requests of a client."""
    recordings = RecordingsLoader([recording], (), merge=False).recordings()
    session = MockSession(recordings, MockOptions(), 0.0)
    received = []
    for number, data in enumerate(clients):
        session.receive(data, float(number))
        received += [json.loads(each.data) for each in session.take(number + 0.5)]
    return received


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_mock_of_a_redacted_recording_responds_like_that_of_the_original(
    path: Path, tmp_path: Path
) -> None:
    clients = [e.data for e in Recording(path) if isinstance(e, Frame) and e.side == "client"]
    was = played(path, clients)
    for number, rules in enumerate((None, ALL)):
        out = tmp_path / f"{number}.jsonl"
        assert clean(str(path), str(out), redactor(rules)) == 0
        responses = played(out, [redactor(rules).message(data) for data in clients])
        assert len(responses) == len(was)
        assert all(fits(one, other) for one, other in zip(responses, was, strict=True))
        assert rules is not None or responses == was
        assert (b"[redacted:" in out.read_bytes()) == (rules is not None)


DENSE: dict[str, Callable[[int], bytes]] = {
    "members": lambda n: b"{%b}" % b",".join([b'"password":"x1"'] * n),
    "assignments": lambda n: b'{"a":"%b"}' % (b"password=x1y2z3 " * n),
    "tokens": lambda n: b'{"a":"%b"}' % (b"ghp_a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8 " * n),
    "levels": lambda n: b'{"password":"x1","a":' * n + b"1" + b"}" * n,
    "names of members": lambda n: b"{%b}" % b",".join(b'"password%d":1' % number for number in range(n)),
    "names without values": lambda n: b'{"a":"%b"}' % (b"password " * n),
    "values with blanks": lambda n: b'{"a":"%b"}' % (b"password='x1 y2' " * n),
    "open quotes": lambda n: b'{"a":"%b"}' % (b"password='x1 " * n),
    "options": lambda n: b'{"args":[%b]}' % b",".join([b'"--password","x1"'] * n),
    "options in a text": lambda n: b'{"a":"%b"}' % (b"'--password', 'x1', " * n),
    "pairs": lambda n: b"[%b]" % b",".join([b'{"label":"password","value":"x1"}'] * n),
    "grants": lambda n: b'{"a":"%b"}' % (b"grant_type=a&code=a1b2c3d4e5f6 " * n),
    "codes": lambda n: b'{"grant_type":"a",%b}' % b",".join([b'"code":"a1b2c3d4e5f6"'] * n),
    "Base64 in one run": lambda n: b'{"a":"%b"}' % (b"cGFzc3dvcmQ6" * n),
    "texts in Base64": lambda n: b'{"a":"%b"}' % (b"cGFzc3dvcmQ9eDF5MnozdzQK " * n),
    "lines of Base64": lambda n: b'{"a":"%b"}' % ((b"cGFzc3dvcmQ6" * 5 + b"\\n") * n),
    "percent-encoding": lambda n: b'{"a":"%b"}' % (b"password%3Dx1y2z3%26%2540" * n),
    "JSON in a text": lambda n: b'{"a":"x %b"}' % (b'{\\"password\\": \\"x1\\"} \\n' * n),
    "brackets in a text": lambda n: b'{"a":"x %b password=x1"}' % (b'{\\"a\\": [' * n),
    "schemas": lambda n: (
        b'{"inputSchema":{"properties":{%b}}}'
        % b",".join(b'"p%d":{"format":"password"}' % number for number in range(n))
    ),
    "names in other languages": lambda n: b'{"a":"%b"}' % ("пароль: x1y2 ".encode() * n),
    "rows of a table": lambda n: b'{"a":"user | password\\n---|---\\n%b"}' % (b"password | x1y2z3\\n" * n),
    "tables": lambda n: b'{"a":"%b"}' % (b"password | password\\n---|---\\n" * n),
    "rows of SQL": lambda n: b'{"a":"insert into a (b, password) values %b"}' % (b"(1, 'x1'), " * n),
    "statements of SQL": lambda n: b'{"a":"%b"}' % (b"insert into a (password) values ('x1', " * n),
    "cells of HTML": lambda n: b'{"a":"%b"}' % (b"<td>password</td><td>x1y2z3</td>" * n),
    "directives": lambda n: b'{"a":"%b"}' % (b"ENV PASSWORD x1y2z3\\n" * n),
    "names of headers": lambda n: b'{"rawHeaders":[%b]}' % b",".join([b'"X-Api-Key","x1"'] * n),
    "escapes in escapes": lambda n: b'{"a":"%b"}' % (rb"\\\\u5bc6\\\\u7801: x1y2z3 " * n),
    "encoded URLs": lambda n: b'{"path":"/?%b"}' % (b"pass%77ord=x1y2z3&" * n),
}
"""Messages in which nearly every word is, or looks like, a secret."""


def operations(line: bytes, rules: RedactionRules | None) -> int:
    """Return the number of functions that are called to redact a line."""
    count = 0

    def called(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    redacting = redactor(rules)
    redacting.lines(b'{"password":"x1","a":"%b"}\n' % (b"x" * LONG))
    sys.setprofile(called)
    try:
        redacting.lines(line)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("what", DENSE)
@pytest.mark.parametrize("is_thorough", [False, True], ids=["built-in rules", "with a pattern"])
def test_twice_as_many_secrets_take_twice_the_operations(what: str, is_thorough: bool) -> None:
    rules = RedactionRules(patterns=["x.*y|x"]) if is_thorough else None
    short, long = (
        operations(
            (b'{"t":0.1,"from":"server","msg":%b}\n' if "URL" not in what else b"%b\n") % DENSE[what](n),
            rules,
        )
        for n in (150, 300)
    )
    assert short > 150
    assert long / short < 2.5
