"""Every surface shows the same outcome of every tricky request: one expected value each.

These tests mirror no package, because they span all of them: a case (`cases.py`) is a tiny recording with the expected
outcome of each request and the expected numbers, and a surface (`surfaces.py`) is an adapter that reads a recording as
one user interface or export does.
"""

from __future__ import annotations

import fcntl
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import mcpspy
from mcpspy.ui.tui.panels.stats import STATS_COLUMNS
from mcpspy.ui.tui.widgets.columns import SESSIONS
from tests.outcomes.cases import CASES
from tests.outcomes.surfaces import SURFACES, CaseFolder, Reading, RecordedCase, merged_model, run
from tests.outcomes.tape import ANY, FAILED, FINE, MEANINGS, OPEN, UNANSWERED, Case

NUMBERS = ("errors", "unanswered", "pending", "issues", "injected")


def header(number: int, case: Case) -> bytes:
    started = f"2026-11-27T08:{number // 60:02}:{number % 60:02}.000Z"
    server = (
        {"command": ["server"]}
        if case.transport == "stdio"
        else {"upstream": "http://127.0.0.1:9/mcp", "listen": "http://127.0.0.1:8/mcp"}
    )
    fields = {
        "mcpspy": 1,
        "id": f"{number:08x}",
        "started": started,
        "transport": case.transport,
        **server,
        "name": f"case{number:03}",
        "parent": {"pid": 100000 + number, "program": "host", "started": started},
        "redacted": True,
    }
    return json.dumps(fields, separators=(",", ":")).encode()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RecordedCase]]:
    folder = CaseFolder(tmp_path_factory.mktemp("sessions"))
    locked = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("MCPSPY_DIR", str(folder.path))
        for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            patched.setenv(name, str(tmp_path_factory.mktemp("home")))
        for number, case in enumerate(CASES):
            path = folder.path / f"20261127-0800-{number:03}-case{number}.jsonl"
            path.write_bytes(b"".join(line + b"\n" for line in (header(number, case), *case.lines)))
            folder.recorded.append(RecordedCase(case, path, folder))
            if case.is_live:
                file = path.open("rb")
                fcntl.flock(file, fcntl.LOCK_EX)  # As the process that records it does.
                locked.append(file)
        yield {each.case.name: each for each in folder.recorded}
        folder.close()
        for file in locked:
            file.close()


def differences(reading: Reading, case: Case) -> Iterator[str]:
    """Yield the differences between a surface and the expected values, each as a line."""
    operations = {each.key: each for each in case.operations}
    peers = {key: each for key, each in operations.items() if not each.is_injected}
    for name, number in reading.counts.items():
        if number != (expected := getattr(case, name)):
            yield f"{name}: {number if number >= 0 else 'missing'}, expected {expected}"
    known = operations.keys() | case.polls
    members: tuple[tuple[Mapping[str, object] | None, set[str]], ...] = (
        (reading.statuses, {*operations}),
        (reading.latencies, {*operations}),
        (reading.kinds, {*peers}),
        (reading.bad, {*peers}),
        (reading.terms, {*peers}),
    )
    for said, wanted in members:
        if said is not None and (missing := wanted - said.keys()) and not reading.is_partial:
            yield f"missing: {sorted(missing)}"
        if said is not None and (surplus := said.keys() - known):
            yield f"surplus: {sorted(surplus)}"
    for key, status in (reading.statuses or {}).items():
        if key in operations and status != (expected := operations[key].status):
            yield f"{key}: {status!r}, expected {expected!r}"
    for key, latency in (reading.latencies or {}).items():
        if key not in operations or (expected := operations[key].latency) is ANY:
            continue
        if (latency is None) != (expected is None) or abs((latency or 0) - (expected or 0)) > 0.002:
            yield f"{key}: latency {latency}, expected {expected}"
    for key, kind in (reading.kinds or {}).items():
        if key in peers and kind is not (expected := peers[key].kind):
            yield f"{key}: {kind.value}, expected {expected.value}"
    for key, is_bad in (reading.bad or {}).items():
        if key in peers and is_bad != (peers[key].kind in (FAILED, UNANSWERED)):
            yield f"{key}: shown as {'bad' if is_bad else 'good'}, it is {peers[key].status}"
    for key, terms in (reading.terms or {}).items():
        if key in peers and terms != (expected := MEANINGS[peers[key].status].terms):
            yield f"{key}: found by {sorted(terms)}, expected {sorted(expected)}"
    texts = reading.words.values() if isinstance(reading.words, dict) else [reading.words or ""]
    yield from (f"contains {each!r}" for each in case.never for text in texts if each in text)
    for key, each in peers.items():
        text = reading.words.get(key) if isinstance(reading.words, dict) else reading.words
        if text is not None and (lacking := [word for word in each.words if word not in text]):
            about = f" in {text!r}" if isinstance(reading.words, dict) else ""
            yield f"{key}: no {lacking}{about}"
    for key, text in (reading.errors_said or {}).items():
        # The text of an error is its message; the name of its kind is in an attribute.
        if key in peers and peers[key].kind is FAILED and peers[key].words[-1] not in text:
            yield f"{key}: no {peers[key].words[-1]!r} in {text!r}"
    if reading.met is not None and reading.met != case.meets_no_errors:
        yield f"met: {reading.met}, expected {case.meets_no_errors}"
    if reading.listed is not None and (polls := reading.listed & case.polls):
        yield f"polls of a task have their own place: {sorted(polls)}"
    own = [each.latency for each in peers.values()]
    if reading.took is not None and ANY not in own:
        expected = [latency for latency in own if latency is not None]
        answers, total = reading.took
        if answers != len(expected) or abs(total - sum(expected)) > 0.002 * max(len(expected), 1):
            yield f"latencies: {answers} of {total:.3f} s, expected {len(expected)} of {sum(expected):.3f} s"
    for each in peers.values() if reading.failures is not None else ():
        is_drawn = each.kind is FAILED and each.status != "refused"  # A refused request has no response.
        if is_drawn and each.words[0] not in (reading.failures or ""):
            yield f"{each.key}: {each.words[0]!r} is not among the failures"
    if reading.causes is not None:
        if hidden := case.causes - reading.causes:
            yield f"causes: {sorted(reading.causes)}, expected {sorted(hidden)}"
        if not reading.causes and any(each.kind in (FAILED, UNANSWERED) for each in peers.values()):
            yield "causes: none, although something failed"
        if not case.errors and "request-failed" in reading.causes:
            yield "causes: request-failed, although no request failed"
        if not case.unanswered and "no-response" in reading.causes:
            yield "causes: no-response, although no request is unanswered"


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_every_surface_shows_the_expected_outcomes(name: str, recorded: dict[str, RecordedCase]) -> None:
    found = recorded[name]
    wrong = [
        f"{surface}: {difference}"
        for surface, each in SURFACES.items()
        if each.is_of_live or not found.case.is_live
        for difference in dict.fromkeys(differences(each.read(found), found.case))
    ]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_the_numbers_of_a_run_are_the_sums_of_its_sessions(recorded: dict[str, RecordedCase]) -> None:
    over = [each for each in recorded.values() if not each.case.is_live]
    counts = merged_model(*over).index.counts._asdict()

    assert {name: counts[name] for name in NUMBERS} == {
        name: sum(getattr(each.case, name) for each in over) for name in NUMBERS
    }


