"""The contract and the corpora of redaction over the HTTP proxy: bodies both ways, SSE, codings, headers, queries."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from ahocorasick_rs import AhoCorasick

from tests.compressed import COMPRESS
from tests.core.redact import corpus, lookalikes
from tests.core.redact import test_contract as contract
from tests.core.redact.test_made_up import CORPUS, REQUIRED
from tests.io.http_spy import JSON, Client, Spy, event, plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.io.http_spy import Start

pytestmark = pytest.mark.timeout(120)

CODINGS = COMPRESS | {"identity": bytes}


def contained(texts: Iterable[str], text: str) -> list[str]:
    """Return those of many texts that a text contains."""
    words = [*texts]
    found = AhoCorasick(words).find_matches_as_indexes(text, overlapping=True)
    return [words[number] for number in {number for number, *_ in found}]


def call(value: Any) -> bytes:
    params = {"name": "echo", "arguments": {"note": value}}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


def result(texts: list[str]) -> bytes:
    content = [{"type": "text", "text": text} for text in texts]
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": content}}).encode()


async def exchanged(
    spy: Spy,
    client: Client,
    request: bytes,
    body: bytes,
    coding: str,
    *,
    target: str = "/mcp",
    headers: Any = (),
) -> None:
    """Send a request, and a response in a coding; a response that begins with `event:` is a stream."""
    kind = "Content-Type: text/event-stream" if body.startswith(b"event:") else JSON
    packed = CODINGS[coding](body)
    await client.ask("POST", target, request, JSON, *headers)
    received = await spy.server.call()
    assert received.body == request
    await received.send(plain(packed, kind, f"Content-Encoding: {coding}", *headers))
    assert await client.answer() == (200, packed)


@pytest.mark.parametrize("coding", CODINGS)
async def test_the_tokens_of_the_corpus_are_kept_out(proxy: Start, coding: str) -> None:
    texts = [f"The server uses {made} since Monday." for _, made, _ in CORPUS]
    async with proxy() as spy:
        client = await spy.client()
        await exchanged(spy, client, call(texts), result(texts), coding)
        await exchanged(spy, client, call("none"), event(result(texts)), coding)
        for at in range(0, len(CORPUS), 40):
            made = [made for _, made, _ in CORPUS[at : at + 40]]
            query = "&".join(f"x{number}={quote(token)}" for number, token in enumerate(made))
            headers = [f"Mcp-Note-{number}: {token}" for number, token in enumerate(made)]
            await exchanged(
                spy, client, call("none"), result([]), coding, target=f"/mcp?{query}", headers=headers
            )
        await spy.ended(2 + len(range(0, len(CORPUS), 40)))
        said = [len(spy.said(side)) for side in ("client", "server")]
        assert said[0] == said[1] > 20
        seen = corpus.texts(spy.recording.read_bytes())
    assert seen.count("[redacted:") > 5 * len(CORPUS)
    secrets = {form: rule for rule, _, secret in CORPUS for form in (secret, quote(secret))}
    leaked = [secrets[secret] for secret in contained(secrets, seen)]
    assert len(leaked) <= (1 - REQUIRED) * len(CORPUS), leaked


def places(name: str) -> tuple[dict[str, str], list[str], list[Any], dict[str, str]]:
    """Return all secrets of a name with their places, the texts and JSON values that contain them, and parameters."""
    made = contract.values(f"HTTP {name}")
    secrets: dict[str, str] = {}
    texts: list[str] = []
    objects: list[Any] = []
    parameters: dict[str, str] = {}
    for spelling in contract.spelled(name).values():
        for place, text in contract.IN_JSON.items():
            value = next(made)
            if place != "JSON that breaks off":
                secrets[value] = f"{spelling} as {place}"
                objects.append(json.loads(contract.filled(text, spelling, value)))
        for place, text in {**contract.IN_TEXT, **({} if " " in spelling else contract.ELEMENT)}.items():
            value = next(made)
            secrets[value] = f"{spelling} as {place}"
            texts.append(contract.filled(text, spelling, ("sid=" if name == "cookie" else "") + value))
        parameters[spelling] = next(made)
        secrets[parameters[spelling]] = f"{spelling} as a parameter or header"
    return secrets, texts, objects, parameters


async def test_no_documented_name_lets_its_value_into_the_recording(proxy: Start) -> None:
    secrets: dict[str, str] = {}
    codings = itertools.cycle(CODINGS)
    async with proxy() as spy:
        client = await spy.client()
        for name in contract.NAMES:
            found, texts, objects, parameters = places(name)
            secrets |= found
            query = "&".join(f"{quote(spelling)}={value}" for spelling, value in parameters.items())
            headers = [f"{each}: {value}" for each, value in parameters.items() if " " not in each]
            headers.append(f"Location: https://example.com/?{query}")
            # A third of the texts in the request, in a response, and in a stream; codings alternate.
            await exchanged(
                spy,
                client,
                call([texts[::3], objects]),
                result(texts[1::3]),
                next(codings),
                target=f"/mcp?{query}",
            )
            streamed = event(
                json.dumps({"jsonrpc": "2.0", "method": "x", "params": {"data": objects}}).encode()
            )
            await exchanged(
                spy, client, call([]), streamed + event(result(texts[2::3])), next(codings), headers=headers
            )
            broken = contract.filled(contract.IN_JSON["JSON that breaks off"], name, "Q7k2broken9Xz4")
            await exchanged(spy, client, broken.encode(), broken.encode(), next(codings))
        secrets["Q7k2broken9Xz4"] = "JSON that breaks off"
        await spy.ended(3 * len(contract.NAMES))
        seen = corpus.texts(spy.recording.read_bytes())
    leaked = [secrets[value] for value in contained(secrets, seen)]
    assert not leaked, f"{len(leaked)} leaks of {len(secrets)}: {leaked[:5]}"


async def test_of_hundreds_of_lookalikes_at_most_two_are_touched(proxy: Start) -> None:
    texts = list(dict.fromkeys(lookalikes.texts()))
    assert len(texts) >= 300
    async with proxy() as spy:
        client = await spy.client()
        for coding in CODINGS:
            await exchanged(spy, client, call(texts), result(texts), coding)
            await exchanged(spy, client, call(texts), event(result(texts)), coding)
        await spy.ended(2 * len(CODINGS))
        for side, sent in (("client", call(texts)), ("server", result(texts))):
            said = spy.said(side)
            assert len(said) == 2 * len(CODINGS)
            assert all(message.count(b"[redacted") <= 2 for message in said)
            assert any(message == sent for message in said)
