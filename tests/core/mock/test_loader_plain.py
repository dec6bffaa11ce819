"""Plain lines, which take a short cut, give the same interactions as entries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core.jsontools import Pointer
from mcpspy.core.mock.interaction import Interaction
from mcpspy.core.mock.loader import InteractionLoader
from mcpspy.core.mock.store import InteractionStore
from mcpspy.core.recording.decode import read_entry
from tests.core.mock.talking import VERSION, Json, interactions_of, modern

RECORDINGS = sorted((Path(__file__).parents[3] / "recordings").glob("*.jsonl"))


def frame(
    at: float, side: str, *, http: int | None = None, stream: str | None = None, **members: Any
) -> bytes:
    data = json.dumps({"jsonrpc": "2.0", **members}, separators=(",", ":")).encode()
    carried = b"" if http is None else b'"stream":"%b","http":%d,' % ((stream or str(http)).encode(), http)
    return b'{"t":%.6f,"from":"%b",%b"msg":%b}' % (at, side.encode(), carried, data)


def told(interaction: Interaction) -> Any:
    """Return all data of an interaction."""
    steps = [
        (step.kind, step.data, step.after, step.gates, step.listens, step.cancels)
        for step in interaction.steps
    ]
    cause = interaction.cause.data if interaction.cause is not None else None
    return (
        cause,
        interaction.number,
        interaction.cancelled,
        interaction.is_subscription,
        interaction.is_modern,
        steps,
    )


def kept(loader: InteractionLoader) -> Any:
    """Return all data of a store."""
    store = loader.store
    rows = range(len(store))
    return (
        [told(interaction) for interaction in interactions_of(store)],
        {digest: list(store.index.rows(digest)) for digest in store.index.queues},
        {key: list(queue) for key, queue in store.index.methods.items()},
        store.index.subjects,
        store.index.firsts,
        {method: list(queue) for method, queue in store.index.notifications.items()},
        {method: [str(each) for each in found] for method, found in store.index.handshakes.items()},
        store.index.versions,
        store.server,
        (loader.has_server, loader.exchanges),
        [row for row in rows if not store.is_settled(row)],
    )


def both(lines: list[bytes], ignored: tuple[Pointer, ...] = (), cut: int = 0) -> tuple[Any, Any]:
    """Load lines on the slow path, and on the fast path in two steps."""
    text = b"".join(line + b"\n" for line in lines)

    def read(place: int, length: int) -> bytes:
        return text[place : place + length]

    long, short = (
        InteractionLoader(InteractionStore("r", ignored, read)),
        InteractionLoader(InteractionStore("r", ignored, read)),
    )
    for line in lines:
        long.add(read_entry(line))
    offset = short.add_lines(lines[:cut], 0)
    assert short.add_lines(lines[cut:], offset) == len(text)
    return kept(long), kept(short)


IDS = st.sampled_from([1, 2, "1", "a", 1.5, None, "\\u0031", "é"])
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["a", "b", 1, None]),
        "arguments": st.sampled_from([{}, {"n": 1}, {"n": 1.0}, {"n": 10**30}, {"n": None}, {"t": "é"}, 3]),
        "_meta": st.sampled_from(
            [modern(), modern(progressToken=1), {"progressToken": "t"}, {VERSION: "2025-11-25"}, {}, 5]
        ),
        "requestState": st.just("s"),
        "progressToken": st.sampled_from([1, "t"]),
        "requestId": st.sampled_from([1, "a"]),
    },
)
RESULTS = st.sampled_from(
    [{}, {"said": 1}, {"task": {}}, {"resultType": "input_required", "requestState": "s"}, 3]
) | st.just({"_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}}})
SAID = (
    st.fixed_dictionaries({"id": IDS, "method": st.sampled_from(["tools/call", "ping"]), "params": PARAMS})
    | st.fixed_dictionaries({"id": IDS, "method": st.just("initialize")})
    | st.fixed_dictionaries({"id": IDS, "method": st.just("subscriptions/listen")})
    | st.fixed_dictionaries({"id": IDS, "result": RESULTS})
    | st.fixed_dictionaries({"id": IDS, "error": st.just({"code": -32000})})
    | st.fixed_dictionaries(
        {
            "method": st.sampled_from(
                ["notifications/progress", "notifications/cancelled", "notifications/message"]
            ),
            "params": PARAMS,
        }
    )
)
NOTES = [
    b'{"t":1.0,"note":"eof","from":"client"}',
    b'{"t":1.0,"note":"http","http":1,"stream":"s","status":404}',
    b'{"t":1.0,"note":"http-end","http":1,"stream":"s","hung_up":null}',
    b'{"t":1.0,"note":"http-end","http":2,"hung_up":"client"}',
    b'{"t":1.0,"note":"http-end","http":null}',
    b'{"t":1.0,"note":"http-end","http":1,"hung_up":"\xff"}',
    b'{"t":1.0,"note":"exit","code":0,"signal":null}',
    b'{"t":1.0,"note":"rule","action":"replace","from":"server","id":"1","sent":"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":1}"}',
    b'{"t":1.0,"note":"rule","action":"hold","from":"server","id":"1","ticket":1}',
    b'{"t":1.0,"note":"rule","action":"release","from":"server","id":"1","ticket":1,"why":"dropped"}',
    b'{"t":1.0,"from":"client","by":"mcpspy","msg":{"jsonrpc":"2.0","id":1,"method":"ping"}}',
    b'{"t":1.0,"from":"server","to":"mcpspy","msg":{"jsonrpc":"2.0","id":1,"result":{}}}',
    b'{"t":1.0,"from":"server","by":"mcpspy","msg":{"jsonrpc":"2.0","id":1,"error":{"code":-32000}}}',
    b"{oops",
    b"",
]
CARRIED = st.sampled_from([{}, {}, {"http": 1, "stream": "s"}, {"http": 2, "stream": "s"}, {"http": 2}])
PLAIN = st.sampled_from(
    [
        ("client", {"id": 1, "method": "ping"}),
        ("client", {"id": 1, "method": "tools/call", "params": {"name": "a"}}),
        ("client", {"id": 2, "method": "tools/call", "params": {"_meta": {"progressToken": 2}}}),
        ("client", {"method": "notifications/cancelled", "params": {"requestId": 1}}),
        ("server", {"id": 1, "result": {}}),
        ("server", {"id": 2, "result": {}}),
        ("server", {"id": 2, "error": {"code": -32000}}),
        ("server", {"method": "notifications/progress", "params": {"progressToken": 2}}),
        ("server", {"method": "notifications/message"}),
    ]
)
LINES = st.lists(
    st.builds(lambda said, carried: (*said, carried), PLAIN, CARRIED)
    | st.builds(lambda said: (*said, {}), PLAIN)
    | st.tuples(st.sampled_from(["client", "server"]), SAID, CARRIED)
    | st.sampled_from(NOTES),
    max_size=14,
)


@given(LINES, st.integers(0, 14), st.booleans())
@settings(max_examples=300, deadline=None)
def test_the_fast_loader_reads_any_recording_like_the_full_loader(
    said: list[Any], cut: int, ignores: bool
) -> None:
    lines = [
        each if isinstance(each, bytes) else frame(number / 8, each[0], **each[1], **each[2])
        for number, each in enumerate(said)
    ]
    long, short = both(lines, (("params", "arguments", "n"),) if ignores else (), cut)
    assert short == long


def request_entry(id: int, **params: Any) -> tuple[str, Json]:  # noqa: A002
    return "client", {"id": id, "method": "tools/call", "params": params}


def answers(id: int, **result: Any) -> tuple[str, Json]:  # noqa: A002
    return "server", {"id": id, "result": result}


ONCE, AGAIN = request_entry(1, name="a"), request_entry(1, name="b")
LATER = request_entry(2, _meta={"progressToken": 2})


@pytest.mark.parametrize(
    "said",
    [
        [ONCE, AGAIN, answers(1, n=1), answers(1, n=2)],
        [LATER, request_entry(2), answers(2, n=1), answers(2, n=2)],
        [request_entry(1, arguments={"n": 10**30}), request_entry(2, arguments={"n": 10**30 + 1})],
        [
            request_entry(1, arguments={"n": 1.0}),
            request_entry(2, arguments={"n": 1}),
            request_entry(3, arguments={}),
            request_entry(4),
        ],
        [ONCE, ("server", {"method": "notifications/message"}), request_entry(2), answers(1), answers(2)],
    ],
    ids=["in use", "in use by one that reports", "great numbers", "equal numbers", "one waits"],
)
def test_the_fast_loader_reads_unusual_messages_like_the_full_loader(said: list[tuple[str, Json]]) -> None:
    long, short = both([frame(float(at), side, **members) for at, (side, members) in enumerate(said)])
    assert short == long


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_the_fast_loader_reads_real_recordings_like_the_full_loader(path: Path) -> None:
    lines = path.read_bytes().splitlines()[1:]
    long, short = both(lines, cut=len(lines) // 2)
    assert short == long


def test_a_plain_exchange_needs_no_separate_steps() -> None:
    loader = InteractionLoader(InteractionStore())
    lines = [frame(0.0, "client", id=1, method="ping"), frame(0.5, "server", id=1, result={})]
    loader.add_lines(lines, 0)
    assert loader.store.steps == {}
    assert loader.store.is_answered(0)
