"""The owner of a symptom that several causes claim, dropped claims, and the order of causes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mcpspy.analysis.explain.claims import CAUSES, CauseKind, Claim, Level, cause, claims_of, lines_of
from mcpspy.analysis.explain.diagnosis import SHOWN
from mcpspy.analysis.explain.evidence import EvidenceLine
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import FailedRequest, Symptom, Violation
from tests.analysis.explain.sessions import explained, facts_of

TWO_FAILURES = """
> {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
< {"id":2,"error":{"code":-32603,"message":"boom"}}
> {"id":3,"method":"resources/read","params":{"uri":"file:///a"}}
< {"id":3,"error":{"code":-32603,"message":"bang"}}
"""


def kind(
    code: str, general: Level, *wanted: str, level: Level | None = None, is_observation: bool = False
) -> CauseKind:
    """Return a cause that claims the failed requests of these methods, all in one claim."""

    def claims(facts: Facts) -> Iterator[Claim]:
        symptoms: list[Symptom] = [each for each in facts.failed() if each.method in wanted]
        yield Claim(title=code, next_step="", symptoms=symptoms, level=level, is_observation=is_observation)

    return CauseKind(code, code, claims, general, (), ())


def owners(*kinds: CauseKind, text: str = TWO_FAILURES) -> dict[str, list[str]]:
    """Return the claims that are kept, in their order, with the methods of their requests."""
    claims = claims_of(facts_of(text), kinds)
    return {
        claim.code: [each.method for each in claim.symptoms if isinstance(each, FailedRequest)]
        for claim in claims
    }


BOTH = ("tools/call", "resources/read")


def test_the_most_specific_claim_gets_the_symptom() -> None:
    quoted, exact = kind("quoted", Level.QUOTE, *BOTH), kind("exact", Level.EXACT, "tools/call")
    for kinds in ((quoted, exact), (exact, quoted)):
        assert owners(*kinds) == {"exact": ["tools/call"], "quoted": ["resources/read"]}


def test_of_equally_specific_claims_the_first_cause_gets_the_symptom() -> None:
    first, second = kind("first", Level.SPECIFIC, *BOTH), kind("second", Level.SPECIFIC, *BOTH)
    assert owners(first, second) == {"first": [*BOTH]}
    assert owners(second, first) == {"second": [*BOTH]}


def test_a_claim_may_be_more_specific_than_its_cause() -> None:
    exact = kind("exact", Level.GENERAL, *BOTH, level=Level.EXACT)
    assert owners(kind("specific", Level.SPECIFIC, *BOTH), exact) == {"exact": [*BOTH]}


def test_a_claim_that_lost_everything_is_dropped() -> None:
    assert "general" not in owners(
        kind("general", Level.GENERAL, "tools/call"), kind("exact", Level.EXACT, *BOTH)
    )


def test_a_claim_about_no_symptom_is_kept() -> None:
    assert owners(kind("exact", Level.EXACT, *BOTH), kind("about nothing", Level.QUOTE)) == {
        "exact": [*BOTH],
        "about nothing": [],
    }


def test_findings_alone_do_not_keep_a_claim_whose_failure_another_one_explains() -> None:
    text = '> {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}\n< {"id":"2","result":{}}'

    def with_findings(facts: Facts) -> Iterator[Claim]:
        symptoms: list[Symptom] = [
            *facts.failed(),
            *facts.violations("ENV204", "ENV205", "ENV207", "DATA102"),
        ]
        assert any(isinstance(each, Violation) for each in symptoms)
        yield Claim(title="general", next_step="", symptoms=symptoms)

    general = CauseKind("general", "", with_findings, Level.GENERAL, (), ())
    assert owners(general, kind("exact", Level.EXACT, *BOTH), text=text) == {"exact": ["tools/call"]}


def test_claims_that_say_the_same_are_one() -> None:
    def twice(facts: Facts) -> Iterator[Claim]:
        for failed in facts.failed():
            yield Claim(title="the same", next_step="", symptoms=[failed])

    (claim,) = claims_of(facts_of(TWO_FAILURES), [CauseKind("same", "", twice, Level.GENERAL, (), ())])
    assert len(claim.symptoms) == 2
    assert claim.level is Level.GENERAL
    assert claim.code == "same"


def test_observations_come_last_whatever_they_are_about() -> None:
    seen = kind("seen", Level.EXACT, "tools/call", is_observation=True)
    assert list(owners(seen, kind("quoted", Level.QUOTE, *BOTH))) == ["quoted", "seen"]


def test_the_cause_that_kept_users_from_the_server_comes_first() -> None:
    text = """
        @ bare
        > {"id":1,"method":"initialize","params":{}}
        < {"id":1,"error":{"code":-32603,"message":"later"}}
        > {"id":2,"method":"tools/list"}
        < {"id":2,"error":{"code":-32603,"message":"no list"}}
        > {"id":3,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":3,"error":{"code":-32603,"message":"boom"}}
    """
    kinds = [kind(each, Level.QUOTE, each) for each in ("tools/call", "tools/list", "initialize")]
    assert list(owners(*kinds, text=text)) == ["initialize", "tools/list", "tools/call"]


def test_of_equal_weight_the_more_specific_comes_first_and_then_the_earlier() -> None:
    call, read = kind("call", Level.QUOTE, "tools/call"), kind("read", Level.EXACT, "resources/read")
    assert list(owners(call, read)) == ["read", "call"]
    assert list(owners(kind("read", Level.QUOTE, "resources/read"), call)) == ["call", "read"]


def test_the_lines_of_a_claim_are_its_own_first_and_each_once() -> None:
    (failed,) = facts_of(TWO_FAILURES).failed()[:1]
    own = EvidenceLine(9, "its own")
    claim = Claim(title="", next_step="", symptoms=[failed, failed], evidence=[own, own])
    assert [*lines_of(claim)] == [own, *failed.lines]


def test_a_code_is_used_once() -> None:
    with pytest.raises(ValueError, match="already in use"):
        cause(CAUSES[0].code, "", level=Level.QUOTE)


def test_the_diagnosis_has_observations_beside_the_causes() -> None:
    text = """
        > {"id":2,"method":"tools/list"}
        < {"id":2,"result":{"tools":[{"name":"files.read","description":"b","inputSchema":{"type":"object"}}]}}
    """
    diagnosis = explained(text).diagnosis()
    assert diagnosis.causes == ()
    assert [each.code for each in diagnosis.observations] == ["name-refused-by-models"]
    assert diagnosis.summary == "nothing wrong found in 5 messages"


def test_evidence_is_bounded_and_the_rest_is_counted() -> None:
    lines = [
        line
        for number in range(2, 30)
        for line in (
            f'> {{"id":{number},"method":"tools/call","params":{{"name":"a","arguments":{{}}}}}}',
            f'< {{"id":{number},"error":{{"code":-32603,"message":"boom {number}"}}}}',
        )
    ]
    (found,) = explained("\n".join(lines)).diagnosis().causes
    assert len(found.evidence) <= SHOWN
    assert found.count == 28


def test_text_of_peers_is_sanitized_and_short() -> None:
    text = (
        '> {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}\n'
        '< {"id":2,"error":{"code":-32603,"message":"\\u001b[31m' + "x" * 5000 + '"}}'
    )
    (found,) = explained(text).diagnosis().causes
    for shown in (found.title, found.detail, found.next_step, *(each.text for each in found.evidence)):
        assert "\x1b" not in shown
        assert len(shown) <= 600


def test_the_summary_counts_the_other_causes() -> None:
    diagnosis = explained(TWO_FAILURES).diagnosis()
    assert len(diagnosis.causes) == 2
    assert diagnosis.summary == f"{diagnosis.causes[0].title} (and 1 more)"


def test_many_failures_of_one_kind_are_three_causes_and_a_number() -> None:
    text = "\n".join(
        f'> {{"id":{number},"method":"tools/call","params":{{"name":"{name}","arguments":{{}}}}}}\n'
        f'< {{"id":{number},"error":{{"code":-32603,"message":"{name} is broken"}}}}'
        for number, name in enumerate("abcdef", 2)
    )
    causes = explained(text).diagnosis().causes
    assert [cause.code for cause in causes] == ["request-failed"] * 3
    assert causes[2].title.endswith("(and 3 more failures of this kind)")
    assert sum(cause.count for cause in causes) >= 6
