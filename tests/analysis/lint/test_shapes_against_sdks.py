"""The shapes of the tables, against the models of the official SDKs: messages of the tests, and mutants of them.

Each disagreement has its reason in `EXPLAINED`. The peers judge in their own environments (tests/peers).
"""

from __future__ import annotations

import copy
import itertools
import json
import random
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from mcpspy.analysis.lint import RULES, Linter
from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.examples import entries_of, header_of
from mcpspy.analysis.lint.finding import EventKind, Severity
from mcpspy.analysis.lint.rule import LEGACY, LintRule, Report
from mcpspy.analysis.lint.shapes import KINDS, SHAPED, shape_name, shape_of, table
from mcpspy.core.protocol.message import Request, Result
from mcpspy.core.protocol.spec import METHODS, MODERN, REVISIONS, is_known, other
from mcpspy.core.recording.decode import Entry, Frame, Header
from mcpspy.core.session.streaming import StreamingSession
from mcpspy.io.recording.reader import Recording
from tests.e2e.test_messages import lines

ROOT = Path(__file__).parents[3]
PEERS = ROOT / ".peers"
MUTANTS = 10_000
SEED = 1
WRONG: tuple[Any, ...] = (None, True, 7, 1.5, "wrong", [], {}, [1], {"a": 1}, -1)


class Judged(NamedTuple):
    """Params or a result, as every judge gets it."""

    revision: str
    sender: str
    kind: str
    method: str
    value: dict[str, Any]


_PYTHON = str(ROOT / "tests/peers/shapes.py")
_NODE = ["node", "--input-type=module", "-e", (ROOT / "tests/peers/shapes.mjs").read_text(encoding="utf-8")]
JUDGES = {
    "python 2": ([str(PEERS / "venv/bin/python"), _PYTHON], REVISIONS),
    "python 1": ([str(PEERS / "mcp1/bin/python"), _PYTHON], REVISIONS[:-1]),
    "typescript 1": ([*_NODE, "@modelcontextprotocol/sdk/types.js"], REVISIONS[:-1]),
    "typescript 2": (
        [*_NODE, "@modelcontextprotocol/core", "@modelcontextprotocol/ext-tasks/core/v2"],
        REVISIONS[-1:],
    ),
}
"""SDK → the command that judges, and the revisions that its models describe."""

EXPLAINED = {
    r"^python \d accepts .* type null$": "The models of Python take null for every optional member.",
    r"^python \d accepts .* enum null$": "The models of Python take null for every optional member.",
    r"^(python|typescript) \d accepts .* pattern ": "URIs, Base64, media types, icons and times are not checked.",
    r"^python \d accepts .*elicitation/create: \.requestedSchema\.properties": "Forms are any object.",
    r"^python 2 accepts .*inputRequests\..*\.requestedSchema\.properties": "Forms are any object.",
    r"^python \d accepts .*inputSchema\.properties\.\w+ type": "Schemas are any object.",
    r"accepts 2024-11-05 .*type enum \"audio\"": "The models are those of 2025-11-25, which has audio.",
    r"rejects (2024-11-05|2025-03-26|2025-06-18) .*capabilities\.(completions|tasks|elicitation|sampling)": "The models are those of 2025-11-25.",
    r"^python 2 accepts 2026-07-28 result (tools/call|resources/read|prompts/get): (?!resultType)": "They may be an InputRequiredResult, which requires only its resultType.",
    r"serverInfo": "The SDKs check it when it is used.",
    r"rejects .* notifications/cancelled: params\.requestId": "A rule of the life cycle reports a missing requestId.",
    r"^typescript 1 rejects .*Unrecognized key": "zod checks empty results strictly; the specification allows members.",
    r"^typescript \d accepts .*: \(itself\) required content$": "zod takes an absent content for an empty list.",
    r"rejects .*Too big": "DATA504 reports more than 100 values.",
    r"rejects .*must start with \"file://\"": "The page of roots says so, its schema only recommends it: not a shape.",
    r"accepts .*: resultType: MOD": "Other types of results may belong to extensions.",
    r"^typescript 2 accepts 2026-07-28 .*(_meta|resultType|cacheScope|ttlMs)": "Its schemas are those of all revisions; the SDK checks this before.",
    r"^python \d accepts .*related-task": "Members of _meta are not checked.",
    r"^python \d accepts .*elicitation/complete: \._meta type": "The notification has no _meta in the models.",
    r"^(python|typescript) \d accepts .*(contents\[\]|resource)\.(text|blob) type": "One of text and blob is enough: another type of the other one passes.",
    r"^typescript 1 accepts .* type \[": "typeof takes a list for an object.",
    r"^typescript 1 accepts .*elicitation/create: \.content type null": "A preprocessor drops null.",
    r"^typescript 1 accepts .*elicitation/create: \.requestedSchema\.properties": "One of the kinds of fields takes it.",
    r"^typescript 1 accepts .*\$schema type": "Members of schemas are not checked.",
    r"^typescript 1 accepts .*\.(ttl|pollInterval|size) type \d": "schema.ts has numbers, schema.json integers.",
    r"^(python|typescript) \d accepts 202[45]-.*sampling/createMessage: .*content type \[": "Lists are of 2025-11-25.",
    r"accepts 202[45]-.*capabilities\.extensions": "Extensions are members of 2026-07-28, which peers declare before, too.",
    r"accepts .*(_meta\.ui|extensions\.io\.modelcontextprotocol/)": "The SDKs do not check the members of extensions.",
    r"^typescript 2 accepts 2026-.*(tasks/get|notifications/tasks): \.result": "The SDK reads the result of the task later.",
    r"^typescript 2 rejects 2026-.*server/discover: capabilities\.tasks": "DATA723 reports this capability of 2025-11-25.",
    r"^typescript 2 accepts .*(inputRequests|inputResponses|requestState)": "The schemas have no input requests; the SDK checks them before.",
    r"^(python|typescript) 2 accepts .*notifications\.taskIds": "The filter for tasks is of the extension.",
    r"^typescript \d accepts .*(ref|arguments\[\])\.title type": "The schemas have no title of references and arguments.",
    r"^typescript 2 rejects .*(contents|messages|content): Invalid input: expected array, received undefined": "The schemas have no input_required results.",
    r"^typescript 2 rejects .*inputSchema\.properties": "Any JSON Schema is allowed; DATA201 checks that it is one.",
}
"""Pattern of disagreements → the reason."""


