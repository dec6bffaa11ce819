"""Comparison of the server's messages in a recording with what reached the model: one outcome for each probe."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from hostlab.models import ModelRequest, OfferedTool, api_of
from hostlab.probes import CONTROL, INSTRUCTIONS, RESULTS, SHOWN, Json, Probe, mark


class Status(StrEnum):
    """The fate of a probe in a host."""

    ARRIVED = "arrived"
    RENAMED = "renamed"
    CUT = "cut"
    CHANGED = "changed"
    DROPPED = "dropped"
    DROPS_ALL = "drops all"
    """All tools of the server are missing because of it."""


class Outcome(NamedTuple):
    """What a host did with a probe."""

    status: Status
    detail: str = ""


class Recorded(NamedTuple):
    """The parts of a recording that the comparison needs."""

    client: Json
    """Params of `initialize`."""
    listings: int
    """Number of complete listings of the tools that were requested."""
    tools: list[Json]
    """The tools of all pages that the server sent."""


def recorded(lines: Iterable[str]) -> Recorded:
    """Return the messages of a recording."""
    client: Json = {}
    asked: dict[Any, Json] = {}
    tools: list[Json] = []
    listings = 0
    for line in lines:
        message = json.loads(line).get("msg") or {}
        if message.get("method") == "initialize":
            client = message["params"]
        elif message.get("method") == "tools/list":
            asked[message["id"]] = message.get("params") or {}
        elif message.get("id") in asked and "result" in message:
            listings += "cursor" not in asked.pop(message["id"])
            tools += message["result"]["tools"]
    return Recorded(client, listings, tools)


def conversation(requests: Iterable[tuple[str, Json]]) -> list[ModelRequest]:
    """Return the requests of the conversation with the user: those with the most tools."""
    read = [api.read(body) for path, body in requests if (api := api_of(path)) is not None]
    most = max((len(request.tools) for request in read), default=0)
    return [request for request in read if len(request.tools) * 2 >= most > 0]


def is_offered(request: ModelRequest) -> bool:
    """Return whether the model has the control tool."""
    return control_of(request) is not None


def control_of(request: ModelRequest) -> OfferedTool | None:
    """Return the control tool in a model's request."""
    return next((tool for tool in request.tools if tool.description.startswith(CONTROL["description"])), None)


def prefix_of(request: ModelRequest) -> str:
    """Return the text that the host puts before a tool's name, with its namespace."""
    control = control_of(request)
    if control is None:
        return ""
    space = f"{control.namespace}__" if control.namespace else ""
    return space + control.name.removesuffix(CONTROL["name"])


def outcome(probe: Probe, listed: list[Json], request: ModelRequest) -> Outcome:
    """Return what became of the tools of a probe; the control tool must have arrived."""
    sent = [tool for tool in probe.tools if tool in listed]
    offered = _offered(probe, request)
    if not sent:
        return Outcome(Status.DROPPED, "the host did not request the page of the list with it")
    if len(sent) > 1:
        distinct = {tool.name for tool in offered}
        if len(offered) < len(sent):
            return Outcome(Status.DROPPED, f"{len(sent) - len(offered)} of {len(sent)}")
        if len(distinct) < len(sent):
            return Outcome(Status.ARRIVED, "twice, under one name")
        return Outcome(Status.ARRIVED if len(sent) > 2 else Status.RENAMED, ", ".join(sorted(distinct)[:2]))
    if not offered:
        return Outcome(Status.DROPPED)
    return _compared(sent[0], offered[0], request)


def _offered(probe: Probe, request: ModelRequest) -> list[OfferedTool]:
    marked = [tool for tool in request.tools if mark(probe.id) in tool.description]
    names = {re.sub(r"\W", "", tool["name"]) for tool in probe.tools}
    return marked or [
        tool
        for tool in request.tools
        if any(name and re.sub(r"\W", "", tool.name).endswith(name) for name in names)
    ]


