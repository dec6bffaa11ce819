"""Whatever happens in a session, each request that failed or got no outcome is explained once, without a false sentence."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from typing import Any

import pytest

from mcpspy.analysis.explain import CAUSES, Explainer
from mcpspy.analysis.explain.claims import Claim, claims_of, folded
from mcpspy.analysis.explain.symptoms import FailedRequest
from mcpspy.analysis.lint import EntryPosition
from mcpspy.analysis.lint.examples import entries_of, header_of
from mcpspy.core.protocol.spec import MODERN
from mcpspy.core.session import outcome
from mcpspy.core.session.exchange import State
from mcpspy.core.session.session import Session
from mcpspy.core.session.streaming import StreamingSession

WORDS = (
    "boom", "Unknown tool: a", "Input validation error: n is required", "Session not found", "ENOENT: no such file",
    "connect ECONNREFUSED 127.0.0.1:5432", "401 Unauthorized", "not initialized", "Unsupported protocol version", "",
)  # fmt: skip
CODES = (-32700, -32600, -32601, -32602, -32603, -32000, -32001, -32002, -32020, -32042)
METHODS = (
    "tools/call",
    "tools/list",
    "resources/read",
    "prompts/list",
    "ping",
    "initialize",
    "server/discover",
)
SILENCE = r"{0} got no response|did not respond to {0}\b|no (?:answer|response) to {0}\b|nothing any more after {0}\b"
"""Sentences about a request without a response."""


class Script:
    """Draws a session, in the notation of examples."""

    def __init__(self, seed: str, head: str) -> None:
        self._random = random.Random(seed)
        self.head = head
        self.is_http, self.is_modern = "http" in head, MODERN in head
        self.lines = [head]
        self.open: list[int] = []
        self.over: list[int] = []
        self.asked: list[int] = []
        self.tasks: list[int] = []
        self.number = 20
        self.exchange = 2000

    def pick(self, *values: Any) -> Any:
        return self._random.choice(values)

    def say(self, mark: str, **message: object) -> None:
        self.lines.append(f"{mark} {json.dumps(message)}")

    def note(self, kind: str, **fields: object) -> None:
        self.lines.append(f"* {kind} {json.dumps(fields)}")

    def ask(self) -> None:
        self.number += 1
        method = self.pick(*METHODS)
        params: dict[str, object] = {}
        if method == "tools/call":
            params = {"name": self.pick("a", "forecast"), "arguments": {}}
            if self.pick(0, 0, 1):
                params["_meta"] = {"progressToken": self.number}
        elif method == "resources/read":
            params = {"uri": "file:///a"}
        self.say(">", id=self.number, method=method, params=params)
        if self.is_http:
            self.respond()
        else:
            self.open.append(self.number)

    def respond(self) -> None:
        """Let the server answer the request that was just posted."""
        status = self.pick(200, 200, 200, 202, 307, 400, 401, 403, 404, 405, 413, 429, 500, 502, 503)
        if status != 200:
            response = {"location": "http://127.0.0.1:3001/mcp/"} if status == 307 else {}
            body = self.pick("", "", *WORDS)
            self.lines.append(f"= {status} {{}} {json.dumps(response)} {json.dumps(body)}")
            if self.pick(0, 0, 1):
                self.say(
                    "<", id=self.pick(None, self.number), error={"code": self.pick(*CODES), "message": body}
                )
            return
        if how := self.pick("", "", "events", "cut", "page", "gone"):
            kind = "text/html" if how == "page" else "text/event-stream"
            self.lines.append(f'= 200 {{}} {{"content-type":"{kind}"}} "Sign in"')
            if how == "cut":
                self.lines.append(f'<< {{"jsonrpc":"2.0","id":{self.number},"result":{{}}}}\\x04')
            if how != "events":
                return
        self.answer(self.number)

    def answer(self, number: int) -> None:
        match self.pick("ok", "ok", "error", "tool error", "wrong id", "task", "question"):
            case "ok":
                self.say("<", id=number, result=self.pick({}, {"content": []}, {"tools": []}))
            case "error":
                self.say("<", id=number, error={"code": self.pick(*CODES), "message": self.pick(*WORDS)})
            case "tool error":
                text = {"type": "text", "text": self.pick(*WORDS)}
                self.say("<", id=number, result={"content": [text], "isError": True})
            case "wrong id":
                self.say("<", id=str(number), result={})
            case "task":
                dates = dict.fromkeys(("createdAt", "lastUpdatedAt"), "2026-11-21T00:00:00Z")
                task = {"taskId": f"t{number}", "status": "working", "ttl": 60000, **dates}
                self.say(
                    "<",
                    id=number,
                    result={"resultType": "task", **task} if self.is_modern else {"task": task},
                )
                self.tasks.append(number)
            case _:
                self.say("<", id=number, result={"resultType": "input_required", "inputRequests": {}})

    def poll(self) -> None:
        if not self.tasks or self.is_http:
            return
        task, status = self.pick(*self.tasks), self.pick("working", "completed", "failed", "cancelled")
        self.number += 1
        self.say(">", id=self.number, method="tasks/get", params={"taskId": f"t{task}"})
        dates = dict.fromkeys(("createdAt", "lastUpdatedAt"), "2026-11-21T00:00:00Z")
        self.say("<", id=self.number, result={"taskId": f"t{task}", "status": status, "ttl": 60000, **dates})

    def settle(self) -> None:
        if self.open:
            number = self.open.pop(self.pick(*range(len(self.open))))
            self.over.append(number)
            self.answer(number)

    def cancel(self) -> None:
        if self.open:
            number = self.open.pop(self.pick(*range(len(self.open))))
            self.over.append(number)
            reason = self.pick("Request timed out", "", "cancelled by the user", "McpError -32001")
            self.say(">", method="notifications/cancelled", params={"requestId": number, "reason": reason})

    def repeat(self) -> None:
        """Answer or cancel what is over."""
        if self.over:
            number = self.pick(*self.over)
            if self.pick(0, 1):
                self.answer(number)
            else:
                self.say(">", method="notifications/cancelled", params={"requestId": number})

    def server_asks(self) -> None:
        self.number += 1
        self.say(
            "~", id=self.number, method=self.pick("roots/list", "sampling/createMessage", "ping"), params={}
        )
        self.asked.append(self.number)

    def client_answers(self) -> None:
        if self.asked:
            number = self.asked.pop()
            if self.pick(0, 1):
                self.say(">", id=number, result={"roots": []})
            else:
                self.say(">", id=number, error={"code": -32601, "message": "Method not found"})

    def other(self) -> None:
        match self.pick("stderr", "noise", "client noise", "note", "get", "rule", "step"):
            case "stderr":
                self.note("stderr", text=self.pick("ValueError: x", "ready", "}", 'File "a.py", line 3'))
            case "noise":
                self.lines.append(
                    self.pick("<< DEBUG: x", "<< {", '<< {"jsonrpc":"2.0","id":', "<< \\xff\\xfe{")
                )
            case "client noise":
                self.lines.append(self.pick(">> hello", ">> Content-Length: 3", '>> {"id"'))
            case "note":
                self.note(
                    "oauth", flow=1, http=self.exchange, step=self.pick("token", "registration"), status=400
                )
            case "get" if self.is_http:
                self.exchange += 1
                status = self.pick(200, 404, 405, None)
                head = {"method": self.pick("GET", "DELETE", "OPTIONS"), "path": "/mcp", "status": status}
                self.note(
                    "http", http=self.exchange, **head, request={"accept": "text/event-stream"}, response={}
                )
                self.note("http-end", http=self.exchange, hung_up=self.pick(None, "client", "server"))
            case "rule" if self.open:
                fields = {"from": "client", "id": str(self.open[-1]), "method": "ping"}
                self.note("rule", action=self.pick("drop", "delay"), rule="1", **fields)
            case _:
                self.lines.append(f"+ {self.pick(0.01, 0.4, 3)}")

    def end(self) -> None:
        for kind in self.pick((), ("client", "exit"), ("server", "exit"), ("exit",), ("kill",), ("client",)):
            if kind == "exit":
                self.note("exit", code=self.pick(0, 1, 127), signal=None)
            elif kind == "kill":
                self.note("exit", code=None, signal="SIGKILL")
            else:
                self.note("eof", **{"from": kind})


def session(head: str, seed: int) -> str:
    script = Script(f"{head} {seed}", head)
    parts = (*[script.ask] * 4, *[script.settle] * 3, script.cancel, script.repeat, script.server_asks)
    for _ in range(script.pick(*range(40))):
        script.pick(*parts, script.client_answers, script.poll, script.other, script.other)()
    script.end()
    return "\n".join(script.lines)


HEADS = (
    "@ 2025-11-25",
    "@ bare",
    "@ 2026-07-28",
    "@ 2025-11-25 http",
    "@ 2026-07-28 http",
    "@ 2024-11-05 sse",
)


def explained(text: str, focus: frozenset[int] = frozenset()) -> Explainer:
    explainer = Explainer(header_of(text), focus=focus)
    for number, entry in enumerate(entries_of(text), 2):
        explainer.add(entry, EntryPosition(number))
    explainer.end()
    return explainer


def failed_of(text: str) -> set[int]:
    """Return the numbers of the requests that failed or got no outcome, as the core judges them."""
    session = Session(header_of(text))
    session.add_all(entries_of(text))
    session.end()
    bad = outcome.FAILED | outcome.UNANSWERED
    return {each.number for each in session.exchanges if each.is_counted and each.state in bad}


def numbers_of(claim: Claim) -> list[int]:
    requests = [each for each in claim.symptoms if isinstance(each, FailedRequest)]
    return [number for each in requests for number in each.numbers]


SESSIONS = 80
"""Generated sessions of each head."""


@pytest.mark.parametrize("head", HEADS)
def test_each_request_that_failed_is_explained_once_without_a_false_sentence(head: str) -> None:
    for seed in range(SESSIONS):
        text = session(head, seed)
        explainer = explained(text)
        claims = claims_of(explainer.facts, CAUSES)
        failed = explainer.facts.failed()
        claimed = Counter(number for claim in claims for number in numbers_of(claim))
        assert {*claimed} >= failed_of(text), f"not explained: {text}"
        assert not [number for number, count in claimed.items() if count > 1], f"explained twice: {text}"
        for claim in claims:
            requests = [each for each in claim.symptoms if isinstance(each, FailedRequest)]
            assert not [each for each in requests if each.state is State.OK], text
            for about in {each.about for each in requests}:
                if re.search(SILENCE.format(re.escape(about)), claim.title):
                    answered = [each.answer_at is not None for each in failed if each.about == about]
                    assert not all(answered), f"{claim.title}: {text}"
            assert claim.next_step
        diagnosis = explainer.diagnosis()
        assert len(diagnosis.causes) + len(diagnosis.observations) == len(folded(claims))


@pytest.mark.parametrize("head", HEADS)
def test_each_line_can_be_explained_and_that_of_a_failed_request_is(head: str) -> None:
    for seed in range(0, SESSIONS, 10):
        text = session(head, seed)
        bad = failed_of(text)
        streamed = StreamingSession(header_of(text))
        for line, entry in enumerate(entries_of(text), 2):
            exchanges = [change.exchange for change in streamed.add(entry) if change.exchange is not None]
            focus = frozenset((each.poll_of or each).number for each in exchanges)
            diagnosis = explained(text, focus).diagnosis(EntryPosition(line))
            assert diagnosis.causes or diagnosis.observations or not focus & bad, f"line {line}: {text}"