_TASK = {"taskId": "a", "createdAt": "a", "lastUpdatedAt": "a", "ttl": 1.5, "status": "working"}
_TOOL = {"name": "a", "inputSchema": {"type": "object", "properties": {"n": True}}}
_CLIENT = {"protocolVersion": "a", "clientInfo": {"name": "a", "version": "1"}}
_EXTENSION = {"extensions": {"io.modelcontextprotocol/skills": 5}}
_REFERENCE = {"type": "ref/prompt", "name": "a", "title": 7}
_ASKING = {"taskId": "a", "createdAt": "a", "lastUpdatedAt": "a", "ttlMs": 1, "status": "input_required"}
_MODERN_TOOL = {"name": "a", "inputSchema": {"type": "object", "properties": 5}}
_CACHED = {"ttlMs": 1, "cacheScope": "public", "resultType": "complete"}
_ROLE = {"role": "user", "model": "a"}

RARE = (
    Judged(LEGACY, "server", "result", "tasks/get", _TASK),
    Judged(LEGACY, "server", "result", "tools/list", {"tools": [_TOOL]}),
    Judged(
        LEGACY,
        "server",
        "result",
        "tools/list",
        {"tools": [{**_TOOL, "inputSchema": {"type": "object", "$schema": 7}}]},
    ),
    Judged(LEGACY, "client", "request", "initialize", {**_CLIENT, "capabilities": _EXTENSION}),
    Judged(
        LEGACY,
        "client",
        "request",
        "completion/complete",
        {"ref": _REFERENCE, "argument": {"name": "a", "value": ""}},
    ),
    Judged(
        LEGACY,
        "server",
        "notification",
        "notifications/elicitation/complete",
        {"elicitationId": "a", "_meta": 7},
    ),
    Judged("2025-06-18", "client", "result", "sampling/createMessage", {**_ROLE, "content": []}),
    Judged(
        MODERN,
        "server",
        "notification",
        "notifications/subscriptions/acknowledged",
        {"notifications": {"taskIds": {}}},
    ),
    Judged(MODERN, "server", "result", "tasks/get", {**_ASKING, "resultType": "complete"}),
    Judged(MODERN, "server", "result", "tools/list", {**_CACHED, "tools": [_MODERN_TOOL]}),
)
"""Messages that only few mutants resemble; each is of an explanation."""


