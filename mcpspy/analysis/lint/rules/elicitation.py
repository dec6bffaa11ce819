"""Elicitation: forms and pages that a server asks the user to complete, and the client's responses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import LEGACY, RULES, Report, RuleGroup
from mcpspy.analysis.lint.rules.capabilities import requested
from mcpspy.analysis.lint.shapes import SHAPED

PAGE = "2025-11-25/client/elicitation"
FORMS = "2025-06-18"
"""The revision that introduced forms."""

_ELICITS = ("elicitation/create", "tools/call", "prompts/get", "resources/read", "tasks/get")
_SECRET = re.compile(
    r"pass(?:word|phrase|wd|code)|secret|(?:api|access|private)[ _-]?key|(?:access|auth|bearer)[ _-]?token|\bpin\b|\bcvv\b",
    re.IGNORECASE,
)

_FORM = '< {"id":7,"method":"elicitation/create","params":{"message":"Who?","requestedSchema":%s}}\n'
_FILLED = '> {"id":7,"result":%s}'
_NAME = '{"type":"object","properties":{"name":{"type":"string"%s}},"required":["name"]}'
_ADA = '{"action":"accept","content":{"name":"Ada"}}'
_GOOD = _FORM % (_NAME % ',"minLength":1,"format":"email"') + _FILLED % _ADA
_PICK = '{"type":"object","properties":{"a":%s}}'
_URL = '@ 2025-11-25 client={"elicitation":{"url":{}}}\n< {"id":7,"method":"elicitation/create","params":{"mode":"url","message":"Log in"%s}}\n> {"id":7,"result":{"action":"accept"}}'
_NOW = (
    '@ 2026-07-28\n> {"id":2,"method":"tools/call","params":{"name":"a"}}\n'
    '< {"id":2,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":%s}}}}}'
)


def _fields(params: dict[str, Any]) -> dict[str, Any]:
    schema = params.get("requestedSchema") if params.get("mode", "form") == "form" else None
    fields = schema.get("properties") if isinstance(schema, dict) else None
    return fields if isinstance(fields, dict) else {}


elicitation = RuleGroup(RULES, since=FORMS, valid=_GOOD)
shape = elicitation.group(on=SHAPED, beyond_plain=True)
form = elicitation.group(on=(EventKind.REQUEST, EventKind.RESULT), about=_ELICITS, beyond_plain=True)
action = elicitation.group(
    page=PAGE + "#response-actions", on=EventKind.RESULT, about="elicitation/create", until=LEGACY
)

shape.shape_error(
    "DATA801",
    "form with fields that are not plain",
    """A form is an object of plain fields, one level deep, so that every client can display it. Fields are strings
    (optionally with an email, uri, date or date-time `format`, or a choice), numbers or booleans; from 2025-11-25 on
    also multiple choice.
    """,
    page=PAGE + "#requested-schema",
    valid=(
        _GOOD,
        _FORM % (_PICK % '{"type":"array","items":{"type":"string","enum":["b","c"]}}')
        + _FILLED % '{"action":"accept","content":{"a":["b"]}}',
        _FORM % (_PICK % '{"type":"string","oneOf":[{"const":"b","title":"B"}]}')
        + _FILLED % '{"action":"decline"}',
        _NOW % (_NAME % ""),
    ),
    invalid=(
        _FORM % '{"type":"array"}' + _FILLED % '{"action":"decline"}',
        _FORM % (_PICK % '{"type":"object","properties":{}}') + _FILLED % '{"action":"decline"}',
        _FORM % (_PICK % '{"type":"array","items":{"type":"object"}}') + _FILLED % '{"action":"decline"}',
        _FORM % (_NAME % ',"format":"ipv4"') + _FILLED % '{"action":"decline"}',
        _NOW % (_PICK % '{"$ref":"#/x"}'),
    ),
)


@action.warning(
    "DATA802",
    "form response that violates its schema",
    valid=(_GOOD, _FORM % (_NAME % "") + _FILLED % '{"action":"cancel"}'),
    invalid=(
        _FORM % (_NAME % "") + _FILLED % '{"action":"accept","content":{"name":7}}',
        _FORM % (_NAME % "") + _FILLED % '{"action":"accept"}',
    ),
)
def filled(event: LintEvent) -> Iterator[Report]:
    """If the user accepts, `content` must match the schema that the form requested. Clients should validate it before
    they send it.
    """
    request = event.request.params
    if event.result.get("action") != "accept" or not isinstance(request, dict) or not _fields(request):
        return
    given = event.result.get("content", {})
    for breach in event.state.schemas.check(request["requestedSchema"]).breaches(given):
        yield Report(f"content: {breach}", given)


shape.shape_error(
    "DATA803",
    "action other than accept, decline or cancel",
    """`decline` means that the user refused, `cancel` that the user dismissed the form. No other action is defined.""",
    page=PAGE + "#response-actions",
    invalid=_FORM % (_NAME % "") + _FILLED % '{"action":"reject"}',
)

shape.shape_error(
    "DATA804",
    "URL elicitation without a URL",
    """`mode: url` sends the user to the page at `url`. In 2025-11-25 it also requires an `elicitationId`, which
    `notifications/elicitation/complete` repeats when the user has finished there.
    """,
    page=PAGE + "#url-mode-elicitation-requests",
    since=LEGACY,
    valid=_URL % ',"url":"https://example.com/login","elicitationId":"e"',
    invalid=(
        _URL % ',"elicitationId":"e"',
        _URL % ',"url":"login","elicitationId":"e"',
        _URL % ',"url":"https://example.com/login"',
    ),
)


@form.warning(
    "SEC302",
    "form that asks for a secret",
    page=PAGE + "#security-considerations",
    invalid=(
        _FORM % (_NAME.replace("name", "api_key") % "") + _FILLED % '{"action":"decline"}',
        _FORM % (_NAME % ',"title":"Your password"') + _FILLED % '{"action":"decline"}',
        _NOW % (_NAME.replace("name", "password") % ""),
    ),
)
def secret(event: LintEvent) -> Iterable[Report]:
    """Servers must not request passwords, keys or other secrets in a form: the values pass through the host and may
    reach the model. Send the user to a page instead (`mode: url`).
    """
    elicitations = requested(event, "elicitation/create")
    return _secrets(elicitations) if elicitations else ()


def _secrets(elicitations: list[dict[str, Any]]) -> Iterator[Report]:
    for params in elicitations:
        for name, field in _fields(params).items():
            title = field.get("title") if isinstance(field, dict) else None
            if found := _SECRET.search(f"{name} {title if isinstance(title, str) else ''}"):
                yield Report(f"the form asks for {found[0][:40]}", field)
