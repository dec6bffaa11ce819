"""Calls that were answered with an error about their arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.requests import NO_PARAMS, errors
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause, evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import FailedRequest
from mcpspy.core.protocol.spec import CLIENT, SERVER

_ARGUMENTS = re.compile(
    r"(?i)validation error|invalid arguments?|invalid params|input validation|failed to (?:parse"
    r"|deserialize) (?:parameters|arguments)|decoding error|missing (?:required )?(?:argument|parameter|field"
    r"|property)|required (?:argument|parameter|property)|(?:argument|parameter|field|property) ['\"`]?[\w.-]{1,60}['\"`]? is required\b|unexpected keyword|invalid_type"
    r"|invalid input|must (?:be|have) (?:a |an |required )?(?:string|number|integer|object|array"
    r"|boolean|property)"
)
"""The SDKs, and pydantic, zod, ajv, jsonschema and serde under them."""

_RECEIVED = re.compile(r"(?i)\breceived\b\W{0,3}\{")
"""An error that quotes the arguments."""

_NO_TEXT = re.compile(
    r"(?i)received string|expected (?:number|int|boolean|bool|array|object)|(?:int|float|bool|list|dict)_(?:parsing|type)"
    r"|(?:must be|valid|should be) (?:an? )?(?:number|integer|boolean|list|dictionary|object|array)"
)
"""The words of the same libraries for a text that is to be another type."""

_OTHER = re.compile(
    r"\bis not a function\b|\bis not defined\b|'_zod'"
    r"|validation errors? for \w*(?:Response|Result|Output|Reply|Settings|Config)\b"
)
"""A program without a function that it calls, or data that it got or makes itself: no argument brings this about."""
_NOT_ARGUMENTS = re.compile(
    r"(?i)\bnot (?:found|connected|enabled|available|authenticated|authorized|allowed|permitted)\b|\b(?:disabled|forbidden|denied"
    r"|expired|unauthorized)\b|\bsession\b|\bunknown tool\b|no such tool"
)
"""Errors with the code of invalid params that are about something else."""

_OF_DATA = re.compile(r"(?i)expected \w+, received \w+ at \W{0,3}(\w+)\[")
"""An error about a place in a list, in the words of zod."""

INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
_CODES_OF_OTHERS = (-32601, -32700, -32002, -32001)
"""Codes of JSON-RPC and of MCP that are not about arguments."""


def _is_about_arguments(failed: FailedRequest, *, is_prompt: bool, is_broken: bool) -> bool:
    """Return whether an error is, or may be, about the arguments."""
    words = failed.words[:400]
    if NO_PARAMS.fullmatch(words.strip()) and not is_broken:
        return False  # The Python SDK, about the request as a whole.
    is_said = _ARGUMENTS.search(words) is not None
    is_said |= failed.code == INVALID_PARAMS and _NOT_ARGUMENTS.search(words) is None
    root = _OF_DATA.search(words)
    if (
        root is not None
        and root[1] not in failed.arguments
        and not is_broken
        and failed.code != INVALID_PARAMS
    ):
        return False  # What the server has read elsewhere.
    if _OTHER.search(words) or (not is_said and failed.code in _CODES_OF_OTHERS):
        return False
    return is_broken or is_prompt or (failed.method == "tools/call" and is_said)


_OF_SCHEMA = re.compile(
    r"(?i)\brequired\b|\bmissing\b|\bunexpected\b|\bunknown\b|\bunrecogni|\badditional\b|\bexpected\b|\btype\b|_type\b"
    r"|\b(?:must|should) be (?:a |an )?(?:valid )?(?:string|number|integer|object|array|boolean|list|dict)"
)
"""The words of a validator for what a schema states: members, and their types."""


_NO_OBJECT = re.compile(
    r"(?is)(?:\bexpected\W{1,6}object\b.{0,120}\bpath\W{1,6}\[\s*\]|\bpath\W{1,6}\[\s*\].{0,120}\bexpected\W{1,6}object\b)"
)
"""Zod, about the arguments as a whole."""


_NO_INPUT = re.compile(r"(?i)(?:.{0,60}: )?(?:unexpected end of json input|unexpected eof|eof)")
"""Go's encoding/json, about nothing where a value has to be."""


