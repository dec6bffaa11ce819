"""The whole linter: which rules run, what it remembers, and that no input of a peer stops it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.analysis.lint import RULES, EntryPosition, Finding, Linter
from mcpspy.analysis.lint.examples import entries_of, header_of
from mcpspy.core.protocol.spec import META, METHODS, REVISIONS
from mcpspy.core.recording.decode import Damaged, Entry, Frame, Header, Note
from mcpspy.core.session.session import Session
from mcpspy.core.session.streaming import StreamingSession
from mcpspy.io.recording.reader import Recording
from tests.analysis.lint.proving import findings

RECORDINGS = Path(__file__).parents[3] / "recordings"


def lint(
    entries: Iterable[Entry], session: Session | None = None, header: Header | None = None
) -> list[Finding]:
    session = session or StreamingSession(header)
    linter = Linter(header)
    found = []
    for number, entry in enumerate(entries, 2):
        for change in session.add(entry):
            found += linter.add(change, EntryPosition(number))
    session.end()
    return found + linter.end()


def codes(example: str) -> list[str]:
    return [finding.code for finding in findings(example)]


def test_a_finding_has_a_position_and_a_message() -> None:
    (finding,) = findings("@ bare\n* stderr {}\n<< DEBUG: hello")

    assert finding == Finding(
        "ENV101",
        RULES[0].severity,
        "not JSON on stdout",
        "DEBUG: hello",
        EntryPosition(3),
        1,
        4.0,
        "server",
        kind="malformed",
    )


def test_a_finding_names_the_method_and_subject_of_its_message() -> None:
    (finding,) = findings(
        '> {"id":2,"method":"tools/call","params":{"name":"a"}}\n< {"id":2,"result":{"content":7}}'
    )

    assert finding.about == "tools/call a"


def test_a_finding_has_the_id_the_kind_and_the_error_of_its_message() -> None:
    (unsolicited,) = findings('< {"id":"x","result":{}}')
    (stray,) = findings('< {"id":77,"error":{"code":-32601,"message":"Method not found"}}')
    (second, *_) = findings(
        '> {"id":2,"method":"tools/call","params":{"name":"a"}}\n< {"id":2,"result":{"content":[]}}\n'
        '< {"id":2,"result":{"content":[{"type":"text","text":"boom"}],"isError":true}}'
    )
    (noise,) = findings("<< DEBUG")

    assert (unsolicited.id, unsolicited.kind, unsolicited.error) == ('"x"', "result", None)
    assert (stray.id, stray.kind, stray.error) == ("77", "error", "Method not found")
    assert (second.id, second.kind, second.error) == ("2", "result", "boom")
    assert (noise.id, noise.kind, noise.error) == (None, "malformed", None)


def test_only_a_whole_message_counts_as_one() -> None:
    (unsolicited,) = findings('< {"id":77,"result":{}}')
    (malformed,) = findings("@ bare\n<< DEBUG")
    (part,) = findings('> {"id":9007199254740993,"method":"ping"}\n< {"id":9007199254740993,"result":{}}')[:1]

    assert unsolicited.is_whole
    assert not malformed.is_whole
    assert not part.is_whole


def test_an_answer_has_the_revision_of_its_request() -> None:
    modern = '> {"id":2,"method":"tools/call","params":{"name":"a"}}\n'
    untyped = '<< {"jsonrpc":"2.0","id":2,"result":{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"b","version":"1"}}}}'

    assert codes("@ 2026-07-28\n" + modern + untyped) == ["MOD201"]
    assert codes(modern + untyped) == []
    hello, peer = '"protocolVersion":"2025-11-25","capabilities":{}', '{"name":"a","version":"1"}'
    begun = f'>> {{"jsonrpc":"2.0","id":9,"method":"initialize","params":{{{hello},"clientInfo":{peer}}}}}\n'
    agreed = f'<< {{"jsonrpc":"2.0","id":9,"result":{{{hello},"serverInfo":{peer}}}}}\n'
    assert codes("@ 2026-07-28\n" + modern + begun + agreed + untyped) == ["MOD201"]


def test_only_rules_of_all_revisions_apply_before_the_revision_is_known() -> None:
    probe = '@ bare\n> {"id":1,"method":"server/discover"}\n< {"id":1,"result":{"x":1e400}}'

    assert codes(probe.replace(',"result":{"x":1e400}', ',"error":{"code":-32002,"message":"no"}')) == []


def test_each_client_behind_a_proxy_has_its_own_revision() -> None:
    def say(stream: str, side: str, **members: Any) -> Frame:
        return Frame(1.0, side, json.dumps({"jsonrpc": "2.0", **members}).encode(), stream)

    def hello(stream: str, revision: str) -> list[Frame]:
        exchanges = {"protocolVersion": revision, "capabilities": {"elicitation": {}}}
        peer = {"name": "a", "version": "1"}
        return [
            say(stream, "client", id=1, method="initialize", params={**exchanges, "clientInfo": peer}),
            say(stream, "server", id=1, result={**exchanges, "serverInfo": peer}),
            say(stream, "client", method="notifications/initialized"),
        ]

    form = {"type": "object", "properties": {}}
    asks = {"id": 5, "method": "elicitation/create", "params": {"message": "a", "requestedSchema": form}}
    answers = {"id": 5, "result": {"action": "decline"}}
    exchanges = [*hello("1", "2025-03-26"), *hello("2", "2025-11-25")]
    for stream in ("1", "2"):
        exchanges += [say(stream, "server", **asks), say(stream, "client", **answers)]

    found = lint(exchanges)

    assert [(finding.code, finding.place.line) for finding in found] == [("LIFE108", 8)]


def test_injected_and_dropped_messages_are_not_blamed_on_a_peer() -> None:
    def entries(by: str | None, to: str | None) -> list[Entry]:
        def say(side: str, data: bytes, by: str | None = None, to: str | None = None) -> Frame:
            return Frame(1.0, side, data, "1", 7, by=by, to=to)

        error = b'{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":7}}'
        return [
            say("client", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', to=to),
            say("server", error, by=by),
            say("client", b'{"jsonrpc":"2.0","id":"m-1","method":"tools/list","params":[]}', by=by),
            say("server", b'{"jsonrpc":"2.0","id":"m-1","result":7}', to=to),
            say("server", b'{"jsonrpc":"2.0","id":1,"result":7}', to=to),
            Note(1.0, "http", {"http": 7, "stream": "1", "method": "POST", "status": 418, "response": {}}),
            Note(1.0, "http-end", {"http": 7, "stream": "1", "hung_up": None}),
        ]

    assert len(lint(entries(None, None))) >= 4
    assert [finding.place.line for finding in lint(entries("mcpspy", "mcpspy"))] == [
        finding.place.line for finding in lint(entries("mcpspy", "mcpspy")[:1])
    ]


def test_once_is_once_per_side() -> None:
    exchanges = '> {"id":%d,"method":"ping"}\n<< {"jsonrpc":"2.0","id":%d,"result":{}}\\x0d\n'

    assert codes(exchanges % (2, 2) + exchanges % (3, 3) + exchanges % (4, 4)) == ["ENV112"]


def test_an_undeclared_notification_is_reported_once_for_each_method() -> None:
    logged = '< {"method":"notifications/message","params":{"level":"info","data":"a"}}\n'

    found = codes(
        '@ server={"tools":{}}\n' + 2 * logged + 2 * '< {"method":"notifications/tools/list_changed"}\n'
    )
    assert found.count("LIFE107") == 2


def test_a_tool_whose_name_is_not_a_text_is_reported() -> None:
    listed = '> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{"tools":[{"name":[],"inputSchema":{"type":"object"}}]}}'

    assert "DATA103" in codes(listed)


def test_a_stored_session_and_a_streaming_session_have_the_same_findings() -> None:
    for path in sorted(RECORDINGS.glob("*.jsonl")):
        recording = Recording(path)
        whole = lint(recording, Session(recording.header), recording.header)

        assert lint(recording, None, recording.header) == whole


def test_an_event_id_is_reported_only_if_it_repeats_with_other_content() -> None:
    def event(data: bytes) -> Frame:
        return Frame(1.0, "server", data, "1", 4, "", "7")

    first = b'{"jsonrpc":"2.0","method":"notifications/a"}'

    assert lint([event(first), event(first)]) == []
    assert [found.code for found in lint([event(first), event(first.replace(b"/a", b"/b"))])] == ["HTTP401"]


def test_the_messages_of_a_batch_share_the_id_of_their_event() -> None:
    batch = b'[{"jsonrpc":"2.0","method":"notifications/a"},{"jsonrpc":"2.0","method":"notifications/b"}]'

    def reused(second: bytes) -> int:
        events = [Frame(1.0, "server", data, "1", 4, "", "7") for data in (batch, second)]
        return [found.code for found in lint(events)].count("HTTP401")

    assert reused(batch) == 0
    assert reused(batch.replace(b"/b", b"/c")) == 1


def test_a_damaged_line_is_a_gap_in_the_recording() -> None:
    (finding,) = lint([Damaged(b'{"t":', "not JSON")])

    assert (finding.code, finding.excerpt) == ("REC101", '{"t":')


def test_a_single_rule_works_without_the_other_rules() -> None:
    example = next(rule for rule in RULES if rule.code == "DATA302").invalid[0]
    only = [rule for rule in RULES if rule.code == "DATA302"]
    session, linter = StreamingSession(header_of(example)), Linter(header_of(example), only)

    found = [f for entry in entries_of(example) for change in session.add(entry) for f in linter.add(change)]

    assert [finding.code for finding in found] == ["DATA302"]


def test_the_memory_of_a_long_session_is_bounded() -> None:
    session, linter = StreamingSession(), Linter()
    kept = linter._known
    for number in range(5_200):
        ask = {
            "jsonrpc": "2.0",
            "id": number,
            "method": "tools/list",
            "params": {"_meta": {"progressToken": number}},
        }
        request = Frame(1.0, "client", json.dumps(ask).encode(), str(number), number)
        answer = json.dumps({"jsonrpc": "2.0", "id": number, "result": {"tools": [{"name": f"t{number}"}]}})
        answered = Frame(1.0, "server", answer.encode(), str(number), number, "\n", f"e{number}")
        for entry in (request, answered):
            for change in session.add(entry):
                linter.add(change)

    assert len(kept.conversations) == len(kept.tools) == len(kept.events) == len(kept.posts) == 4096
    assert not kept.open
    pairing = session._pairing
    known = len(pairing._seen_events), len(pairing._answered), len(pairing._progress)
    assert max(known) < 4096 + 600
    assert not session.changes[1:]


# For any input.

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["2026-07-28", "2025-11-25", "tools", "tool", "input_required", "text", "image", "\ud800", "#"]
    ),
)
KEYS = st.one_of(
    st.text(max_size=4),
    st.sampled_from(
        [
            *"""name tools content type text data blob uri mimeType annotations priority inputSchema outputSchema $ref
        properties structuredContent isError nextCursor cursor completion values icons src sizes task resultType
        inputRequests requestState inputResponses protocolVersion capabilities serverInfo arguments level requestId
        progressToken progress total _meta code message messages contents resource resources roots ttlMs""".split(),
            META + "protocolVersion",
            META + "clientCapabilities",
            META + "logLevel",
        ]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)
METHOD_NAMES = st.one_of(st.sampled_from(sorted(METHODS)), SCALARS)
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={
        "id": st.one_of(st.integers(0, 3), SCALARS),
        "method": METHOD_NAMES,
        "params": VALUES,
        "result": VALUES,
        "error": VALUES,
    },
)
BODIES = st.one_of(
    MESSAGES.map(lambda value: json.dumps(value).encode()),
    st.lists(MESSAGES, max_size=2).map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=20),
    st.sampled_from(
        [b"{", b"}", b"[" * 3000 + b"]" * 3000, b'{"a":' * 2000 + b"1" + b"}" * 2000, b"\xef\xbb\xbf{}"]
    ),
)
SIDES = st.sampled_from(["client", "server"])
FRAMES = st.builds(
    Frame,
    st.floats(0, 9),
    SIDES,
    BODIES,
    st.sampled_from([None, "1"]),
    st.sampled_from([None, 1, 2]),
    st.sampled_from(["\n", "\r\n", ""]),
    st.sampled_from([None, "7"]),
)
NOTES = st.builds(
    Note,
    st.floats(0, 9),
    st.sampled_from(["http", "http-end", "exit", "eof", "sse", "stderr", "lost", "event", "damaged", "x"]),
    st.dictionaries(
        st.sampled_from(
            ["http", "stream", "status", "request", "response", "method", "code", "signal", "from", "event"]
        ),
        st.one_of(
            SCALARS,
            st.sampled_from([1, 2, 200, 202, 404, "1", "client", "GET", "endpoint"]),
            st.dictionaries(
                st.sampled_from(
                    [
                        "mcp-session-id",
                        "mcp-protocol-version",
                        "mcp-name",
                        "origin",
                        "accept",
                        "content-length",
                    ]
                ),
                SCALARS,
            ),
        ),
    ),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.one_of(FRAMES, NOTES), max_size=12))
def test_no_session_raises(entries: list[Entry]) -> None:
    for finding in lint(entries):
        assert len(finding.excerpt) <= 200
        assert finding.place.line >= 2


def pieces(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key, item in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from pieces(item, (*path, key))


def put(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    if isinstance(value, dict):
        return {key: put(item, path[1:], other) if key == path[0] else item for key, item in value.items()}
    return [put(item, path[1:], other) if at == path[0] else item for at, item in enumerate(value)]


EXAMPLES = sorted({example for rule in RULES for example in (*rule.valid, *rule.invalid)})


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_no_session_with_a_replaced_part_raises(data: st.DataObject) -> None:
    entries = list(entries_of(data.draw(st.sampled_from(EXAMPLES))))
    frames = [number for number, entry in enumerate(entries) if isinstance(entry, Frame)]
    for number in data.draw(st.lists(st.sampled_from(frames), min_size=1, max_size=2)) if frames else ():
        frame = entries[number]
        assert isinstance(frame, Frame)
        try:
            message = json.loads(frame.data)
        except ValueError:
            continue
        path = data.draw(st.sampled_from(list(pieces(message))))
        changed = json.dumps(put(message, path, data.draw(VALUES))).encode()
        entries[number] = Frame(
            frame.at, frame.side, changed, frame.stream, frame.http, frame.eol, frame.event_id
        )

    lint(entries)


@pytest.mark.parametrize("code", ["DATA703", "DATA712", "EXT506", "EXT508"])
def test_a_number_that_no_float_can_hold_raises_nothing(code: str) -> None:
    rule = next(rule for rule in RULES if rule.code == code)
    for example in (*rule.valid, *rule.invalid):
        entries = list(entries_of(example))
        for number, entry in enumerate(entries):
            if not isinstance(entry, Frame) or not entry.data.startswith(b"{"):
                continue
            message = json.loads(entry.data)
            for path in pieces(message):
                changed = json.dumps(put(message, path, 10**400)).encode()
                lint([*entries[:number], Frame(entry.at, entry.side, changed), *entries[number + 1 :]])


# Behaviour of the official SDKs that docs/lint-findings.md explains.

EXPLAINED = {
    "everything-sdk-auto": {"DATA706"},
    "everything-sdk-legacy": {"DATA706"},
    "everything-sdk-modern": {"LIFE108", "MOD106"},
    "peer-sdk-auto": {"LIFE107"},
    "peer-sdk-legacy": {"LIFE107"},
}


@pytest.mark.parametrize("path", sorted(RECORDINGS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_every_error_in_the_recordings_is_explained(path: Path) -> None:
    recording = Recording(path)
    grave = {found.code for found in lint(recording, None, recording.header) if found.severity == "error"}
    page = (RECORDINGS.parent / "docs" / "lint-findings.md").read_text(encoding="utf-8")

    assert grave == EXPLAINED.get(path.stem, set())
    if grave:
        _, _, section = page.partition(f"`{path.name}`")
        assert section
        assert all(code in section.partition("\n## ")[0] for code in grave)


def test_each_later_revision_has_at_least_as_many_rules() -> None:
    numbers = [sum(rule.holds_in(revision) for rule in RULES) for revision in REVISIONS]

    assert numbers == sorted(numbers)
    assert len(RULES) > numbers[-1] > sum(rule.holds_in(None) for rule in RULES) > 60


CALL = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
TEXT = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"'


def cut_codes(*entries: Entry) -> list[tuple[str, str]]:
    return [(found.code, found.message) for found in lint(entries)]


@pytest.mark.parametrize("size", [65_536, 65_535, 4096])
def test_a_line_that_a_wrapper_splits_is_one_finding(size: int) -> None:
    first = TEXT + b"x" * (size - len(TEXT))
    found = cut_codes(
        Frame(1.0, "client", CALL),
        Frame(2.0, "server", first),
        Frame(3.0, "server", b"x" * size),
        Frame(4.0, "server", b'x"}]}}'),
        Frame(5.0, "server", b"DEBUG"),
    )

    assert [code for code, _ in found] == ["ENV119", "ENV101"]
    assert f"cut after {size} bytes: a wrapper or library split the line" in found[0][1]


def test_a_line_that_is_not_json_is_not_cut() -> None:
    assert [code for code, _ in cut_codes(Frame(1.0, "server", TEXT + b"x" * 5000))] == ["ENV101"]
    assert [code for code, _ in cut_codes(Frame(1.0, "server", b"{oops}", eol=""))] == ["ENV101", "ENV113"]


def exchange(status: int, body: bytes | None, hung_up: str | None = None, **response: str) -> list[Entry]:
    fields: dict[str, Any] = {"http": 7, "stream": "1"}
    head = {**fields, "method": "POST", "status": status, "request": {}, "response": response}
    answer = [] if body is None else [Frame(3.0, "server", body, "1", 7)]
    end = Note(4.0, "http-end", {**fields, "hung_up": hung_up})
    return [Frame(1.0, "client", CALL, "1", 7), Note(2.0, "http", head), *answer, end]


@pytest.mark.parametrize("side", ["client", "server", "mcpspy"])
def test_an_http_response_that_was_cut_names_who_disconnected(side: str) -> None:
    ((code, message),) = cut_codes(*exchange(200, TEXT, side))

    assert code == "ENV119"
    assert message.endswith(f": {'' if side == 'mcpspy' else 'the '}{side} disconnected")


def test_a_request_whose_client_disconnected_is_not_blamed_on_the_server() -> None:
    assert cut_codes(*exchange(200, None, "client")) == [
        ("LIFE201", "no response to ping from the server: the client disconnected")
    ]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, b'{"error":"invalid_token","error_description":"Authentication required"}'),
        (403, b'{"detail":"no"}'),
        (429, b"Too many requests"),
        (405, b'{"jsonrpc":"2.0","error":{"code":-32000,"message":"Method not allowed."},"id":null}'),
    ],
)
def test_the_body_of_an_http_error_is_not_judged_as_json_rpc(status: int, body: bytes) -> None:
    codes = {code for code, _ in cut_codes(*exchange(status, body))}

    assert codes == ({"HTTP307"} if status == 405 else set())
    if status != 405:
        assert cut_codes(*exchange(200, body, **{"content-type": "application/json"})) != []


def test_without_session_ids_a_cancellation_may_be_for_a_request_of_another_post() -> None:
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    begun = Frame(1.0, "client", CALL, "7", 7)

    assert cut_codes(begun, Frame(2.0, "client", cancel, "8", 8, "")) == []
    assert [code for code, _ in cut_codes(begun)] == ["LIFE201"]


def test_a_server_that_crashes_explains_the_requests_without_a_response() -> None:
    crashed = Note(2.0, "exit", {"code": None, "signal": "SIGSEGV"})
    (finding,) = lint([Frame(1.0, "client", CALL), crashed])

    assert finding.code == "LIFE403"
    assert finding.message.endswith("was killed by SIGSEGV; 1 request without a response")
    assert [
        code
        for code, _ in cut_codes(
            Frame(1.0, "client", CALL), Note(2.0, "exit", {"code": 0, "signal": "SIGTERM"})
        )
    ] == ["LIFE201"]


def test_a_finding_quotes_the_text_of_the_message_and_a_list_is_reported_once() -> None:
    tool = b'{ "name":"a\\u0041",  "description":"d","inputSchema":{"type" : "array"} }'
    entries: list[Entry] = []
    for number in (b"1", b"2"):
        entries += [
            Frame(1.0, "client", b'{"jsonrpc":"2.0","id":%b,"method":"tools/list"}' % number),
            Frame(1.0, "server", b'{"jsonrpc":"2.0","id":%b,"result":{"tools":[%b]}}' % (number, tool)),
        ]

    assert [found.excerpt for found in lint(entries) if found.code == "DATA202"] == ['{"type" : "array"}']