def collected(header: Header | None, entries: Iterator[Entry]) -> list[Judged]:
    """Return the params and results of a session, each once with the revision that the linter takes."""
    found: list[Judged] = []

    def collect(event: LintEvent) -> list[Report]:
        what, document = event.what, event.document
        kind = (
            EventKind.RESULT
            if isinstance(what, Result)
            else EventKind.REQUEST
            if isinstance(what, Request)
            else EventKind.NOTIFICATION
        )
        value = (
            document.get("result" if kind is EventKind.RESULT else "params", {})
            if isinstance(document, dict)
            else None
        )
        if isinstance(value, dict) and (event.is_result or kind is not EventKind.RESULT):
            is_task = isinstance(what, Result) and what.is_task
            found.append(
                Judged(
                    event.revision or LEGACY,
                    event.side,
                    KINDS[kind],
                    "task" if is_task else event.method,
                    value,
                )
            )
        return []

    rule = LintRule(
        code="ENV999",
        severity=Severity.INFO,
        summary="",
        page="",
        on=SHAPED,
        valid=("",),
        invalid=("",),
        check=collect,
    )
    session, linter = StreamingSession(header), Linter(header, [rule])
    for entry in entries:
        for change in session.add(entry):
            linter.add(change)
    return found


def instance(schema: dict[str, Any], rng: random.Random) -> Any:
    """Return a value that a schema of the tables accepts."""
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "x-by" in schema:
        case = rng.choice(schema["allOf"])
        value = instance(case["then"], rng)
        if schema["x-by"] != "*":
            value[schema["x-by"]] = case["if"]["properties"][schema["x-by"]]["const"]
        return value
    kind = schema.get("type", "string")
    if isinstance(kind, list):
        kind = rng.choice(kind)
        case = next((case for case in schema["allOf"] if case["if"]["type"] == kind), None)
        return instance(case["then"] if case else {"type": kind}, rng)
    if kind == "array":
        return [instance(schema["items"], rng) for _ in range(rng.randint(0, 2))]
    if kind == "object":
        if "additionalProperties" in schema:
            return {"k": instance(schema["additionalProperties"], rng)} if rng.random() < 0.7 else {}
        return _object(schema, rng)
    texts = {"a URI": "a:b", "standard Base64": "aGk=", "a media type": "text/plain", "an https or data URI": "https://a/b", "a URL": "https://a", "a size such as 48x48, or any": "any", "an ISO 8601 time": "2025-01-01T00:00:00Z", "a URI that begins with ui://": "ui://a", "an origin": "https://a"}  # fmt: skip
    plain = {"integer": 1, "number": 0.5, "boolean": True, "null": None}
    return plain[kind] if kind in plain else texts.get(schema.get("x-words", ""), "a")


