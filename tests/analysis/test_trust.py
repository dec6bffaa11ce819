"""The differences that a note of trust describes."""

from __future__ import annotations

import json

from mcpspy.analysis.trust import Interface, compare, interface_of, noted
from mcpspy.core.intercept.actions import AddNote
from mcpspy.core.intercept.interceptor import Interceptor
from mcpspy.core.intercept.trust_guard import TrustGuard
from mcpspy.core.recording.decode import Frame
from mcpspy.core.rules.model import Rules
from mcpspy.core.session.session import Session
from mcpspy.core.trust.lock import TrustedItem, TrustedServer
from tests.analysis.pages import INTERLEAVED, WITHOUT_SESSIONS
from tests.core.trust.locks import ECHO, trusted


def changes(method: str, result: str) -> list[tuple[str, str, str]]:
    """Return severity, pointer and reason of each change of a response."""
    guard = TrustGuard(trusted(volatile='volatile = ["description"]'), "report", lambda _: None)
    interceptor = Interceptor(Rules(), prefix="mcpspy-", trust=guard)
    interceptor.process(0.0, "client", b'{"jsonrpc":"2.0","id":1,"method":"%b"}' % method.encode())
    steps = interceptor.process(
        0.0, "server", b'{"jsonrpc":"2.0","id":1,"result":%b}' % result.encode()
    ).steps
    (fields,) = [step.fields for step in steps if isinstance(step, AddNote)]
    return [(str(change.severity), change.pointer, change.why) for _, change in noted(fields).changes]


def test_a_note_about_a_listing_has_the_items_that_differ_and_no_others() -> None:
    echo = {**ECHO, "description": "Volatile.", "title": "Echo"}
    result = f'{{"tools": [{json.dumps(echo)}, {{"name": "rm"}}]}}'
    assert changes("tools/list", result) == [
        ("note", "/result/tools/echo/title", ""),
        ("breaking", "/result/tools/add", "lost the tool add"),
        ("note", "/result/tools/rm", "gained the tool rm"),
    ]


def test_a_note_about_the_handshake_has_both_of_its_members() -> None:
    result = '{"capabilities": {"tools": {"listChanged": true}}, "instructions": "Evil."}'
    assert changes("initialize", result) == [("note", "/result/instructions", "")]


def test_a_new_extension_of_the_server_is_named() -> None:
    before = TrustedServer(capabilities={"tools": {}, "extensions": {"com.example/a": {}}})
    now = Interface(capabilities={"tools": {}, "extensions": {"com.example/b": {}}})
    ((_, change),) = compare(before, now).changes
    assert change.why == "declares com.example/b now, no longer declares com.example/a"


def test_a_skill_is_compared_with_the_digests_of_its_files() -> None:
    skill = {"uri": "skill://a/SKILL.md", "resources": [{"uri": "skill://a/SKILL.md", "digest": "sha256:0"}]}
    now = {**skill, "resources": [{"uri": "skill://a/SKILL.md", "digest": "sha256:1"}]}
    trusted = TrustedServer(listed=("skills",), items={"skills": {"skill://a/SKILL.md": TrustedItem(skill)}})
    ((case, change),) = compare(trusted, Interface(items={"skills": {"skill://a/SKILL.md": now}})).changes
    assert (case.method, str(change.severity), change.old, change.new) == (
        "skills/list", "different", "sha256:0", "sha256:1",
    )  # fmt: skip


def test_a_note_about_a_call_describes_no_change_of_a_definition() -> None:
    assert (
        noted({"method": "tools/call", "differences": ["tool rm: not in the lockfile, called"]}).cases
        == noted({}).cases
    )


def listed(pages: list[tuple[str | None, list[str], str | None]]) -> Interface:
    """Return the interface of a session with pages: the cursor of the request, names of tools and `nextCursor`."""
    session = Session()
    for number, (cursor, tools, following) in enumerate(pages):
        params = {} if cursor is None else {"cursor": cursor}
        result: dict[str, object] = {"tools": [{"name": name} for name in tools]}
        result |= {} if following is None else {"nextCursor": following}
        for side, message in (
            ("client", {"id": number, "method": "tools/list", "params": params}),
            ("server", {"id": number, "result": result}),
        ):
            session.add(Frame(float(number), side, json.dumps({"jsonrpc": "2.0", **message}).encode()))
    session.end()
    return interface_of(session)


def test_a_listing_of_several_pages_is_one() -> None:
    found = listed([(None, ["a"], "2"), ("2", ["b"], "3"), ("3", ["c"], None)])
    assert list(found.items["tools"]) == ["a", "b", "c"]


def test_a_listing_whose_first_or_last_page_is_missing_is_not_known() -> None:
    assert listed([(None, ["a"], "2")]).items == {}
    assert listed([("2", ["b"], None)]).items == {}
    assert list(listed([(None, ["a"], None), ("2", ["b"], None)]).items["tools"]) == ["a"]


def test_the_pages_of_clients_without_sessions_and_of_several_clients_are_whole_listings() -> None:
    for session in WITHOUT_SESSIONS, INTERLEAVED:
        assert "".join(interface_of(session).items["tools"]) == "abcd"