def _without_arguments(failed: FailedRequest) -> Claim | None:
    """Return a claim of a call or prompt without `arguments`, which the server does not take for an empty object; else None."""
    is_known = failed.method in ("tools/call", "prompts/get")
    is_said = _NO_OBJECT.search(failed.words[:400]) or _NO_INPUT.fullmatch(failed.words.strip())
    if not is_known or failed.arguments or not is_said:
        return None
    return Claim(
        title=f"{failed.about} was sent without arguments, and the server wants an object: {quote(failed.words)}",
        next_step='let the client send "arguments": {} also where none are needed, and let the server take missing ones for {}: they '
        "may be left out",
        symptoms=[failed],
    )


_TEXT = {"type": "string", "description": "The text (optional, read from disk if not provided)"}
_WITH_TEXT = ex.listed(ex.with_schema(properties={"text": _TEXT}, required=["text"]), number=9)
_REQUIRED = re.compile(r'"([^"]+)" is a required property$')
"""The finding about an argument that is missing."""


def _optional_by_words(facts: Facts, failed: FailedRequest) -> str | None:
    """Return the missing argument that the schema of a tool requires, and that its description calls optional; else None."""
    missing = [_REQUIRED.search(each.message) for each in failed.findings if each.code == "DATA301"]
    known = facts.listed.required_by_mistake.get(failed.subject, frozenset())
    return next((each[1] for each in missing if each is not None and each[1] in known), None)


def _without_required(facts: Facts, failed: FailedRequest) -> Claim | None:
    """Return a claim of prompts/get without an argument that prompts/list has as required; else None."""
    missing = facts.listed.prompts.get(failed.subject, frozenset()) - failed.arguments
    if failed.method != "prompts/get" or not missing:
        return None
    name = min(missing)
    return Claim(
        title=f"{failed.about} was sent without the argument {quote(name, 40)!r}, which prompts/list has as required: {quote(failed.words)}",
        next_step="let the client ask its user for the required arguments before prompts/get, and not fetch each prompt on its own account; "
        "let the server answer with the error -32602 and name what is missing",
        symptoms=[failed],
        side=CLIENT,
    )


