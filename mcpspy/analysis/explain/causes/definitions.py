"""Definitions and results that a host or client refuses although the exchange looks fine."""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ClientLeft, Symptom, Violation
from mcpspy.core.counted import counted
from mcpspy.core.protocol.spec import CLIENT, SERVER

_TABLE: tuple[tuple[str, str, tuple[str, ...], str, str, bool], ...] = (
    (
        "tool-dropped", "the host does not offer tools of this server to its model",
        ("HOST102", "HOST101", "HOST107", "HOST106", "DATA202", "DATA201"),
        "correct the definition that the evidence quotes; mcpspy lint --host all checks every host", SERVER, False,
    ),
    (
        "result-rejected", "a result has a form that clients reject",
        ("DATA303", "DATA302", "DATA304", "ENV108", "DATA102", "DATA401", "DATA402", "DATA403", "DATA406", "ENV105", "DATA103"),
        "correct the form of this result: clients that check it raise an error, although the exchange looks fine", SERVER, False,
    ),
    (
        "error-swallowed", "a tool failed, but its result reports a success",
        ("AGENT103", "DATA306"),
        "set isError: true in the result, or raise an error in the handler", SERVER, False,
    ),
    (
        "response-to-notification", "the server answered a notification",
        ("ENV206",),
        "let the server answer only messages with an id: a notification gets no response, not even an error", SERVER, False,
    ),
    (
        "progress-unknown", "progress was reported for no open request",
        ("LIFE302", "LIFE303"),
        "let the server await its last progress notification before it responds, and use the token of the request: some clients"
        " raise an error for an unknown token", SERVER, False,
    ),
    (
        "pagination-endless", "a list never ends, or its cursors are wrong",
        ("DATA502", "DATA503", "DATA505"),
        "let the last page have no nextCursor, and each other page a cursor of its own", SERVER, False,
    ),
    (
        "result-too-large", "a result is too large for the host",
        ("HOST201",),
        "return less: pages, a summary, or a resource link", SERVER, False,
    ),
    (
        "late-for-host", "a response came after the host's timeout",
        ("HOST301",),
        "make the call or the start faster, report progress, or raise the timeout of the host", SERVER, False,
    ),
    (
        "content-type-wrong", "the bytes of a content block are of another type than its mimeType",
        ("DATA411",),
        "let the server name the type of the bytes that it sends; models refuse an image whose type is wrong", SERVER, False,
    ),
    (
        "list-changed-ignored", "the client did not list the tools again after they changed",
        ("LIFE113",),
        "restart the server in the host; not every host follows notifications/tools/list_changed", CLIENT, False,
    ),
    (
        "host-ignores", "the host ignores what the server sent",
        ("HOST302", "HOST202"),
        "do not rely on it with this host", "", True,
    ),
    (
        "records-lost", "a part of the session was not recorded",
        ("REC101",),
        "make room on the disk, or raise --max-body: messages were forwarded, but some are missing here", "mcpspy", True,
    ),
    (
        "repeated-calls", "the same call was sent again and again",
        ("AGENT101", "AGENT102", "AGENT104"),
        "say in the result what to do instead", "", True,
    ),
)  # fmt: skip
"""Name, summary, rules (the most telling first), next step, whose mistake, and whether it is only worth knowing."""


def _add(code: str, summary: str, rules: tuple[str, ...], next_step: str, side: str, is_observation: bool) -> None:  # noqa: FBT001
    def claims(facts: Facts) -> Iterator[Claim]:
        found: list[Violation] = [each for rule in rules for each in facts.violations(rule)]
        if not found:
            return
        first = found[0].findings[0]
        count = sum(each.count for each in found)
        more = f" (and {counted(count - 1, 'more finding')})" if count > 1 else ""
        symptoms: list[Symptom] = [*found]
        if code in ("tool-dropped", "result-rejected", "response-to-notification"):
            symptoms += facts.of(ClientLeft)
        yield Claim(
            title=f"{quote(first.message)}{more}",
            next_step=next_step,
            symptoms=symptoms,
            side=side,
            is_observation=is_observation,
        )

    claims.__doc__ = f"{summary[0].upper()}{summary[1:]}: findings of {', '.join(rules)}."
    cause(code, summary, level=Level.GENERAL)(claims)


for _row in _TABLE:
    _add(*_row)


@cause("downgrade", "the server answered with an older revision than the client asked for", level=Level.GENERAL)
def downgrade(facts: Facts) -> Iterator[Claim]:
    """Both speak the older revision, so all is well; features of the newer one are not available."""
    asked, agreed = facts.asked_revision, facts.session.agreed_revision
    if asked is not None and agreed is not None and agreed < asked:
        yield Claim(
            title=f"the client asked for {quote(asked, 20)}, and the server chose {quote(agreed, 20)}",
            next_step="update the server's SDK for features of the newer revision",
            symptoms=[],
            is_observation=True,
        )


@cause("schema-dialect", "an output schema is in another dialect than 2020-12", level=Level.GENERAL)
def schema_dialect(facts: Facts) -> Iterator[Claim]:
    """Some hosts of 2026 compile output schemas strictly as 2020-12, and refuse a tool that declares draft-07."""
    if facts.dialects:
        name, dialect, place = facts.dialects[0]
        yield Claim(
            title=f"the outputSchema of {quote(name)} declares {quote(dialect, 80)}: some hosts of 2026 refuse it, and never call the tool",
            next_step="declare 2020-12 or no $schema",
            symptoms=[],
            evidence=[place],
            side=SERVER,
            is_observation=True,
        )
