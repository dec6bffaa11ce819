"""The model of a replay: counts, causes, and the command that does the same."""

from __future__ import annotations

from typing import Any

from mcpspy.ui.model.replay_run import Phase, ReplayModel, StepState, command_line, request_text


def model() -> ReplayModel:
    found = ReplayModel()
    found.take(
        {
            "event": "steps",
            "steps": [[0, "initialize", 0.1], [4, "tools/call a", None], [7, "tools/call b", 0.2]],
        }
    )
    return found


def answered(number: int, severity: str | None = None, **more: Any) -> dict[str, Any]:
    fields = {"event": "answered", "number": number, "latency": 0.5, "severity": severity}
    return {**fields, "changes": int(severity is not None), "about": severity or "", **more}


def test_steps_are_counted_by_what_became_of_them() -> None:
    replay = model()
    replay.take({"event": "sent", "number": 0})
    assert (replay.done, replay.requests) == (0, 3)
    replay.take(answered(0))
    replay.take(answered(4, "breaking"))
    replay.take({"event": "unsent", "number": 7, "why": "you skipped it"})
    assert replay.done == 3
    assert (
        replay.counts[StepState.SAME]
        == replay.counts[StepState.BREAKING]
        == replay.counts[StepState.UNSENT]
        == 1
    )
    assert replay.reasons == {1: "breaking", 2: "because you skipped it"}
    assert (replay.following(-1, 1), replay.following(1, 1), replay.following(1, -1)) == (1, 2, None)


def test_a_step_that_is_judged_again_is_shown_again() -> None:
    replay = model()
    replay.take(answered(4, "different"))
    replay.take({"event": "shown", "number": 4, "recorded": ["a"], "new": None, "changes": [], "more": 0})
    assert replay.shown is not None
    replay.take({"event": "judged", "number": 4, "severity": None, "changes": 0, "about": ""})
    found = replay.states[1], replay.is_stale
    assert found == (StepState.SAME, True)


def test_a_missing_response_is_the_same_if_it_was_missing_before() -> None:
    replay = model()
    replay.take({"event": "lost", "number": 0, "why": "timeout", "severity": None, "changes": 0, "about": ""})
    replay.take(
        {"event": "lost", "number": 4, "why": "timeout", "severity": "breaking", "changes": 1, "about": ""}
    )
    assert [*replay.states] == [StepState.SAME, StepState.LOST, StepState.WAITING]


def test_an_early_end_has_reasons_for_all_other_requests() -> None:
    replay = model()
    replay.take({"event": "sent", "number": 0})
    replay.take(
        {"event": "ended", "stopped": "it died", "unsent": 2, "cause": ["why", "what to do"], "stderr": ["x"]}
    )
    assert replay.phase is Phase.ENDED
    assert replay.ending == ["stopped: it died", "why", "what to do"]
    assert [*replay.states] == [StepState.LOST, StepState.UNSENT, StepState.UNSENT]
    assert [*replay.stderr] == ["x"]


def test_other_differences_are_rows_after_the_requests_and_are_replaced() -> None:
    replay = model()
    for count in (2, 1):
        replay.take({"event": "others", "cases": [["note", "exit", "x"]] * count, "count": count})
        assert len(replay) == 3 + count
    assert replay.counts[StepState.OTHER] == 1


def test_the_command_names_secrets_and_contains_none() -> None:
    config = {
        "path": "a b.jsonl", "command": ["node", "w.js"], "cwd": "/srv", "environment": {"TOKEN": "s3cret"},
        "secrets": {"api_key": "s3cret"}, "serial": True, "speed": 2.0, "volatile": True, "timeout": 30.0,
        "query": "tool:echo",
    }  # fmt: skip
    assert command_line(config, ["/result/**/t"]) == (
        "cd /srv && TOKEN=\"$TOKEN\" mcpspy replay 'a b.jsonl' --filter=tool:echo --concurrency serial --speed 2"
        " --timeout 30 --volatile '--ignore-path=/result/**/t' --secret=api_key=API_KEY -- node w.js"
    )
    config = {"path": "a.jsonl", "url": "http://127.0.0.1:1/mcp", "headers": [("X-Key", "s3cret")]}
    assert command_line(config, []) == (
        "mcpspy replay a.jsonl --header-env=X-Key=X_KEY --upstream http://127.0.0.1:1/mcp"
    )


def test_an_unchanged_request_is_sent_as_it_was_recorded() -> None:
    assert request_text('{"a": 1.0}', '{\n  "a": 1.0\n}') == '{"a": 1.0}'
    assert request_text('{"a": 1}', '{\n  "a": 2\n}') == '{   "a": 2 }'