@cause(
    "invalid-arguments",
    "arguments do not fit the tool's schema",
    Level.SPECIFIC,
    rules="DATA101 DATA301",
    positive=(
        ex.session(
            ex.call(), ex.done(2, "Input validation error: days is a required property", isError=True)
        ),
        ex.session(
            ex.request("prompts/get", name="a", arguments={"b": "5"}),
            ex.error(
                "Invalid arguments for prompt a: Invalid input: expected number, received string", -32602
            ),
        ),
        ex.session(
            ex.request("prompts/get", name="a", arguments={"b": ""}),
            ex.error("Invalid arguments for prompt a: Invalid string: must match pattern at b", -32602),
        ),
        ex.session(
            ex.request("prompts/list"),
            ex.result(prompts=[{"name": "a", "arguments": [{"name": "path", "required": True}]}]),
            ex.request("prompts/get", 3, name="a"),
            ex.error("An error occurred.", -32603, 3),
        ),
        ex.session(_WITH_TEXT, ex.call(), ex.done(2, "An error occurred invoking 'a'", isError=True)),
    ),
    negative=(
        ex.session(ex.call(), ex.done(2, "no data", isError=True)),
        ex.session(ex.request("prompts/get", name="a"), ex.error("Unknown prompt: a", -32602)),
        ex.session(
            ex.listed("a"),
            ex.call(3),
            ex.done(3, "1 validation error for WeatherResponse temp Field required", isError=True),
        ),
        ex.session(ex.listed("a"), ex.call(3), ex.error("Session b1 has expired", -32602, 3)),
    ),
)
def invalid_arguments(facts: Facts) -> Iterator[Claim]:
    """The model did not know what the arguments mean, or the server checks more than its schema states."""
    for failed in errors(facts):
        broken = [each for each in failed.findings if each.code in ("DATA301", "DATA101")]
        is_prompt = failed.method == "prompts/get" and _ARGUMENTS.search(failed.words[:400]) is not None
        missing = _without_required(facts, failed)
        claim = _without_arguments(failed) if not broken and missing is None else missing
        if claim is not None:
            yield claim
            continue
        if not _is_about_arguments(failed, is_prompt=is_prompt, is_broken=bool(broken)):
            continue
        side, name = "", None
        next_step = "compare the arguments with the schema, which should state what is required"
        if broken:
            side = CLIENT
            next_step = (
                "correct the arguments that the client sends: they violate the tool's schema, as "
                "tools/list has it"
            )
            if (name := _optional_by_words(facts, failed)) is not None:
                side = SERVER
                next_step = (
                    f"let the schema not require {quote(name, 40)!r} (give its parameter a default value): its description calls it optional, "
                    f"so models leave it out"
                )
        elif is_prompt and _NO_TEXT.search(failed.words):
            side = SERVER
            next_step = (
                "let the server take texts: the arguments of a prompt are always strings (2025-11-25, Prompts), and it "
                "must convert them"
            )
        elif is_prompt:  # Its arguments have no schema, and none of them is a model's.
            side = CLIENT
            next_step = (
                "let the client ask for the arguments that prompts/list calls required, and leave out the others in place "
                "of sending empty texts"
            )
        elif failed.subject in facts.listed.tools:
            side = (
                SERVER if _OF_SCHEMA.search(failed.words[:400]) else ""
            )  # A check of values need not be in the schema.
            next_step = (
                "the arguments fit the schema that the server listed, and it refused them: let the "
                "schema state what the tool requires"
            )
        if broken and failed.code == INTERNAL_ERROR:
            next_step += (
                "; the server should answer with a tool error (isError: true), and not with an internal error, so that a model can "
                "correct them"
            )
        words = failed.words or (broken[0].message if broken else "")
        title = f"{failed.about}: the arguments do not fit: {quote(words)}"
        if name is not None:
            title = (
                f"{failed.about}: the schema requires {quote(name, 40)!r}, its description calls it optional, and the client left it out: "
                f"{quote(words)}"
            )
        if broken and failed.method not in ("tools/call", "prompts/get"):
            title = f"the client sent {failed.about} with params that are not those of the protocol: {quote(broken[0].message)}"
            title += clause(failed.words)
            next_step = (
                f"correct the form of this request in the client: {broken[0].code} (mcpspy lint explains it)"
            )
        if not broken and not is_prompt and failed.subject in facts.listed.tools:
            title = (
                f"{failed.about}: the server refused arguments that fit the schema it listed: {quote(words)}"
            )
        symptoms = [failed, *facts.violations(*{each.code for each in broken})]
        lines = [evidence(each.place, f"{each.code} {each.message}") for each in broken[:2]]
        yield Claim(title, next_step, symptoms, evidence=lines, side=side)


_SEARCH = ex.listed(ex.with_schema(properties={"query": {"type": "string"}}))
_SURPLUS = ex.request("tools/call", 3, name="a", arguments={"query": "b", "toolCallId": "c"})
_REFUSES = re.compile(
    r"(?i)unexpected|unknown|unrecogni|additional|extra|surplus|forbid|keyword|invalid|not (?:be )?(?:present|allowed|permitted"
    r"|supported|defined|expected|valid|recogni[sz]ed|exist)|no (?:such )?(?:field|property|parameter|argument|column)"
)
"""The words of validators and APIs for a member that they do not have."""
_REFUSED_ONE = "body.toolCallId should be not present"


