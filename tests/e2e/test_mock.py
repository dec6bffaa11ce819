"""Real clients and a recording in place of their server: they do not notice the difference."""

from __future__ import annotations

import asyncio
import json
import re
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from recordings import make
from tests.e2e.test_http import serving

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.e2e.conftest import Peers

MOCKED = [recipe for recipe in make.RECIPES if str(make.DEMO) not in recipe.server]
"""Recordings whose client names no folder of the machine on which they were made."""

NEVER_ANSWERED = r"(mcpspy: \S+ \S+: the recording has no response.*\n)*"

LONG = "trigger-long-running-operation"


def mock(recipe: make.Recipe, *options: str) -> list[str]:
    """Return the command that replaces the server's."""
    return ["mcpspy", "mock", *(str(make.HERE / name) for name in recipe.files), *options]


def real(recipe: make.Recipe) -> list[str]:
    return recipe.server.replace("sdk_server.py", str(make.SDK_SERVER)).split()


def without_task_id(transcript: str) -> str:
    """Remove the random task id, which the real server generates and the client prints."""
    return re.sub(r'(?<="taskId": )"[0-9a-f]{32}"', "…", transcript)


@pytest.mark.parametrize("recipe", MOCKED, ids=lambda recipe: recipe.name)
async def test_the_recording_client_prints_the_same_with_the_mock_as_with_the_real_server(
    recipe: make.Recipe, peers: Peers
) -> None:
    client = recipe.client.replace("--dir graph", "")
    async with peers.mocked(
        *(str(make.HERE / name) for name in recipe.files), expected=NEVER_ANSWERED
    ) as url:
        direct, *mocked = await asyncio.gather(
            peers.play(client, *real(recipe)),
            peers.play(client, *mock(recipe)),
            peers.play(client, url),
        )
    for played in mocked:
        assert without_task_id(played.transcript) == without_task_id(direct.transcript)
        assert played.code == direct.code == 0
        assert "mcpspy" not in played.complaints


async def test_a_session_recorded_now_is_served_in_the_same_folder(peers: Peers) -> None:
    client = "sdk.py --script filesystem --mode legacy --dir files"
    served = ("mcp-server-filesystem", str(peers.folder / "files"))
    direct = await peers.play(client, "mcpspy", "run", "--record", "r.jsonl", "--", *served)
    mocked = await peers.play(client, "mcpspy", "mock", "r.jsonl", "--strict")
    assert mocked == direct._replace(complaints=mocked.complaints)
    assert "mcpspy" not in mocked.complaints


@pytest.mark.parametrize("speed", ["0", "4"])
async def test_every_progress_value_comes_before_the_result(speed: str, peers: Peers) -> None:
    (recipe,) = (recipe for recipe in make.RECIPES if recipe.name == "everything-sdk-legacy")
    mocked = await peers.play(recipe.client, *mock(recipe, "--speed", speed))
    steps: list[dict[str, Any]] = json.loads(mocked.transcript)["steps"]
    (long,) = (step for step in steps if step["step"] == f"tools/call {LONG}")
    assert long["progress"] == [[1, 3, None], [2, 3, None], [3, 3, None]]
    assert long["result"]["content"][0]["text"].startswith("Long running operation completed")


async def test_a_client_of_another_era_can_use_a_legacy_recording(peers: Peers) -> None:
    recording = str(make.HERE / "peer-sdk-legacy.jsonl")
    legacy, auto = await asyncio.gather(
        *(
            peers.play(f"sdk.py --script sdk --mode {mode}", "mcpspy", "mock", recording)
            for mode in ("legacy", "auto")
        )
    )
    assert auto.transcript == legacy.transcript.replace('"mode": "legacy"', '"mode": "auto"')


async def test_a_client_that_was_never_recorded_gets_errors_for_unrecorded_requests(peers: Peers) -> None:
    recording = str(make.HERE / "peer-sdk-legacy.jsonl")
    played = await peers.play(
        "inspector.sh --method tools/call --tool-name add --tool-arg a=1 b=2", "mcpspy", "mock", recording
    )
    assert played.code != 0
    assert "not recorded: tools/call add" in played.transcript + played.complaints


async def test_a_recording_of_two_clients_over_http_serves_each_of_them_on_stdio(peers: Peers) -> None:
    command = f"python {make.SDK_SERVER} --transport streamable-http --port"
    modes = ("auto", "legacy")
    with serving("peer", command, "/mcp", peers.folder) as upstream:
        async with peers.proxied(upstream) as url:
            direct = [await peers.play(f"sdk.py --script sdk --mode {mode}", url) for mode in modes]
    for mode, played in zip(modes, direct, strict=True):
        mocked = await peers.play(f"sdk.py --script sdk --mode {mode}", "mcpspy", "mock", "recorded/r.jsonl")
        assert mocked.transcript == played.transcript
        assert "mcpspy" not in mocked.complaints


async def test_a_real_server_answers_unrecorded_requests_and_is_then_not_needed(peers: Peers) -> None:
    client, server = "sdk.py --script sdk --mode 2026-07-28", ("python", str(make.SDK_SERVER))
    recording = str(make.HERE / "peer-ts-auto-2.jsonl")
    forward = ("--on-miss", "forward", "--record", "learned.jsonl", "--", *server)
    direct, forwarded = await asyncio.gather(
        peers.play(client, *server), peers.play(client, "mcpspy", "mock", recording, *forward)
    )
    assert forwarded.transcript == direct.transcript
    assert "tools/call slow; forwarded to the server" in forwarded.complaints
    alone = await peers.play(client, "mcpspy", "mock", recording, "learned.jsonl")
    assert alone.transcript == direct.transcript


