"""Precision: texts that only look as if they contained a secret are recorded as they are."""

from __future__ import annotations

from mcpspy.core.redact.redactor import Redactor
from tests.core.redact import corpus, lookalikes

REDACTOR = Redactor(corpus.KEY)


def test_of_hundreds_of_generated_lookalikes_at_most_two_are_touched() -> None:
    texts = list(dict.fromkeys(lookalikes.texts()))
    assert len(texts) >= 300
    touched = []
    for text in texts:
        seen = [REDACTOR.message(message) == message for message in lookalikes.messages(text)]
        stderr = text.encode() + b"\n"
        seen.append(corpus.recorded("stderr", stderr, REDACTOR) == corpus.recorded("stderr", stderr, None))
        if not all(seen):
            touched.append(text)
    assert len(touched) <= 2, touched
