"""The number of tokens in a text, and the context cost of servers. Pure.

A tokenizer cuts a text into words, groups of up to three digits, runs of punctuation, and white space, and looks each
piece up in its vocabulary. The estimate counts these pieces by class and gives each class a weight: tokens per piece,
for the encodings o200k and cl100k (the mean of both). With rs-bpe (extra `tokens`) the number is exact.

Measured on 2026-11-23 with gpt-tokenizer 4.0.0 (npm, o200k) and rs-bpe 0.1.0 (PyPI, cl100k; its o200k agrees with
gpt-tokenizer on every text). `bench/tokens.py` fits the weights to the 400 definitions and results of 14 servers in
tests/analysis/tokens.csv; docs/stats.md has the errors.

The context cost is what definitions and results take of a model's window. A host sends the model each tool's name,
description and input schema, and the server's instructions, before the first call, then the text of each result. How a
host frames them is not in a recording, nor whether it cut a result. Prompts and resources are counted separately: most
hosts list them for the user, not for the model. Tools and pages that an extension hides from the model do not count.
"""

from __future__ import annotations

import importlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from math import ceil
from typing import Any, NamedTuple

from msgspec import Struct, field

from mcpspy.analysis import rows
from mcpspy.core.jsontools import canonical
from mcpspy.core.protocol.extensions import EXTENSION_LISTINGS, is_for_model
from mcpspy.core.protocol.listing import LISTINGS, ListingPages, joined
from mcpspy.core.protocol.message import Result
from mcpspy.core.protocol.peers import HANDSHAKE_METHODS
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.outcome import ASKED
from mcpspy.core.session.session import Session

_WORD = re.compile("[A-Z]?[a-z]+|[A-Z]+")
_DIGITS = re.compile("[0-9]{1,3}")
_MIXED = re.compile("[0-9][A-Za-z]|[A-Za-z][0-9]")
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]+")
_PREFIX = re.compile(r"[!-/:-@\[-`{-~](?=[A-Za-z])")
_SLASH = re.compile("(?<=[A-Za-z])/(?=[A-Za-z])")
_INDENT = re.compile(r"\t+|[ \t]{2,}")
_LINE_END = re.compile(r"(?<![!-/:-@\[-`{-~\r\n])[\r\n]+")
_SPACED_DIGIT = re.compile(" (?=[0-9])")
_OTHER = re.compile("[^\x00-\x7f]+")


class TextFeatures(NamedTuple):
    """Counts of the pieces of a text.

    A capital letter begins a word: `getSum` has two. `digits` are groups of up to three; `mixed` is a letter beside a
    digit; a prefix is punctuation directly before a letter; a slash is one between letters; an indent is a tab, or two
    spaces or more. A line end counts only if no punctuation precedes it: they are one piece. The last four are characters: to U+024F; other alphabets; Chinese, Japanese, Korean; symbols and the rest.
    """

    words: int
    letters_over_5: int
    letters_over_9: int
    digits: int
    mixed: int
    punctuation: int
    punctuation_over_2: int
    prefixes: int
    slashes: int
    indents: int
    line_ends: int
    spaced_digits: int
    latin: int
    alphabetic: int
    ideographic: int
    other: int


WEIGHTS = (
    *(0.944, 0.065, 0.043, 0.914, 0.680, 1.143, 0.155, -0.333),
    *(-0.317, 1.064, 0.758, 0.932, 1.046, 0.748, 0.824, 2.564),
)
"""Tokens for each count of `TextFeatures`."""


def features(text: str) -> TextFeatures:
    words = list(map(len, _WORD.findall(text)))
    runs = list(map(len, _PUNCTUATION.findall(text)))
    foreign = "" if text.isascii() else "".join(_OTHER.findall(text))
    latin = sum(char < "\u0250" for char in foreign)
    alphabetic = sum("\u0250" <= char < "\u1100" or "\u1e00" <= char < "\u2000" for char in foreign)
    ideographic = sum("\u3000" <= char < "\ud7b0" for char in foreign)
    return TextFeatures(
        len(words),
        sum(length - 5 for length in words if length > 5),
        sum(length - 9 for length in words if length > 9),
        len(_DIGITS.findall(text)),
        len(_MIXED.findall(text)),
        len(runs),
        sum(length - 2 for length in runs if length > 2),
        len(_PREFIX.findall(text)),
        len(_SLASH.findall(text)),
        len(_INDENT.findall(text)),
        len(_LINE_END.findall(text)),
        len(_SPACED_DIGIT.findall(text)),
        latin,
        alphabetic,
        ideographic,
        len(foreign) - latin - alphabetic - ideographic,
    )