async def test_over_http_each_client_has_the_real_server_to_itself(peers: Peers) -> None:
    client = "inspector.sh --method tools/call --tool-name add --tool-arg a=1 b=2"
    command = f"python {make.SDK_SERVER} --transport streamable-http --port"
    with serving("peer", command, "/mcp", peers.folder) as upstream:
        forward = ("--on-miss", "forward", "--upstream", upstream)
        asked = "(mcpspy: not recorded: tools/call add; forwarded to the server\n){2}"
        async with peers.mocked(str(make.HERE / "peer-sdk-legacy.jsonl"), *forward, expected=asked) as mocked:
            direct, *played = await asyncio.gather(
                *(peers.play(client, url) for url in (upstream, mocked, mocked))
            )
    assert [each.transcript for each in played] == [direct.transcript] * 2
    assert '"total": 3' in direct.transcript


*RECORDED_COMBINATIONS, OTHER_COMBINATION = (
    f"plan={','.join(answers)}"
    for answers in product(["accept:blue", "decline", "cancel"], ["one", "two"], ["/a", "/b"])
)
"""Calls of a tool that needs an elicitation, a sampling and the roots, with all combinations of answers."""

RECORDED_ANSWERS = [
    *"colour=accept:blue colour=accept:red colour=decline colour=cancel order=accept:small,accept:yes".split(),
    *"order=accept:large,accept:yes order=accept:small,decline order=decline write=one write=two".split(),
    *("folders=/a", "folders=/b", *RECORDED_COMBINATIONS),
]
"""Calls of tools that need the user, with the answers in turn."""

OTHER_ANSWERS = {
    "colour=accept:green": 'recorded "blue", sent "green"',
    "order=cancel": "sent",
    "order=accept:large,decline": 'recorded "accept", sent "decline"',
    "write=three": 'recorded "one", sent "three"',
    "folders=/c": 'recorded "file:///a", sent "file:///c"',
    OTHER_COMBINATION: "tools/call plan",
}
"""Answers that are not in the recording, and a part of the report on each."""


async def answer(
    peers: Peers, python: str, mode: str, calls: Iterable[str], *server: str
) -> tuple[list[str], str]:
    """Run the client whose user gives these answers. Return the line of each call, and the lines of stderr."""
    process = await asyncio.create_subprocess_exec(
        *(python, str(make.CLIENTS / "answering.py"), mode, *calls, "--", *server),
        cwd=peers.folder,
        env=make.environment(peers.folder),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(40):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode()
    return out.decode().splitlines(), err.decode()


@pytest.mark.parametrize(
    ("version", "mode", "transport"),
    [
        ("venv", "2026-07-28", "stdio"),
        ("venv", "2026-07-28", "http"),
        ("venv", "legacy", "http"),
        ("mcp1", "legacy", "stdio"),
    ],
)
async def test_the_mock_plays_what_the_user_answered_and_reports_other_answers(
    version: str, mode: str, transport: str, peers: Peers
) -> None:
    if not (make.PEERS / version).is_dir():
        pytest.skip(f"{version} is not installed: run make peers")
    python, server = (
        str(make.PEERS / version / "bin" / "python"),
        str(make.SDK_SERVER.with_name("asking_server.py")),
    )
    if transport == "stdio":
        record = ("mcpspy", "run", "--record", "recorded/r.jsonl", "--", python, server)
        recorded, _ = await answer(peers, python, mode, RECORDED_ANSWERS, *record)
    else:
        with serving("asking", f"{python} {server} --port", "/mcp", peers.folder) as upstream:
            async with peers.proxied(upstream) as url:
                recorded, _ = await answer(peers, python, mode, RECORDED_ANSWERS, url)
    assert not [line for line in recorded if "rror" in line]

    (recording,) = map(str, (peers.folder / "recorded").glob("*.jsonl"))
    shuffled = [*RECORDED_ANSWERS[::-1], *RECORDED_ANSWERS[1::2]]
    reported = r"(mcpspy: not recorded: tools/call \w+ with th[^\n]+\n){6}"
    async with peers.mocked(recording, expected=reported) as url:
        (mocked, complaints), (over_http, _) = await asyncio.gather(
            answer(peers, python, mode, [*shuffled, *OTHER_ANSWERS], "mcpspy", "mock", recording, "--strict"),
            answer(peers, python, mode, [*shuffled, *OTHER_ANSWERS], url),
        )
    outcome = dict(zip(RECORDED_ANSWERS, recorded, strict=True))
    for lines in (mocked, over_http):
        assert lines[: len(shuffled)] == [outcome[call] for call in shuffled]
        for line, (call, part) in zip(lines[len(shuffled) :], OTHER_ANSWERS.items(), strict=True):
            assert line.startswith(f"{call}: error: mcpspy mock: not recorded: tools/call")
            assert part in line
    assert complaints.count("mcpspy: not recorded: tools/call") == len(OTHER_ANSWERS)
    assert complaints.count("mcpspy: strict: not recorded: tools/call") == len(OTHER_ANSWERS)
    assert "never sent" not in complaints
