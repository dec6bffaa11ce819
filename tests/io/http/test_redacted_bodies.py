"""Compressed bodies are decoded for the recording, and redacted there."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from tests.core.redact import corpus
from tests.core.redact.test_made_up import CORPUS, REQUIRED, RESULT
from tests.io.http_spy import JSON, PING, plain

if TYPE_CHECKING:
    from tests.io.http_spy import Start

pytestmark = pytest.mark.timeout(60)


async def test_the_secrets_of_a_gzip_body_are_kept_out(proxy: Start) -> None:
    lines = "\n".join(f"{rule}: {made}" for rule, made, _ in CORPUS)
    answer = (RESULT % json.dumps(lines)).encode()
    packed = gzip.compress(answer, mtime=0)
    async with proxy() as spy:
        client = await spy.client()
        await client.post(PING)
        call = await spy.server.call()
        await call.send(plain(packed, JSON, "Content-Encoding: gzip"))
        assert await client.answer() == (200, packed)
        assert len(spy.said("server")) == 1
        seen = corpus.texts(spy.recording.read_bytes())
    assert "[redacted:" in seen
    leaked = [rule for rule, _, secret in CORPUS if secret in seen]
    assert len(leaked) <= (1 - REQUIRED) * len(CORPUS), leaked
