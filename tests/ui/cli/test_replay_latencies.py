"""The latencies of requests, as a table."""

from __future__ import annotations

from mcpspy.io.replay import ReplayRun
from mcpspy.ui.cli.replay import latency_table
from tests.core.replay.playing import Stage, Talk


def run(*seconds: float | None) -> ReplayRun:
    """Return a run whose calls took these times; None means a refused call."""
    talk = Talk()
    for number in range(len(seconds)):
        talk.call(number, "echo")
    stage = Stage(talk.call(99, "other").session)
    stage.takes()
    for number, took in enumerate((*seconds, 1.0), start=1):
        if took is None:
            stage.player.refused(str(number), "HTTP 500", stage.now)
        else:
            stage.now += took
            stage.player.received(b'{"jsonrpc":"2.0","id":%d,"result":{}}' % number, stage.now)
        stage.takes()
    return ReplayRun(talk.session, None, list(stage.player.sent.values()), [], [])


def test_each_kind_of_request_has_its_line_the_slowest_first_and_the_last_is_the_sum() -> None:
    lines = [line.split() for line in latency_table([run(0.01, 0.02, None), run(0.04, 0.03)], 4.0)]

    assert lines[0] == ["request", "sent", "failed", "median", "p95", "max", "recorded"]
    assert lines[1] == ["tools/call", "other", "2", *"1.00 s 1.00 s 1.00 s 1.00 s".split()]
    assert lines[2] == ["tools/call", "echo", "5", "1", *"20.0 ms 40.0 ms 40.0 ms 1.00 s".split()]
    assert " ".join(lines[3]) == "2 runs · 7 requests in 4.00 s · 2 requests/s"


def test_an_answer_of_another_kind_is_a_failure() -> None:
    stage = Stage(Talk().call(1).session)
    stage.takes()
    stage.player.received(b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}', stage.now)
    played = ReplayRun(Talk().session, None, list(stage.player.sent.values()), [], [])

    assert list(latency_table([played], 1.0))[1].split()[2:4] == ["1", "1"]
