"""The steps of OAuth are attributed to their clients, and to none by guessing."""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from hashlib import sha256
from itertools import count
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest

from mcpspy.core.protocol import oauth_flows
from mcpspy.core.protocol.oauth import OAuthTracker
from mcpspy.core.protocol.oauth_flows import MAX_FLOWS, MAX_STEPS, OAuthRequest

RESOURCE = "/.well-known/oauth-protected-resource/mcp"
ISSUER = "/.well-known/oauth-authorization-server"
ALL = ["challenge 401", "resource metadata 200", "server metadata 200", "registration 201"]
ALL += ["authorize 302", "token 200", "retry 200"]

_ports = count(40_000)


class Client:
    """A client that authorizes step by step, and its browser. `run` yields the fields of each step's note."""

    def __init__(
        self,
        name: str,
        *,
        agent: str = "sdk/1",
        keeps_connection: bool = True,
        client_id: str | None = None,
        has_token: bool = True,
    ) -> None:
        self.name = name
        self.agent = agent
        self.verifier = f"verifier-{name}"
        self.client_id = client_id or f"id-{name}"
        self.registers = client_id is None
        self.has_token = has_token
        self.token = f"token-{name}"
        self._port = None if not keeps_connection else next(_ports)

    def request(self, target: str, form: bytes = b"", **more: Any) -> OAuthRequest:
        peer = ("127.0.0.1", self._port or next(_ports))
        token = more.pop("token", None)
        headers = {"User-Agent": self.agent} | ({} if token is None else {"Authorization": f"Bearer {token}"})
        return OAuthRequest(target, headers, form, is_mcp=target == "/mcp", **{"peer": peer, **more})

    @property
    def challenge(self) -> str:
        return urlsafe_b64encode(sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()

    def steps(self) -> Iterator[tuple[OAuthRequest, int]]:
        yield self.request("/mcp"), 401
        yield self.request(RESOURCE), 200
        yield self.request(ISSUER), 200
        if self.registers:
            given = orjson.dumps({"client_id": self.client_id})
            yield self.request("/register", b'{"redirect_uris":[]}', response=given), 201
        query = {"client_id": self.client_id, "code_challenge": self.challenge, "response_type": "code"}
        browser = OAuthRequest(
            f"/authorize?{urlencode(query)}",
            {"User-Agent": "Firefox"},
            b"",
            is_mcp=False,
            peer=("127.0.0.1", 1),  # One browser serves all clients on one connection.
            location=f"http://127.0.0.1:9/back?code=code-{self.name}",
        )
        yield browser, 302
        form = {"client_id": self.client_id, "code": f"code-{self.name}", "code_verifier": self.verifier}
        answer = orjson.dumps({"access_token": self.token}) if self.has_token else b""
        yield self.request("/token", urlencode(form).encode(), response=answer), 200
        yield self.request("/mcp", token=self.token), 200


def interleaved(*clients: Client) -> list[list[dict[str, Any]]]:
    """Return the notes of each client, whose steps take turns."""
    tracker = OAuthTracker("http://127.0.0.1:3001")
    notes: list[list[dict[str, Any]]] = [[] for _ in clients]
    waiting = [client.steps() for client in clients]
    while waiting:
        for number, steps in enumerate(list(waiting)):
            step = next(steps, None)
            if step is None:
                waiting.remove(steps)
                continue
            fields = tracker.step_fields(*step, {})
            assert fields is not None, step[0].target
            notes[number].append(fields)
    return notes


def flows(notes: list[dict[str, Any]]) -> list[int]:
    return [note["flow"] for note in notes]


@pytest.mark.parametrize(
    "options",
    [{}, {"client_id": "shared"}, {"has_token": False}],
    ids=["registered", "one client id", "token not seen"],
)
def test_clients_with_a_connection_each_have_a_flow_each(options: dict[str, Any]) -> None:
    first, second = interleaved(Client("a", **options), Client("b", **options))
    expected = ALL if "client_id" not in options else [step for step in ALL if "registration" not in step]
    assert first[-1]["chain"] == second[-1]["chain"] == expected
    assert (first[-1]["flow"], second[-1]["flow"]) == (1, 2)
    assert all(note["flow"] == 1 for note in first if note["step"] != "authorize")
    assert all(note["flow"] == 2 for note in second if note["step"] != "authorize")


def test_a_sign_in_page_whose_client_is_not_known_is_joined_by_the_verifier() -> None:
    first, second = interleaved(Client("a", client_id="shared"), Client("b", client_id="shared"))
    assert (flows(first), flows(second)) == ([1, 1, 1, 3, 1, 1], [2, 2, 2, 4, 2, 2])
    assert [note.get("joins") for note in first] == [None] * 4 + [[3], None]
    assert [note.get("joins") for note in second] == [None] * 4 + [[4], None]


def test_programs_with_a_connection_for_each_request_are_distinguished_by_their_user_agent() -> None:
    clients = [Client(name, agent=f"{name}/1", keeps_connection=False) for name in "abc"]
    for number, notes in enumerate(interleaved(*clients), 1):
        assert set(flows(notes)) == {number}
        assert notes[-1]["chain"] == ALL


def test_one_client_with_a_connection_for_each_request_is_one_flow() -> None:
    (notes,) = interleaved(Client("a", keeps_connection=False))
    assert flows(notes) == [1] * 7
    assert notes[-1]["chain"] == ALL


def test_a_step_that_fits_two_flows_begins_its_own() -> None:
    first, second = interleaved(*(Client(name, keeps_connection=False) for name in "ab"))
    assert flows(first)[:3] == [1, 3, 5]
    assert flows(second)[:3] == [2, 4, 6]
    for notes in (first, second):  # From the registration on, values prove them.
        assert len(set(flows(notes[3:]))) == 1
        assert notes[-1]["chain"] == ALL[3:]
    assert not set(flows(first)) & set(flows(second))


def test_an_abandoned_flow_takes_no_step_of_the_next_attempt() -> None:
    tracker = OAuthTracker("http://127.0.0.1:3001")
    abandoned, next_one = (Client(name, keeps_connection=False) for name in "ab")
    for request, status in list(abandoned.steps())[:5]:
        assert tracker.step_fields(request, status, {}) is not None
    notes = [tracker.step_fields(request, status, {}) for request, status in next_one.steps()]
    assert [note and note["flow"] for note in notes] == [2] * 7


def test_the_call_of_another_client_is_not_the_first_with_a_token() -> None:
    tracker = OAuthTracker("http://127.0.0.1:3001")
    client, other = Client("a"), Client("b")
    *steps, last = client.steps()
    for request, status in steps:
        tracker.step_fields(request, status, {})
    assert tracker.unused_tokens
    assert tracker.step_fields(other.request("/mcp", token="another"), 200, {}) is None
    retry = tracker.step_fields(*last, {})
    assert retry is not None
    assert retry["chain"] == ALL
    assert not tracker.unused_tokens


def test_a_token_that_is_never_used_is_waited_for_only_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oauth_flows, "MAX_WAIT", 3)
    tracker = OAuthTracker("http://127.0.0.1:3001")
    for request, status in list(Client("a").steps())[:-1]:
        tracker.step_fields(request, status, {})
    waits = []
    for _ in range(4):
        tracker.step_fields(Client("b").request("/mcp", token="another"), 200, {})
        waits.append(bool(tracker.unused_tokens))
    assert waits == [True, True, True, False]