def _compared(sent: Json, offered: OfferedTool, request: ModelRequest) -> Outcome:
    control = control_of(request)
    assert control is not None
    if offered.name != control.name.removesuffix(CONTROL["name"]) + sent["name"]:
        return Outcome(Status.RENAMED, offered.name)
    described = sent.get("description") or ""
    kept = prefix_length(described, offered.description)
    if kept < len(described):
        return Outcome(Status.CUT, str(kept))
    expected = set(_changes(CONTROL["inputSchema"], control.schema))
    changes = [
        change for change in _changes(sent.get("inputSchema"), offered.schema) if change not in expected
    ]
    if changes:
        more = f" and {len(changes) - 6} more" if len(changes) > 6 else ""
        return Outcome(Status.CHANGED, "; ".join(changes[:6]) + more)
    added = sorted(set(_strings(sent)) - set(_strings(sent.get("inputSchema"))) - {described, sent["name"]})
    shown = [text for text in added if len(text) > 9]
    lost = [text for text in shown if text not in offered.description]
    return Outcome(Status.DROPPED, "not shown to the model") if shown and lost else Outcome(Status.ARRIVED)


def prefix_length(text: str, arrived: str) -> int:
    """Return how many characters of a text's beginning arrived."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text[:middle] in arrived else (low, middle - 1)
    return low


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)


def _changes(sent: Any, arrived: Any, path: str = "") -> Iterator[str]:
    """Yield the differences of two schemas in words, with the path of each."""
    at = f"`{path.strip('.')}`" if path else "root"
    if isinstance(sent, dict) and isinstance(arrived, dict):
        for key in sorted(sent.keys() | arrived.keys()):
            if key not in arrived:
                yield f"{at}: `{key}` removed"
            elif key not in sent and (key == "properties" or arrived[key] in ({}, [])):  # It says the same.
                yield from _changes(type(arrived[key])(), arrived[key], f"{path}.{key}")
            elif key not in sent:
                yield f"{at}: `{key}` added"
            else:
                yield from _changes(sent[key], arrived[key], f"{path}.{key}")
    elif isinstance(sent, str) and isinstance(arrived, str) and sent != arrived:
        kept = prefix_length(sent, arrived)
        yield (
            f"{at}: cut at {kept:,} characters"
            if kept > 20
            else f"{at}: {_short(sent)} became {_short(arrived)}"
        )
    elif sent != arrived:
        yield f"{at}: {_short(sent)} became {_short(arrived)}"


def _short(value: Any) -> str:
    written = json.dumps(value, ensure_ascii=False)
    return f"`{written}`" if len(written) <= 60 else f"`{written[:57]}…`"


def instructions(requests: list[ModelRequest]) -> Outcome:
    """Return what became of the server's instructions."""
    kept = max((prefix_length(INSTRUCTIONS, request.text) for request in requests), default=0)
    if kept < 20:
        return Outcome(Status.DROPPED)
    return Outcome(Status.ARRIVED) if kept == len(INSTRUCTIONS) else Outcome(Status.CUT, str(kept))


def result(name: str, content: Any) -> Outcome:
    """Return what of a tool's result is in the content that reached the model."""
    text = re.sub(r"[\d.]+ seconds", "N seconds", "\n".join(_strings(content)))  # Every run has its own.
    if re.search(r"_\d+$", name):
        whole = RESULTS[name]["content"][0]["text"]
        parts = set(re.findall(r"\d{7}", whole))
        arrived = parts & set(re.findall(r"\d{7}", text))
        if len(arrived) == len(parts):
            return Outcome(Status.ARRIVED)
        first = prefix_length(whole, text)
        return Outcome(Status.CUT, f"{first} at its beginning, {max(len(arrived) * 8 - first, 0)} elsewhere")
    shown = SHOWN.get(name, ())
    lost = [part for part in shown if part not in text.replace('\\"', '"')]
    if len(lost) == len(shown) and shown:
        return Outcome(Status.DROPPED, _short(text) if text else "")
    return Outcome(Status.CHANGED, "without " + ", ".join(lost)) if lost else Outcome(Status.ARRIVED)