def estimated_tokens(found: TextFeatures) -> int:
    """Return the number of tokens, at least 1 if the text has a piece."""
    if not any(found):
        return 0
    return max(round(sum(count * weight for count, weight in zip(found, WEIGHTS, strict=True))), 1)


@cache
def _o200k() -> Callable[[str], int] | None:
    """Return the count of rs-bpe, which contains the vocabulary; None if it is not installed."""
    try:
        count: Callable[[str], int] = importlib.import_module("rs_bpe.bpe").openai.o200k_base().count
    except ImportError:
        return None
    return count


def tokenizer() -> str:
    """Return the source of `count_tokens`: `o200k`, or `estimate` without rs-bpe."""
    return "o200k" if _o200k() else "estimate"


def count_tokens(text: str) -> int:
    count = _o200k()
    # rs-bpe rejects lone surrogates.
    return count(text.encode("utf-8", "replace").decode()) if count else estimated_tokens(features(text))


CALL = "tools/call"

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
    """`instructions`, and the items of the latest lists of all servers, by the member of the result; `apps`, if there are
    any, for the tools and pages of apps (MCP Apps), which a host does not show its model; of a list of an extension,
    if there is one, the part that is for the model: the frontmatter of `skills`.
    """
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
        self._pages: dict[tuple[str, str], str] = {}
        """Server and URI → the HTML of an app, which only the user sees."""
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
        pages = ListingPages[list[Any]]()
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
                self._add_result(name, tool, exchange, exchange.answer.result, pages)
        self._repeated.update({key: count for key, count in arguments.items() if count > 1})

    def _add_result(
        self,
        server: str,
        tool: str | None,
        exchange: Exchange,
        result: dict[str, Any],
        pages: ListingPages[list[Any]],
    ) -> None:
        method = exchange.request.method
        if method in HANDSHAKE_METHODS and isinstance(text := result.get("instructions"), str):
            self._instructions[server] = text
        elif (listing := LISTINGS.get(method)) and isinstance(items := result.get(listing.member), list):
            listed = pages.add_result(exchange.request, result, items)
            if listed.begins or listed.before or (server, method) not in self._lists:
                self._lists[server, method] = joined(listed)
        elif method in RESULTS and not exchange.is_task and exchange.state not in ASKED:
            contents = result.get("contents")
            if method == "resources/read" and isinstance(contents, list):
                for item in contents:
                    if isinstance(item, dict) and not is_for_model(item):
                        page = item.get("text", item.get("blob"))
                        self._pages[server, str(item.get("uri"))] = page if isinstance(page, str) else ""
                seen = [item for item in contents if not isinstance(item, dict) or is_for_model(item)]
                if contents and not seen:
                    return
                result = {**result, "contents": seen}
            text, media = result_text(result)
            found = self._results.setdefault(("", method) if tool is None else (server, tool), _Sizes())
            found.sizes.append(size_of(text))
            found.media += media

    def report(self) -> ContextReport:
        definitions: dict[tuple[str, str], Size] = {}
        hidden: list[Size] = []
        of_apps: set[tuple[str, str]] = set()
        lists = {"instructions": _cost(self._instructions.values())}
        for method, listing in LISTINGS.items():
            found = [
                (server, item)
                for (server, of), items in self._lists.items()
                if of == method
                for item in items
            ]
            if method == "tools/list":
                named = {
                    (server, item["name"]): item
                    for server, item in found
                    if isinstance(item, dict) and isinstance(item.get("name"), str)
                }
                sizes = {key: size_of(definition(item)) for key, item in named.items()}
                definitions = {key: size for key, size in sizes.items() if is_for_model(named[key])}
                hidden = [size for key, size in sizes.items() if key not in definitions]
                of_apps = sizes.keys() - definitions.keys()
                lists[listing.member] = ListCost(len(definitions), total(definitions.values()))
            elif method not in EXTENSION_LISTINGS:
                lists[listing.member] = _cost(compact(item) for _, item in found)
            elif found:
                member = EXTENSION_LISTINGS[method][1].for_model
                parts = (item.get(member) for _, item in found if member and isinstance(item, dict))
                lists[listing.member] = _cost(compact(part) for part in parts if part is not None)
        hidden += map(size_of, self._pages.values())
        if hidden:
            lists["apps"] = ListCost(len(hidden), total(hidden))
        results = {key: found.cost() for key, found in self._results.items() if key not in of_apps}
        tools = [
            ToolCost(*key, definitions.get(key), self._calls[key], results.get(key))
            for key in dict.fromkeys([*definitions, *self._calls, *results])
            if key not in of_apps and (key[0] or key[1] not in RESULTS)
        ]
        repeated = [
            RepeatedCall(*key, count) for key, count in self._repeated.items() if key[:2] not in of_apps
        ]
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
