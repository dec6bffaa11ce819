"""A corpus of made-up secrets, generated with a seed from docs/token_formats.toml: no rule can be fitted to it."""

from __future__ import annotations

import json
import random

import pytest

from docs.token_formats import token_formats
from mcpspy.core.redact.redactor import Redactor
from tests.core.redact import corpus, made_up

SEED = 20261122
PER_FORMAT = 3
REQUIRED = 0.97


def secrets() -> list[tuple[str, str, str]]:
    """Return the corpus: the id of the format, the token, and its secret part."""
    choose = random.Random(SEED)
    found = []
    for each in token_formats():
        for _ in range(PER_FORMAT):
            made = made_up.token(each.example, choose)
            found.append((each.id, made, made_up.secret(each, made)))
    return found


CORPUS = secrets()

TEXTS = {
    "a text": "The server uses {} since Monday.",
    "a source line": 'const client = connect("{}");',
    "Markdown": "* token: `{}`",
    "a shell line": "curl -H 'X-Custom: {}' http://localhost",
    "a line of a log": "2026-11-22T10:00:00Z INFO sent {} to upstream\n",
}

CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"note":%s}}}'
RESULT = '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":%s}]}}'


def leaks(kind: str, message: str | None, text: str, cut: int) -> list[str]:
    """Return the formats of which a secret is in a recording of this kind."""
    leaked = []
    redactor = Redactor(corpus.KEY)
    for rule, made, secret in CORPUS:
        written = text.format(made)
        original = written if message is None else message % json.dumps(written)
        file = corpus.recorded(kind, original.encode(), redactor, cut)
        if secret in corpus.texts(file):
            leaked.append(rule)
    return leaked


def test_the_corpus_is_large_and_another_seed_makes_another_one() -> None:
    assert len(CORPUS) >= 600
    assert len({made for _, made, _ in CORPUS}) == len(CORPUS)
    assert made_up.token("<a20>", random.Random(1)) != made_up.token("<a20>", random.Random(2))


@pytest.mark.parametrize("place", TEXTS)
@pytest.mark.parametrize(
    ("kind", "message", "cut"),
    [("message", RESULT, 1 << 30), ("body", CALL, 97), ("event", RESULT, 97), ("stderr", None, 41)],
    ids=["stdio", "HTTP", "SSE", "stderr"],
)
def test_the_secrets_are_kept_out(kind: str, message: str | None, cut: int, place: str) -> None:
    leaked = leaks(kind, message, TEXTS[place], cut)
    assert len(leaked) <= (1 - REQUIRED) * len(CORPUS), leaked


def test_without_redaction_they_would_be_there() -> None:
    rule, made, secret = CORPUS[0]
    file = corpus.recorded("message", (RESULT % json.dumps(made)).encode(), None)
    assert secret in corpus.texts(file), rule
