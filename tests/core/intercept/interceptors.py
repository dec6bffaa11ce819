"""Interceptors with rules, and messages for them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from mcpspy.core.intercept.actions import AddNote, ExchangeStep, Fields, Notify, Step
from mcpspy.core.intercept.interceptor import Interceptor
from mcpspy.core.protocol.message import AnyMessage, read_frame
from mcpspy.core.recording.decode import Frame
from mcpspy.core.rules.model import Rules
from mcpspy.core.rules.parser import read_flag

PREFIX = "mcpspy-test-"


class FakeExchange:
    """An HTTP exchange, which keeps the steps that are delivered to it."""

    is_answered_here = True

    def __init__(self, name: str) -> None:
        self.stream = name
        self.fields = {"stream": name, "http": 7}
        self.delivered: list[ExchangeStep] = []

    def __repr__(self) -> str:
        return f"<exchange {self.stream}>"

    def deliver(self, step: ExchangeStep) -> None:
        self.delivered.append(step)


@cache
def exchange_named(name: str) -> FakeExchange:
    return FakeExchange(name)


def rules(*flags: str, seed: int = 1) -> Rules:
    return Rules(tuple(read_flag(flag, number) for number, flag in enumerate(flags, 1)), seed)


def interceptor(*flags: str, **options: Any) -> Interceptor:
    return Interceptor(rules(*flags), prefix=PREFIX, **options)


def call(id: object = 1, tool: str = "echo", **arguments: object) -> bytes:  # noqa: A002
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).encode()


def result(id: object = 1, text: str = "hi") -> bytes:  # noqa: A002
    value = {"content": [{"type": "text", "text": text}]}
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": value}).encode()


def progress(token: object) -> bytes:
    params = {"progressToken": token, "progress": 1}
    return json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).encode()


def message(data: bytes, side: str = "client", at: float = 0.0, stream: str | None = None) -> AnyMessage:
    (read,) = read_frame(Frame(at, side, data, stream))
    return read


def notes(steps: list[Step]) -> list[Fields]:
    return [step.fields for step in steps if isinstance(step, AddNote)]


def events(steps: list[Step]) -> list[Fields]:
    return [step.event for step in steps if isinstance(step, Notify)]


def actions(steps: list[Step]) -> list[Step]:
    """Return the steps that send, drop or replace messages."""
    return [step for step in steps if not isinstance(step, AddNote | Notify)]