def _object(schema: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    full = rng.choice((0.0, 0.3, 0.8))
    value = {
        name: instance(member, rng)
        for name, member in schema.get("properties", {}).items()
        if name in schema.get("required", ()) or rng.random() < full
    }
    for condition in schema.get("allOf", ()):
        if "x-by" in condition:
            value |= instance(condition, rng)
        elif "anyOf" in condition:
            name = condition["anyOf"][0]["required"][0]
            value.setdefault(name, instance(schema["properties"][name], rng))
    return value


def generated() -> Iterator[Judged]:
    """Yield messages that the tables accept, of every method of every revision."""
    for revision in REVISIONS:
        for method in METHODS.values():
            if is_known(method.name, revision):
                senders = ("client", "server") if method.sender == "either" else (method.sender,)
                for sender in senders:
                    kind = EventKind.REQUEST if method.kind == "request" else EventKind.NOTIFICATION
                    kinds = (
                        (kind, sender),
                        *(((EventKind.RESULT, other(sender)),) if method.kind == "request" else ()),
                    )
                    for each, side in kinds:
                        schema = table(revision).schema(shape_name(each, method.name, revision))
                        rng = random.Random(f"{SEED} {revision} {each} {method.name} {side}")
                        for _ in range(3):
                            yield Judged(revision, side, KINDS[each], method.name, instance(schema, rng))


def mutant(judged: Judged, rng: random.Random) -> Judged:
    """Return a message with one change: a member removed, added, null, or with another type or value."""
    value = copy.deepcopy(judged.value)
    paths = [path for path in _paths(value, ()) if path]
    if not paths or rng.random() < 0.1:
        value["extra"] = 1
        return judged._replace(value=value)
    *steps, last = rng.choice(paths)
    container: Any = value
    for step in steps:
        container = container[step]
    match rng.randrange(6):
        case 0 | 1:
            del container[last]
        case 2:
            container[last] = None
        case 3:
            container[last] = "nonesuch"
        case _:
            container[last] = rng.choice(WRONG)
    return judged._replace(value=value)


def _paths(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    yield path
    for key, each in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from _paths(each, (*path, key))


@cache
def messages() -> tuple[Judged, ...]:
    """Return the messages of the rules' examples, of the recordings, of all methods; then mutants of them."""
    found: list[Judged] = []
    for rule in RULES:
        for example in (*rule.valid, *rule.invalid):
            found += collected(header_of(example), entries_of(example))
    for path in sorted((ROOT / "recordings").glob("*.jsonl")):
        recording = Recording(str(path))
        found += collected(recording.header, iter(recording))
    for revision in REVISIONS:
        sides = {">": "client", "<": "server"}
        found += collected(
            None, (Frame(1.0, sides[sender], data.encode()) for sender, data in lines(revision))
        )
    unique = {json.dumps(each): each for each in (*RARE, *found, *generated())}
    base = [
        each
        for each in unique.values()
        if (is_known(each.method, each.revision) or each.method == "task")
        and each.method.startswith("notifications/") == (each.kind == "notification")
    ]
    base = [each for each in base if "NaN" not in json.dumps(each)]  # It is not JSON.
    generators = [
        random.Random(f"{SEED} {each}") for each in base
    ]  # Another message leaves its neighbours alone.
    pairs = itertools.islice(itertools.cycle(zip(base, generators, strict=True)), MUTANTS)
    return (*base, *(mutant(each, rng) for each, rng in pairs))


def ours(judged: Judged) -> str | None:
    """Return the first violation that the tables find; None if there is none."""
    kind = next(kind for kind, name in KINDS.items() if name == judged.kind)
    method, value = judged.method, judged.value
    given = value.get("resultType")
    if (
        kind is EventKind.RESULT
        and judged.revision >= MODERN
        and isinstance(given, str)
        and given != "complete"
    ):
        if given not in ("input_required", "task"):
            return "resultType: MOD202"
        if given == "input_required" and method not in ("tools/call", "prompts/get", "resources/read"):
            return "resultType: MOD304"
        method = given
    shape = shape_of(kind, method, judged.revision)
    error = next(shape.validator.iter_errors(value), None)
    if error is None:
        return None
    path = "".join(f".{step}" if isinstance(step, str) else "[]" for step in error.instance_path)
    given = "null" if error.instance is None else json.dumps(error.instance)[:40]
    return f"{path or '(itself)'} {error.kind.name} {error.kind.as_dict().get('property', given)}"


def verdicts(judge: str) -> list[tuple[Judged, str | None]]:
    """Return the verdict of an SDK on each message that it knows: None if it accepts it."""
    command, revisions = JUDGES[judge]
    judged = [each for each in messages() if each.revision in revisions]
    text = "".join(json.dumps(each) + "\n" for each in judged)
    done = subprocess.run(
        command, input=text, cwd=PEERS, capture_output=True, encoding="utf-8", timeout=60, check=True
    )
    found = zip(judged, map(json.loads, done.stdout.splitlines()), strict=True)
    return [(each, verdict) for each, verdict in found if verdict != "?"]


@cache
def disagreements() -> dict[str, str]:
    """Return the disagreements as text, each with one of its messages."""
    found: dict[str, str] = {}
    messages()
    with ThreadPoolExecutor() as pool:
        for judge, judged in zip(JUDGES, pool.map(verdicts, JUDGES), strict=True):
            for each, verdict in judged:
                mine = ours(each)
                if (verdict is None) != (mine is None):
                    what = f"{each.revision} {each.kind} {each.method}: {mine or verdict}"
                    text = f"{judge} {'accepts' if verdict is None else 'rejects'} {what}"
                    found.setdefault(text, json.dumps(each.value)[:300])
    return found


def test_every_disagreement_with_an_sdk_is_explained() -> None:
    unexplained = [
        f"{text}\n    {message}"
        for text, message in disagreements().items()
        if not any(re.search(pattern, text) for pattern in EXPLAINED)
    ]

    assert not unexplained, "\n".join(unexplained)


def test_every_explanation_is_needed() -> None:
    unused = [
        pattern for pattern in EXPLAINED if not any(re.search(pattern, text) for text in disagreements())
    ]

    assert not unused
