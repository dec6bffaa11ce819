"""The context cost of servers: what their definitions and results take of a model's window. Pure.

A host sends the model each tool's name, description and input schema, and the server's instructions, before the first
call, then the text of each result. How a host frames them is not in a recording, nor whether it cut a result.
Prompts and resources are counted separately: most hosts list them for the user, not for the model.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from math import ceil
from typing import Any, NamedTuple

from msgspec import Struct, field

from mcpspy.analysis import rows
from mcpspy.analysis.tokens import count_tokens, tokenizer
from mcpspy.core.jsontools import canonical
from mcpspy.core.protocol.message import Result
from mcpspy.core.protocol.peers import HANDSHAKE_METHODS
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.outcome import ASKED
from mcpspy.core.session.session import Session

CALL = "tools/call"

LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
"""Method → member of the result that has the list."""

RESULTS = (CALL, "resources/read", "prompts/get", "tasks/result")
"""Methods whose results reach the model."""

WINDOWS = {
    "claude-opus-5": 1_000_000,  # platform.claude.com/docs/es/models/opus-5/overview
    "claude-sonnet-4.5": 200_000,  # docs.uipath.com/autopilot/other/latest/user-guide/supported-models-and-limits
    "gemini-2.5-pro": 1_048_576,  # docs.cloud.google.com/gemini-enterprise-agent-platform/models/gemini/2-5-pro
    "gpt-4o": 128_000,  # docs.uipath.com/autopilot/other/latest/user-guide/supported-models-and-limits
    "gpt-5": 400_000,  # vercel.com/ai-gateway/models/gpt-5-fast
}
"""Model → tokens of its context window. Each page was read on 2026-11-23."""

DEFAULT_WINDOW = 200_000
"""Tokens of the window for shares, if no other is named."""


class Size(Struct, frozen=True):
    """Bytes of a text as UTF-8, and its tokens (`analysis.tokens`)."""

    bytes: int = 0
    tokens: int = 0


class ListCost(Struct):
    count: int
    size: Size


class ResultCost(Struct):
    """The results of one tool or method. Quantiles are by nearest rank of the tokens."""

    count: int
    media: int
    """Images, audio and binary resources, which have no tokens here: their price depends on the model."""
    total: Size
    p50: Size
    p95: Size
    max: Size


class ToolCost(Struct):
    server: str
    name: str
    definition: Size | None
    """None for a tool that was called and is not in the latest list."""
    calls: int
    results: ResultCost | None


class RepeatedCall(NamedTuple):
    """Calls with the same arguments, as canonical JSON, within one session."""

    server: str
    tool: str
    arguments: str
    calls: int


class ContextReport(Struct):
    tokenizer: str
    """`o200k`, or `estimate`."""
    sessions: int
    servers: list[str]
    start: Size
    """Instructions and tool definitions: sent before the first call."""
    lists: dict[str, ListCost]
    """`instructions`, and the items of the latest lists of all servers, by the member of the result."""
    tools: list[ToolCost]
    """The tools that were listed or called; the largest definition first."""
    others: dict[str, ResultCost]
    """The results of other methods."""
    repeated: list[RepeatedCall]
    """The most frequent first."""


class _Sizes(Struct):
    sizes: list[Size] = field(default_factory=list)
    media: int = 0

    def cost(self) -> ResultCost:
        ranked = sorted(self.sizes, key=lambda size: (size.tokens, size.bytes))
        p50, p95, most = (ranked[ceil(share * len(ranked)) - 1] for share in (0.5, 0.95, 1.0))
        return ResultCost(len(ranked), self.media, total(ranked), p50, p95, most)


class ContextCollector:
    """Counts sessions. Servers of the same name are one server, with its latest lists."""

    def __init__(self) -> None:
        self._sessions = 0
        self._servers: dict[str, None] = {}
        self._instructions: dict[str, str] = {}
        self._lists: dict[tuple[str, str], list[Any]] = {}
        self._calls: Counter[tuple[str, str]] = Counter()
        self._repeated: Counter[tuple[str, str, str]] = Counter()
        self._results: dict[tuple[str, str], _Sizes] = {}
        """By server and tool, or by "" and method."""

    def add(self, session: Session) -> None:
        """Count a session."""
        name = (
            session.server.name if session.server else rows.server(session.header) if session.header else ""
        )
        self.add_exchanges(name, session.exchanges)

    def add_exchanges(self, name: str, exchanges: Iterable[Exchange]) -> None:
        """Count the exchanges of a session with a server. Requests that mcpspy injected do not count: no model sent
        them.
        """
        self._sessions += 1
        self._servers[name] = None
        arguments: Counter[tuple[str, str, str]] = Counter()
        for exchange in exchanges:
            request = exchange.request
            if request.side != CLIENT or request.frame.by is not None:
                continue
            tool = request.subject if request.method == CALL else None
            # A request that continues another one answers the server's question; it is not another call.
            if tool is not None and exchange.continues is None:
                self._calls[name, tool] += 1
                arguments[name, tool, canonical(request.params.get("arguments", {}))] += 1
            if isinstance(exchange.answer, Result) and isinstance(exchange.answer.result, dict):
                self._add_result(name, tool, exchange, exchange.answer.result)
        self._repeated.update({key: count for key, count in arguments.items() if count > 1})

    def _add_result(self, server: str, tool: str | None, exchange: Exchange, result: dict[str, Any]) -> None:
        method, params = exchange.request.method, exchange.request.params
        if method in HANDSHAKE_METHODS and isinstance(text := result.get("instructions"), str):
            self._instructions[server] = text
        elif method in LISTS and isinstance(items := result.get(LISTS[method]), list):
            is_first = not isinstance(params, dict) or params.get("cursor") is None
            known = [] if is_first else self._lists.get((server, method), [])
            self._lists[server, method] = [*known, *items]
        elif method in RESULTS and not exchange.is_task and exchange.state not in ASKED:
            text, media = result_text(result)
            found = self._results.setdefault(("", method) if tool is None else (server, tool), _Sizes())
            found.sizes.append(size_of(text))
            found.media += media

    def report(self) -> ContextReport:
        definitions: dict[tuple[str, str], Size] = {}
        lists = {"instructions": _cost(self._instructions.values())}
        for method, member in LISTS.items():
            found = [
                (server, item)
                for (server, of), items in self._lists.items()
                if of == method
                for item in items
            ]
            if method == "tools/list":
                definitions = {
                    (server, item["name"]): size_of(definition(item))
                    for server, item in found
                    if isinstance(item, dict) and isinstance(item.get("name"), str)
                }
                lists[member] = ListCost(len(definitions), total(definitions.values()))
            else:
                lists[member] = _cost(compact(item) for _, item in found)
        results = {key: found.cost() for key, found in self._results.items()}
        tools = [
            ToolCost(*key, definitions.get(key), self._calls[key], results.get(key))
            for key in dict.fromkeys([*definitions, *self._calls, *results])
            if key[0] or key[1] not in RESULTS
        ]
        repeated = [RepeatedCall(*key, count) for key, count in self._repeated.items()]
        return ContextReport(
            tokenizer(),
            self._sessions,
            list(self._servers),
            total([lists["instructions"].size, lists["tools"].size]),
            lists,
            sorted(tools, key=lambda tool: (-(tool.definition or Size()).tokens, tool.server, tool.name)),
            {name: cost for (server, name), cost in results.items() if not server and name in RESULTS},
            sorted(repeated, key=lambda call: (-call.calls, call)),
        )


def summary(report: ContextReport, window: int = DEFAULT_WINDOW) -> str:
    """Return the context cost of a session in one line; empty if no tools were listed."""
    if not (tools := report.lists["tools"].count):
        return ""
    start, prefix = report.start.tokens, "about " if report.tokenizer == "estimate" else ""
    unused = sum(tool.definition is not None and not tool.calls for tool in report.tools)
    repeated = sum(call.calls for call in report.repeated)
    return ", ".join(
        [
            f"{prefix}{start:,} tokens before the first call ({share(start, window)} of {window:,})",
            *([f"{unused} of {tools} tools never called"] if unused else []),
            *([f"{repeated} calls with the same arguments"] if repeated else []),
        ]
    )


def read_window(text: str) -> int:
    """Return the tokens of `200k`, `1m`, `128000` or a model of `WINDOWS`; raise ValueError."""
    if text.lower() in WINDOWS:
        return WINDOWS[text.lower()]
    number, unit = (text[:-1], text[-1:].lower()) if text[-1:].isalpha() else (text, "")
    unit_tokens = {"": 1, "k": 1_000, "m": 1_000_000}.get(unit)
    if unit_tokens is None or not (
        number.isascii() and number.isdigit() and len(number) < 10 and int(number)
    ):
        raise ValueError(f"not a number of tokens, and not one of {', '.join(WINDOWS)}")
    return int(number) * unit_tokens


def share(tokens: int, window: int) -> str:
    """Return the share of a window as text: `0.4 %`."""
    part = tokens / window
    return f"{part:.1%}".replace("%", " %") if part >= 0.001 else "< 0.1 %" if part else "0 %"


def definition(tool: dict[str, Any]) -> str:
    """Return a tool as a host sends it to a model: name, description and inputSchema as compact JSON."""
    return compact({key: tool[key] for key in ("name", "description", "inputSchema") if key in tool})


def result_text(result: dict[str, Any]) -> tuple[str, int]:
    """Return the text of a result that reaches the model, and the number of items that are not text.

    It consists of the texts of tool content, resource contents or prompt messages; resource links are compact JSON.
    `structuredContent` counts only without a text: servers repeat it as a text for older clients (2025-06-18,
    server/tools, Structured Content).
    """
    items = result.get("content", result.get("contents"))
    if isinstance(messages := result.get("messages"), list):
        items = [message.get("content") for message in messages if isinstance(message, dict)]
    texts, media = [], 0
    for item in items if isinstance(items, list) else ():
        inner = item.get("resource", item) if isinstance(item, dict) else None
        if isinstance(inner, dict) and isinstance(text := inner.get("text"), str):
            texts.append(text)
        elif isinstance(inner, dict) and inner.get("type") == "resource_link":
            texts.append(compact(inner))
        else:
            media += 1
    if not texts and result.get("structuredContent") is not None:
        texts.append(compact(result["structuredContent"]))
    return "\n".join(texts), media


def size_of(text: str) -> Size:
    return Size(len(text.encode("utf-8", "surrogatepass")), count_tokens(text))


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def total(sizes: Iterable[Size]) -> Size:
    listed = list(sizes)
    return Size(sum(size.bytes for size in listed), sum(size.tokens for size in listed))


def _cost(texts: Iterable[str]) -> ListCost:
    sizes = list(map(size_of, texts))
    return ListCost(len(sizes), total(sizes))
