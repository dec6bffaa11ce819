"""Sequence diagrams, checked by Mermaid's own parser."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.analysis.export.mermaid import LONGEST, ROOM, export
from mcpspy.core.sanitize import sanitize
from tests.analysis.export.sessions import (
    EVERY,
    call,
    client,
    failure,
    note,
    recorded,
    result,
    server,
    session_of,
)

PEERS = Path(__file__).parents[3] / ".peers"

PARSE = """
import mermaid from 'mermaid'
const found = []
for await (const text of JSON.parse(await new Response(process.stdin).text()))
  found.push(await mermaid.parse(text).then(read => read.diagramType, error => `${error}: ${text}`))
console.log(JSON.stringify(found))
"""

HOSTILE = [
    *(
        "%%{init: {}}%%",
        "end",
        "a;b",
        "#35;",
        "#",
        "x\\nparticipant Z",
        "<br/>",
        "<script>alert(1)</script>",
        ":",
    ),
    *(
        "wrap:x",
        "-->>",
        "alt y",
        "style x:y#z;",
        "classDef q:#;",
        "",
        " ",
        "\\u202e",
        "雨 🌧",
        "ﬂ°°35¶ß",
        "$$x$$",
        "`a`",
    ),
]


def diagram(*entries: object) -> list[str]:
    return "".join(export(session_of(*entries))).splitlines()  # type: ignore[arg-type]


def test_mermaid_accepts_every_recording_and_any_text_of_a_peer() -> None:
    sessions = [recorded(path) for path in EVERY]
    for text in HOSTILE:
        name = text.encode()
        sessions.append(
            session_of(
                call(0.1, name=name),
                failure(0.2, text=name),
                server(0.3, b"# no JSON; " + name),
                client(0.4, b'{"jsonrpc":"2.0","method":"%b"}' % name),
                result(0.5, 9),
                note(0.6, "error", text=text),
            )
        )
    sessions.append(session_of(*(call(n, n, name=b"#" * 99) for n in range(9999))))
    sessions.append(session_of())
    diagrams = ["".join(export(session)) for session in sessions]

    parsed = subprocess.run(
        ["node", "--input-type=module", "-e", PARSE],
        cwd=PEERS,
        input=json.dumps(diagrams),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )

    assert json.loads(parsed.stdout) == ["sequence"] * len(diagrams)
    assert max(map(len, diagrams)) < 50_000


def test_every_message_is_an_arrow() -> None:
    lines = diagram(
        call(0.1, 1),
        server(0.2, b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}'),
        result(0.35, 1),
        call(0.4, 2),
        failure(0.5, 2),
        result(0.6, 2),
        server(0.7, b"oops"),
        note(0.8, "stderr", text="not here"),
        note(0.9, "exit", code=1, signal=None),
    )

    assert lines == [
        "sequenceDiagram",
        "  participant C as client",
        "  participant S as weather",
        "  C->>S: tools/call forecast",
        "  S--)C: notifications/message info",
        "  S-->>C: ok 250.0 ms (forecast)",
        "  C->>S: tools/call forecast",
        "  S--xC: error -32602 invalid params#58; no 100.0 ms (forecast)",
        "  S--xC: ok#59; id 2 was answered before",
        "  S--xC: not JSON oops",
        "  Note over C,S: exit 1",
    ]


def test_the_diagram_counts_messages_that_do_not_fit() -> None:
    *_, last = lines = diagram(*(call(n, n, name=b"x" * 99) for n in range(1, 2000)))

    (left,) = re.findall(r"Note over C,S: (\d+) more messages omitted", last)
    assert len(lines) - 4 + int(left) == 1999
    assert sum(map(len, lines)) < ROOM + 1000


@given(st.text(st.characters(codec="utf-8"), max_size=80))
def test_a_label_escapes_every_special_character(name: str) -> None:
    escaped = "".join(f"\\u{ord(c):04x}" if ord(c) < 0x20 or c in '"\\' else c for c in name)
    (line,) = [line for line in diagram(call(0.1, name=escaped.encode())) if "->>" in line]
    label = line.removeprefix("  C->>S: ")
    read = re.sub(r"#(\d+);", lambda match: chr(int(match[1])), label)

    assert not set(re.sub(r"#\d+;", "", label)) & set('#;:<>%"`{}[]$&\n')
    assert len(read) <= LONGEST
    assert sanitize(f"tools/call {name}").strip().startswith(read.removesuffix("…"))


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_the_peers_are_named(path: Path) -> None:
    client_line, server_line = "".join(export(recorded(path))).splitlines()[1:3]

    assert client_line.startswith("  participant C as ")
    assert server_line.startswith("  participant S as ")
    assert client_line != "  participant C as client"