def test_errors_and_unanswered_are_shown_side_by_side(recorded: dict[str, RecordedCase]) -> None:
    readings = {name: each.read(recorded[CASES[0].name]).counts for name, each in SURFACES.items()}
    assert [
        name for name, counts in readings.items() if "errors" in counts and "unanswered" not in counts
    ] == []


def test_every_table_has_a_column_for_both(recorded: dict[str, RecordedCase]) -> None:
    folder = recorded[CASES[0].name].folder
    tables = {
        "ls --count": folder.lines[0].split(),
        "runs": run("runs", "--dir", str(folder.path)).splitlines()[0].split(),
        "tui: list of sessions": [column.name for column in SESSIONS],
        "tui: statistics": [column.name for column in STATS_COLUMNS],
    }
    text = run("stats", str(recorded["calls of every outcome on stdio"].path)).splitlines()
    tables |= {f"stats: {line}": line.split() for line in text if " p50 " in line and " errors " in line}
    for script in SCRIPTS:
        source = script.read_text(encoding="utf-8")
        tables |= {
            f"{script.name}: {row}": re.findall(r'"([\w ]+)"', row) for row in re.findall(HEADS, source)
        }
    with_errors = {name: heads for name, heads in tables.items() if "errors" in heads}

    assert {*tables} - {*with_errors} <= {name for name in tables if ".js" in name}
    assert [name for name, heads in with_errors.items() if "unanswered" not in heads] == []


HEADS = re.compile(r'\["[\w ]+"(?:, "[\w ]+")+\]')
"""A list of the heads of a table in JavaScript."""

SCRIPTS = sorted(Path(mcpspy.__file__).parent.rglob("*.js"))

NAMES = "|".join(re.escape(name) for name in MEANINGS if name not in ("ok", "error"))


def test_no_script_decides_by_the_name_of_a_state() -> None:
    compared = re.compile(rf'\bstat(?:e|us|es|uses)\b[^\n;]{{0,16}}"(?:{NAMES})"')
    found = [
        f"{script.name}: {line.strip()}"
        for script in SCRIPTS
        for line in script.read_text(encoding="utf-8").splitlines()
        if compared.search(line)
    ]
    assert found == []


def test_the_chip_of_errors_shows_errors_alone() -> None:
    chips = {
        script.name: re.findall(
            r'^  \["errors", (.+?), "\w+"\],$', script.read_text(encoding="utf-8"), re.MULTILINE
        )
        for script in SCRIPTS
    }
    found = {name: chip for name, chip in chips.items() if chip}
    assert found.keys() == {"place.js"}
    assert found["place.js"] == ['"is:error"']


def test_the_cases_cover_every_outcome() -> None:
    assert {each.status for case in CASES for each in case.operations} == MEANINGS.keys()
    assert {each.kind for case in CASES for each in case.operations} == {FINE, FAILED, UNANSWERED, OPEN}
    assert len(CASES) >= 40


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("calls of every outcome on stdio", (11, 3, 0, 12, 0)),
        ("rules, an injected call and a crash", (2, 3, 0, 0, 1)),
        ("tasks of every outcome", (3, 1, 0, 0, 0)),
        ("questions, a subscription and tasks of 2026-07-28", (3, 1, 0, 0, 0)),
        ("posts of every outcome", (4, 5, 0, 2, 0)),
        ("posts of 2026-07-28", (1, 2, 0, 1, 0)),
    ],
)
def test_the_expected_numbers_of_the_whole_sessions(name: str, counts: tuple[int, ...]) -> None:
    (case,) = (each for each in CASES if each.name == name)
    assert tuple(getattr(case, number) for number in NUMBERS) == counts