@cause(
    "argument-surplus",
    "the client sends an argument that the tool does not have, and the tool fails because of it",
    Level.EXACT,
    rules="AGENT103 DATA301",
    positive=(
        ex.session(_SEARCH, _SURPLUS, ex.done(3, _REFUSED_ONE, isError=True)),
        ex.session(
            _SEARCH, _SURPLUS, ex.done(3, f'{{"status":400,"object":"error","message":"{_REFUSED_ONE}"}}')
        ),
    ),
    negative=(
        ex.session(_SEARCH, _SURPLUS, ex.done(3, "disk full", isError=True)),
        ex.session(
            _SEARCH,
            _SURPLUS.replace("toolCallId", "reason"),
            ex.done(3, "failed for some reason", isError=True),
        ),
    ),
)
def argument_surplus(facts: Facts) -> Iterator[Claim]:
    """Hosts add their own members to the arguments (an id of the call, a reason), and servers pass all of them on to
    an API that refuses unknown ones.
    """
    next_step = (
        "the client must send only arguments that inputSchema has; additionalProperties: false in the schema lets "
        "clients and servers find this out before the call"
    )
    for failed in errors(facts):
        words = failed.words[:400]
        surplus = facts.listed.surplus(failed.subject, failed.arguments) if _REFUSES.search(words) else ()
        for name in sorted(surplus):
            if failed.method == "tools/call" and re.search(rf"\b{re.escape(name)}\b", words):
                title = _surplus_title(failed.about, name, words)
                yield Claim(title, next_step, [failed, *facts.violations("DATA301")], side=CLIENT)
                break
    for violation in facts.violations("AGENT103"):
        text = " ".join(f"{each.message} {each.excerpt}" for each in violation.findings)
        for tool, names in facts.surplus.items():
            found = [name for name in sorted(names) if re.search(rf"\b{re.escape(name)}\b", text)]
            if found:
                title = _surplus_title(f"tools/call {tool}", found[0], violation.findings[0].message)
                yield Claim(title, next_step, [violation], side=CLIENT)
                return


def _surplus_title(about: str, name: str, words: str) -> str:
    return f"{about}: the client sent the argument {quote(name, 40)!r}, which the tool does not have: {quote(words)}"


_TYPED = re.compile(
    r"(?i)\b(?:arrays?|lists?|objects?|dict(?:ionary)?|mapping|expected|type|pars(?:e|ing)|must be|json(?:object|array))\b"
)
_ABSENT = re.compile(
    r"(?i)\b(?:is|are|was|of|got|be) (?:null|none|undefined|nil|empty|required)\b"
    r"|\bmissing\b(?=\W*$|\s*[:.,;)\"'`]|\W+(?:required|argument|param|field|property|key|value|input|\w+\W*$))"
    r"|\bnot (?:provided|set|given|specified)\b|NoneType|\brequired\b|\bundefined (?:array key|index|variable)\b"
)
"""Validators, and what programs print that use a value without a look."""

_WANTS_VALUE = re.compile(r"is not of types? .*\"(?:array|object)\"")


def _is_other_type(failed: FailedRequest, names: Iterable[str]) -> bool:
    """Return whether the schema wants an array or an object where one of these arguments is a text."""
    found = [each.message for each in failed.findings if each.code == "DATA301"]
    return any(f"/{name}: " in text and _WANTS_VALUE.search(text) for text in found for name in names)


