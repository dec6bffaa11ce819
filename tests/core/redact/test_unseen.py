"""Recall and precision on a corpus that was written before the rules were read: docs/redact.md states both numbers."""

from __future__ import annotations

from collections import defaultdict

import pytest

from mcpspy.core.redact.redactor import Redactor
from tests.core.redact import corpus, unseen

REDACTOR = Redactor(corpus.KEY)
REQUIRED_PROMISED = 0.97
REQUIRED_ALL = 0.85
MAX_TOUCHED = 3


def leaks(case: unseen.Case) -> bool:
    seen = corpus.texts(corpus.recorded(case.kind, case.text.encode(), REDACTOR))
    return any(secret in seen for secret in case.secrets)


def test_the_corpora_are_large_and_without_redaction_every_secret_is_there() -> None:
    cases = list(unseen.cases())
    assert len(cases) >= 900
    assert len(list(unseen.cases("unseen_lookalikes.txt", unseen.PER_LOOKALIKE))) >= 500
    for case in cases:
        seen = corpus.texts(corpus.recorded(case.kind, case.text.encode(), None))
        assert any(secret in seen for secret in case.secrets), case
    another = next(unseen.cases(seed=1))
    assert another.secrets != cases[0].secrets


@pytest.mark.parametrize("seed", [unseen.SEED, 2])
def test_nearly_all_generated_secrets_are_kept_out(seed: int) -> None:
    leaked: dict[bool, list[str]] = defaultdict(list)
    count: dict[bool, int] = defaultdict(int)
    for case in unseen.cases(seed=seed):
        count[case.promised] += 1
        if leaks(case):
            leaked[case.promised].append(case.what)
    assert len(leaked[True]) <= (1 - REQUIRED_PROMISED) * count[True], leaked[True]
    assert len(leaked[True] + leaked[False]) <= (1 - REQUIRED_ALL) * sum(count.values()), leaked[False]


@pytest.mark.parametrize("seed", [unseen.SEED, 2])
def test_hardly_any_generated_lookalike_is_touched(seed: int) -> None:
    touched = [
        case.what
        for case in unseen.cases("unseen_lookalikes.txt", unseen.PER_LOOKALIKE, seed)
        if corpus.recorded(case.kind, case.text.encode(), REDACTOR)
        != corpus.recorded(case.kind, case.text.encode(), None)
    ]
    assert len(touched) <= MAX_TOUCHED, touched


def test_the_third_corpus_is_kept_out_and_its_lookalikes_are_not_touched() -> None:
    cases = list(unseen.cases("unseen_third.txt"))
    lookalikes = list(unseen.cases("unseen_third_lookalikes.txt"))
    assert len(cases) >= 900
    assert len(lookalikes) >= 500
    leaked = [case for case in cases if leaks(case)]
    promised = [case.what for case in leaked if case.promised]
    assert len(promised) <= (1 - REQUIRED_PROMISED) * sum(case.promised for case in cases), promised
    assert len(leaked) <= (1 - REQUIRED_ALL) * len(cases)
    touched = [
        case.what
        for case in lookalikes
        if corpus.recorded(case.kind, case.text.encode(), REDACTOR)
        != corpus.recorded(case.kind, case.text.encode(), None)
    ]
    assert len(touched) <= MAX_TOUCHED, touched


def test_the_second_corpus_is_kept_out_as_well() -> None:
    cases = list(unseen.cases("unseen_later.txt"))
    assert len(cases) >= 150
    leaked = [case.what for case in cases if leaks(case) and case.promised]
    assert len(leaked) <= (1 - REQUIRED_PROMISED) * len(cases), leaked