def test_a_refreshed_token_continues_the_flow_of_its_client() -> None:
    tracker = OAuthTracker("http://127.0.0.1:3001")
    notes = []
    for client in (Client("a"), Client("b")):
        given = {"access_token": client.token, "refresh_token": f"refresh-{client.name}"}
        form = urlencode({"code_verifier": client.verifier}).encode()
        token = client.request("/token", form, response=orjson.dumps(given))
        for request, status in client.steps():
            tracker.step_fields(token if request.target == "/token" else request, status, {})
    for name in "ba":
        form = urlencode({"grant_type": "refresh_token", "refresh_token": f"refresh-{name}"}).encode()
        elsewhere = Client("c", keeps_connection=False).request("/token", form)
        notes.append(tracker.step_fields(elsewhere, 200, {}))
    assert [note and note["flow"] for note in notes] == [2, 1]


def test_the_client_of_a_token_request_is_named_in_its_authorization_too() -> None:
    pair = b64encode(b"id%3A1:secret").decode()
    request = OAuthRequest("/token", {"Authorization": f"Basic {pair}"}, b"", is_mcp=False)
    assert request.client_id() == "id:1"
    damaged = OAuthRequest("/token", {"Authorization": "Basic \xff"}, b"", is_mcp=False)
    assert damaged.client_id() is None


def test_flows_and_steps_are_bounded() -> None:
    tracker = OAuthTracker("http://127.0.0.1:3001")
    for number in range(3 * MAX_FLOWS):
        for request, status in list(Client(str(number)).steps())[:3]:
            tracker.step_fields(request, status, {})
    assert len(tracker._flows._flows) == MAX_FLOWS
    client = Client("last")
    for number in range(2 * MAX_STEPS):
        tracker.step_fields(client.request(RESOURCE), 404 + number % 2, {})
    assert len(tracker._flows._flows[-1].steps) == MAX_STEPS


def test_a_message_without_a_token_does_not_use_one() -> None:
    tracker = OAuthTracker("http://127.0.0.1:3001")
    for request, status in list(Client("a").steps())[:-1]:
        tracker.step_fields(request, status, {})
    assert tracker.step_fields(Client("b").request("/mcp"), 200, {}) is None
    assert tracker.unused_tokens


def test_a_new_token_that_is_not_seen_is_attributed_by_the_session_that_uses_it() -> None:
    tracker = OAuthTracker("http://127.0.0.1:3001")
    clients = [Client(name, keeps_connection=False, client_id="shared") for name in "ab"]
    for client in clients:
        *steps, (last, _) = client.steps()
        given = {"access_token": client.token, "refresh_token": f"refresh-{client.name}"}
        form = urlencode({"code_verifier": client.verifier}).encode()
        token = client.request("/token", form, response=orjson.dumps(given))
        for request, status in steps:
            tracker.step_fields(token if request.target == "/token" else request, status, {})
        tracker.step_fields(in_session(last, client), 200, {})
    for client in clients:
        form = urlencode({"grant_type": "refresh_token", "refresh_token": f"refresh-{client.name}"}).encode()
        tracker.step_fields(client.request("/token", form), 200, {})
    found = []
    for client in reversed(clients):
        retry = tracker.step_fields(in_session(client.request("/mcp", token="new"), client), 200, {})
        found.append(retry and (retry["step"], retry["flow"]))
    assert found == [("retry", 2), ("retry", 1)]


def in_session(request: OAuthRequest, client: Client) -> OAuthRequest:
    headers = {**request._headers, "Mcp-Session-Id": f"session-{client.name}"}
    return OAuthRequest(request.target, headers, b"", is_mcp=True, peer=request.peer)


def test_values_that_name_a_client_are_bounded_and_the_oldest_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(oauth_flows, "MAX_PROOFS", 10)
    tracker = OAuthTracker("http://127.0.0.1:3001")
    for name in "abcde":
        for request, status in Client(name).steps():
            fields = tracker.step_fields(request, status, {})
        assert fields is not None
        assert fields["chain"] == ALL
    assert len(tracker._flows._proofs) == 10