@cause(
    "argument-as-text",
    "an argument is the JSON text of a value, and not the value",
    Level.EXACT,
    rules="DATA301",
    positive=ex.session(
        ex.request("tools/call", name="a", arguments={"path": '["b"]'}),
        ex.done(2, "path must be an array", isError=True),
    ),
    negative=(
        ex.session(
            ex.request("tools/call", name="a", arguments={"path": '["b"]'}),
            ex.done(2, "the disk is full", isError=True),
        ),
        ex.session(
            _SEARCH,
            ex.request("tools/call", 3, name="a", arguments={"query": '{"b":1}'}),
            ex.done(3, "invalid query object: no field c", isError=True),
        ),
    ),
)
def argument_as_text(facts: Facts) -> Iterator[Claim]:
    """Hosts flatten an array or object to its text if the schema of the argument also allows a
    string, or has no type.
    """
    for failed in errors(facts):
        texts = facts.listed.text_arguments.get(failed.subject, frozenset())  # There, the text is right.
        sent = [name for name in failed.json_arguments if name not in texts]
        if sent and (_TYPED.search(failed.words[:400]) or _is_other_type(failed, sent)):
            names = ", ".join(quote(name, 40) for name in sent[:3])
            title = (
                f"{failed.about}: the client sent {names} as a string that holds JSON, and not as a "
                f"value: {quote(failed.words)}"
            )
            next_step = (
                "let the client send the array or object itself; a schema that allows nothing else for "
                "this argument (no string beside it) keeps hosts from this"
            )
            yield Claim(title, next_step, [failed, *facts.violations("DATA301")], side=CLIENT)


_UNNAMED = re.compile(
    r"(?i)\b(?:required|missing|not found)\b.{0,40}\barg\d\b|\barg\d\b.{0,40}\b(?:required|missing|null|not found)\b"
)
"""The names that the JVM gives to parameters."""


@cause(
    "argument-not-read",
    "the server misses an argument that was sent",
    Level.EXACT,
    rules="DATA301",
    positive=(
        ex.session(
            ex.request("tools/call", name="a", arguments={"city": "Rome"}),
            ex.done(2, 'Cannot read "city" because it is null', isError=True),
        ),
        ex.session(
            ex.call(),
            ex.done(
                *(
                    2,
                    "Name for argument of type [long] not specified, and parameter name information not available",
                ),
                isError=True,
            ),
        ),
    ),
    negative=(
        ex.session(ex.call(), ex.done(2, "city is required", isError=True)),
        ex.session(
            ex.request("tools/call", name="a", arguments={"user": "b"}),
            ex.done(2, "user is missing permission repo:write", isError=True),
        ),
        ex.session(
            ex.request("tools/call", name="a", arguments={"file": "/b.txt"}),
            ex.done(2, "file is missing: /b.txt", isError=True),
        ),
    ),
)
def argument_not_read(facts: Facts) -> Iterator[Claim]:
    """The server has the argument under another name (arg0, if Java was compiled without
    -parameters), or reads it from another place than params.arguments.
    """
    for failed in errors(facts):
        words = failed.words[:400]
        if failed.method == "tools/call" and "parameter name information not available" in words:
            title = f"{failed.about}: the server does not know the names of its parameters: {quote(words)}"
            next_step = "compile the server with -parameters (javac, kotlinc: -java-parameters), or name each parameter in its annotation"
            yield Claim(title, next_step, [failed], side=SERVER)
            continue
        absent = _ABSENT.search(words)
        if failed.method == "tools/call" and _UNNAMED.search(words) and failed.arguments:
            title = f"{failed.about}: the server looks for its arguments by names that no schema has: {quote(words)}"
            next_step = "compile the server with -parameters (javac, kotlinc: -java-parameters), or name each parameter in its annotation"
            yield Claim(title, next_step, [failed], side=SERVER)
            continue
        if failed.method != "tools/call" or absent is None or "header" in words:
            continue
        if any(text in words for text in failed.texts) or _RECEIVED.search(words):
            continue  # The server has read the argument, and misses what it names.
        around = words[max(absent.start() - 40, 0) : absent.end() + 40]
        missed = [name for name in sorted(failed.arguments) if re.search(rf"\b{re.escape(name)}\b", around)]
        if missed:
            name = quote(missed[0], 40)
            title = (
                f"{failed.about}: the call has the argument {name!r}, and the server does not find it: "
                f"{quote(words)}"
            )
            next_step = (
                f"compare {name!r} with the names in the tool's inputSchema (tools/list): the server "
                f"reads it under another name or from another place"
            )
            yield Claim(title, next_step, [failed, *facts.violations("DATA301")], side=SERVER)
