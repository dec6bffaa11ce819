"""The table of formats."""

from __future__ import annotations

import ast
import csv
import json
import unicodedata
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.analysis import export as formats
from mcpspy.analysis.export import FORMATS, of_suffix
from mcpspy.core.recording.decode import Damaged, Entry, Frame, Header, Note
from tests.analysis.export.otlp_decoded import spans
from tests.analysis.export.sessions import call, result, session_of
from tests.analysis.export.test_har_entry import valid


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_writes_a_session_and_an_empty_one(name: str) -> None:
    export = FORMATS[name].exporter()

    assert "forecast" in "".join(export([session_of(call(0.1), result(0.2))]))
    assert "".join(export([session_of()])) or name == "jsonl"


def test_formats_that_take_several_sessions_write_all_of_them() -> None:
    several = [
        session_of(call(0.1, name=b"one"), result(0.2)),
        session_of(call(0.1, name=b"two"), result(0.2)),
    ]
    for form in FORMATS.values():
        if form.several:
            text = "".join(form.exporter()(several))
            assert "one" in text, form.name
            assert "two" in text, form.name


def test_a_format_is_chosen_by_the_longest_matching_suffix() -> None:
    guessed = {name: of_suffix(name) for name in ("a.har", "A.HAR", "b.otlp.json", "c.jsonl", "c.json", "md")}

    assert [form and form.name for form in guessed.values()] == ["har", "har", "otlp", "jsonl", None, None]
    assert len({form.suffix for form in FORMATS.values()}) == len(FORMATS)


def test_no_exporter_is_imported_before_its_use() -> None:
    tree = ast.parse(Path(formats.__file__).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}

    assert not imported & {form.module for form in FORMATS.values()}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.floats()
    | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
METHODS = st.sampled_from(
    [
        "initialize",
        "tools/call",
        "resources/read",
        "notifications/progress",
        "notifications/cancelled",
        "x y/é",
    ]
)
PARAMS = JSON | st.fixed_dictionaries(
    {},
    optional={
        "name": JSON,
        "uri": JSON,
        "requestId": st.integers(0, 3),
        "progressToken": st.integers(0, 3),
        "_meta": st.fixed_dictionaries(
            {}, optional={"traceparent": JSON, "progressToken": st.integers(0, 3)}
        ),
        "serverInfo": st.fixed_dictionaries({"name": st.text(max_size=5)}),
        "protocolVersion": JSON,
    },
)
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={
        "id": st.integers(0, 3) | JSON,
        "method": METHODS,
        "params": PARAMS,
        "result": PARAMS,
        "error": JSON,
    },
)
DATA = st.one_of(
    MESSAGES.map(lambda message: json.dumps(message).encode()),
    st.lists(MESSAGES, max_size=3).map(lambda batch: json.dumps(batch, indent=1).encode()),
    st.binary(max_size=12),
)
FRAMES = st.builds(
    Frame,
    st.floats(-1, 100),
    st.sampled_from(["client", "server"]),
    DATA,
    st.sampled_from([None, "1", "2"]),
    st.sampled_from([None, 1, 2]),
    st.sampled_from(["\n", "\r\n", ""]),
    st.none() | st.text(max_size=3),
)
NOTES = st.builds(
    Note,
    st.floats(-1, 100),
    st.sampled_from(["http", "http-end", "sse", "stderr", "exit", "error", "new"]),
    st.dictionaries(
        st.sampled_from(
            "http stream method path status asked_at request response error hung_up text b64 id data code".split()
        ),
        JSON | st.integers(1, 2) | st.dictionaries(st.sampled_from(["content-type", "content-length"]), JSON),
    ),
)
HEADERS = st.builds(
    Header,
    mcpspy=st.just(1),
    id=st.just("ab12cd34"),
    started=st.just("2026-11-21T08:13:03.745Z") | st.text(max_size=5),
    transport=st.sampled_from(["stdio", "http"]),
    upstream=st.none() | st.just("http://[no") | st.just("http://h:99999999/") | st.text(max_size=5),
    name=st.text(st.characters(codec="utf-8"), max_size=5),
)


@settings(max_examples=60, deadline=None)
@given(HEADERS, st.lists(FRAMES | NOTES | st.builds(Damaged, st.binary(), st.just("why")), max_size=8))
def test_any_session_is_exported_to_a_valid_file_in_every_format(
    header: Header, entries: list[Entry]
) -> None:
    session = session_of(*entries, header=header)
    text = {name: "".join(form.exporter()([session])) for name, form in FORMATS.items()}

    valid(text["har"])
    spans(text["otlp"])
    lines = text["jsonl"].split("\n")[:-1]
    assert len([json.loads(line) for line in lines]) == len(list(session.exchanges()))
    assert len(list(csv.reader(StringIO(text["csv"], newline=""), strict=True))) == 1 + len(lines)
    for name in ("markdown", "mermaid", "csv"):
        assert not [each for each in text[name] if each not in "\r\n" and unicodedata.category(each) == "Cc"]
    for each in text.values():
        each.encode()
